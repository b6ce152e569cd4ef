"""CustomResourceDefinitions: read into one form, and judged as the API server judges them.

- `crd`: a definition, read
- `validation`: a definition, judged
"""

__all__ = [
    "crd",
    "validation",
]
