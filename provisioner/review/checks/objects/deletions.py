"""What goes and how much goes with it: deleted objects, data that policies take along, renames, and what going back to
an earlier revision does not bring back.

What a CRD of an earlier revision cannot read any more is said where CRDs are compared (CRD-10, LIV-06), and that a Job
is replaced where objects are (IMM-01).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from provisioner.json_values import mapping, maps, value_at
from provisioner.retention import STATEFUL_SET, claims_of, left_out, takes_claims_along
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import SECRET, Check, Facts, Listed, Listing, ReviewRule
from provisioner.review.base.messages import with_message
from provisioner.review.base.renames import SERVICE, WEBHOOKS, Rename, renames
from provisioner.review.base.sizes import in_words
from provisioner.review.crds.live_scene import CRD, GOING, objects_of, unused
from provisioner.review.workloads import mounts
from provisioner.review.workloads.mounts import CLAIM, VOLUMES, Mount, mounts_of
from provisioner.review.workloads.workload_changes import pod_changes
from provisioner.schema.definition.crd import Crd
from provisioner.values import (
    Action,
    Content,
    Finding,
    GroupKind,
    JsonObject,
    Note,
    ObjectRef,
    Plan,
    PlannedAction,
    Section,
    Severity,
)

_SCALED_DOWN = ReviewRule("DEL-02", Section.OBJECTS, Severity.BREAKING)
_DATA_GOES = ReviewRule("DEL-03", Section.OBJECTS, Severity.DANGEROUS)
_DATA_STAYS = ReviewRule("DEL-03", Section.OBJECTS, Severity.NOTABLE)
_LOST = ReviewRule("HIS-01", Section.OBJECTS, Severity.DANGEROUS)
_KEPT = ReviewRule("HIS-01", Section.OBJECTS, Severity.NOTABLE)
_UNKNOWN = ReviewRule("HIS-01", Section.OBJECTS, Severity.UNKNOWN)
_RUNS_AGAIN = ReviewRule("HIS-02", Section.OBJECTS, Severity.DANGEROUS)

_NAMESPACE, _VOLUME = GroupKind("", "Namespace"), GroupKind("", "PersistentVolume")
_JOB, _POD = GroupKind("batch", "Job"), GroupKind("", "Pod")
# As the Job controller says that none of its pods runs any more, and the kubelet of a Pod.
_ENDED_JOB = {"Complete": "completed", "Failed": "failed"}
_ENDED_POD = {"Succeeded": "completed", "Failed": "failed"}
_HOLDERS = frozenset({_NAMESPACE, STATEFUL_SET, CLAIM})
_GOING = frozenset({Action.DELETE, Action.REPLACE})
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT})
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
# A claim, and one of a template of a StatefulSet, which is no volume of the pod.
_CLAIMED = frozenset({"persistentVolumeClaim", ""})
_RETAIN, _DELETE = "Retain", "Delete"
# The messages about what an object that is restored does not bring along.
_WITHOUT = {CLAIM: "without-data", _NAMESPACE: "without-contents", _VOLUME: "without-volume", CRD: "without-objects"}
# The file with what a rename adds to findings.
RENAMES = "shared/renames"
_Read = list[tuple[Listing, Listed | None]]


def compare_scales(facts: Facts) -> Iterator[Finding]:
    """Find what goes although nothing is deleted: the claims of pods that a StatefulSet has no more."""
    for planned in facts.plan.actions:
        is_written = planned.ref.group_kind == STATEFUL_SET and planned.action in {Action.UPDATE, Action.ADOPT}
        if not is_written or planned.before is None or planned.after is None:
            continue
        if pods := left_out(planned.before, planned.after):
            ranges = [{"first": span.start, "last": span.stop - 1 if len(span) > 1 else None} for span in pods]
            yield _SCALED_DOWN.finding("scaled-down", planned.ref, pods=ranges)


def want_deleted(_: Content, plan: Plan) -> list[ObjectRef]:
    """Want claims and stateful sets that go, as they are now, and what may have run to its end."""
    going = [planned.ref for planned in plan.actions if planned.action in _GOING]
    deleted = [planned.ref for planned in plan.actions if planned.action is Action.DELETE]
    ending = [ref for ref in deleted if ref.group_kind in {_JOB, _POD}]
    return [*(ref for ref in going if ref.group_kind in {CLAIM, STATEFUL_SET}), *ending]


def list_contents(facts: Facts) -> Iterator[Listing]:
    for ref, listings in _find_going(facts):
        yield from listings
        if ref.group_kind in _HOLDERS:
            yield VOLUMES


def _find_going(facts: Facts) -> Iterator[tuple[ObjectRef, list[Listing]]]:
    """Yield what goes and takes others with it, with the lists of those."""
    for planned in facts.plan.actions if not facts.is_offline else ():
        ref, live = planned.ref, facts.live.get(planned.ref.identity)
        if planned.action not in _GOING:
            continue
        if ref.group_kind == CRD and live is not None:
            yield ref, [replace(objects_of(Crd(live), metadata_only=True), is_counted=True)]
        elif ref.group_kind == _NAMESPACE:
            missed = (Listing(group, "", kind, ref.name, True, True) for kind, group in MISSED.items())
            yield ref, [_claims_in(ref.name), *missed]
        elif ref.group_kind == STATEFUL_SET:
            yield ref, [_claims_in(ref.namespace)]
        elif ref.group_kind == CLAIM:
            yield ref, []


def _claims_in(namespace: str) -> Listing:
    return Listing("", "", CLAIM.kind, namespace)


def settle_deletions(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Say how much goes with what is deleted: the objects of a CRD, the contents of a namespace, the data of claims and
    of stateful sets; nothing of a Job that has ended."""
    known: dict[ObjectRef, _Read] = {
        ref: [(listing, facts.around.lists.get(listing)) for listing in listings]
        for ref, listings in _find_going(facts)
    }
    for finding in findings:
        ref = finding.ref
        if finding.rule == "DEL-01" and ref is not None and ref.group_kind in {_JOB, _POD}:
            yield _settle_ended(finding, mapping(mapping(facts.live.get(ref.identity)).get("status")))
        elif finding.rule not in MEASURED or ref is None or ref not in known:
            yield finding
        elif ref.group_kind == CLAIM:
            yield _settle_claim(finding, facts, facts.live.get(ref.identity))
        elif ref.group_kind == STATEFUL_SET:
            yield _settle_stateful_set(finding, facts, facts.live.get(ref.identity))
        else:
            yield _settle_contents(finding, known[ref], facts)


