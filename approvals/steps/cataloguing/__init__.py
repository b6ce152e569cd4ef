"""What is done for a catalog: it is read where its source has other content, and the cluster shows what was found.
Bundles of it are compared where somebody asks.

Modules that other rooms use:

- `comparing`: what would change from one bundle to another
- `refreshing`: one look at the source of a catalog
- `turns`: whose catalog is read next
"""

__all__ = [
    "comparing",
    "refreshing",
    "turns",
]
