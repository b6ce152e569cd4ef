"""Data that goes with its object from now on, by policies of volumes and of the claims of stateful sets, or that pods
no longer find where it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping, said
from provisioner.review.workloads.mounts import mounts_of
from provisioner.review.workloads.pod_changes import PodChange, pod_changes
from provisioner.sentences import some
from provisioner.values import Action, Finding, GroupKind, JsonObject, PlannedAction, Section, Severity

_GOES = ReviewRule("DEL-03", Section.OBJECTS, Severity.DANGEROUS)
_STAYS = ReviewRule("DEL-03", Section.OBJECTS, Severity.NOTABLE)
_STATEFUL_SET = GroupKind("apps", "StatefulSet")
_VOLUME = GroupKind("", "PersistentVolume")
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT})
_CLAIM = "persistentVolumeClaim"
_RETAIN, _DELETE = "Retain", "Delete"
_OF_CLAIMS = {
    "whenDeleted": "when it is deleted",
    "whenScaled": "when it runs fewer pods",
}


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
    told = []
    for old, new in change.kept():
        now = {one.path: one.source for one in mounts_of(change.after, new)}
        for one in mounts_of(change.before, old):
            if one.kind == _CLAIM and now.get(one.path) != one.source:
                there = now.get(one.path) or "the image's own files"
                told.append(f"{one.path} of {new.name} is {there} and no longer {one.source}")
    if told:
        message = f"{said(change.ref)} no longer finds its data where it was: {some(told)}"
        yield _GOES.at(change.ref, message, path=(*change.after.path, "volumes"), evidence={"mounts": told}, key=told)


def _of_claims(planned: PlannedAction) -> Iterator[Finding]:
    old, new = (_policy(side) for side in (planned.before, planned.after))
    for field, when in _OF_CLAIMS.items():
        before, after = str(old.get(field) or _RETAIN), str(new.get(field) or _RETAIN)
        if before == after:
            continue
        goes = after == _DELETE
        words = f"the volume claims of its pods are deleted {when}" if goes else f"the volume claims stay {when}"
        message = f"{said(planned.ref)}: {words}{', with their data' if goes else ''}"
        path = ("spec", "persistentVolumeClaimRetentionPolicy", field)
        evidence = {"before": before, "after": after}
        yield _rule(planned, goes=goes).at(planned.ref, message, path=path, evidence=evidence, key=[before, after])


def _policy(obj: JsonObject | None) -> Any:
    return mapping(mapping((obj or {}).get("spec")).get("persistentVolumeClaimRetentionPolicy"))


def _of_volume(planned: PlannedAction) -> Iterator[Finding]:
    field = "persistentVolumeReclaimPolicy"
    before, after = (
        str(mapping((side or {}).get("spec")).get(field) or _RETAIN) for side in (planned.before, planned.after)
    )
    if before == after:
        return
    goes = after != _RETAIN
    words = "its data is deleted as soon as its claim is" if goes else "its data stays when its claim is deleted"
    message = f"{said(planned.ref)}: {words}"
    evidence = {"before": before, "after": after}
    yield _rule(planned, goes=goes).at(
        planned.ref, message, path=("spec", field), evidence=evidence, key=[before, after]
    )


def _rule(planned: PlannedAction, *, goes: bool) -> ReviewRule:
    """A new object has no data yet."""
    return _GOES if goes and planned.before is not None else _STAYS


_CLAIMS = (
    Claim("DEL-03", frozenset({_STATEFUL_SET}), ("spec.persistentVolumeClaimRetentionPolicy",)),
    Claim("DEL-03", frozenset({_VOLUME}), ("spec.persistentVolumeReclaimPolicy",)),
)
CHECK = Check("data-policies", changes=_changes, claims=_CLAIMS)
