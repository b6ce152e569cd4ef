"""The queue's door. A message says "look again"; everything else stands in the rows."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from celery import shared_task
from django.conf import settings
from django.db.models import F, Q

from approvals import audit, jobs, kubectl_reviews, retention, services, wake
from approvals.catalogs import comparisons, followed_packages
from approvals.catalogs.history import forget_removed_history
from approvals.catalogs.schedule import catalogs_to_show, schedule_rereads
from approvals.chat import deliveries
from approvals.clock import database_now
from approvals.errors import StoreUnavailable
from approvals.ledger import claims, drifts, notifications, optionals, pivots, references, rollouts, strays
from approvals.ledger.deciding import deciding_objects
from approvals.lifecycle import AT_WORK, OPEN, State
from approvals.models import (
    BundleComparison,
    BundleDeployment,
    Catalog,
    CheckRun,
    DecidingObject,
    FollowedPackage,
    NotificationTarget,
    Request,
    Rollout,
)
from approvals.steps import external_checks, source_checks
from approvals.steps.advance import advance
from approvals.steps.catalogs import comparison, refresh
from approvals.steps.catalogs.comparison import CompareBundles
from approvals.steps.catalogs.refresh import RefreshCatalog
from approvals.steps.external_checks import SendCheckRun
from approvals.steps.mirroring.deciding_status import ShowDecidingObject
from approvals.steps.notifications import SendNotifications, SpreadEvents
from approvals.steps.rollouts import LookAtRollout
from approvals.steps.running.correct import correct
from approvals.steps.source_checks import LookForUpgrades
from approvals.working import do

logger = logging.getLogger(__name__)

# Rows that need work whether or not a message says so.
DUE = (State.PREPARING, State.STALE, State.APPROVED, State.APPLYING, State.RESTORING)
LOOK_AFTER_SECONDS = 15
# What runs nothing has no health, and the watch sees what becomes of it: this is for what the watch missed.
LOOK_AFTER_IDLE_SECONDS = 120
# What waits for people is looked at now and then (steps.evaluate): a right may come without an event. This bounds what
# that asks of databases and clusters, however many wait.
IN_REVIEW_AT_ONCE = 20
# Those that are longest overdue; what is left is due at the next sweep, seconds later.
POLLS_A_SWEEP = 100


@shared_task(name="approvals.advance")
def advance_request(request_id: int) -> None:
    advance(request_id)


@shared_task(name="approvals.look_after")
def look_after_deployment(deployment_id: int, since: str | None = "") -> None:
    """`since`: when it was last looked after as this was sent; where it was again, all that was new then is seen."""
    if since == "" or BundleDeployment.objects.filter(pk=deployment_id, looked_after_at=since).exists():
        do(jobs.LookAfter(deployment_id))


@shared_task(name="approvals.correct")
def correct_deployment(deployment_id: int) -> None:
    correct(deployment_id)


@shared_task(name="approvals.poll")
def poll_source(reference_id: int) -> None:
    do(source_checks.Poll(reference_id))


@shared_task(name="approvals.upgrade")
def look_for_upgrades(deployment_id: int) -> None:
    do(LookForUpgrades(deployment_id))


@shared_task(name="approvals.refresh_catalog")
def refresh_catalog(catalog_id: int) -> None:
    do(RefreshCatalog(catalog_id))


@shared_task(name="approvals.show_deciding_object")
def show_deciding_object(object_id: int) -> None:
    do(ShowDecidingObject(object_id))


@shared_task(name="approvals.look_at_rollout")
def look_at_rollout(rollout_id: int) -> None:
    do(LookAtRollout(rollout_id))


@shared_task(name="approvals.send_check_run")
def send_check_run(run_id: int) -> None:
    do(SendCheckRun(run_id))


@shared_task(name="approvals.spread_events")
def spread_events(key: int) -> None:
    do(SpreadEvents(key))


@shared_task(name="approvals.send_notifications")
def send_notifications(target_id: int) -> None:
    do(SendNotifications(target_id))


@shared_task(name="approvals.compare_bundles")
def compare_bundles(comparison_id: int) -> None:
    do(CompareBundles(comparison_id))


@shared_task(name="approvals.tell")
def tell(request_id: int, occasion: str) -> None:
    jobs.Tell(request_id, occasion).run()


@shared_task(name="approvals.act_on_delivery")
def act_on_delivery(delivery_id: int) -> None:
    jobs.Act(delivery_id).run()


@shared_task(name="approvals.count_kubectl_reviews")
def count_kubectl_reviews(cluster_id: int) -> None:
    do(jobs.CountReviews(cluster_id))


@shared_task(name="approvals.forget_ended")
def forget_ended() -> None:
    services.forget_ended(database_now())


@shared_task(name="approvals.clear")
def clear() -> None:
    references.clear_unused()
    claims.forget_tasks(LookForUpgrades.task, but=FollowedPackage.objects.values("deployment"))
    claims.forget_tasks(RefreshCatalog.task, but=Catalog.objects.values("pk"))
    deciding_objects.clear_gone(database_now())
    claims.forget_tasks(ShowDecidingObject.task, but=DecidingObject.objects.values("pk"))
    claims.forget_tasks(SendCheckRun.task, but=CheckRun.objects.filter(send_at__isnull=False).values("pk"))
    claims.forget_tasks(LookAtRollout.task, but=Rollout.objects.filter(ended_at=None).values("pk"))
    notifications.clear_old(database_now())
    claims.forget_tasks(SendNotifications.task, but=NotificationTarget.objects.values("pk"))
    comparisons.forget_expired_comparisons(database_now())
    forget_removed_history(database_now())
    claims.forget_tasks(CompareBundles.task, but=BundleComparison.objects.values("pk"))
    try:
        retention.clear(database_now(), keep_days=settings.PRATIQUE["KEEP_DAYS"])
    except StoreUnavailable as exc:
        logger.warning("what is left is cleared in an hour", extra={"error": str(exc)})


@shared_task(name="approvals.check_audit")
def check_audit() -> None:
    audit.check_chain()


@shared_task(name="approvals.take_over")
def take_over() -> None:
    """Wake whoever goes on with what a dead worker was writing to a cluster: sooner than the sweep comes by."""
    writing = Request.objects.filter(claims.lapsed(), state__in=[State.APPROVED, *AT_WORK])
    for pk in writing.values_list("pk", flat=True):
        wake.request(pk)
    for pk in BundleDeployment.objects.filter(claims.lapsed()).values_list("pk", flat=True):
        wake.drift(pk)


@shared_task(name="approvals.sweep")
def sweep() -> None:
    """Find what a lost message or a dead worker left behind, and wake it."""
    now = database_now()
    free = Q(claimed_until__isnull=True) | claims.lapsed()
    is_time = Q(look_again_at__isnull=True) | Q(look_again_at__lte=now)
    due = Request.objects.filter(free, is_time, state__in=DUE)
    expired = Request.objects.filter(free, state__in=[*DUE, State.IN_REVIEW], expires_at__lte=now)
    for pk in (due | expired).values_list("pk", flat=True).distinct():
        wake.request(pk)
    for pk in _undecided(free, now):
        wake.request(pk)
    differing = drifts.due(now).values_list("deployment_id", flat=True)
    lost = strays.due(now).values_list("deployment_id", flat=True)
    for pk in {*differing, *lost, *optionals.due(now).values_list("revision__deployment_id", flat=True)}:
        wake.drift(pk)
    for pk in deliveries.overdue(now):
        act_on_delivery.delay(pk)
    pivots.take_up_waiting()
    for pk in rollouts.rollouts_to_sweep():
        wake.rollout(pk)
    for pk in kubectl_reviews.pending_clusters(now):
        wake.kubectl_reviews(pk)
    for pk in _unseen(now):
        wake.deployment(pk)
    _sweep_references(now)
    if notifications.is_anything_to_spread():
        wake.events()
    for pk in notifications.targets_due(now):
        wake.notifications(pk)


def _unseen(now: datetime) -> list[int]:
    """The deployments that are to be looked after."""
    quick, idle = (timedelta(seconds=seconds) for seconds in (LOOK_AFTER_SECONDS, LOOK_AFTER_IDLE_SECONDS))
    unshown = Request.objects.filter(Q(mirrored_at__isnull=True) | Q(mirrored_at__lt=F("changed_at")), state__in=OPEN)
    is_awaited = (
        Q(active_revision__isnull=False)
        | Q(deletion_requested_at__isnull=False)
        | Q(pk__in=unshown.values("deployment"))
    )
    is_time = Q(looked_after_at__isnull=True) | Q(looked_after_at__lt=now - idle)
    is_time |= Q(looked_after_at__lt=now - quick) & is_awaited
    rows = BundleDeployment.objects.filter(is_time, gone_at__isnull=True)
    return list(rows.values_list("pk", flat=True))


def _sweep_references(now: datetime) -> None:
    """Have those looked at whose time has come, and ask what follows where a worker died before it could."""
    references.take_up()
    for pk in source_checks.in_line(now):
        wake.poll(pk)
    for pk in followed_packages.deployments_due(now)[:POLLS_A_SWEEP]:
        wake.upgrade(pk)
    schedule_rereads(now)
    for pk in {*refresh.in_line(now), *catalogs_to_show(now)[:POLLS_A_SWEEP]}:
        wake.catalog(pk)
    for pk in deciding_objects.objects_to_show(now)[:POLLS_A_SWEEP]:
        wake.deciding_object(pk)
    for pk in external_checks.in_line(now):
        wake.check_run(pk)
    for pk in comparison.in_line(now):
        wake.comparison(pk)
    for pk in references.pending(now)[:POLLS_A_SWEEP]:
        try:
            pivots.answer_moves(pk)
        except Exception:  # whatever it is, those behind it are answered, and this one is asked again
            logger.exception("a move could not be answered", extra={"deployment_id": pk})
            references.put_off(pk, now + timedelta(seconds=LOOK_AFTER_SECONDS))


def _undecided(free: Q, now: datetime) -> list[int]:
    """A few of those in review that are to be looked at: with a new review at once, else the longest ago first."""
    is_reviewed = Q(look_again_at__isnull=True, reviews__round=F("round"))
    due = Request.objects.filter(free, is_reviewed | Q(look_again_at__lte=now), state=State.IN_REVIEW).distinct()
    longest_ago = due.order_by(F("look_again_at").asc(nulls_first=True), "pk")
    return list(longest_ago.values_list("pk", flat=True)[:IN_REVIEW_AT_ONCE])
