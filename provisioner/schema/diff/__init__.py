"""What changes between two versions of a CustomResourceDefinition, and for whom.

- `crd`: two definitions compared
- `rules`: CEL rules and logical branches
"""

__all__ = [
    "crd",
    "rules",
]
