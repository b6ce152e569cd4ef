"""The queue's door. A message says "look again"; everything else stands in the rows."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from django.db.models import F, Q
from django.utils import timezone

from approvals import wake
from approvals.chat import inbox, outbox
from approvals.ledger import drifts, optionals
from approvals.lifecycle import State
from approvals.models import BundleDeployment, Request
from approvals.steps.advance import advance
from approvals.steps.correct import correct
from approvals.steps.mirror import look_after
from provisioner.errors import PratiqueError

logger = logging.getLogger(__name__)

# Rows that need work whether or not a message says so.
DUE = (State.PREPARING, State.STALE, State.APPROVED, State.APPLYING, State.RESTORING)
LOOK_AFTER_SECONDS = 15


@shared_task(name="approvals.advance")
def advance_request(request_id: int) -> None:
    advance(request_id)


@shared_task(name="approvals.look_after")
def look_after_deployment(deployment_id: int) -> None:
    try:
        look_after(deployment_id)
    except PratiqueError as exc:
        # The sweep comes by again; the cluster page shows the problem.
        logger.warning("could not look after", extra={"deployment_id": deployment_id, "error": str(exc)})


@shared_task(name="approvals.correct")
def correct_deployment(deployment_id: int) -> None:
    correct(deployment_id)


@shared_task(name="approvals.tell")
def tell(request_id: int, occasion: str) -> None:
    outbox.tell(request_id, occasion)


@shared_task(name="approvals.act_on_delivery")
def act_on_delivery(delivery_id: int) -> None:
    inbox.act(delivery_id)


@shared_task(name="approvals.sweep")
def sweep() -> None:
    """Find what a lost message or a dead worker left behind, and wake it."""
    now = timezone.now()
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lt=now)
    is_time = Q(look_again_at__isnull=True) | Q(look_again_at__lte=now)
    due = Request.objects.filter(free, is_time, state__in=DUE)
    expired = Request.objects.filter(free, state__in=[*DUE, State.IN_REVIEW], expires_at__lte=now)
    undecided = Request.objects.filter(free, state=State.IN_REVIEW, reviews__round=F("round"))
    for pk in (due | expired | undecided).values_list("pk", flat=True).distinct():
        wake.request(pk)
    differing = drifts.due(now).values_list("deployment_id", flat=True)
    for pk in {*differing, *optionals.due(now).values_list("revision__deployment_id", flat=True)}:
        wake.drift(pk)
    for pk in inbox.overdue(now):
        act_on_delivery.delay(pk)
    stale_since = now - timedelta(seconds=LOOK_AFTER_SECONDS)
    unseen = BundleDeployment.objects.filter(gone_at__isnull=True).filter(
        Q(looked_after_at__isnull=True) | Q(looked_after_at__lt=stale_since)
    )
    for pk in unseen.values_list("pk", flat=True):
        wake.deployment(pk)
