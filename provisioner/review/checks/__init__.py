"""The checks of a report by subject: each is one module, and one line in frame.py.

- `availability`: what stops, does not start, or is no longer reached
- `bundle`: what a bundle is and brings
- `governance`: admission that becomes weaker, quotas, and objects of the control plane
- `network`: policies, webhooks and API services
- `objects`: what happens to objects, and whether the cluster takes them
- `own`: what touches Pratique itself
- `pods`: pods, their images and settings
- `rights`: what accounts gain, and what the installer lacks
- `traffic`: where traffic goes, and who is let in
"""

__all__ = [
    "availability",
    "bundle",
    "governance",
    "network",
    "objects",
    "own",
    "pods",
    "rights",
    "traffic",
]
