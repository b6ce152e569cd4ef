"""What changes between two versions of a CustomResourceDefinition, and for whom.

- `crd`: two definitions compared
- `crdify`: the same as crdify does
- `rules`: CEL rules and logical branches
"""

__all__ = [
    "crd",
    "crdify",
    "rules",
]
