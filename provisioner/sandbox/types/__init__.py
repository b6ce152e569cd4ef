"""The kinds that the sandbox serves: their fields and types, and what discovery, OpenAPI and tables say of them.

- `builtin`: the fields of built-in kinds
- `custom`: kinds that CRDs define
- `discovery`: /api and /apis
- `fields`: who owns which field, and how lists are merged
- `kinds`: the built-in kinds as discovery shows them
- `openapi`: /openapi
- `tables`: what kubectl get shows
"""

__all__ = [
    "builtin",
    "custom",
    "discovery",
    "fields",
    "kinds",
    "openapi",
    "tables",
]
