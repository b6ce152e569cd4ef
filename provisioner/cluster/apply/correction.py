"""Find drift on a live cluster, and put back what was approved. The one place that forces a server-side apply.

Forced is only an apply of the approved manifest itself, so it takes exactly the fields that were approved; it is bound
to the uid and the resourceVersion of the very object that was compared: nothing is written onto a state unseen.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from provisioner.cluster import field_owners
from provisioner.cluster.annotations import Tracking
from provisioner.cluster.client.answers import Applied
from provisioner.cluster.client.api import MUST_NOT_EXIST, ClusterClient
from provisioner.cluster.client.failures import is_immutable_value, is_of_webhook
from provisioner.cluster.compare import Altered, altered, version_of
from provisioner.cluster.drift import (
    CORRECTABLE,
    DriftKind,
    IsScaled,
    ObjectDrift,
    OwnObject,
    compare,
    fingerprint,
    has_replicas,
    left_to_others,
    to_apply,
)
from provisioner.cluster.plan.inputs import NO_DRY_RUN, body_of
from provisioner.errors import ClusterError, InvalidObject, LosesData, PreconditionFailed, UnknownKind, Unreachable
from provisioner.json_values import uid_of
from provisioner.retention import STATEFUL_SET, left_out, scaling_words
from provisioner.values import JsonObject, Manifest, ObjectRef

PARALLEL = 8
# An object that changes between our read and our write is looked at again, so often: its controller may be writing.
ATTEMPTS = 6
FIRST_PAUSE_SECONDS = 0.02  # doubles with each attempt


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at one object found. `problem` says why nobody could tell; then there is no drift to speak of.

    `to_send` is the approved manifest, without what others are there to write; `expected` is what would come of it.
    """

    held: OwnObject
    drift: ObjectDrift | None = None
    live: JsonObject | None = None
    to_send: Manifest | None = None
    expected: JsonObject | None = None
    problem: str = ""

    @property
    def ref(self) -> ObjectRef:
        return self.held.manifest.ref

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.live) if self.live else ""

    @property
    def is_correctable(self) -> bool:
        return self.drift is not None and self.drift.kind in CORRECTABLE and not self.problem


@dataclass(frozen=True, slots=True)
class Corrected:
    """An object as the server answered it; `altered` are the fields that admission made something else of (S10)."""

    uid: str
    fingerprint: str
    altered: tuple[Altered, ...] = ()


def look_at(cluster: ClusterClient, held: Iterable[OwnObject], *, manager: str, is_scaled: IsScaled) -> list[Look]:
    """Compare each object with what was approved, by reads and dry-runs as the identity of `cluster`.

    Raises TryLater where the API server does not answer. A webhook that does not concerns its own objects only.
    """
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return list(pool.map(lambda one: _look(cluster, one, manager, is_scaled), held))


def put_back(cluster: ClusterClient, look: Look, *, manager: str, is_scaled: IsScaled) -> Corrected:
    """Apply the approved manifest onto exactly the object that was looked at, or create it where it is gone.

    An object whose status was written meanwhile is looked at again. Raises PreconditionFailed, AlreadyExists or
    FieldConflict where more than that has changed: then nothing was written.
    """
    for attempt in range(ATTEMPTS):
        sent = look.to_send or look.held.manifest
        try:
            applied = _written(cluster, look, sent, manager)
            wrong = altered(look.expected, applied.object, sent.body) if look.expected else []
            return Corrected(uid_of(applied.object), fingerprint(applied.object), tuple(wrong))
        except PreconditionFailed:
            time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
            again = _look(cluster, look.held, manager, is_scaled)
            if look.live is None or again.drift != look.drift or again.problem:
                raise
            look = again
    raise PreconditionFailed(f"{look.ref} changes faster than it can be corrected", status=409)


def _written(cluster: ClusterClient, look: Look, sent: Manifest, manager: str) -> Applied:
    if look.live is None:
        body = body_of(sent, tracking=look.held.tracking, resource_version=MUST_NOT_EXIST)
        return cluster.apply(body, field_manager=manager)
    if look.ref.group_kind == STATEFUL_SET and (  # what takes claims along is scaled down by people only
        words := scaling_words(look.ref, left_out(look.live, look.expected or sent.body))
    ):
        raise LosesData(f"{words}: it is not corrected. Scale it down yourself, or change the deployment", status=409)
    body = body_of(sent, tracking=look.held.tracking, uid=uid_of(look.live), resource_version=version_of(look.live))
    try:
        return cluster.apply(body, field_manager=manager, force=True)
    except InvalidObject as exc:
        if not field_owners.is_of_old_version(exc):
            raise
    field_owners.rewrite(cluster, look.ref, uid=uid_of(look.live), field_manager=manager)
    raise PreconditionFailed(f"{look.ref}: {field_owners.WORDS}", status=409)


def _look(cluster: ClusterClient, held: OwnObject, manager: str, is_scaled: IsScaled) -> Look:
    try:
        for attempt in range(ATTEMPTS):
            live = cluster.get(held.manifest.ref)
            drift = compare(held, live, live, manager=manager)
            if live is None or (drift and drift.kind in {DriftKind.REMADE, DriftKind.GOING}):
                return Look(held, drift, live)
            left = left_to_others(held.manifest, is_scaled=has_replicas(held.manifest) and is_scaled(held.manifest.ref))
            sent = to_apply(held.manifest, live, manager=manager, left=left)
            try:
                expected = _asked(cluster, sent, live, held.tracking, manager)
            except PreconditionFailed:
                time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
                continue
            return Look(held, compare(held, live, expected, manager=manager, left=left), live, sent, expected)
        return Look(held, problem=f"{held.manifest.ref} changes faster than it can be looked at")
    except UnknownKind as exc:
        return Look(held, ObjectDrift(DriftKind.GONE, message="its kind is not served any more"), problem=str(exc))
    except ClusterError as exc:
        return Look(held, problem=str(exc))  # the server's words stay out: many objects are told of together
    except Unreachable as exc:
        if not is_of_webhook(exc):
            raise
        return Look(held, problem=str(exc))


def _asked(
    cluster: ClusterClient, sent: Manifest, live: JsonObject, tracking: Tracking, manager: str
) -> JsonObject | None:
    """What the server would make of it; None where it cannot be asked.

    A webhook does not let it or does not answer, the object is of an old version, or it is immutable and holds other
    values than were approved.
    """
    body = body_of(sent, tracking=tracking, uid=uid_of(live), resource_version=version_of(live))
    try:
        return cluster.apply(body, field_manager=manager, dry_run=True, force=True).object
    except InvalidObject as exc:
        is_old = field_owners.is_of_old_version(exc)
        if NO_DRY_RUN in exc.server_words or is_old or is_immutable_value(exc):
            return None
        raise
    except Unreachable as exc:
        if is_of_webhook(exc):
            return None
        raise
