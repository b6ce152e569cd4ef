"""Claimed work that no step does: looking after deployments, reviews made with kubectl, and chat tools."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from approvals import kubectl_reviews, wake
from approvals.chat import deliveries, sending
from approvals.ledger import claims, rollouts
from approvals.steps.mirroring.mirror import look_after
from approvals.steps.running.observe import note_unknown
from approvals.working import Recurring, Work, WorkStep, do
from provisioner.errors import PratiqueError, WorkerDied

logger = logging.getLogger(__name__)


class LookAfter(Recurring):
    """Bring the cluster's picture of a deployment up to date, and ask for its health."""

    def __init__(self, deployment_id: int):
        super().__init__(claims.LOOK_AFTER, deployment_id, claims.rows_of_task(claims.LOOK_AFTER, deployment_id))

    def look(self, worker: str) -> bool:
        try:
            look_after(self.key)
        except PratiqueError as exc:
            # The sweep comes by again; the cluster page shows the problem.
            logger.warning("could not look after", extra={"deployment_id": self.key, "code": exc.code})
        rollouts.wake_for(self.key)
        return False

    def step(self) -> WorkStep:
        return WorkStep("looking after it: its health, and what the cluster shows of it")

    def call(self) -> None:
        wake.deployment(self.key)

    def say(self, error: WorkerDied) -> None:
        note_unknown(self.key, str(error))


class CountReviews(Recurring):
    """Count the reviews that were made with kubectl on a cluster."""

    task = "count_kubectl_reviews"

    def __init__(self, cluster_id: int):
        super().__init__(self.task, cluster_id, claims.rows_of_task(self.task, cluster_id))

    def look(self, worker: str) -> bool:
        try:
            kubectl_reviews.count(self.key)
        except PratiqueError as exc:
            # The sweep comes by again.
            logger.warning("could not count reviews", extra={"cluster_id": self.key, "code": exc.code})
        return False

    def step(self) -> WorkStep:
        return WorkStep("counting reviews that were made with kubectl")

    def call(self) -> None:
        wake.kubectl_reviews(self.key)

    def say(self, error: WorkerDied) -> None:
        logger.error("reviews by kubectl are not counted", extra={"cluster_id": self.key, "error": str(error)})


class Once(Work):
    """Done once for a message; its claim is there only meanwhile."""

    def __init__(self, task: str, key: int):
        super().__init__(task, key, claims.rows_of_task(task, key))

    def run(self) -> None:
        do(self)
        claims.forget_task(self.rows)


class Act(Once):
    """Act on a decision that came from a chat tool."""

    task = "act_on_delivery"

    def __init__(self, delivery_id: int):
        super().__init__(self.task, delivery_id)

    def look(self, worker: str) -> bool:
        deliveries.act(self.key)
        return False

    def step(self) -> WorkStep:
        return WorkStep("acting on a decision from a chat")

    def call(self) -> None:
        wake.delivery(self.key)

    def give_up(self, error: WorkerDied) -> None:
        deliveries.give_up(self.key, str(error))


class Tell(Once):
    """Post a message about a request to the chat."""

    def __init__(self, request_id: int, occasion: str):
        super().__init__(f"tell {occasion}", request_id)
        self._occasion = occasion

    @property
    def remake(self) -> Callable[[], Work]:
        return partial(Tell, self.key, self._occasion)

    def look(self, worker: str) -> bool:
        sending.tell(self.key, self._occasion)
        return False

    def step(self) -> WorkStep:
        return WorkStep("posting it to the chat")

    def give_up(self, error: WorkerDied) -> None:
        logger.error("not posted to the chat", extra={"request_id": self.key, "error": str(error)})