def _settle_ended(finding: Finding, status: Any) -> Finding:
    """Return the finding, milder where the live object has run to its end: nothing stops with it."""
    met = [
        str(condition.get("type")) for condition in maps(status.get("conditions")) if condition.get("status") == "True"
    ]
    is_pod = finding.ref is not None and finding.ref.group_kind == _POD
    ended = (_ENDED_JOB[condition] for condition in met if condition in _ENDED_JOB)
    how = _ENDED_POD.get(str(status.get("phase"))) if is_pod else next(ended, None)
    if how is None:
        return finding
    return _add_notes(replace(finding, severity=Severity.NOTABLE), Note(GOING, "ended", {"how": how}))


def _settle_claim(finding: Finding, facts: Facts, live: JsonObject | None) -> Finding:
    """Return the finding with the size of the claim; where its volume is kept, its data can be brought back."""
    if live is None:
        return finding
    (held,) = mounts.holdings([live], facts)
    evidence = {**finding.evidence, "volumes": mounts.to_record([held])}
    is_mild = held.is_kept or not held.volume
    severity = Severity.DANGEROUS if is_mild and finding.rule == "DEL-01" else finding.severity
    size = in_words(held.size) if held.size is not None else None
    note = Note(GOING, held.fate, {"size": size, "volume": held.volume, "policy": held.policy})
    return _add_notes(replace(finding, evidence=evidence, severity=severity), note)


