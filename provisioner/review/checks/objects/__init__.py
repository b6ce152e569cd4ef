"""Checks of what happens to objects: created, changed, deleted, and what does not come back.

- `apis`: API versions: whether they are served, and for how long
- `content`: Secrets and the like in the bundle
- `crds`: whether a changed CRD accepts what is stored and written
- `deletions`: what goes with what is deleted
- `live`: what a changed CRD does to what exists
- `objects`: created, changed, replaced and adopted objects
- `offline`: objects against schemas where no server can be asked
- `way_back`: what going back does not bring back
"""

__all__ = [
    "apis",
    "content",
    "crds",
    "deletions",
    "live",
    "objects",
    "offline",
    "way_back",
]
