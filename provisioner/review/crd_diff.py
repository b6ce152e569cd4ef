"""Two sets of CRDs held against each other by name: one verdict each, for `pratique crd-diff`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from provisioner.errors import InvalidManifest
from provisioner.json_values import mapping, maps
from provisioner.review.base.facts import Stored
from provisioner.review.base.messages import without_place
from provisioner.review.base.record import plain
from provisioner.review.checks.objects.crds import judge_creation, say_deletion
from provisioner.review.crds.live_findings import compare_crds, live_findings, settled, with_condition
from provisioner.review.crds.live_scene import (
    CRD,
    counted,
    kind_of,
    nothing_said,
    owned_by_others,
    scene_of,
    twice_taken,
)
from provisioner.values import Finding, GroupKind, JsonObject, ObjectRef, Severity, worst_first

Objects = Iterable[JsonObject]

# What a CRD's findings come to; the severities of the other checks do not occur here.
_VERDICTS = {Severity.CRITICAL: Severity.BREAKING, Severity.NOTABLE: Severity.SAFE}


@dataclass(frozen=True, slots=True)
class CrdDifference:
    """What changes in one CRD."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Severity:
        """safe, dangerous, breaking or unknown: that of the worst finding."""
        worst = min(
            (finding.severity for finding in self.findings), key=lambda severity: severity.rank, default=Severity.SAFE
        )
        return _VERDICTS.get(worst, worst)


def crds_of(documents: Iterable[Any], *, name: str) -> dict[str, JsonObject]:
    """The CRDs of a file by name, those in Lists too. Raises InvalidManifest where there is none, or one twice."""
    found: dict[str, JsonObject] = {}
    for obj in _flattened(documents):
        ref = ObjectRef.of(obj)
        if ref.group_kind != CRD:
            continue
        if ref.name in found:
            raise InvalidManifest(f"{name}: the CRD {ref.name} stands there twice")
        found[ref.name] = obj
    if not found:
        raise InvalidManifest(f"{name}: holds no CustomResourceDefinition")
    return found


def differences(
    old: Mapping[str, JsonObject],
    new: Mapping[str, JsonObject],
    objects: Objects | None = None,
    kinds: frozenset[GroupKind] | None = None,
) -> list[CrdDifference]:
    """One difference per CRD of either side, by name; with `objects` judged by them.

    `objects` are all that is stored of `kinds`, by default of every kind; the others are judged by their schemas alone.
    """
    stored = None if objects is None else Stored(tuple(objects), kinds)
    taken = list(twice_taken(new.values()))
    before = {finding.fingerprint for finding in twice_taken(old.values())}
    found = {name: _findings(old.get(name), new.get(name), stored) for name in sorted({**old, **new})}
    for finding in taken:
        if finding.ref is not None and finding.fingerprint not in before:
            found[finding.ref.name].append(finding)
    told = {name: [without_place(with_condition(finding)) for finding in several] for name, several in found.items()}
    return [CrdDifference(name, worst_first(several)) for name, several in told.items()]


def to_record(difference: CrdDifference) -> dict[str, Any]:
    """The JSON of one difference, as crd-diff.schema.json describes it."""
    findings = [
        {
            "rule": finding.rule,
            "severity": str(finding.severity),
            "certainty": str(finding.certainty),
            "verdicts": {question: str(severity) for question, severity in sorted(finding.verdicts.items())},
            "version": str(finding.evidence.get("version") or ""),
            "path": list(finding.path),
            "message": finding.message,
            "evidence": plain(finding.evidence),
            "fingerprint": finding.fingerprint,
        }
        for finding in difference.findings
    ]
    return {"crd": difference.name, "verdict": str(difference.verdict), "findings": findings}


def _findings(old: JsonObject | None, new: JsonObject | None, stored: Stored | None) -> list[Finding]:
    if old is None:
        return list(judge_creation(ObjectRef.of(new or {}), new or {}))
    kind = kind_of(old)
    is_told = stored is not None and stored.tells_of(kind)
    if new is None:
        found = say_deletion(ObjectRef.of(old), old)
        return [counted(found, kind, stored) if stored is not None and is_told else found]
    changes = [*compare_crds(old, new), *owned_by_others(old, new)]
    if stored is None or not is_told:
        return changes if stored is None else [*changes, nothing_said(old, new)]
    scene = scene_of(old, new, stored.objects)
    live = live_findings(scene, is_needed=any(finding.evidence.get("live") for finding in changes))
    # Whether there is a way back is a verdict of its own: it makes no change a dangerous one.
    of_now = [replace(finding, severity=Severity.SAFE) if finding.rule == "LIV-06" else finding for finding in live]
    return [*(settled(change, scene) for change in changes), *of_now]


def strangers(crds: Iterable[JsonObject], objects: Objects) -> dict[str, int]:
    """How many of `objects` are of none of the CRDs, by kind and group: they are passed over."""
    known = set(map(kind_of, crds))
    kinds = Counter(ObjectRef.of(obj).group_kind for obj in objects)
    return {str(kind): count for kind, count in sorted(kinds.items(), key=str) if kind not in known}


def objects_of(documents: Iterable[Any]) -> list[JsonObject]:
    """The objects of a file, those in Lists too."""
    return list(_flattened(documents))


def kinds_told(documents: Iterable[Any]) -> frozenset[GroupKind] | None:
    """The kinds of which a file says what is stored: those of its objects, and those of its empty lists.

    None for every kind: an empty List, which is what kubectl prints where it finds nothing, says so of whatever was
    asked for. A file without one may as well be the wrong file.
    """
    found: set[GroupKind] = set()
    for body in map(mapping, documents):
        ref = ObjectRef.of(body)
        if not _is_list(body):
            found.add(ref.group_kind)
        elif body.get("items"):
            found.update(ObjectRef.of(obj).group_kind for obj in _flattened([body]))
        elif ref.kind == "List":
            return None
        else:
            found.add(GroupKind(ref.group, ref.kind.removesuffix("List")))
    return frozenset(found)


def _flattened(documents: Iterable[Any]) -> Iterator[JsonObject]:
    for document in documents:
        body = mapping(document)
        if _is_list(body):
            yield from _flattened(maps(body.get("items")))
        elif body:
            yield body


def _is_list(body: Mapping[str, Any]) -> bool:
    return str(body.get("kind", "")).endswith("List") and "items" in body
