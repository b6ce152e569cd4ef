"""Which bundles of catalogs requests are about, and which packages deployments follow.

Modules that other rooms use:

- `choosing`: the bundle that a source takes now, by what runs and what the catalog offers
- `following`: which deployments follow which packages, and when what is offered is looked at
"""

__all__ = ["choosing", "following"]
