"""What is done for a catalog: it is read where its source has other content, and the cluster shows what was found.

Modules that other rooms use:

- `refreshing`: one look at the source of a catalog
"""

__all__ = [
    "refreshing",
]
