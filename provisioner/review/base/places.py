"""Where a finding holds: the objects, their versions and the fields, however many were said at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from provisioner.review.base.claims import ANY
from provisioner.schema.verdicts import ITEMS, VALUES
from provisioner.values import Finding, ObjectRef, display_name

Path = tuple[str | int, ...]
PLACES = "all_places"  # in a finding's evidence
COUNTED = "fieldCounts"  # in a finding's evidence: how many of its places change in which way, as its own words say
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
    return [FieldPlace(display_name(finding.ref) if finding.ref else "", finding.path, version_of(finding))]


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
        yield from (place.get(DIFFERING) or {}).get(FIELDS) or everywhere


def version_of(finding: Finding) -> str:
    version = finding.evidence.get("version")
    return version if isinstance(version, str) else ""


def paths_in(finding: Finding, ref: ObjectRef, version: str) -> list[Path]:
    """The fields of one version of this CRD where a finding holds; none where it is about something else."""
    name = display_name(ref)
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
