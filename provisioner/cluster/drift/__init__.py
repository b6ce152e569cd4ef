"""What others did to objects that are ours, and how soon it may be restored.

- `backoff`: how soon an object may be restored again
- `detection`: how a live object differs from its revision
- `field_owners`: which manager owns which fields
- `left_out`: fields that are left to another controller
- `old_versions`: objects whose managedFields name a version that is no longer served
"""

__all__ = [
    "backoff",
    "detection",
    "field_owners",
    "left_out",
    "old_versions",
]