def _settle_stateful_set(finding: Finding, facts: Facts, live: JsonObject | None) -> Finding:
    listed = facts.around.lists.get(_claims_in(finding.ref.namespace)) if finding.ref else None
    claims = claims_of(live, listed.objects if listed else ()) if live is not None else []
    if live is None or not claims:
        return finding
    held = mounts.holdings(claims, facts)
    if takes_claims_along(live):
        note = Note(GOING, "claims-go", {"present": [mounts.in_sum(held)]})
    else:
        note = Note(GOING, "claims-stay", {"count": len(held)})
    evidence = {**finding.evidence, "volumes": mounts.to_record(held)}
    return _add_notes(replace(finding, evidence=evidence), note)


def _settle_contents(finding: Finding, read: _Read, facts: Facts) -> Finding:
    """Return the finding with its counts. Nothing there, and everything looked at, is no loss of data."""
    is_crd = finding.ref is not None and finding.ref.group_kind == CRD
    missing = sorted({listing.kind for listing, listed in read if listed is None or listed.problem})
    # Claims are there twice: what was read last of a kind was looked through.
    seen = {listing.kind: listed for listing, listed in read if listed is not None and not listed.problem}
    counts = {kind: len(found.objects) if found.total is None else found.total for kind, found in seen.items()}
    evidence: dict[str, Any] = {
        **finding.evidence,
        "counts": counts,
        "newest": {kind: listed.newest for kind, listed in seen.items()},
        "notCounted": missing,
        # In another version the objects may not be there to be read by the time they are looked at again.
        "listedIn": {listing.kind: listing.version for listing, _ in read if listing.version},
    }
    if finding.rule == "CRD-08" and not missing:
        evidence["basis"] = "objects"
    objects = [(listing, obj) for listing, listed in read if listed is not None for obj in listed.objects]
    if is_crd:
        by_namespace = Counter(ObjectRef.of(obj).namespace for _, obj in objects)
        evidence["namespaces"] = dict(sorted(by_namespace.items())[:MAX_NAMESPACES])
    claims = [obj for listing, obj in objects if listing.kind == CLAIM.kind and not listing.metadata_only]
    held = mounts.holdings(claims, facts)
    if held:
        evidence["volumes"] = mounts.to_record(held)
    # Of a custom kind nobody knows the plural, so its objects are counted.
    present: list[dict[str, Any]] = []
    for kind, count in sorted(counts.items()):
        if count and kind == CLAIM.kind and count == len(held):
            present.append(mounts.in_sum(held))
        elif count and is_crd:
            present.append({"variant": "objects", "count": count, "kind": kind})
        elif count:
            present.append({"variant": "of-kind", "count": count, "kinds": f"{kind}{'' if count == 1 else 's'}"})
    notes = [Note(GOING, "counted" if present else "nothing", {"present": present})] if counts or not missing else []
    if missing:
        problem = next((listed.problem for _, listed in read if listed and listed.problem), "") if is_crd else ""
        params = {"kinds": missing, "problem": problem}
        notes.append(Note(GOING, "not-counted" if notes else "only-not-counted", params))
    counted = _add_notes(replace(finding, evidence=evidence), *notes)
    is_empty = not any(counts.values()) and not missing and finding.rule in {"DEL-01", "CRD-08"}
    return unused(counted) if is_empty and is_crd else counted


def _add_notes(finding: Finding, *notes: Note) -> Finding:
    return with_message(replace(finding, notes=(*finding.notes, *notes)))


