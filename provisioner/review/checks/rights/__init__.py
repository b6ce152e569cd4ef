"""Checks of permissions: everybody's after the change, and those of the installing account.

- `everybody`: groups that everybody is in
- `permissions`: who gains or loses what
- `preflight`: whether the installing account may do it all
"""

__all__ = [
    "everybody",
    "permissions",
    "preflight",
]
