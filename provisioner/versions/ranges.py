"""Versions and ranges of versions, in the grammar that OLM's bundles use (github.com/blang/semver). PURE.

A range is comparisons that all hold, separated by spaces or commas, and alternatives of those separated by `||`:
`>=1.2.0 <2.0.0 || >3.0.0`. `x` stands for any number at the end: `1.x`, `>1.2.x`; beyond that grammar, so does a number
that is left out: `1.36` is 1.36.x, not 1.36.0 alone. Numbers are those of OLM and Helm: unsigned, of 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from semver import Version

from provisioner.errors import InvalidRange

MAX_LENGTH = 500
MAX_NUMBER = 2**64 - 1
# What a number is written with, which may be too large still.
NUMBER = r"\d{1,20}"
_VERSION = re.compile(
    rf"v?({NUMBER})(?:\.({NUMBER}))?(?:\.({NUMBER}))?((?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)", re.ASCII
)
# What OLM takes for the release of a version (operator-registry, `NewRelease`).
MAX_RELEASE = 20
_PART = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_RELEASE = re.compile(rf"{_PART}(?:\.{_PART})*", re.ASCII)
_COMPARISON = re.compile(r"(==|=|!=|!|>=|<=|>|<)?\s*([^\s,|<>=!]+)[\s,]*", re.ASCII)
_SHORT = re.compile(rf"v?{NUMBER}(?:\.{NUMBER})?", re.ASCII)
_WILD = re.compile(rf"v?(?:({NUMBER})\.)?(?:({NUMBER})\.)?[xX*]", re.ASCII)


# What sorts as versions do.
Precedence = tuple[int, int, int, tuple[tuple[int, int, str], ...]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of `=`, `!=`, `<`, `<=`, `>`, `>=` to one version; of `!=` also to all from it on that are below `before`."""

    operator: str
    version: Version
    before: Version | None = None

    def takes(self, other: Version, release: str) -> bool:
        """As `holds`, but what is equal to a version with build metadata is that build, or release, alone."""
        is_build = self.operator == "=" and bool(self.version.build)
        return self.holds(other) and (not is_build or self.version.build == (other.build or release))

    def holds(self, other: Version) -> bool:
        order = other.compare(self.version)
        if self.before is not None:
            return order < 0 or other >= self.before
        return {"=": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[
            self.operator
        ]


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Alternatives of comparisons that all hold; those at the places in `without_prereleases` take no pre-release."""

    alternatives: tuple[tuple[Comparison, ...], ...]
    text: str
    without_prereleases: frozenset[int] = frozenset()

    def __contains__(self, version: Version) -> bool:
        return any(
            all(comparison.holds(version) for comparison in comparisons) for comparisons in self._open_to(version)
        )

    def takes(self, version: Version, release: str = "") -> bool:
        """Whether somebody who names this range means the version: `=1.2.3+4` is that build, or release 4, alone."""
        return any(
            all(comparison.takes(version, release) for comparison in comparisons)
            for comparisons in self._open_to(version)
        )

    def _open_to(self, version: Version) -> Iterator[tuple[Comparison, ...]]:
        for at, comparisons in enumerate(self.alternatives):
            if not (version.prerelease and at in self.without_prereleases):
                yield comparisons

    def __str__(self) -> str:
        return self.text


def version_of(text: str) -> Version:
    """The version that `text` writes, also with a leading `v` and without its last numbers.

    Raises InvalidRange.
    """
    found = _VERSION.fullmatch(text.strip()) if len(text) <= MAX_LENGTH else None
    if found is None:
        raise InvalidRange(f"{text[:80]!r} is no version; expected one such as 1.2.3")
    *numbers, rest = found.groups()
    major, minor, patch = (_number(number or "0") for number in numbers)
    try:
        return Version.parse(f"{major}.{minor}.{patch}{rest}")
    except ValueError as exc:
        raise InvalidRange(f"{text[:80]!r} is no version: {exc}") from exc


def _number(text: str) -> int:
    if (number := int(text)) > MAX_NUMBER:
        raise InvalidRange(f"{text} is too large for a version, whose numbers go up to {MAX_NUMBER}")
    return number


def precedence(version: Version) -> Precedence:
    """What sorts as versions do, for many of them at once: what is built (`+`) does not count."""
    ids = version.prerelease.split(".") if version.prerelease else []
    rest = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in ids)
    return version.major, version.minor, version.patch, rest or ((2, 0, ""),)


def is_release(text: str) -> bool:
    """Whether OLM takes this build metadata for the release of a version."""
    return len(text) <= MAX_RELEASE and _RELEASE.fullmatch(text) is not None


def release_order(release: str) -> tuple[tuple[int, int, str], ...]:
    """What sorts as the releases of one version do: like the identifiers of a pre-release, and none comes first.

    What is no release has no order: it is taken for none.
    """
    parts = release.split(".") if is_release(release) else []
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)


def release_of(version: Version) -> Version:
    """`version` without what a vendor appends: Kubernetes 1.36.3-gke.100 has all that 1.36.3 has."""
    return Version(version.major, version.minor, version.patch)


def range_of(text: str) -> VersionRange:
    """The range that `text` writes; raises InvalidRange."""
    if len(text) > MAX_LENGTH:
        raise InvalidRange(f"the range has {len(text)} characters; at most {MAX_LENGTH} are read")
    alternatives = tuple(tuple(_comparisons(part, text)) for part in text.split("||"))
    return VersionRange(alternatives, " ".join(text.split()))


def _comparisons(part: str, text: str) -> Iterator[Comparison]:
    part = part.strip()
    if not part:
        raise InvalidRange(f"{text!r} is no range: a comparison is missing; expected one such as >=1.2.0 <2.0.0")
    position = 0
    while position < len(part):
        found = _COMPARISON.match(part, position)
        if found is None:
            raise InvalidRange(f"{text!r} is no range: {part[position:][:40]!r} cannot be read")
        operator = {None: "=", "==": "=", "!": "!="}.get(found[1], found[1])
        yield from _expanded(operator or "=", found[2])
        position = found.end()


def _expanded(operator: str, text: str) -> Iterator[Comparison]:
    """One comparison, or the two that a wildcard stands for."""
    is_short = operator not in (">=", "<") and _SHORT.fullmatch(text)
    wild = _WILD.fullmatch(f"{text}.x" if is_short else text)
    if wild is None:
        yield Comparison(operator, version_of(text))
        return
    low, high = _bounds(wild)
    if operator == "!=":
        raise InvalidRange(f"!={text} excludes a whole range; write the ranges that are allowed with || instead")
    if operator in ("=", ">="):
        yield Comparison(">=", low)
    if operator in ("=", "<=") and high is not None:
        yield Comparison("<", high)
    if operator == "<":
        yield Comparison("<", low)
    if operator == ">":
        yield Comparison(">=", high) if high is not None else Comparison("<", low)


def _bounds(wild: re.Match[str]) -> tuple[Version, Version | None]:
    """The first version that a wildcard stands for, and the first after it; None where there is none."""
    first, second = wild.groups()
    if first is None:
        return Version(0, 0, 0), None
    major = _number(first)
    if second is None:
        return Version(major, 0, 0), Version(major + 1, 0, 0)
    minor = _number(second)
    return Version(major, minor, 0), Version(major, minor + 1, 0)
