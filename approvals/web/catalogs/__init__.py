"""Pages of catalogs: what they offer, and what would change.

Modules that other rooms use:

- `changes`: what would change from one bundle of a package to another
"""

__all__ = ["changes"]