def settle_renames(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Say a deletion and a creation that are one rename as one, with what the rename loses."""
    found = renames(facts)
    going, coming = {rename.old: rename for rename in found}, {rename.new: rename for rename in found}
    for finding in findings:
        ref = finding.ref
        if finding.rule == "DEL-01" and ref in going:
            yield _settle_renamed(finding, going[ref])
        elif finding.rule == "WH-10" and ref in going:
            # A configuration that goes, whose webhooks stand in another one from now on, or other ones do.
            rename = going[ref]
            if rename.is_equal:
                evidence = {**finding.evidence, "renamedTo": rename.new.name}
                yield with_message(replace(finding, variant="moved", evidence=evidence, severity=Severity.SAFE))
            else:
                yield _add_notes(finding, Note(RENAMES, "other-webhooks", {"new": rename.new}))
        elif finding.rule == "OBJ-01" and ref in coming and not facts.hides_old_names:
            yield _add_notes(finding, Note(RENAMES, "in-place-of", {"old": coming[ref].old.name}))
        else:
            yield finding


def _settle_renamed(finding: Finding, rename: Rename) -> Finding:
    """Return the deletion as a rename, with what it takes away however well the bundle follows it."""
    old, kind, before = rename.old, rename.old.group_kind, rename.before
    is_by_hand = rename.is_hash or kind in WEBHOOKS
    is_by_programs = not is_by_hand and not any(before.get(part) for part in ("data", "stringData", "binaryData"))
    is_hash_followed = rename.is_hash and bool(rename.followed)
    severity = Severity.SAFE if is_hash_followed else Severity.NOTABLE
    if kind == SERVICE or is_by_programs or (kind in WEBHOOKS and not rename.is_equal and not rename.followed):
        severity = Severity.DANGEROUS
    losses = []  # names of messages of DEL-01
    if kind == SERVICE:
        has_address = value_at(before, "spec", "type") in {"LoadBalancer", "NodePort"}
        losses = ["service-name", *(["outside-address"] if has_address else [])]
    elif kind in WEBHOOKS:
        losses = ["same-webhooks" if rename.is_equal else "other-webhooks"]
    elif is_by_programs:
        losses = ["written-by-programs"]
    elif not is_hash_followed:
        losses = ["readers", *(["values"] if kind == SECRET else [])]
    evidence: dict[str, Any] = {**finding.evidence, "oldName": old.name, "renamedTo": rename.new.name}
    evidence |= {"dnsName": f"{old.name}.{old.namespace}.svc", "losses": losses}
    evidence["names"] = "still" if rename.still else "follow" if rename.followed else "nobody"
    evidence |= {"followedBy": list(rename.followed)} if rename.followed else {}
    evidence |= {"stillNamedBy": list(rename.still)} if rename.still else {}
    worse = (
        max(severity, finding.severity, key=lambda severity: severity.rank) if not rename.still else finding.severity
    )
    return with_message(replace(finding, variant="renamed", severity=worse, evidence=evidence))


def compare_data_policies(facts: Facts) -> Iterator[Finding]:
    """Find data that goes with its object from now on, by policies, or that pods no longer find where it was."""
    for planned in facts.plan.actions:
        if planned.action not in _WRITES or planned.after is None:
            continue
        old, new = (mapping(mapping(side).get("spec")) for side in (planned.before, planned.after))
        if planned.ref.group_kind == STATEFUL_SET:
            name = "persistentVolumeClaimRetentionPolicy"
            for field in ("whenDeleted", "whenScaled"):
                before, after = (str(value_at(side, name, field) or _RETAIN) for side in (old, new))
                if before != after:
                    goes, where = after == _DELETE, ("spec", name, field)
                    params = {"when": field, "before": before, "after": after}
                    yield _say_policy(planned, "claims-go" if goes else "claims-stay", where, goes=goes, **params)
        elif planned.ref.group_kind == _VOLUME:
            name = "persistentVolumeReclaimPolicy"
            before, after = (str(side.get(name) or _RETAIN) for side in (old, new))
            if before != after:
                goes, params = after != _RETAIN, {"before": before, "after": after}
                yield _say_policy(planned, "data-goes" if goes else "data-stays", ("spec", name), goes=goes, **params)
    yield from _compare_mounts(facts)


def _compare_mounts(facts: Facts) -> Iterator[Finding]:
    """Find folders that were a claim and are something else now: the claim stays, and nobody uses it there."""
    for change in pod_changes(facts.plan):
        found = []
        for former, container in change.kept():
            now = {mount.path: _describe_place(mount) for mount in mounts_of(change.after, container)}
            for mount in mounts_of(change.before, former):
                place, new_place = _describe_place(mount), now.get(mount.path)
                if mount.kind in _CLAIMED and place != new_place:
                    sides = {"before": place, "after": new_place}
                    found.append({"path": mount.path, "container": container.name, **sides})
        if found:
            yield _DATA_GOES.finding(
                "mounts", change.ref, where=(*change.after.path, "volumes"), key=found, mounts=found
            )


def _say_policy(planned: PlannedAction, variant: str, where: tuple[str, ...], *, goes: bool, **params: str) -> Finding:
    # A new object has no data yet.
    rule = _DATA_GOES if goes and planned.before is not None else _DATA_STAYS
    return rule.finding(variant, planned.ref, where=where, key=[params["before"], params["after"]], **params)


def _describe_place(mount: Mount) -> str:
    """Return the claim, or the folder of it, that stands there."""
    return f"{mount.part} in {mount.source}" if mount.part.strip("/.") else mount.source


def compare_way_back(facts: Facts) -> Iterator[Finding]:
    """Find data that going back to an earlier revision does not bring back, and work that is done once more."""
    if facts.way_back is None:
        return
    bodies = {manifest.ref.identity: manifest.body for manifest in facts.content.manifests}
    for gone in facts.way_back.gone:
        ref = gone.ref
        params: dict[str, Any] = {"revision": gone.revision, "action": str(gone.action)}
        if ref.group_kind in _WITHOUT:
            yield _LOST.finding(_WITHOUT[ref.group_kind], ref, **params)
        elif ref.group_kind == STATEFUL_SET:
            # The first claim of each template tells whether the data is still there.
            body = bodies.get(ref.identity) or {}
            claims = _find_first_claims(ref, body)
            exist = [facts.around.exists.get(claim.identity) for claim in claims]
            rule, variant = _KEPT, "claims-kept"
            if False in exist:
                rule, variant = _LOST, "claims-gone"
            elif None in exist:
                rule, variant = _UNKNOWN, "claims-taken-along" if takes_claims_along(body) else "claims-left"
            if claims:
                key, names = str(rule.severity), [claim.name for claim in claims]
                yield rule.finding(variant, ref, key=key, **params, claims=names)
    for planned in facts.plan.actions:
        if planned.ref.group_kind == _JOB and planned.action is Action.CREATE:
            yield _RUNS_AGAIN.finding("runs-again", planned.ref, revision=facts.way_back.revision)


def _find_first_claims(ref: ObjectRef, body: JsonObject) -> list[ObjectRef]:
    templates = maps(value_at(body, "spec", "volumeClaimTemplates"))
    names = [str(value_at(template, "metadata", "name") or "") for template in templates]
    return [ObjectRef("", "v1", CLAIM.kind, ref.namespace, f"{name}-{ref.name}-0") for name in names if name]


def mention_first_claims(facts: Facts) -> Iterator[ObjectRef]:
    """Mention the first claims of stateful sets that were deleted or made anew."""
    bodies = {manifest.ref.identity: manifest.body for manifest in facts.content.manifests}
    for gone in facts.way_back.gone if facts.way_back else ():
        if gone.ref.group_kind == STATEFUL_SET:
            yield from _find_first_claims(gone.ref, bodies.get(gone.ref.identity) or {})


DELETIONS_CHECK = Check(
    "deletions", changes=compare_scales, wants=want_deleted, lists=list_contents, settles=settle_deletions
)
_POLICY_CLAIMS = (
    Claim("DEL-03", frozenset({STATEFUL_SET}), ("spec.persistentVolumeClaimRetentionPolicy",)),
    Claim("DEL-03", frozenset({_VOLUME}), ("spec.persistentVolumeReclaimPolicy",)),
)
DATA_POLICIES_CHECK = Check("data-policies", changes=compare_data_policies, claims=_POLICY_CLAIMS)
RENAMES_CHECK = Check("renames", settles=settle_renames)
WAY_BACK_CHECK = Check("way back", changes=compare_way_back, mentions=mention_first_claims)
