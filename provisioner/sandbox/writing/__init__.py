"""Create, update, patch, apply and delete: what the API server does to an object on its way in.

- `bodies`: objects as they come in
- `writing`: all writes
"""

__all__ = [
    "bodies",
    "writing",
]
