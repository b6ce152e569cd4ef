"""Checks of what happens to objects: created, changed, deleted, and what does not come back.

- `apis`: API versions: whether they are served, and for how long
- `builtin`: what the API server refuses of Kubernetes' own kinds where it was not asked
- `crds`: whether a changed CRD accepts what is stored and written
- `data_policies`: data that goes with its object from now on
- `deletions`: what goes with what is deleted
- `live`: what a changed CRD does to what exists
- `objects`: created, changed, replaced and adopted objects
- `offline`: objects against schemas where no server can be asked
- `owners`: whose objects are planned as if they were adopted
- `renames`: a deletion and a creation that are one rename
- `unseen`: changes that no reader can be shown
- `way_back`: what going back does not bring back
"""

__all__ = [
    "apis",
    "builtin",
    "crds",
    "data_policies",
    "deletions",
    "live",
    "objects",
    "offline",
    "owners",
    "renames",
    "unseen",
    "way_back",
]
