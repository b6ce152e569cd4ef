"""The pages of deployments: what runs, whether it is what was approved, and the form of a wish.

Modules that other rooms use:

- `deployments`: deployments: what runs, since when, and is it what was approved?
- `offers`: the names that the form of a deployment offers to pick from
"""

__all__ = [
    "deployments",
    "offers",
]
