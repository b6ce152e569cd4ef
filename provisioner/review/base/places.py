"""Where a finding holds: the objects, their versions and the fields, however many were said at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from provisioner.review.base.claims import ANY
from provisioner.review.base.facts import mapping, said
from provisioner.schema.verdicts import ITEMS, VALUES
from provisioner.values import Finding, ObjectRef

Path = tuple[str | int, ...]
PLACES = "all_places"  # in a finding's evidence
DIFFERING = "evidence"  # in a place: what is not the same at all of them
# Rules of what no rule judges, and in their evidence the fields, as patterns.
UNJUDGED, UNCLAIMED = "UNJUDGED", "UNCLAIMED"
FIELDS = "fields"


@dataclass(frozen=True, slots=True, order=True)
class FieldPlace:
    """A field of an object; `version` names one of a CRD's versions where the field is one of its schema.

    `of` is the object as messages call it. Paths are those of findings: ("spec", "things", "[]", "name").
    """

    of: str
    path: Path = ()
    version: str = ""

    def as_evidence(self) -> dict[str, object]:
        return {"object": self.of, "path": list(self.path), "version": self.version}


def places_of(finding: Finding) -> list[FieldPlace]:
    """All places of a finding, its own alone where nothing else was said with it."""
    listed = finding.evidence.get(PLACES)
    if listed:
        return [FieldPlace(str(one["object"]), tuple(one["path"]), str(one["version"])) for one in listed]
    return [FieldPlace(said(finding.ref) if finding.ref else "", finding.path, version_of(finding))]


def listed_places(finding: Finding) -> list[dict[str, object]]:
    """The places of a finding as its evidence lists them, with what was said of each alone."""
    listed = finding.evidence.get(PLACES)
    return [dict(one) for one in listed] if listed else [one.as_evidence() for one in places_of(finding)]


def unjudged_fields(rule: str, evidence: Mapping[str, Any]) -> Iterator[str]:
    """The fields that a finding, or its record, says no rule judges, once for each object; ANY where it names none."""
    if rule not in (UNJUDGED, UNCLAIMED):
        return
    everywhere = evidence.get(FIELDS) or [ANY]
    for place in evidence.get(PLACES) or [{}]:
        yield from mapping(place.get(DIFFERING)).get(FIELDS) or everywhere


def version_of(finding: Finding) -> str:
    version = finding.evidence.get("version")
    return version if isinstance(version, str) else ""


def paths_in(finding: Finding, ref: ObjectRef, version: str) -> list[Path]:
    """The fields of one version of this CRD where a finding holds; none where it is about something else."""
    name = said(ref)
    return [place.path for place in places_of(finding) if (place.of, place.version) == (name, version)]


def by_field(places: Iterable[FieldPlace]) -> Iterator[tuple[str, Path, list[str]]]:
    """The places in order: each object's fields, each with its versions."""
    for (name, path), group in groupby(
        sorted(places, key=lambda one: (one.of, _sortable(one.path), one.version)),
        key=lambda one: (one.of, one.path),
    ):
        yield name, path, [one.version for one in group if one.version]


def path_text(path: Iterable[str | int]) -> str:
    """A path as people write it: spec.containers[0].image, or of a schema spec.containers[].image and spec.labels{}."""
    words = ""
    for part in path:
        if isinstance(part, int):
            words += f"[{part}]"
        else:
            words += f".{part}" if words and part not in (ITEMS, VALUES) else str(part)
    return words


def _sortable(path: Path) -> tuple[str, ...]:
    return tuple(str(part) for part in path)


def names_field(text: str, field: str) -> bool:
    """Whether a text has the name of a field by itself, not as a part of another's."""
    return any(not text.startswith("{", at + len(field)) for at in _standing_alone(text, field))


def with_field_as(text: str, field: str, mark: str) -> str:
    """The text with `mark` for the name of a field, wherever that stands by itself."""
    parts, last = [], 0
    for at in _standing_alone(text, field):
        parts += [text[last:at], mark]
        last = at + len(field)
    return "".join([*parts, text[last:]])


def _standing_alone(text: str, field: str) -> Iterator[int]:
    """Where a field's name begins with no name around it. A pattern of its own for each field would take far longer."""
    at = text.find(field) if field else -1
    while at >= 0:
        end = at + len(field)
        is_alone = not (at and _is_of_name(text[at - 1])) and not (end < len(text) and _is_of_name(text[end]))
        if is_alone:
            yield at
        at = text.find(field, end if is_alone else at + 1)


def _is_of_name(character: str) -> bool:
    return character.isalnum() or character in "_.["
