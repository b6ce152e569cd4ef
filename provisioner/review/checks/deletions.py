"""How much goes with what is deleted: the objects of a CRD, the contents of a namespace, counted in the cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from provisioner.review.facts import Check, Facts, Listed, Listing
from provisioner.review.live_scene import CRD, objects_of
from provisioner.schema.crd import Crd
from provisioner.values import Action, Finding, GroupKind, ObjectRef, Severity

_NAMESPACE = GroupKind("", "Namespace")
_GOING = frozenset({Action.DELETE, Action.REPLACE})
_RULES = frozenset({"DEL-01", "CRD-08", "IMM-01"})
MAX_NAMESPACES = 50
# What somebody would miss; the rest of a namespace follows from these.
_MISSED = (
    ("", "ConfigMap"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "Secret"),
    ("", "Service"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("batch", "Job"),
)


def _going(facts: Facts) -> Iterator[tuple[ObjectRef, list[Listing]]]:
    """What goes and takes others with it, with the lists of those."""
    if facts.is_offline:
        return
    for planned in facts.plan.actions:
        ref, live = planned.ref, facts.live.get(planned.ref.identity)
        if planned.action not in _GOING:
            continue
        if ref.group_kind == CRD and live is not None:
            yield ref, [objects_of(Crd(live), metadata_only=True)]
        elif ref.group_kind == _NAMESPACE:
            yield ref, [Listing(group, "", kind, ref.name, metadata_only=True) for group, kind in _MISSED]


def _lists(facts: Facts) -> Iterator[Listing]:
    for _, listings in _going(facts):
        yield from listings


def _settles(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    known = {ref: [(one, facts.around.lists.get(one)) for one in listings] for ref, listings in _going(facts)}
    for finding in findings:
        if finding.rule in _RULES and finding.ref in known:
            yield _counted(finding, known[finding.ref])
        else:
            yield finding


def _counted(finding: Finding, read: list[tuple[Listing, Listed | None]]) -> Finding:
    """The finding with its counts. Nothing there, and everything looked at, is no loss of data."""
    missing = sorted(listing.kind for listing, listed in read if listed is None or listed.problem)
    counts = {listing.kind: _number(listed) for listing, listed in read if listed is not None and not listed.problem}
    evidence: dict[str, Any] = {**finding.evidence, "counts": counts, "notCounted": missing}
    if finding.ref is not None and finding.ref.group_kind == CRD:
        evidence["namespaces"] = _by_namespace(listed for _, listed in read if listed is not None)
    present = {kind: count for kind, count in counts.items() if count}
    words = ", ".join(f"{count:,} {kind}" for kind, count in sorted(present.items())) or "nothing"
    message = f"{finding.message}: {words} at present" + (f"; not counted: {', '.join(missing)}" if missing else "")
    is_empty = not present and not missing and finding.rule in {"DEL-01", "CRD-08"}
    is_settled = is_empty and finding.ref is not None and finding.ref.group_kind == CRD
    severity = Severity.DANGEROUS if is_settled else finding.severity
    return replace(finding, message=message, evidence=evidence, severity=severity)


def _number(listed: Listed) -> int:
    return listed.total if listed.total is not None else len(listed.objects)


def _by_namespace(read: Iterator[Listed]) -> dict[str, int]:
    counted = Counter(ObjectRef.of(obj).namespace for listed in read for obj in listed.objects)
    return dict(sorted(counted.items())[:MAX_NAMESPACES])


CHECK = Check("deletions", lists=_lists, settles=_settles)
