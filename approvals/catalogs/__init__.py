"""What catalogs offer, as it was read last: a catalog is stored in editions, and a reader sees a whole one.

Whoever shows something of a catalog asks first whether the viewer may get it (access).
"""

from approvals.catalogs.authors import authors_by_part
from approvals.catalogs.following import (
    due,
    forget,
    interval,
    is_same_source,
    note_problem,
    note_reader,
    note_seen,
    note_shown,
    postpone,
    see,
)
from approvals.catalogs.history import ContentChange, changed_content, changes_of
from approvals.catalogs.reading import (
    PackagePage,
    PackageSummary,
    catalog,
    package,
    package_rows,
    packages_of,
    presentation,
)
from approvals.catalogs.storing import ReadCatalog, store

__all__ = [
    "ContentChange",
    "PackagePage",
    "PackageSummary",
    "ReadCatalog",
    "authors_by_part",
    "catalog",
    "changed_content",
    "changes_of",
    "due",
    "forget",
    "interval",
    "is_same_source",
    "note_problem",
    "note_reader",
    "note_seen",
    "note_shown",
    "package",
    "package_rows",
    "packages_of",
    "postpone",
    "presentation",
    "see",
    "store",
]
