"""Events on their way: given to the targets that are told of them, and sent, each target under a claim of its own."""

from __future__ import annotations

import logging
import time

from approvals import wake
from approvals.clock import database_now
from approvals.events.kinds.table import TARGET_KINDS
from approvals.events.occasions import EventType
from approvals.events.signed_post import SEND_SECONDS
from approvals.ledger import claims, notifications
from approvals.steps.sources import egress
from approvals.working import Recurring, WorkStep
from provisioner.errors import WorkerDied

logger = logging.getLogger(__name__)

# Then other work has its turn: a slow target keeps no worker to itself.
AT_ONCE_SECONDS = 20.0
# Over all workers: who holds its connection open keeps few of all threads (S40).
SENDS_AT_ONCE = 4


class SpreadEvents(Recurring):
    """Give events to targets. There is one row for all: its key says nothing."""

    task = "spread_events"

    def __init__(self, key: int = 0):
        super().__init__(self.task, key, claims.rows_of_task(self.task, key))

    def look(self, worker: str) -> bool:
        is_more = notifications.spread_events()
        for target_id in notifications.targets_due(database_now()):
            wake.notifications(target_id)
        return is_more

    def step(self) -> WorkStep:
        return WorkStep("giving events to notification targets")

    def say(self, error: WorkerDied) -> None:
        logger.error("events are not given to targets", extra={"error": str(error)})


class SendNotifications(Recurring):
    """Send what waits for one target. A worker that is killed after it sent leaves the row as it was: the same event
    is sent again then, with the same id."""

    task = "send_notifications"

    def __init__(self, target_id: int):
        super().__init__(self.task, target_id, claims.rows_of_task(self.task, target_id))
        self._ends_at = time.monotonic() + AT_ONCE_SECONDS

    def look(self, worker: str) -> bool:
        """What is left once its time is over, or where no place is free, the next sweep has sent."""
        if time.monotonic() >= self._ends_at:
            return False
        with claims.place(self.task, 0, SENDS_AT_ONCE) as is_free:
            delivery = notifications.next_delivery(self.key, database_now()) if is_free else None
            if delivery is None:
                return False
            kind, together = TARGET_KINDS[delivery.target.kind], [delivery]
            if kind.is_for_people and delivery.event.type != EventType.TEST:
                together = notifications.due_together(delivery, database_now())
            if not together:
                return False
            events = [each.event for each in together]
            result = kind.deliver(delivery.target, events, egress(timeout_seconds=SEND_SECONDS))
            notifications.note_result(together[0], result, also=together[1:])
        return True

    def step(self) -> WorkStep:
        return WorkStep("sending events to a notification target")

    def call(self) -> None:
        wake.notifications(self.key)

    def say(self, error: WorkerDied) -> None:
        logger.error("a target is not told of events", extra={"target_id": self.key, "error": str(error)})
