"""Content that touches Pratique itself or hands out power over it (S22): rights, accounts, admission, other ways.

- `advice`: what people are told to do about it
- `own`: the check
- `power`: whom roles and bindings give power over Pratique
"""

__all__ = [
    "advice",
    "own",
    "power",
]
