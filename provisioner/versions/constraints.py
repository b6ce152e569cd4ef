"""The versions that somebody wants, in the grammar of OLM v1 and Helm (github.com/Masterminds/semver, v3). PURE.

A constraint is comparisons that all hold, separated by spaces or commas, and alternatives of those separated by `||`:

- `1.2.3` and `=1.2.3` are one version, and `1.2`, `1.2.x`, `1.x`, `*` all that begin so
- `!=`, `>`, `<`, `>=`, `<=`: `>1.2` begins with 1.3.0, and `<=1.2` ends before it
- `~1.2.3` is 1.2.3 and later of 1.2; `~1` all of 1
- `^1.2.3` is 1.2.3 and later of 1; below 1.0.0 the first number that is not 0 stays: `^0.2.3` is of 0.2
- `1.2 - 1.4` is from 1.2.0 through all of 1.4

Pre-releases are wanted only where a comparison beside names one: `>=1.2.0-0 <2`. That is how both tools read it, and it
keeps 2.0.0-rc.1 from those who ask for `<2.0.0`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, starmap

from semver import Version

from provisioner.errors import InvalidRange
from provisioner.versions.ranges import MAX_LENGTH, NUMBER, Comparison, VersionRange, version_of

_NUMBER = rf"(?:{NUMBER}|[xX*])"
_VERSION = rf"v?{_NUMBER}(?:\.{_NUMBER}){{0,2}}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?"
_COMPARISON = re.compile(rf"(==|=>|=<|=|!=|!|>=|<=|>|<|~>|~|\^)?\s*({_VERSION})(?=$|[\s,|<>=!~^])[\s,]*", re.ASCII)
_HYPHEN = re.compile(rf"({_VERSION})\s+-\s+({_VERSION})(?=$|[\s,])", re.ASCII)
_PARTS = re.compile(r"v?([^-+]*)(.*)", re.ASCII | re.DOTALL)
_OPERATORS = {"": "=", "==": "=", "!": "!=", "=>": ">=", "=<": "<=", "~>": "~"}
_WILD = frozenset("xX*")
_ANY = Version(0, 0, 0, "0")


@dataclass(frozen=True, slots=True)
class _Named:
    """A version as it is written: `numbers` are those before the first wildcard or the end."""

    version: Version
    numbers: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        return len(self.numbers) == 3

    def after(self, count: int) -> Version:
        """The first version after all that begin with the first `count` numbers, its pre-releases too."""
        *before, last = self.numbers[:count]
        major, minor, patch = [*before, last + 1, 0, 0][:3]
        return Version(major, minor, patch, "0")


def constraint_of(text: str) -> VersionRange:
    """The constraint that `text` writes; raises InvalidRange."""
    if len(text) > MAX_LENGTH:
        raise InvalidRange(f"the constraint has {len(text)} characters; at most {MAX_LENGTH} are read")
    groups = [list(_comparisons(part, text)) for part in text.split("||")]
    closed = frozenset(at for at, group in enumerate(groups) if not any(named.version.prerelease for _, named in group))
    alternatives = tuple(tuple(chain.from_iterable(starmap(_read_comparison, group))) for group in groups)
    return VersionRange(alternatives, " ".join(text.split()), closed)


def _comparisons(part: str, text: str) -> Iterator[tuple[str, _Named]]:
    part = _HYPHEN.sub(r">=\1 <=\2", part.strip())
    if not part:
        raise InvalidRange(f"{text!r} is no constraint: a comparison is missing; expected one such as >=1.2.0 <2.0.0")
    position = 0
    while position < len(part):
        found = _COMPARISON.match(part, position)
        if found is None:
            raise InvalidRange(
                f"{text!r} is no constraint: {part[position:][:40]!r} cannot be read; expected one such as >=1.2.0 "
                "<2.0.0, ~1.2, ^1.2 or 1.2 - 1.4"
            )
        operator = found[1] or ""
        yield _OPERATORS.get(operator, operator), _named(found[2])
        position = found.end()


def _named(text: str) -> _Named:
    parts = _PARTS.fullmatch(text)
    assert parts is not None  # it takes everything
    numbers = list[int]()
    for word in parts[1].split("."):
        if word in _WILD:
            break
        numbers.append(int(word))
    whole = [*numbers, 0, 0, 0][:3]
    return _Named(version_of(".".join(map(str, whole)) + parts[2]), tuple(numbers))


def _read_comparison(operator: str, named: _Named) -> tuple[Comparison, ...]:
    """The comparisons that an operator before a version stands for; after its numbers any others may follow."""
    version, count = named.version, len(named.numbers)
    match operator:
        case ">=" | "<":
            return (Comparison(operator, version),)
        case "=" | "!=" | ">" | "<=" if named.is_whole:
            return (Comparison(operator, version),)
        case "!=" | ">" if not count:
            return (Comparison("<", _ANY),)  # none
        case "!=":
            return (Comparison("!=", version, named.after(count)),)
        case ">":
            return (Comparison(">=", named.after(count)),)
        case "<=":
            return (Comparison("<", named.after(count)) if count else Comparison(">=", _ANY),)
        case "~":
            count = min(count, 2)
        case "^":  # the first number that is not 0 stays; of zeros alone the last one
            count = next((at for at, number in enumerate(named.numbers, 1) if number), count)
    first = Comparison(">=", version)
    return (first, Comparison("<", named.after(count))) if count else (first,)
