"""The checks of a report by subject: each is one module, and one line in frame.py.

- `network`: policies, webhooks and API services
- `objects`: what happens to objects, and whether the cluster takes them
- `own`: what touches Pratique itself
- `pods`: pods, their images and settings
- `rights`: what accounts gain, and what the installer lacks
"""

__all__ = [
    "network",
    "objects",
    "own",
    "pods",
    "rights",
]
