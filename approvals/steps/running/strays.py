"""Objects that a worker created after its successor had dropped them: found by their nonce, and taken away again.

A worker that stands still sends nothing once its claim may have lapsed (claims.sure_sending). What it had handed to the
network before that cannot be held back. Such a write only ever creates, as every other names the state that it was made
for; and its nonce was recorded before it (S20). What holds data or other objects is not taken away unasked (S16).
"""

from __future__ import annotations

import logging

from approvals import gate, instruments
from approvals.access.port import connect
from approvals.clock import database_now
from approvals.errors import LostClaim
from approvals.gate import reader
from approvals.gate.planning import installer_of
from approvals.ledger import claims, strays
from approvals.models import Request, Stray
from approvals.steps.restore import KEPT
from provisioner.cluster.annotations import has_named_owner, keep_words, nonce_of
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.compare import uid_of, version_of
from provisioner.cluster.order import is_built_in
from provisioner.cluster.plan.prune import in_served_version
from provisioner.errors import PratiqueError, PreconditionFailed, UnknownKind
from provisioner.pipeline import FIELD_MANAGER
from provisioner.retention import STATEFUL_SET, takes_claims_along
from provisioner.values import JsonObject, ObjectRef

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
    installer = service.acting_as(installer_of(_request_of(row).spec)).guarded(claims.sure_sending(worker))
    try:
        ref = in_served_version(installer, ObjectRef.from_parts(row))
        live = installer.get(ref)
    except UnknownKind:
        return
    if live is None or nonce_of(live) != row.nonce or not has_named_owner(live, FIELD_MANAGER):
        return
    if _holds_data(ref, live):
        strays.keep(row, uid_of(live))
        logger.error("a stray is kept, because it may hold data", extra={"object": str(ref), "uid": uid_of(live)})
        return
    try:
        installer.delete(ref, uid=uid_of(live), resource_version=version_of(live))
    except PreconditionFailed:
        return  # somebody writes it: the next look sees whose it is by then
    logger.warning("a stray was removed", extra={"object": str(ref), "uid": uid_of(live)})
    strays.note_removed(row, uid_of(live))


def _request_of(row: Stray) -> Request:
    """By whose spec it was written."""
    return row.revision.request if row.revision else row.deployment.requests.latest("number")


def _holds_data(ref: ObjectRef, live: JsonObject) -> bool:
    """A custom resource as well: what its controller has made for it now goes with it. So does what says that it is to
    be kept (S39)."""
    if keep_words(live):
        return True
    if ref.group_kind == STATEFUL_SET:
        return takes_claims_along(live)
    return ref.group_kind in KEPT or not is_built_in(ref.group)
