"""What others did to an object that is ours, held against the approved manifest, and how soon it may be restored.

Three states are compared: the approved manifest, the live object, and what the API server answers to a forced dry-run
of exactly that manifest onto it. What the dry-run would change is drift; so is a field that somebody else added. What
other controllers are there to write is not: the list is `left_to_others`. An apply leaves these fields out as well,
since one that is not forced is refused for such a field; what of it is still ours goes on being sent.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.cluster.annotations import NO_TRACKING, Tracking
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import SHOWN_CHARACTERS, changes, cleaned, lost, version_of
from provisioner.cluster.field_owners import (
    STATUS,
    FieldOwner,
    FieldPath,
    applied_by,
    field_value,
    is_below,
    owners,
    step_of,
    words,
)
from provisioner.errors import Forbidden
from provisioner.json_values import uid_of
from provisioner.retention import SECRET
from provisioner.schema.fields import is_same
from provisioner.values import GroupKind, JsonObject, Manifest, ObjectRef

HIDDEN = "hidden"

_JOB = GroupKind("batch", "Job")
# Their generation stays 1 whatever is written (seen on 1.36.3).
_UNCOUNTED = frozenset({GroupKind("scheduling.k8s.io", "PriorityClass")})
_ANY = "*"
_REPLICAS = ("spec", "replicas")
_EVERYWHERE: tuple[FieldPath, ...] = (("metadata", "finalizers"),)
# Fields of a kind that controllers of Kubernetes, or those that inject certificates, write into other people's objects.
_BY_KIND: dict[GroupKind, tuple[FieldPath, ...]] = {
    GroupKind("apps", "Deployment"): (("metadata", "annotations", "deployment.kubernetes.io/revision"),),
    GroupKind("", "ServiceAccount"): (("secrets",),),
    GroupKind("", "PersistentVolumeClaim"): (
        ("spec", "volumeName"),
        ("metadata", "annotations", "pv.kubernetes.io/bind-completed"),
        ("metadata", "annotations", "pv.kubernetes.io/bound-by-controller"),
        ("metadata", "annotations", "volume.kubernetes.io/selected-node"),
        ("metadata", "annotations", "volume.kubernetes.io/storage-provisioner"),
        ("metadata", "annotations", "volume.beta.kubernetes.io/storage-provisioner"),
    ),
    GroupKind("", "PersistentVolume"): (
        ("spec", "claimRef"),
        ("metadata", "annotations", "pv.kubernetes.io/bound-by-controller"),
    ),
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): (
        ("spec", "conversion", "webhook", "clientConfig", "caBundle"),
    ),
    GroupKind(ADMISSION_GROUP, "MutatingWebhookConfiguration"): (("webhooks", _ANY, "clientConfig", "caBundle"),),
    GroupKind(ADMISSION_GROUP, "ValidatingWebhookConfiguration"): (("webhooks", _ANY, "clientConfig", "caBundle"),),
    GroupKind("apiregistration.k8s.io", "APIService"): (("spec", "caBundle"),),
}
# What the token controller makes of a Secret that asks for a token.
_TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secret, and none itself
_TOKEN: tuple[FieldPath, ...] = (
    ("data", "ca.crt"),
    ("data", "namespace"),
    ("data", "token"),
    ("metadata", "annotations", "kubernetes.io/service-account.uid"),
)


class DriftKind(StrEnum):
    """The worst first. Only what is GONE or CHANGED can be restored; the rest is reported."""

    REMADE = "remade"
    GONE = "gone"
    GOING = "going"
    CHANGED = "changed"
    ADDED = "added"


CORRECTABLE = frozenset({DriftKind.GONE, DriftKind.CHANGED})


class FieldChangeKind(StrEnum):
    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class FieldDrift:
    """One field: who changed it, when, and from what to what. Values are cut short; of a Secret there are none."""

    path: str
    change: FieldChangeKind
    manager: str = ""
    at: str = ""
    expected: str = ""
    found: str = ""

    @property
    def place(self) -> str:
        """The path for everybody: of a field that somebody added, whose name nobody approved, only where it begins."""
        return public_place(self.path, self.change)


def public_place(path: str, change: str) -> str:
    """As FieldDrift.place."""
    return path.lstrip(".").partition(".")[0].partition("[")[0] if change == FieldChangeKind.ADDED else path


@dataclass(frozen=True, slots=True)
class ObjectDrift:
    kind: DriftKind
    fields: tuple[FieldDrift, ...] = ()
    message: str = ""

    @property
    def managers(self) -> tuple[str, ...]:
        return tuple(sorted({field.manager for field in self.fields if field.manager}))


@dataclass(frozen=True, slots=True)
class OwnObject:
    """An object of ours: what was approved, the uid that we know it by, and what is to stand on it of ours."""

    manifest: Manifest
    uid: str
    tracking: Tracking = NO_TRACKING


def fingerprint(obj: JsonObject) -> str:
    """What changes when the object does, by its metadata alone, so that a watch of metadata suffices.

    Where the server counts generations, a write of the status changes nothing here; labels and annotations do.
    """
    meta = obj.get("metadata") or {}
    generation = None if ObjectRef.of(obj).group_kind in _UNCOUNTED else meta.get("generation")
    names = ("uid", "labels", "annotations", "ownerReferences", "deletionTimestamp")
    parts = {name: meta.get(name) for name in names} | {"at": generation or version_of(obj)}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def left_to_others(manifest: Manifest, *, is_scaled: bool) -> tuple[FieldPath, ...]:
    """The fields of this object that are not drift, whoever writes them (S11). `*` stands for any item of a list.

    `is_scaled`: a HorizontalPodAutoscaler that exists targets the object. Finalizers belong to whoever sets them.
    """
    found = [*_EVERYWHERE, *_BY_KIND.get(manifest.ref.group_kind, ())]
    if is_scaled:
        found.append(_REPLICAS)
    if manifest.body.get("aggregationRule"):
        found.append(("rules",))
    if manifest.ref.group_kind == SECRET and manifest.body.get("type") == _TOKEN_TYPE:
        found.extend(_TOKEN)
    return tuple(found)


def to_apply(manifest: Manifest, live: JsonObject, *, manager: str, left: Iterable[FieldPath]) -> Manifest:
    """The approved manifest without those fields of `left` that are another's and not ours any more.

    Leaving out what we still own would remove it, so that stays: its value is the approved one. Every value of the
    answer is the approved one. Who owns only what a field stands in, such as the item of a list, owns not the field.
    """
    ours = _leaves(applied_by(live, manager))
    theirs = _leaves(path for owner in _others(live, manager) for path in _leaves(owner.paths))
    body = copy.deepcopy(dict(manifest.body))
    for pattern in left:
        for holder, key, path in list(_places(body, pattern, ())):
            if _touches(theirs, path) and not _touches(ours, path):
                del holder[key]
    return Manifest(body, manifest.file)


def compare(
    held: OwnObject,
    live: JsonObject | None,
    expected: JsonObject | None,
    *,
    manager: str,
    left: Iterable[FieldPath] = (),
) -> ObjectDrift | None:
    """How the object differs from what was approved; None where it does not.

    `expected` is the API server's answer to the forced dry-run, None where it cannot be asked; then the approved values
    themselves are looked for in the live object.
    """
    manifest = held.manifest
    if live is None:
        # A Job with a time to live is deleted by Kubernetes when it is done.
        spec = manifest.body.get("spec") or {}
        is_done = manifest.ref.group_kind == _JOB and spec.get("ttlSecondsAfterFinished") is not None
        return None if is_done else ObjectDrift(DriftKind.GONE, message="it was deleted")
    if uid_of(live) != held.uid:
        return ObjectDrift(DriftKind.REMADE, message="an object of this name was made by somebody else: it is not ours")
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        return ObjectDrift(DriftKind.GOING, message="it is being deleted and waits for its finalizers")
    changed = [*_changed(manifest, live, expected, manager)]
    fields = [*changed, *_added(live, expected or live, manager, tuple(left))]
    if not fields:
        return None
    if manifest.ref.group_kind == SECRET:
        fields = [FieldDrift(field.path, field.change, field.manager, field.at, HIDDEN, HIDDEN) for field in fields]
    return ObjectDrift(
        DriftKind.CHANGED if changed else DriftKind.ADDED, tuple(sorted(fields, key=lambda one: one.path))
    )


def _others(live: JsonObject, manager: str) -> list[FieldOwner]:
    """Everybody else who wrote something other than a status."""
    return [owner for owner in owners(live) if not owner.is_applier(manager) and owner.subresource != STATUS]


def _changed(manifest: Manifest, live: JsonObject, expected: JsonObject | None, manager: str) -> Iterator[FieldDrift]:
    """The approved fields that have another value, or none."""
    if expected is None:
        for loss in lost(manifest.body, live):
            is_gone = loss.approved and not loss.stored
            change = FieldChangeKind.REMOVED if is_gone else FieldChangeKind.CHANGED
            yield FieldDrift(loss.path, change, expected=loss.approved, found=loss.stored)
        return
    sides = cleaned(live), cleaned(expected)
    differing = [
        differing_path
        for path in changes(*sides)
        for differing_path in _inside(path, *(field_value(side, path) for side in sides))
    ]
    if not differing:
        return
    mine, had = applied_by(expected, manager), applied_by(live, manager)
    taken = [path for path in _leaves(mine - had) if not is_same(field_value(live, path), field_value(expected, path))]
    for path in taken:
        yield _field(path, live, expected, manager)
    for path in differing:
        if not _touches(taken, path):
            yield _field(path, live, expected, manager)


def _inside(path: FieldPath, found: object, wished: object) -> Iterator[FieldPath]:
    """Of a list, the items that differ, where they have names and stand in one order; else the path itself."""
    old, new = _by_name(found), _by_name(wished)
    kept = [name for name in old if name in new]
    if not old or not new or kept != [name for name in new if name in old]:
        yield path
        return
    for name in sorted({*old, *new}):
        step = (*path, step_of({"name": name}))
        if name not in old or name not in new:
            yield step
            continue
        for inner in changes(old[name], new[name]):
            yield from _inside((*step, *inner), *(field_value(side[name], inner) for side in (old, new)))


def _by_name(value: object) -> dict[str, JsonObject]:
    """The items of a list by their names; none where one has no name, or two have the same."""
    items = value if isinstance(value, list) else []
    named = {str(item["name"]): item for item in items if isinstance(item, Mapping) and "name" in item}
    return named if len(named) == len(items) else {}


def _field(path: FieldPath, live: JsonObject, expected: JsonObject, manager: str) -> FieldDrift:
    wished, found = field_value(expected, path), field_value(live, path)
    change = FieldChangeKind.ADDED if wished is None else FieldChangeKind.CHANGED
    change = FieldChangeKind.REMOVED if found is None else change
    writers = [owner for owner in _others(live, manager) if _touches(owner.paths, path)]
    by = max(writers, key=lambda owner: owner.at, default=None)
    return FieldDrift(words(path), change, by.manager if by else "", by.at if by else "", _short(wished), _short(found))


def _added(live: JsonObject, expected: JsonObject, manager: str, left: tuple[FieldPath, ...]) -> Iterator[FieldDrift]:
    """The fields that others own and the approved manifest does not set, each once, at its top.

    One below a field of ours counts too: an empty `securityContext` is ours, what somebody puts into it is not. What
    cannot be found at its path is owned in another version's words.
    """
    applied = applied_by(expected, manager)
    # What is written as stringData of a Secret is stored as data, and owned under the name that it was written with.
    stored = {("data", *path[1:]) for path in applied if path[0] == "stringData"}
    mine = {path[:length] for path in applied | stored for length in range(1, len(path) + 1)}
    for owner in _others(live, manager):
        told = [path for path in _leaves(owner.paths) if not any(_fits(path, pattern) for pattern in left)]
        theirs = {
            path
            for path in owner.paths - mine
            if path[0] != STATUS and any(is_below(told_path, path) for told_path in told)
        }
        for path in sorted(theirs):
            found = field_value(live, path)
            if found is not None and not any(path[:length] in theirs for length in range(1, len(path))):
                yield FieldDrift(words(path), FieldChangeKind.ADDED, owner.manager, owner.at, "", _short(found))


def _touches(paths: Iterable[FieldPath], path: FieldPath) -> bool:
    return any(is_below(other, path) or is_below(path, other) for other in paths)


def _leaves(paths: Iterable[FieldPath]) -> list[FieldPath]:
    """Those under which none of the others stands."""
    known = sorted(paths)
    return [path for path, after in pairwise([*known, ()]) if not is_below(after, path)]


def _fits(path: FieldPath, pattern: FieldPath) -> bool:
    """Whether a path stands under a pattern."""
    pairs = zip(path, pattern, strict=False)
    return len(path) >= len(pattern) and all(wish in (step, _ANY) for step, wish in pairs)


def _places(value: Any, pattern: FieldPath, above: FieldPath) -> Iterator[tuple[dict[str, Any], str, FieldPath]]:
    """Where a pattern meets a manifest: the holder of the field, its key, and its path as managers own it."""
    first, rest = pattern[0], pattern[1:]
    if first == _ANY and isinstance(value, list):
        for item in value:
            name = item.get("name") if isinstance(item, Mapping) else None
            yield from _places(item, rest, (*above, step_of({"name": name})))
    elif isinstance(value, dict) and first in value:
        if rest:
            yield from _places(value[first], rest, (*above, first))
        else:
            yield value, first, (*above, first)


def _short(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def is_target(autoscaler: JsonObject, ref: ObjectRef) -> bool:
    """Whether a HorizontalPodAutoscaler of the same namespace scales this object."""
    target = (autoscaler.get("spec") or {}).get("scaleTargetRef") or {}
    group = str(target.get("apiVersion") or "").rpartition("/")[0]
    place = str((autoscaler.get("metadata") or {}).get("namespace") or "")
    return (group, target.get("kind"), place, target.get("name")) == ref.identity


# So many corrections of one object follow each other at once; from there on the object is contested.
PATIENCE = 3
FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)
# An object that stays as it is for this long after its pause is contested no longer.
PEACE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Strikes:
    """How often in a row an object was restored, and when last."""

    count: int = 0
    last: datetime | None = None

    def after_correction(self, now: datetime) -> Strikes:
        return Strikes(1 if self.is_peace(now) else self.count + 1, now)

    def is_peace(self, now: datetime) -> bool:
        return self.last is None or now - self.last > self.pause + PEACE

    @property
    def is_contested(self) -> bool:
        return self.count >= PATIENCE

    @property
    def pause(self) -> timedelta:
        """How long to wait after the last correction before the next one."""
        if not self.is_contested:
            return timedelta(0)
        doublings: int = 2 ** min(self.count - PATIENCE, 20)
        return min(FIRST_PAUSE * doublings, LONGEST_PAUSE)

    def may_correct_at(self, now: datetime) -> datetime:
        """`now`, or the later moment at which the object may be restored again."""
        if self.last is None or self.is_peace(now):
            return now
        return max(now, self.last + self.pause)


IsScaled = Callable[[ObjectRef], bool]

_AUTOSCALER = ("autoscaling", "", "HorizontalPodAutoscaler")


def without_theirs(cluster: ClusterClient, manifest: Manifest, live: JsonObject, *, manager: str) -> Manifest:
    """What of `manifest` to send onto `live`: all of it, or all but those fields. Read as the identity of `cluster`."""
    is_scaled = has_replicas(manifest) and scaled_by(cluster, [manifest.ref.namespace])(manifest.ref)
    return to_apply(manifest, live, manager=manager, left=left_to_others(manifest, is_scaled=is_scaled))


def scaled_by(cluster: ClusterClient, namespaces: Iterable[str]) -> IsScaled:
    """Tells whether a HorizontalPodAutoscaler that exists targets an object; each namespace is read once.

    Where they may not be read nobody knows, so nothing counts as scaled and a change of replicas is drift.
    """
    resource = cluster.resource_of(*_AUTOSCALER)
    found: list[dict[str, Any]] = []
    for namespace in sorted(set(namespaces)) if resource else []:
        assert resource is not None  # the loop is empty else
        try:
            found.extend(cluster.list(resource, namespace))
        except Forbidden:
            continue
    return lambda ref: any(is_target(target, ref) for target in found)


def has_replicas(manifest: Manifest) -> bool:
    """Whether the content says how many there shall be, so that an autoscaler could disagree."""
    return (manifest.body.get("spec") or {}).get("replicas") is not None
