"""Data that goes with its object from now on, by policies of volumes and of the claims of stateful sets, or that pods
no longer find where it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping
from provisioner.review.workloads.mounts import Mount, mounts_of
from provisioner.review.workloads.workload_changes import PodChange, pod_changes
from provisioner.values import Action, Finding, GroupKind, JsonObject, PlannedAction, Section, Severity

_GOES = ReviewRule("DEL-03", Section.OBJECTS, Severity.DANGEROUS)
_STAYS = ReviewRule("DEL-03", Section.OBJECTS, Severity.NOTABLE)
_STATEFUL_SET = GroupKind("apps", "StatefulSet")
_VOLUME = GroupKind("", "PersistentVolume")
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT})
# A claim, and one of a template of a StatefulSet, which is no volume of the pod.
_CLAIMED = frozenset({"persistentVolumeClaim", ""})
_RETAIN, _DELETE = "Retain", "Delete"
_OF_CLAIMS = ("whenDeleted", "whenScaled")


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.action not in _WRITES or planned.after is None:
            continue
        if planned.ref.group_kind == _STATEFUL_SET:
            yield from _of_claims(planned)
        elif planned.ref.group_kind == _VOLUME:
            yield from _of_volume(planned)
    for change in pod_changes(facts.plan):
        yield from _of_mounts(change)


def _of_mounts(change: PodChange) -> Iterator[Finding]:
    """Folders that were a claim and are something else now: the claim stays, and nobody reads or writes it there."""
    found = []
    for old, new in change.kept():
        now = {one.path: _place(one) for one in mounts_of(change.after, new)}
        for one in mounts_of(change.before, old):
            before, after = _place(one), now.get(one.path)
            if one.kind in _CLAIMED and before != after:
                found.append({"path": one.path, "container": new.name, "before": before, "after": after})
    if found:
        yield _GOES.finding("mounts", change.ref, where=(*change.after.path, "volumes"), key=found, mounts=found)


def _place(mount: Mount) -> str:
    """The claim, or the folder of it, that stands there."""
    return f"{mount.part} in {mount.source}" if mount.part.strip("/.") else mount.source


def _of_claims(planned: PlannedAction) -> Iterator[Finding]:
    old, new = (_policy(side) for side in (planned.before, planned.after))
    for field in _OF_CLAIMS:
        before, after = str(old.get(field) or _RETAIN), str(new.get(field) or _RETAIN)
        if before != after:
            path, goes = ("spec", "persistentVolumeClaimRetentionPolicy", field), after == _DELETE
            variant, told = "claims-go" if goes else "claims-stay", {"when": field, "before": before, "after": after}
            yield _rule(planned, goes=goes).finding(variant, planned.ref, where=path, key=[before, after], **told)


def _policy(obj: JsonObject | None) -> Any:
    return mapping(mapping((obj or {}).get("spec")).get("persistentVolumeClaimRetentionPolicy"))


def _of_volume(planned: PlannedAction) -> Iterator[Finding]:
    field = "persistentVolumeReclaimPolicy"
    before, after = (
        str(mapping((side or {}).get("spec")).get(field) or _RETAIN) for side in (planned.before, planned.after)
    )
    if before != after:
        variant, goes = ("data-goes", True) if after != _RETAIN else ("data-stays", False)
        rule, path = _rule(planned, goes=goes), ("spec", field)
        yield rule.finding(variant, planned.ref, where=path, key=[before, after], before=before, after=after)


def _rule(planned: PlannedAction, *, goes: bool) -> ReviewRule:
    """A new object has no data yet."""
    return _GOES if goes and planned.before is not None else _STAYS


_CLAIMS = (
    Claim("DEL-03", frozenset({_STATEFUL_SET}), ("spec.persistentVolumeClaimRetentionPolicy",)),
    Claim("DEL-03", frozenset({_VOLUME}), ("spec.persistentVolumeReclaimPolicy",)),
)
CHECK = Check("data-policies", changes=_changes, claims=_CLAIMS)
