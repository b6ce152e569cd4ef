"""The same said of many fields of schemas: a type that several CRDs share breaks once, in words that fit all places.

For the short text of a report only. The page, the whole text and JSON have each field with its own words. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.places import DIFFERING, FieldPlace, Path, listed_places, path_text
from provisioner.schema.fields import shown_json
from provisioner.sentences import number, some
from provisioner.values import Finding

MAX_PATH, MAX_VALUE = 48, 60
# What of a default is a value of its field, and stands beside it.
_DEFAULTS = frozenset({"SCH-06", "SCH-33", "SCH-34", "SCH-35"})


@dataclass(frozen=True, slots=True)
class SharedField:
    """A field by the name that all its places end in, and its values where they are what changes."""

    name: str
    count: int
    values: str = ""

    def __str__(self) -> str:
        told = [self.values] if self.values else []
        told += [f"{self.count:,} places"] if self.count > 1 else []
        return f"{self.name} ({'; '.join(told)})" if told else self.name


def fields_in_words(findings: Sequence[Finding], at_most: int) -> str:
    """The fields, those that end alike as one."""
    fields = _shared(_listed(findings))
    return some(fields, at_most, noun="fields")


def objects_in_words(findings: Sequence[Finding]) -> str:
    """How many places of which objects."""
    places = [place for place, _ in _listed(findings)]
    count = len({(one.of, one.path) for one in places})
    where = some(list(dict.fromkeys(one.of for one in places)), 1)
    return f"{number(count, 'place')} in {where}"


def spelled_out(findings: Sequence[Finding], at_most: int) -> int:
    """How many of the places `fields_in_words` names whole."""
    return sum(one.count == 1 for one in _shared(_listed(findings))[:at_most])


def _listed(findings: Iterable[Finding]) -> list[tuple[FieldPlace, str]]:
    return [(_place(one), _values(one, finding)) for finding in findings for one in listed_places(finding)]


def _shared(places: Iterable[tuple[FieldPlace, str]]) -> list[SharedField]:
    """The fields of most places first."""
    groups: dict[tuple[str, ...], dict[tuple[str, Path], str]] = {}
    for place, values in places:
        ending = tuple(map(str, place.path[-2:]))
        groups.setdefault(ending, {})[place.of, place.path] = values
    found = [_field(ending, group) for ending, group in groups.items()]
    return sorted(found, key=lambda one: (-one.count, one.name))


def _field(ending: tuple[str, ...], group: Mapping[tuple[str, Path], str]) -> SharedField:
    paths = {path for _, path in group}
    values = set(group.values())
    name = path_text(paths.pop()) if len(paths) == 1 else f"…{path_text(ending)}"
    if len(name) > MAX_PATH and not name.startswith("…"):
        name = f"…{path_text(ending)}"
    return SharedField(name, len(group), values.pop() if len(values) == 1 else "")


def _place(listed: Mapping[str, Any]) -> FieldPlace:
    return FieldPlace(str(listed["object"]), tuple(listed["path"]), str(listed["version"]))


def _values(listed: Mapping[str, Any], finding: Finding) -> str:
    if finding.rule not in _DEFAULTS:
        return ""
    own = listed.get(DIFFERING)
    facts = {**finding.evidence, **(own if isinstance(own, Mapping) else {})}
    told = [_value(facts[name]) for name in ("old", "new") if facts.get(name) is not None]
    return " → ".join(told)


def _value(value: object) -> str:
    text = shown_json(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"
