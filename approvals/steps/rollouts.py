"""Looking at a set with an order: who may begin is looked at, what is to be restored is, and what is done ends."""

from __future__ import annotations

import logging

from django.db import transaction

from approvals.clock import database_now
from approvals.ledger import claims, rollouts
from approvals.ledger.moves import both_locked
from approvals.lifecycle import State
from approvals.locks import for_change
from approvals.models import Rollout, RolloutMember
from approvals.steps import restore
from approvals.working import Recurring, WorkStep
from provisioner.errors import WorkerDied

logger = logging.getLogger(__name__)
CODE = "set-put-back"
LONGEST_WORDS = 1000


class LookAtRollout(Recurring):
    """`look_at_rollout`, by one worker at a time: of several messages, one look does what all of them ask for."""

    task = "look_at_rollout"

    def __init__(self, rollout_id: int):
        super().__init__(self.task, rollout_id, claims.rows_of_task(self.task, rollout_id))

    def look(self, worker: str) -> bool:
        look_at_rollout(self.key)
        return False

    def step(self) -> WorkStep:
        return WorkStep("looking at the order of a set")

    def say(self, error: WorkerDied) -> None:
        logger.error("the order of a set is not looked at", extra={"rollout_id": self.key, "error": str(error)})


def look_at_rollout(rollout_id: int) -> None:
    """Do what follows from how the members stand now. Whoever is stopped in the middle does it again: each part is one
    transaction, and says in its rows that it is done."""
    row = Rollout.objects.filter(pk=rollout_id, ended_at=None).first()
    if row is None:
        return
    now = database_now()
    order = rollouts.read_order(row, now)
    for member in order.to_put_back():
        put_back(row, member.cluster, member.name)
    rollouts.wake_free(row, order, now)
    if order.is_done:
        rollouts.end_done(row.pk)


@transaction.atomic(durable=True)
def put_back(rollout: Rollout, cluster: str, name: str) -> None:
    """Have the revision before it restored, as after a revision that is not healthy in time: where the spec that was
    approved says RestorePrevious. Else what keeps it is written down."""
    # Meanwhile somebody may have ended the order, or taken out the one that failed.
    locked = for_change(Rollout.objects.filter(pk=rollout.pk, ended_at=None)).first()
    order = rollouts.read_order(locked, database_now()) if locked else None
    if order is None or (cluster, name) not in {(one.cluster, one.name) for one in order.to_put_back()}:
        return
    known = {"deployment__cluster__name": cluster, "deployment__name": name}
    member = RolloutMember.objects.filter(rollout=rollout, **known).first()
    request = rollouts.latest_requests([member]).get(member.pk) if member else None
    if member is None or request is None:
        return
    deployment, row = both_locked(request)
    member = for_change(RolloutMember.objects.filter(pk=member.pk)).first()
    if member is None or row.state != State.APPLIED or row.purpose in rollouts.NOT_HELD:
        return
    problem = f"another deployment of set {rollout.name} failed on this cluster: previous revisions are restored there"
    words = restore.settle_overdue(row.revision, deployment, problem, code=CODE)
    row.refresh_from_db(fields=["state"])  # settle_overdue moves a row that it has read itself
    if row.state == State.RESTORING:
        member.put_back_number, words = row.number, ""
    member.kept_because = words[:LONGEST_WORDS]
    member.save(update_fields=["put_back_number", "kept_because"])
