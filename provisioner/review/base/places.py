"""Where a finding holds: the objects, their versions and the fields, however many were said at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from provisioner.review.base.facts import said
from provisioner.values import Finding, ObjectRef

Path = tuple[str | int, ...]
PLACES = "all_places"  # in a finding's evidence


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A field of an object; `version` names one of a CRD's versions where the field is one of its schema.

    `of` is the object as messages call it. Paths are those of findings: ("spec", "things", "[]", "name").
    """

    of: str
    path: Path = ()
    version: str = ""

    def as_evidence(self) -> dict[str, object]:
        return {"object": self.of, "path": list(self.path), "version": self.version}


def places_of(finding: Finding) -> list[Place]:
    """All places of a finding, its own alone where nothing else was said with it."""
    listed = finding.evidence.get(PLACES)
    if listed:
        return [Place(str(one["object"]), tuple(one["path"]), str(one["version"])) for one in listed]
    return [Place(said(finding.ref) if finding.ref else "", finding.path, version_of(finding))]


def version_of(finding: Finding) -> str:
    version = finding.evidence.get("version")
    return version if isinstance(version, str) else ""


def paths_in(finding: Finding, ref: ObjectRef, version: str) -> list[Path]:
    """The fields of one version of this CRD where a finding holds; none where it is about something else."""
    name = said(ref)
    return [place.path for place in places_of(finding) if (place.of, place.version) == (name, version)]


def by_field(places: Iterable[Place]) -> Iterator[tuple[str, Path, list[str]]]:
    """The places in order: each object's fields, each with its versions."""
    for (name, path), group in groupby(
        sorted(places, key=lambda one: (one.of, _sortable(one.path), one.version)),
        key=lambda one: (one.of, one.path),
    ):
        yield name, path, [one.version for one in group if one.version]


def _sortable(path: Path) -> tuple[str, ...]:
    return tuple(str(part) for part in path)
