"""The checks of a report by subject: each is one module, and one line in frame.py.

- `availability`: what stops, does not start, or is no longer reached
- `bundle`: what a bundle is and brings
- `network`: policies, webhooks and API services
- `objects`: what happens to objects, and whether the cluster takes them
- `own`: what touches Pratique itself
- `pods`: pods, their images and settings
- `rights`: what accounts gain, and what the installer lacks
"""

__all__ = [
    "availability",
    "bundle",
    "network",
    "objects",
    "own",
    "pods",
    "rights",
]
