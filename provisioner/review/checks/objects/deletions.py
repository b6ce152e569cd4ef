"""How much goes with what is deleted, counted and measured in the cluster: the objects of a CRD, the contents of a
namespace, the data of claims and of stateful sets; nothing of a Job that has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from provisioner.retention import STATEFUL_SET as _STATEFUL_SET
from provisioner.retention import claims_of, left_out, takes_claims_along
from provisioner.review.base.facts import Check, Facts, Listed, Listing, ReviewRule, mapping, maps
from provisioner.review.base.messages import with_message
from provisioner.review.base.sizes import in_words
from provisioner.review.crds.live_scene import CRD, GOING, objects_of, unused
from provisioner.review.workloads import mounts
from provisioner.review.workloads.mounts import CLAIM, VOLUMES
from provisioner.schema.definition.crd import Crd
from provisioner.values import Action, Content, Finding, GroupKind, JsonObject, Note, ObjectRef, Plan, Section, Severity

_SCALED_DOWN = ReviewRule("DEL-02", Section.OBJECTS, Severity.BREAKING)
_HAS_ENDED = ReviewRule("DEL-01", Section.OBJECTS, Severity.NOTABLE)

_NAMESPACE = GroupKind("", "Namespace")
_JOB, _POD = GroupKind("batch", "Job"), GroupKind("", "Pod")
# As the Job controller says that none of its pods runs any more, and the kubelet of a Pod.
_ENDED_JOB = {"Complete": "completed", "Failed": "failed"}
_ENDED_POD = {"Succeeded": "completed", "Failed": "failed"}
_HOLDERS = frozenset({_NAMESPACE, _STATEFUL_SET, CLAIM})
_GOING = frozenset({Action.DELETE, Action.REPLACE})
# The findings that say how much goes with an object.
MEASURED = frozenset({"DEL-01", "CRD-08", "IMM-01"})
MAX_NAMESPACES = 50
# The groups of what somebody would miss, by kind; the rest of a namespace follows from these. Claims are read whole as
# well, for their sizes.
MISSED = {
    "ConfigMap": "",
    "PersistentVolumeClaim": "",
    "Pod": "",
    "Secret": "",
    "Service": "",
    "Deployment": "apps",
    "StatefulSet": "apps",
    "Job": "batch",
}


def _claims_in(namespace: str) -> Listing:
    return Listing("", "", CLAIM.kind, namespace)


def _missed(group: str, kind: str, namespace: str) -> Listing:
    return Listing(group, "", kind, namespace, metadata_only=True, is_counted=True)


def _going(facts: Facts) -> Iterator[tuple[ObjectRef, list[Listing]]]:
    """What goes and takes others with it, with the lists of those."""
    if facts.is_offline:
        return
    for planned in facts.plan.actions:
        ref, live = planned.ref, facts.live.get(planned.ref.identity)
        if planned.action not in _GOING:
            continue
        if ref.group_kind == CRD and live is not None:
            yield ref, [replace(objects_of(Crd(live), metadata_only=True), is_counted=True)]
        elif ref.group_kind == _NAMESPACE:
            yield ref, [_claims_in(ref.name), *(_missed(group, kind, ref.name) for kind, group in MISSED.items())]
        elif ref.group_kind == _STATEFUL_SET:
            yield ref, [_claims_in(ref.namespace)]
        elif ref.group_kind == CLAIM:
            yield ref, []


def _wants(_: Content, plan: Plan) -> list[ObjectRef]:
    """Claims and stateful sets that go, as they are now, and what may have run to its end."""
    going = [one.ref for one in plan.actions if one.action in _GOING]
    ending = [one.ref for one in plan.actions if one.action is Action.DELETE and one.ref.group_kind in {_JOB, _POD}]
    return [*(ref for ref in going if ref.group_kind in {CLAIM, _STATEFUL_SET}), *ending]


def _lists(facts: Facts) -> Iterator[Listing]:
    for ref, listings in _going(facts):
        yield from listings
        if ref.group_kind in _HOLDERS:
            yield VOLUMES


def _settles(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    known = {ref: [(one, facts.around.lists.get(one)) for one in listings] for ref, listings in _going(facts)}
    for finding in findings:
        ref = finding.ref
        if finding.rule == "DEL-01" and ref is not None and ref.group_kind in {_JOB, _POD}:
            yield _of_what_ran(finding, facts.live.get(ref.identity))
        elif finding.rule not in MEASURED or ref is None or ref not in known:
            yield finding
        elif ref.group_kind == CLAIM:
            yield _of_claim(finding, facts, ref)
        elif ref.group_kind == _STATEFUL_SET:
            yield _of_stateful_set(finding, facts, ref)
        else:
            yield _counted(finding, known[ref], facts)


def _of_what_ran(finding: Finding, live: JsonObject | None) -> Finding:
    """The finding, milder where the live object has run to its end: nothing stops with it."""
    status = mapping((live or {}).get("status"))
    met = [str(one.get("type")) for one in maps(status.get("conditions")) if one.get("status") == "True"]
    is_pod = finding.ref is not None and finding.ref.group_kind == _POD
    phase = str(status.get("phase"))
    how = _ENDED_POD.get(phase) if is_pod else next((_ENDED_JOB[one] for one in met if one in _ENDED_JOB), None)
    if how is None:
        return finding
    return _noted(replace(finding, severity=_HAS_ENDED.severity), Note(GOING, "ended", {"how": how}))


def _of_claim(finding: Finding, facts: Facts, ref: ObjectRef) -> Finding:
    """The finding with the size of the claim; where its volume is kept, its data can be brought back."""
    live = facts.live.get(ref.identity)
    if live is None:
        return finding
    (held,) = mounts.holdings([live], facts)
    evidence = {**finding.evidence, "volumes": mounts.to_record([held])}
    is_mild = held.is_kept or not held.volume
    severity = Severity.DANGEROUS if is_mild and finding.rule == "DEL-01" else finding.severity
    size = in_words(held.size) if held.size is not None else None
    note = Note(GOING, held.fate, {"size": size, "volume": held.volume, "policy": held.policy})
    return _noted(replace(finding, evidence=evidence, severity=severity), note)


def _of_stateful_set(finding: Finding, facts: Facts, ref: ObjectRef) -> Finding:
    live, listed = facts.live.get(ref.identity), facts.around.lists.get(_claims_in(ref.namespace))
    if live is None or not claims_of(live, listed.objects if listed else ()):
        return finding
    held = mounts.holdings(claims_of(live, listed.objects if listed else ()), facts)
    if takes_claims_along(live):
        note = Note(GOING, "claims-go", {"present": [mounts.in_sum(held)]})
    else:
        note = Note(GOING, "claims-stay", {"count": len(held)})
    evidence = {**finding.evidence, "volumes": mounts.to_record(held)}
    return _noted(replace(finding, evidence=evidence), note)


def _counted(finding: Finding, read: list[tuple[Listing, Listed | None]], facts: Facts) -> Finding:
    """The finding with its counts. Nothing there, and everything looked at, is no loss of data."""
    missing = sorted({listing.kind for listing, listed in read if listed is None or listed.problem})
    # Claims are there twice: what was read last of a kind was looked through.
    seen = {listing.kind: listed for listing, listed in read if listed is not None and not listed.problem}
    counts = {kind: _number(listed) for kind, listed in seen.items()}
    last = {kind: listed.newest for kind, listed in seen.items()}
    # In another version the objects may not be there to be read by the time they are looked at again.
    versions = {listing.kind: listing.version for listing, _ in read if listing.version}
    found = {"counts": counts, "newest": last, "notCounted": missing, "listedIn": versions}
    evidence: dict[str, Any] = {**finding.evidence, **found}
    if finding.rule == "CRD-08" and not missing:
        evidence["basis"] = "objects"
    is_crd = finding.ref is not None and finding.ref.group_kind == CRD
    if is_crd:
        evidence["namespaces"] = _by_namespace(listed for _, listed in read if listed is not None)
    held = mounts.holdings(_claims(read), facts)
    if held:
        evidence["volumes"] = mounts.to_record(held)
    present = _present({kind: count for kind, count in counts.items() if count}, held, is_crd=is_crd)
    notes = [Note(GOING, "counted" if present else "nothing", {"present": present})] if counts or not missing else []
    if missing:
        problem = next((listed.problem for _, listed in read if listed and listed.problem), "") if is_crd else ""
        kept = {"kinds": missing, "problem": problem}
        notes.append(Note(GOING, "not-counted" if notes else "only-not-counted", kept))
    is_empty = not any(counts.values()) and not missing and finding.rule in {"DEL-01", "CRD-08"}
    counted = _noted(replace(finding, evidence=evidence), *notes)
    return unused(counted) if is_empty and is_crd else counted


def _noted(finding: Finding, *notes: Note) -> Finding:
    return with_message(replace(finding, notes=(*finding.notes, *notes)))


def _claims(read: list[tuple[Listing, Listed | None]]) -> list[JsonObject]:
    whole = [listed for listing, listed in read if listing.kind == CLAIM.kind and not listing.metadata_only]
    return [obj for listed in whole if listed for obj in listed.objects]


def _present(counts: dict[str, int], held: list[mounts.ClaimedVolume], *, is_crd: bool) -> list[dict[str, Any]]:
    """What is there: of a custom kind nobody knows the plural, so its objects are counted."""
    found = []
    for kind, count in sorted(counts.items()):
        if kind == CLAIM.kind and count == len(held):
            found.append(mounts.in_sum(held))
        elif is_crd:
            found.append({"variant": "objects", "count": count, "kind": kind})
        else:
            found.append({"variant": "of-kind", "count": count, "kinds": f"{kind}{'' if count == 1 else 's'}"})
    return found


def _number(listed: Listed) -> int:
    return listed.total if listed.total is not None else len(listed.objects)


def _by_namespace(read: Iterator[Listed]) -> dict[str, int]:
    counted = Counter(ObjectRef.of(obj).namespace for listed in read for obj in listed.objects)
    return dict(sorted(counted.items())[:MAX_NAMESPACES])


def _changes(facts: Facts) -> Iterator[Finding]:
    """What goes although nothing is deleted: the claims of pods that a StatefulSet has no more."""
    for planned in facts.plan.actions:
        is_written = planned.ref.group_kind == _STATEFUL_SET and planned.action in {Action.UPDATE, Action.ADOPT}
        if not is_written or planned.before is None or planned.after is None:
            continue
        if pods := left_out(planned.before, planned.after):
            ranges = [{"first": one.start, "last": one.stop - 1 if len(one) > 1 else None} for one in pods]
            yield _SCALED_DOWN.finding("scaled-down", planned.ref, pods=ranges)


CHECK = Check("deletions", changes=_changes, wants=_wants, lists=_lists, settles=_settles)
