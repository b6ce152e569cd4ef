"""Objects that a worker created after its successor had dropped them: found by their nonce, and taken away again.

A worker that stands still sends nothing once its claim may have lapsed (claims.sure_sending). What it had handed to the
network before that cannot be held back. Such a write only ever creates, as every other names the state that it was made
for; and its nonce was recorded before it (S20). What holds data or other objects is not taken away unasked (S16).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from approvals import gate, instruments
from approvals.access.port import connect
from approvals.clock import database_now
from approvals.errors import LostClaim
from approvals.gate import reader
from approvals.ledger import claims, strays
from approvals.models import InventoryItem, Outcome, Report, Revision, Stray
from approvals.models.request import OBJECT_LENGTH
from approvals.steps.restore import takes_data_along
from provisioner.cluster.annotations import has_named_owner, keep_words, nonce_of
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.compare import version_of
from provisioner.cluster.order import is_built_in
from provisioner.cluster.plan.prune import in_served_version
from provisioner.errors import PratiqueError, PreconditionFailed, UnknownKind
from provisioner.json_values import uid_of
from provisioner.pipeline import FIELD_MANAGER
from provisioner.sentences import some
from provisioner.values import Action, ObjectIdentity, ObjectRef, OutcomeState

logger = logging.getLogger(__name__)


def take(deployment_id: int, worker: str) -> None:
    """Look for what is due of a deployment; the caller holds it, so that nothing is being applied or corrected."""
    rows = list(strays.due(database_now()).filter(deployment=deployment_id).select_related("deployment__cluster"))
    if not rows:
        return
    try:
        newest = rows[0].deployment.requests.select_related("deployment__cluster").latest("number")
        service = connect(newest.deployment.cluster)
        gate.require(newest, reader.taking_away(newest, service))
    except PratiqueError as exc:
        logger.warning("could not look for strays", extra={"deployment_id": deployment_id, "code": exc.code})
        strays.postpone(rows, database_now())
        return
    try:
        looked_at = [row for row in rows if strays.is_known(row) or _is_looked_for(row, service, worker)]
    except LostClaim:
        instruments.lost_claims.labels("deployment").inc()
        return
    strays.settle(Stray.objects.filter(pk__in=[row.pk for row in looked_at]), database_now())
    strays.postpone([row for row in rows if row not in looked_at], database_now())


def _is_looked_for(row: Stray, service: Api, worker: str) -> bool:
    """False where nobody could find out: it is looked for again, however old it is (promise 4)."""
    try:
        _look(row, service, worker)
    except LostClaim:
        raise
    except PratiqueError as exc:
        logger.warning("could not look for a stray", extra={"object": str(ObjectRef.from_parts(row)), "code": exc.code})
        return False
    return True


def _look(row: Stray, service: Api, worker: str) -> None:
    # It was written by this request's spec.
    request = row.revision.request if row.revision else row.deployment.requests.latest("number")
    installer = service.acting_as(request.bundle_spec.installer).guarded(claims.sure_sending(worker))
    try:
        ref = in_served_version(installer, ObjectRef.from_parts(row))
        live = installer.get(ref)
    except UnknownKind:
        return
    if live is None or nonce_of(live) != row.nonce or not has_named_owner(live, FIELD_MANAGER):
        return
    # What says that it is to be kept stays (S39), and a custom resource: what its controller has made for it now would
    # go with it.
    if keep_words(live) or not is_built_in(ref.group) or takes_data_along(ref.group_kind, live):
        strays.keep(row, uid_of(live))
        logger.error("a stray is kept, because it may hold data", extra={"object": str(ref), "uid": uid_of(live)})
        return
    try:
        installer.delete(ref, uid=uid_of(live), resource_version=version_of(live))
    except PreconditionFailed:
        return  # somebody writes it: the next look sees whose it is by then
    logger.warning("a stray was removed", extra={"object": str(ref), "uid": uid_of(live)})
    strays.note_removed(row, uid_of(live))


NAMED = 3
# With these an object is deleted before anything of it stands in the inventory.
_DELETING = frozenset({Action.DELETE, Action.REPLACE})
_STANDS = (OutcomeState.DONE, OutcomeState.UNCHANGED)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The objects that are not compared, and why, in words; none and "" where no revision has failed since."""

    objects: frozenset[ObjectIdentity] = frozenset()
    words: str = ""


def leftovers_of(running: Revision, known: Collection[ObjectIdentity]) -> Leftovers:
    """The objects that revisions which failed after `running` had begun with, or were to delete.

    `known` are those of `running`. What restoring it has put back is none of them. An object that was to be deleted is
    one also where that was not reached: a worker may have died between the deletion and its record.
    """
    failed = running.deployment.revisions.filter(number__gt=running.number, state=Revision.State.FAILED)
    left: dict[ObjectIdentity, ObjectRef] = {}
    last = 0
    for revision in failed.select_related("request").order_by("number"):
        request, last = revision.request, revision.number
        # Every write is in the inventory before it is done, under the revision that it is done for. One without a uid
        # that only the failed revision knows was never made: it met another's object, or a refusal.
        for row in InventoryItem.objects.filter(deployment_id=revision.deployment_id, revision=revision):
            ref = ObjectRef.from_parts(row)
            if row.uid or ref.identity in known:
                left[ref.identity] = ref
        report = Report.objects.filter(request=request, round=request.round).first()
        for planned in report.body["plan"]["actions"] if report else ():
            if planned["action"] in _DELETING:
                ref = ObjectRef(**planned["ref"])
                left[ref.identity] = ref
        outcomes = Outcome.objects.filter(request=request, step=Outcome.Step.RESTORE, state__in=_STANDS)
        restored = set(outcomes.exclude(action=Action.DELETE).values_list("object", flat=True))
        left = {identity: ref for identity, ref in left.items() if str(ref)[:OBJECT_LENGTH] not in restored}
    if not left:
        return Leftovers()
    words = (
        f"revision {last} failed after it started to change or delete {some(sorted(left.values()), NAMED)}. Nobody "
        "approved their current state, so they are not compared until a request succeeds; all others are compared with "
        f"revision {running.number}"
    )
    return Leftovers(frozenset(left), words)
