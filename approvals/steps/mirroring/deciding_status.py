"""What the cluster shows of an object that says how requests are decided: whether it can be read, and what it asks."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from approvals.access.port import connect
from approvals.clock import database_now
from approvals.deciding.kinds import DecidingKind
from approvals.deciding.spec_fields import UnreadableObject
from approvals.deciding.table import BY_NAME
from approvals.gate.rights import UNKNOWN_AUTHOR
from approvals.ledger import claims
from approvals.ledger.deciding_objects import check_expressions, postpone_showing, record_shown
from approvals.models import DecidingObject
from approvals.policy import BadExpression
from approvals.steps.mirroring.conditions import Condition
from approvals.steps.mirroring.mirror import GROUP_VERSION, apply_status
from approvals.working import Recurring, WorkStep
from provisioner.errors import PratiqueError, WorkerDied

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
        parsed = read_object(row)
        problem, known = (parsed, None) if isinstance(parsed, str) else ("", parsed)
        status = status_of(row, known, problem, now)
        about = {"name": row.name, "uid": row.uid}
        obj = {"apiVersion": GROUP_VERSION, "kind": row.kind, "metadata": about, "status": status}
        try:
            apply_status(connect(row.cluster), obj)
        except PratiqueError as exc:
            logger.warning("could not show a status", extra={"object": row.name, "kind": row.kind, "code": exc.code})
            postpone_showing(row)
            return False
        record_shown(row, status, problem=problem, again_at=known.next_change(now) if known else None)
        return False

    def step(self) -> WorkStep:
        return WorkStep("showing whether an object can be read that says how requests are decided")

    def say(self, error: WorkerDied) -> None:
        logger.error("a status is not shown", extra={"object_id": self.key, "error": str(error)})


def read_object(row: DecidingObject) -> DecidingKind | str:
    """What it says, with its expressions compiled; else why it cannot be read."""
    try:
        parsed = BY_NAME[row.kind].parse(row.spec)
        check_expressions(parsed)
    except (UnreadableObject, BadExpression) as exc:
        return str(exc)
    return parsed


def status_of(row: DecidingObject, known: DecidingKind | None, problem: str, now: datetime) -> dict[str, Any]:
    """`lastTransitionTime` stays what it was as long as the condition says the same."""
    reason, words = "Read", "Pratique reads it"
    if problem:
        reason = "Unreadable"
        words = f"it cannot be read, so {BY_NAME[row.kind].describe_unreadable(row.spec)}: {problem}"
    elif known and known.needs_authors and not all(row.authors or [{}]):
        reason, words = "AuthorUnknown", f"it approves nothing: {UNKNOWN_AUTHOR}"
    ready = Condition("Ready", reason == "Read", reason, words, now)
    record = ready.record(generation=row.generation)
    for before in row.status.get("conditions") or ():
        if before["type"] == record["type"] and before["status"] == record["status"]:
            record["lastTransitionTime"] = before["lastTransitionTime"]
    status: dict[str, Any] = {"observedGeneration": row.generation, "conditions": [record]}
    return {**status, "summary": known.summary, **known.status(now)} if known else status
