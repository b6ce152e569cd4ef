"""What the cluster shows of an object that says how requests are decided: whether it can be read, and what it asks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from approvals import audit
from approvals.access.port import connect
from approvals.clock import database_now
from approvals.deciding.kinds import VERSION, DecidingKind, ReadyState
from approvals.deciding.spec_fields import UnreadableObject
from approvals.deciding.table import BY_NAME
from approvals.gate.rights import UNKNOWN_AUTHOR
from approvals.ledger import claims
from approvals.ledger.deciding import deciding_objects
from approvals.ledger.deciding.confirmations import ready_state
from approvals.ledger.deciding.deciding_objects import check_expressions, look_again, postpone_showing, record_shown
from approvals.models import DecidingObject
from approvals.steps.mirroring.conditions import Condition
from approvals.steps.mirroring.mirror import GROUP_VERSION, apply_status
from approvals.working import Recurring, WorkStep
from provisioner.api_groups import OWN_GROUP
from provisioner.errors import PratiqueError, PreconditionFailed, WorkerDied
from provisioner.values import ObjectRef

logger = logging.getLogger(__name__)


class ShowDecidingObject(Recurring):
    """Write its status; where the cluster does not take it, the sweep tries again."""

    task = "show_deciding_object"

    def __init__(self, object_id: int):
        super().__init__(self.task, object_id, claims.rows_of_task(self.task, object_id))

    def look(self, worker: str) -> bool:
        row = DecidingObject.objects.select_related("cluster").filter(pk=self.key, gone_at=None).first()
        if row is None or row.show_at is None:
            return False
        now = database_now()
        known, problem = read_object(row)
        kind = BY_NAME[row.kind]
        end = known.ends_at(row.changed_at) if known else kind.unreadable_ends_at(_said_at(row, now))
        if end and end <= now:
            _delete_ended(row)
            return False
        status = status_of(row, known, problem, now)
        about = {"name": row.name, "uid": row.uid}
        obj = {"apiVersion": GROUP_VERSION, "kind": row.kind, "metadata": about, "status": status}
        try:
            apply_status(connect(row.cluster), obj)
        except PratiqueError as exc:
            logger.warning("could not show a status", extra={"object": row.name, "kind": row.kind, "code": exc.code})
            postpone_showing(row)
            return False
        again_at = min(filter(None, (end, known.next_change(now) if known else None)), default=None)
        record_shown(row, status, problem=problem, again_at=again_at)
        if known and known.needs_people and _ready_of(status) != _ready_of(row.status):
            look_again(row.cluster)
        return False

    def step(self) -> WorkStep:
        return WorkStep("showing whether an object can be read that says how requests are decided")

    def say(self, error: WorkerDied) -> None:
        logger.error("a status is not shown", extra={"object_id": self.key, "error": str(error)})


def _said_at(row: DecidingObject, now: datetime) -> datetime:
    """Since when its status says that it cannot be read; now where it does not say so yet."""
    ready = next((it for it in row.status.get("conditions") or () if it["type"] == "Ready"), None)
    is_said = ready is not None and ready["status"] == "False"
    return datetime.fromisoformat(ready["lastTransitionTime"]) if ready and is_said else now


def _delete_ended(row: DecidingObject) -> None:
    """Delete exactly the object that was seen; where the cluster does not do it, the sweep tries again."""
    try:
        connect(row.cluster).delete(ObjectRef(OWN_GROUP, VERSION, row.kind, "", row.name), uid=row.uid)
    except PreconditionFailed:
        pass  # another one of its name: the watch tells of both
    except PratiqueError as exc:
        logger.warning("could not delete what ended", extra={"object": row.name, "kind": row.kind, "code": exc.code})
        postpone_showing(row)
        return
    deciding_objects.forget(cluster=row.cluster, uid=row.uid, actor=audit.MACHINE)


def read_object(row: DecidingObject) -> tuple[DecidingKind | None, str]:
    """What it says, None where it cannot be read, and what is wrong with it or its expressions; "" where nothing is."""
    parsed, problem = BY_NAME[row.kind].read(row.spec)
    try:
        if parsed:
            check_expressions(parsed)
    except UnreadableObject as exc:
        problem = str(exc)
    return parsed, problem


def status_of(row: DecidingObject, known: DecidingKind | None, problem: str, now: datetime) -> dict[str, Any]:
    """`lastTransitionTime` stays what it was as long as the condition says the same."""
    state = ready_state(row, now, problem)
    if state.is_ready and known and known.needs_authors and not all(row.authors or [{}]):
        state = ReadyState(False, "AuthorUnknown", f"it approves nothing: {UNKNOWN_AUTHOR}")
    ready = Condition("Ready", state.is_ready, state.reason, state.words, now)
    record = ready.record(generation=row.generation)
    for before in row.status.get("conditions") or ():
        if before["type"] == record["type"] and before["status"] == record["status"]:
            record["lastTransitionTime"] = before["lastTransitionTime"]
    status: dict[str, Any] = {"observedGeneration": row.generation, "conditions": [record]}
    return {**status, "summary": known.summary, **known.status(now)} if known else status


def _ready_of(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(condition["status"], condition["reason"]) for condition in status.get("conditions") or ()]
