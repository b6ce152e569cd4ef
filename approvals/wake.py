"""Look again at request N. A message carries no news, the row says what is due: a lost or doubled one does no harm."""

from __future__ import annotations

import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from approvals import instruments
from approvals.models import BundleDeployment

logger = logging.getLogger(__name__)

# Of messages: 0 goes first. With Redis, one of the steps of kombu (0, 3, 6, 9), each of which is a list of its own.
AFTER_REQUESTS = 6


def request(request_id: int) -> None:
    """Have a worker look at this request once the running transaction has committed."""
    transaction.on_commit(lambda: _send("approvals.advance", request_id))


def deployment(deployment_id: int) -> None:
    """Have a worker look at this deployment: its mirror in the cluster, its health. Requests go first: hundreds of
    mirrors that somebody needs written hold up nobody's report.

    The message says when it was last looked after: where it was again before a worker has the message, nothing is left.
    """

    def send() -> None:
        at = BundleDeployment.objects.filter(pk=deployment_id).values_list("looked_after_at", flat=True).first()
        _send("approvals.look_after", deployment_id, at.isoformat() if at else None, priority=AFTER_REQUESTS)

    transaction.on_commit(send)


def drift(deployment_id: int) -> None:
    """Have a worker compare what is due of this deployment with what was approved."""
    transaction.on_commit(lambda: _send("approvals.correct", deployment_id))


def poll(reference_id: int) -> None:
    """Have a worker look whether a reference has moved."""
    transaction.on_commit(lambda: _send("approvals.poll", reference_id))


def upgrade(deployment_id: int) -> None:
    """Have a worker look what catalogs offer to this deployment."""
    transaction.on_commit(lambda: _send("approvals.upgrade", deployment_id))


def catalog(catalog_id: int) -> None:
    """Have a worker look at a catalog: whether it has other content, and what the cluster shows of it."""
    transaction.on_commit(lambda: _send("approvals.refresh_catalog", catalog_id))


def deciding_object(object_id: int) -> None:
    """Have a worker show in the cluster how an object stands that says how requests are decided."""
    transaction.on_commit(lambda: _send("approvals.show_deciding_object", object_id))


def rollout(rollout_id: int) -> None:
    """Have a worker look which members of an ordered set may go on."""
    transaction.on_commit(lambda: _send("approvals.look_at_rollout", rollout_id, priority=AFTER_REQUESTS))


def check_run(run_id: int) -> None:
    """Have a worker send the event of an external check; requests go first."""
    transaction.on_commit(lambda: _send("approvals.send_check_run", run_id, priority=AFTER_REQUESTS))


def comparison(comparison_id: int) -> None:
    """Have a worker compare two bundles, as somebody asked."""
    transaction.on_commit(lambda: _send("approvals.compare_bundles", comparison_id))


def notice(request_id: int, occasion: str) -> None:
    """Have a worker tell the chat tools: occasion is one of chat.sending.OCCASIONS."""
    transaction.on_commit(lambda: _send("approvals.tell", request_id, occasion))


def events() -> None:
    """Have a worker give new events to notification targets."""
    transaction.on_commit(lambda: _send("approvals.spread_events", 0, priority=AFTER_REQUESTS))


def notifications(target_id: int) -> None:
    """Have a worker send what waits for a notification target; requests go first."""
    transaction.on_commit(lambda: _send("approvals.send_notifications", target_id, priority=AFTER_REQUESTS))


def delivery(delivery_id: int) -> None:
    """Have a worker act on a decision that came from a chat tool."""
    transaction.on_commit(lambda: _send("approvals.act_on_delivery", delivery_id))


def kubectl_reviews(cluster_id: int) -> None:
    """Have a worker count the reviews that were made with kubectl on this cluster."""
    transaction.on_commit(lambda: _send("approvals.count_kubectl_reviews", cluster_id))


def _send(task: str, *args: object, priority: int = 0) -> None:
    try:
        current_app.send_task(task, args=args, retry=False, priority=priority)
    except (OperationalError, OSError) as exc:
        # The sweeper finds the row within seconds of the queue's return.
        logger.warning("wake not sent", extra={"task": task, "row": args[0], "error": type(exc).__name__})
        instruments.unsent_wakes.inc()
