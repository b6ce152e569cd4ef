"""Versions, in the grammars of those who write them. PURE.

- `ranges`: versions, their order, and ranges as the bundles of OLM write them
- `constraints`: the versions that somebody wants, as OLM v1 and Helm read them
"""

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
