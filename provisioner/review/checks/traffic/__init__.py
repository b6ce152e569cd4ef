"""Checks of where traffic goes and who is let in.

- `annotation_table`: what annotations make controllers do
- `controllers`: annotations that run as configuration or guard access
- `elsewhere`: hosts and addresses that no selector makes
- `plain_text`: hosts that are no longer served by TLS
- `selectors`: which pods Services and network policies select
"""

__all__ = [
    "annotation_table",
    "controllers",
    "elsewhere",
    "plain_text",
    "selectors",
]
