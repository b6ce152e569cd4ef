"""What catalogs offer, as it was read last: a catalog is stored in editions, and a reader sees a whole one.

Whoever shows something of a catalog asks first whether the viewer may get it (access).
"""

from approvals.catalogs import addresses, comparisons
from approvals.catalogs.authors import authors_by_part
from approvals.catalogs.following import (
    author_of,
    forget,
    interval,
    is_same_source,
    note_idle,
    note_problem,
    note_reader,
    note_reading,
    note_seen,
    note_shown,
    postpone,
    read_anew,
    see,
    to_show,
)
from approvals.catalogs.history import ContentChange, changed_content, changes_of, forget_gone, last_seen
from approvals.catalogs.reading import (
    PackagePage,
    PackageSummary,
    catalog,
    catalog_rows,
    icon,
    is_read_as_now,
    package,
    package_problems,
    package_rows,
    packages_of,
    presentation,
    with_icons,
)
from approvals.catalogs.searching import MOST_WORDS, excerpts, keywords_found, named_so, packages_found, same_name
from approvals.catalogs.storing import ReadCatalog, store

__all__ = [
    "MOST_WORDS",
    "ContentChange",
    "PackagePage",
    "PackageSummary",
    "ReadCatalog",
    "addresses",
    "author_of",
    "authors_by_part",
    "catalog",
    "catalog_rows",
    "changed_content",
    "changes_of",
    "comparisons",
    "excerpts",
    "forget",
    "forget_gone",
    "icon",
    "interval",
    "is_read_as_now",
    "is_same_source",
    "keywords_found",
    "last_seen",
    "named_so",
    "note_idle",
    "note_problem",
    "note_reader",
    "note_reading",
    "note_seen",
    "note_shown",
    "package",
    "package_problems",
    "package_rows",
    "packages_found",
    "packages_of",
    "postpone",
    "presentation",
    "read_anew",
    "same_name",
    "see",
    "store",
    "to_show",
    "with_icons",
]
