"""Drift: compare what others touched with what was approved, and put exactly that back.

Only the objects that are due are looked at: what comes next stands in their rows (`look_at`), written by the watch.
Every write is the approved content of the running revision, hashed again, as its installer, after all that S25 names.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from approvals import gate, instruments, store, wake
from approvals.access.port import connect
from approvals.clock import database_now
from approvals.errors import Awaits, GivesWay, LostClaim
from approvals.gate import reader
from approvals.ledger import claims, drifts, optionals
from approvals.models import BundleDeployment, InventoryItem, Revision
from approvals.steps.records.inventory import DatabaseInventory, owner_of
from approvals.steps.running import optional, strays
from approvals.steps.running.strays import leftovers_of
from approvals.working import Recurring, WorkStep, do
from provisioner.cluster.annotations import Tracking
from provisioner.cluster.apply.correction import Look, look_at, put_back
from provisioner.cluster.apply.run import recover
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.drift import CORRECTABLE, PEACE, FieldChangeKind, IsScaled, OwnObject, has_replicas, scaled_by
from provisioner.cluster.order import phases
from provisioner.errors import AlreadyExists, FieldConflict, PratiqueError, PreconditionFailed, WorkerDied
from provisioner.pipeline import FIELD_MANAGER
from provisioner.values import Manifest, ObjectIdentity, ObjectRef

logger = logging.getLogger(__name__)

AT_ONCE = 200
# Before so many are compared, and before each is put back, it is seen whether an approved request waits.
LOOKS_AT_ONCE = 40
# What stands in the way passes by itself or by people: asked again after this long.
AGAIN_SECONDS = 15
SOON_SECONDS = 1
# While a window holds corrections, drift is compared as often as this.
OUTSIDE_WINDOW_SECONDS = 600
REPORT = "Report"


@dataclass(frozen=True, slots=True)
class RevisionToCorrect:
    """A running revision and how to reach it: as the service, and as the account that installed it."""

    deployment: BundleDeployment
    revision: Revision
    service: Api
    installer: Api
    worker: str
    now: datetime


class Correct(Recurring):
    """Compare all that is due of a deployment, put back what drifted, and create what was left out as optional."""

    task = "correct"

    def __init__(self, deployment_id: int):
        super().__init__(self.task, deployment_id, BundleDeployment.objects.filter(pk=deployment_id))

    def look(self, worker: str) -> bool:
        if claims.held_up(self.key).exists():
            return False
        is_due = _correct_some(self.key, worker)
        optional.take(self.key, worker)
        strays.take(self.key, worker)
        return is_due

    def step(self) -> WorkStep:
        return WorkStep("comparing the cluster with the approved state", is_long=True)

    def call(self) -> None:
        wake.drift(self.key)

    def say(self, error: WorkerDied) -> None:
        drifts.note_problem(self.key, str(error))
        now = database_now()
        optionals.wait(optionals.due(now).filter(revision__deployment=self.key), str(error), now)


def correct(deployment_id: int) -> None:
    """Compare all that is due of a deployment; returns at once where another worker is at it."""
    do(Correct(deployment_id))
    for pk in claims.held_up(deployment_id).values_list("pk", flat=True):
        claims.held_up(deployment_id).filter(pk=pk).update(look_again_at=database_now())
        wake.request(pk)


def _correct_some(deployment_id: int, worker: str) -> bool:
    """Work on some of what is due; True where there may be more."""
    now = database_now()
    deployment = BundleDeployment.objects.select_related("cluster").get(pk=deployment_id)
    revision = (
        Revision.objects.filter(deployment=deployment, pk=deployment.active_revision_id or 0)
        .select_related("content", "request__deployment__cluster")
        .first()
    )
    if revision is None or deployment.gone_at or deployment.deletion_requested_at:
        drifts.forget(deployment)
        return False
    items = list(drifts.due(now).filter(deployment=deployment).select_related("deployment__cluster")[:AT_ONCE])
    if not items:
        return False
    try:
        check_running(revision)
    except gate.Waiting:
        drifts.postpone(items, _after(now, AGAIN_SECONDS))
        return len(items) == AT_ONCE
    try:
        service = connect(deployment.cluster)
        installer = service.acting_as(revision.request.bundle_spec.installer).guarded(claims.sure_sending(worker))
        _correct_items(RevisionToCorrect(deployment, revision, service, installer, worker, now), items)
    except GivesWay:
        return False
    except LostClaim:
        instruments.lost_claims.labels("deployment").inc()
        return False
    except PratiqueError as exc:
        logger.warning("could not look for drift", extra={"deployment_id": deployment_id, "code": exc.code})
        drifts.note_problem(deployment_id, str(exc))
        drifts.postpone(items, _after(now, AGAIN_SECONDS))
    return len(items) == AT_ONCE


def _correct_items(case: RevisionToCorrect, due: list[InventoryItem]) -> None:
    """Compare these objects with what was approved, note what was found, and put back what may be."""
    gate.require(case.revision.request, reader.meeting(case.revision.request, case.service))
    content = store.get(case.revision.content)
    manifests = {manifest.ref.identity: manifest for manifest in content.manifests}
    left = leftovers_of(case.revision, manifests.keys())
    items: dict[ObjectIdentity, InventoryItem] = {}
    for item in due:
        identity = ObjectRef.from_parts(item).identity
        if identity in manifests and identity not in left.objects:
            items[identity] = item
        else:
            drifts.drop(item)
    if not all(item.uid for item in items.values()):
        # What a crash left between the intent to create an object and its uid is settled first (S20).
        known = recover(case.installer, _inventory(case))
        for identity, item in items.items():
            item.uid = known[identity].uid if identity in known else ""
    owner = owner_of(case.revision)
    held = [
        OwnObject(manifests[identity], item.uid, Tracking.of(item.nonce, owner)) for identity, item in items.items()
    ]
    is_scaled = scaled_by(case.service, {own.manifest.ref.namespace for own in held if has_replicas(own.manifest)})
    looks: list[Look] = []
    for start in range(0, len(held), LOOKS_AT_ONCE):
        claims.check_nobody_is_held_up(case.deployment.pk)
        some = held[start : start + LOOKS_AT_ONCE]
        looks += look_at(case.installer, some, manager=FIELD_MANAGER, is_scaled=is_scaled)
    # What could not be compared is said, and never taken for fine (promise 4); so is what is left uncompared.
    found = {identity: (item, look) for (identity, item), look in zip(items.items(), looks, strict=True)}
    unknown = [(item, look) for item, look in found.values() if look.problem]
    drifts.postpone([item for item, _ in unknown], _after(case.now, AGAIN_SECONDS))
    words = [f"{look.ref}: {look.problem}" for _, look in unknown[:5]]
    drifts.note_problem(case.deployment.pk, "; ".join(filter(None, [left.words, *words])))
    to_correct = {identity: pair for identity, pair in found.items() if _is_to_correct(case, *pair)}
    if to_correct:
        _put_all_back(case, to_correct, is_scaled)


def _inventory(case: RevisionToCorrect) -> DatabaseInventory:
    check_held = partial(claims.check_held_deployment, case.deployment.pk, case.worker)
    return DatabaseInventory(case.deployment, case.revision, check_held)


def _is_to_correct(case: RevisionToCorrect, item: InventoryItem, look: Look) -> bool:
    """Record what a look found; True where it is to be restored now."""
    if look.problem:
        return False
    strikes = drifts.strikes_of(item)
    if look.drift is None:
        drifts.note_end(item=item, revision=case.revision, now=case.now)
        rest = strikes.last + strikes.pause + PEACE if strikes.last and strikes.is_contested else None
        drifts.settle(item, look.fingerprint, again_at=rest if rest and rest > case.now else None)
        return False
    is_wished = case.revision.request.bundle_spec.drift != REPORT
    may_at = strikes.may_correct_at(case.now)
    is_resting = is_wished and look.is_correctable and may_at > case.now
    problem = (
        f"another manager keeps changing it: the next correction is after {may_at:%H:%M:%S} UTC" if is_resting else ""
    )
    known = strikes if not strikes.is_peace(case.now) else type(strikes)()
    drifts.note(item=item, revision=case.revision, drift=look.drift, problem=problem, strikes=known, now=case.now)
    if is_resting:
        drifts.postpone([item], may_at)
        return False
    if not (is_wished and look.is_correctable):
        drifts.settle(item, look.fingerprint)
        return False
    return True


def _put_all_back(
    case: RevisionToCorrect, to_correct: Mapping[ObjectIdentity, tuple[InventoryItem, Look]], is_scaled: IsScaled
) -> None:
    """In the order of an apply; before each phase everything is asked again (S25)."""
    wished: list[Manifest] = [look.held.manifest for _, look in to_correct.values()]
    for phase in phases(wished):
        pairs = [to_correct[manifest.ref.identity] for manifest in phase.manifests]
        try:
            # Of the approved and the wished setting the stricter counts; the approved one was looked at before.
            gate.require(case.revision.request, reader.correcting(case.revision, case.service))
        except PratiqueError as exc:
            _keep_waiting(case, pairs, exc)
            continue
        for item, look in pairs:
            if not claims.renew_deployment(case.deployment.pk, case.worker):
                raise LostClaim
            claims.check_nobody_is_held_up(case.deployment.pk)
            try:
                _put_back(case, item, look, is_scaled)
            except LostClaim:
                raise
            except (PreconditionFailed, AlreadyExists, FieldConflict):
                drifts.postpone([item], _after(case.now, SOON_SECONDS))
            except PratiqueError as exc:
                _keep_waiting(case, [(item, look)], exc)


def check_running(revision: Revision) -> None:
    """Raise Waiting unless this is the revision that runs, and none is being applied or put back.

    One that was begun since and failed is no obstacle: what it touched is left alone (leftovers.py).
    """
    gate.require(revision.request, reader.running(revision))


def _put_back(case: RevisionToCorrect, item: InventoryItem, look: Look, is_scaled: IsScaled) -> None:
    check_running(case.revision)
    drift = look.drift
    assert drift is not None  # nothing else is to be restored
    nonce = item.nonce
    inventory = _inventory(case)
    if look.live is None:
        # A pending nonce is used again: a write of it may still be on its way from a worker that was thought dead.
        nonce = item.nonce if not item.uid else secrets.token_hex(16)
        inventory.intend(look.ref, nonce)
        look = replace(look, held=replace(look.held, tracking=Tracking.of(nonce, owner_of(case.revision))))
    corrected = put_back(case.installer, look, manager=FIELD_MANAGER, is_scaled=is_scaled)
    inventory.confirm(look.ref, nonce, corrected.uid)
    drifts.note_correction(
        item=item, revision=case.revision, drift=drift, altered=corrected.altered, now=database_now()
    )
    # What somebody added beside what they changed still stands there, and is told of by another look.
    is_left = any(field.change == FieldChangeKind.ADDED for field in drift.fields)
    drifts.settle(item, corrected.fingerprint, again_at=database_now() if is_left else None)


def _keep_waiting(case: RevisionToCorrect, pairs: Iterable[tuple[InventoryItem, Look]], error: PratiqueError) -> None:
    for item, look in pairs:
        if look.drift is not None and look.drift.kind in CORRECTABLE:
            strikes = drifts.strikes_of(item)
            drifts.note(
                item=item,
                revision=case.revision,
                drift=look.drift,
                problem=str(error),
                strikes=strikes,
                now=case.now,
                server_words=error.server_words,
            )
        drifts.postpone([item], _again_at(case.now, error))


def _again_at(now: datetime, error: PratiqueError) -> datetime:
    if not isinstance(error, gate.Waiting) or error.awaits != Awaits.WINDOW:
        return _after(now, AGAIN_SECONDS)
    longest = _after(now, OUTSIDE_WINDOW_SECONDS)
    return min(error.due_at or longest, longest)


def _after(now: datetime, seconds: float) -> datetime:
    return now + timedelta(seconds=seconds)
