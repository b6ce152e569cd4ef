"""Find drift on a live cluster, and put back what was approved. The one place that forces a server-side apply.

Forced is only an apply of the approved manifest itself, so it takes exactly the fields that were approved; it is bound
to the uid and the resourceVersion of the very object that was compared: nothing is written onto a state unseen.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from provisioner.cluster.client.answers import Applied
from provisioner.cluster.client.api import MUST_NOT_EXIST, Cluster
from provisioner.cluster.client.failures import is_of_webhook
from provisioner.cluster.compare import altered, uid_of, version_of
from provisioner.cluster.drift import old_versions
from provisioner.cluster.drift.detection import (
    CORRECTABLE,
    Drift,
    DriftKind,
    Held,
    compare,
    fingerprint,
    left_to_others,
    to_apply,
)
from provisioner.cluster.drift.left_out import IsScaled, has_replicas
from provisioner.cluster.plan.dry_run import NO_DRY_RUN, body_of
from provisioner.cluster.tracking import Tracking
from provisioner.errors import ClusterError, InvalidObject, PreconditionFailed, UnknownKind, Unreachable
from provisioner.values import JsonObject, Manifest, ObjectRef

PARALLEL = 8
# An object that changes between our read and our dry-run is looked at again, so often.
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at one object found. `problem` says why nobody could tell; then there is no drift to speak of.

    `to_send` is the approved manifest, without what others are there to write; `expected` is what would come of it.
    """

    held: Held
    drift: Drift | None = None
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
    """An object as the server answered it; `altered` names the fields that admission made something else of (S10)."""

    uid: str
    fingerprint: str
    altered: tuple[str, ...] = ()


def look_at(cluster: Cluster, held: Iterable[Held], *, manager: str, is_scaled: IsScaled) -> list[Look]:
    """Compare each object with what was approved, by reads and dry-runs as the identity of `cluster`.

    Raises TryLater where the API server does not answer. A webhook that does not concerns its own objects only.
    """
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return list(pool.map(lambda one: _look(cluster, one, manager, is_scaled), held))


def put_back(cluster: Cluster, look: Look, *, manager: str, is_scaled: IsScaled) -> Corrected:
    """Apply the approved manifest onto exactly the object that was looked at, or create it where it is gone.

    An object whose status was written meanwhile is looked at again. Raises PreconditionFailed, AlreadyExists or
    FieldConflict where more than that has changed: then nothing was written.
    """
    for _ in range(ATTEMPTS):
        sent = look.to_send or look.held.manifest
        try:
            return _corrected(_written(cluster, look, sent, manager), look, sent)
        except PreconditionFailed:
            again = _look(cluster, look.held, manager, is_scaled)
            if look.live is None or again.drift != look.drift or again.problem:
                raise
            look = again
    raise PreconditionFailed(f"{look.ref} changes faster than it can be put back", status=409)


def _written(cluster: Cluster, look: Look, sent: Manifest, manager: str) -> Applied:
    if look.live is None:
        body = body_of(sent, tracking=look.held.tracking, resource_version=MUST_NOT_EXIST)
        return cluster.apply(body, field_manager=manager)
    body = body_of(sent, tracking=look.held.tracking, uid=uid_of(look.live), resource_version=version_of(look.live))
    try:
        return cluster.apply(body, field_manager=manager, force=True)
    except InvalidObject as exc:
        if not old_versions.is_of_old_version(exc):
            raise
    old_versions.rewrite(cluster, look.ref, uid=uid_of(look.live), field_manager=manager)
    raise PreconditionFailed(f"{look.ref}: {old_versions.WORDS}", status=409)


def _corrected(applied: Applied, look: Look, sent: Manifest) -> Corrected:
    wrong = altered(look.expected, applied.object, sent.body) if look.expected else []
    return Corrected(uid_of(applied.object), fingerprint(applied.object), tuple(wrong))


def _look(cluster: Cluster, held: Held, manager: str, is_scaled: IsScaled) -> Look:
    try:
        return _looked(cluster, held, manager, is_scaled)
    except UnknownKind as exc:
        return Look(held, Drift(DriftKind.GONE, message="its kind is not served any more"), problem=str(exc))
    except ClusterError as exc:
        return Look(held, problem=str(exc))  # the server's words stay out: many objects are told of together
    except Unreachable as exc:
        if not is_of_webhook(exc):
            raise
        return Look(held, problem=str(exc))


def _looked(cluster: Cluster, held: Held, manager: str, is_scaled: IsScaled) -> Look:
    for _ in range(ATTEMPTS):
        live = cluster.get(held.manifest.ref)
        drift = compare(held, live, live, manager=manager)
        if live is None or (drift and drift.kind in {DriftKind.REMADE, DriftKind.GOING}):
            return Look(held, drift, live)
        left = left_to_others(held.manifest, is_scaled=has_replicas(held.manifest) and is_scaled(held.manifest.ref))
        sent = to_apply(held.manifest, live, manager=manager, left=left)
        try:
            expected = _asked(cluster, sent, live, held.tracking, manager)
        except PreconditionFailed:
            continue
        drift = compare(held, live, expected, manager=manager, left=left)
        return Look(held, drift, live, sent, expected)
    return Look(held, problem=f"{held.manifest.ref} changes faster than it can be looked at")


def _asked(cluster: Cluster, sent: Manifest, live: JsonObject, tracking: Tracking, manager: str) -> JsonObject | None:
    """What the server would make of it; None where it cannot be asked.

    A webhook does not let it or does not answer, or the object is of an old version.
    """
    body = body_of(sent, tracking=tracking, uid=uid_of(live), resource_version=version_of(live))
    try:
        return cluster.apply(body, field_manager=manager, dry_run=True, force=True).object
    except InvalidObject as exc:
        if NO_DRY_RUN in exc.server_words or old_versions.is_of_old_version(exc):
            return None
        raise
    except Unreachable as exc:
        if is_of_webhook(exc):
            return None
        raise
