"""Two sets of CRDs held against each other by name: one verdict each, for `pratique crd-diff`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.errors import InvalidManifest
from provisioner.review.checks.crds import CRD, created, deleted
from provisioner.review.facts import mapping, maps
from provisioner.review.record import plain
from provisioner.schema import compare
from provisioner.values import Finding, JsonObject, ObjectRef, Severity, worst_first

# What a CRD's findings come to; the severities of the other checks do not occur here.
_VERDICTS = {
    Severity.CRITICAL: Severity.BREAKING,
    Severity.NOTABLE: Severity.SAFE,
}


@dataclass(frozen=True, slots=True)
class CrdDifference:
    name: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Severity:
        """safe, dangerous, breaking or unknown: that of the worst finding."""
        worst = min((one.severity for one in self.findings), key=lambda it: it.rank, default=Severity.SAFE)
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


def differences(old: Mapping[str, JsonObject], new: Mapping[str, JsonObject]) -> list[CrdDifference]:
    """One difference per CRD of either side, by name."""
    return [
        CrdDifference(name, worst_first(_findings(old.get(name), new.get(name)))) for name in sorted({**old, **new})
    ]


def to_record(difference: CrdDifference) -> dict[str, Any]:
    return {
        "crd": difference.name,
        "verdict": str(difference.verdict),
        "findings": [_finding_record(one) for one in difference.findings],
    }


def _findings(old: JsonObject | None, new: JsonObject | None) -> list[Finding]:
    if old is not None and new is not None:
        return compare(old, new)
    if new is not None:
        return list(created(ObjectRef.of(new), new))
    return [deleted(ObjectRef.of(old or {}), old)]


def _finding_record(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "verdicts": {question: str(severity) for question, severity in sorted(finding.verdicts.items())},
        "version": str(finding.evidence.get("version") or ""),
        "path": list(finding.path),
        "message": finding.message,
        "evidence": plain(finding.evidence),
        "fingerprint": finding.fingerprint,
    }


def _flattened(documents: Iterable[Any]) -> Iterator[JsonObject]:
    for document in documents:
        body = mapping(document)
        if str(body.get("kind", "")).endswith("List") and "items" in body:
            yield from _flattened(maps(body.get("items")))
        elif body:
            yield body
