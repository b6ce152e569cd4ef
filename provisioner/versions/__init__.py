"""Versions, in the grammars of those who write them. PURE."""

from provisioner.versions.constraints import constraint_of
from provisioner.versions.ranges import (
    MAX_LENGTH,
    NUMBER,
    Comparison,
    Precedence,
    VersionRange,
    is_release,
    precedence,
    range_of,
    release_of,
    release_order,
    version_of,
)

__all__ = [
    "MAX_LENGTH",
    "NUMBER",
    "Comparison",
    "Precedence",
    "VersionRange",
    "constraint_of",
    "is_release",
    "precedence",
    "range_of",
    "release_of",
    "release_order",
    "version_of",
]
