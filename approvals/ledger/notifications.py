"""Which targets are told of an event, when it is sent to each, and what became of that.

An event is given to targets once, in one transaction. What waits for a target and is about one subject is sent in the
order of its events; a delivery that is dead holds up nothing.
"""

from __future__ import annotations

import fnmatch
import logging
import random
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Min, OuterRef, Q, QuerySet

from approvals import audit
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.deciding.selector import SelectedBy, Selector
from approvals.events.occasions import EventType
from approvals.events.signed_post import PostResult
from approvals.ledger.labels import MAX_KEPT
from approvals.locks import for_change
from approvals.models import NotificationDelivery, NotificationTarget, OutboxEvent
from provisioner.values import Severity

logger = logging.getLogger(__name__)

# Events that are given to targets in one transaction.
SPREAD_AT_ONCE = 500
# The waits after the first attempt, the second and so on, as Standard Webhooks has them; after the last it is dead.
WAITS_SECONDS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
# Of each wait, so that what failed together is not sent together again.
JITTER = 0.2
# A target that is away is tried again after the first, doubled each time up to the last, with the next that is due.
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 5, 300
# What a server asks for by Retry-After.
LONGEST_ASKED_SECONDS = 86_400.0
GONE, TOO_MANY = 410, 429
# People get at most one message in so long, of at most so many events.
DIGEST, MOST_TOGETHER = timedelta(minutes=1), 200
# Events and what became of them, whether or not PRATIQUE_KEEP_DAYS lets anything else go.
KEPT = timedelta(days=30)
# What is given up for its age stays so long, for whoever looks.
AGED_STAYS = timedelta(days=3)
AGED = "it could not be sent within 30 days"


def is_anything_to_spread() -> bool:
    return OutboxEvent.objects.filter(spread_at=None).exists()


def is_told_of(target: NotificationTarget, event: OutboxEvent) -> bool:
    """Whether a target is told of an event. PURE

    Only of clusters of which its writer may see all. Severities narrow requests, and labels what is about a deployment,
    by any set that the request had.
    """
    if event.type == EventType.TEST or event.cluster not in target.granted:
        return False
    if target.event_types and event.type not in target.event_types:
        return False
    if target.clusters and not any(fnmatch.fnmatchcase(event.cluster, glob) for glob in target.clusters):
        return False
    # One set in events of an earlier version.
    sets = event.labels if isinstance(event.labels, list) else [event.labels]
    selector = Selector(labels=target.labels if sets else {}, min_severity=target.min_severity)
    worst = event.severity or str(Severity.CRITICAL)
    is_all = len(sets) <= MAX_KEPT + 1
    about = SelectedBy(event.subject, labels=tuple(sets), worst_new=worst, are_labels_kept=is_all)
    return selector.selects(about)


@transaction.atomic
def spread_events() -> bool:
    """Give the oldest events that nobody was given yet to the targets that are told of them; whether more are left."""
    now = database_now()
    events = list(OutboxEvent.objects.filter(spread_at=None).order_by("number")[:SPREAD_AT_ONCE])
    targets = list(NotificationTarget.objects.filter(is_active=True).order_by("pk"))
    rows = [
        NotificationDelivery(target=target, event=event, subject=event.subject, send_at=now)
        for event in events
        for target in targets
        if is_told_of(target, event)
    ]
    # A worker that stood still may do the same: the second row of a target and an event is none.
    NotificationDelivery.objects.bulk_create(rows, ignore_conflicts=True, batch_size=SPREAD_AT_ONCE)
    OutboxEvent.objects.filter(pk__in=[event.pk for event in events]).update(spread_at=now)
    return len(events) == SPREAD_AT_ONCE


def targets_due(now: datetime) -> list[int]:
    """The targets for which something waits whose time has come, and that do not rest."""
    due = NotificationDelivery.objects.filter(send_at__lte=now, target__is_active=True)
    due = due.filter(Q(target__rests_until=None) | Q(target__rests_until__lte=now))
    # Who has waited longest comes first.
    found = due.values("target_id").annotate(first=Min("send_at")).order_by("first")
    return list(found.values_list("target_id", flat=True))


def next_delivery(target_id: int, now: datetime) -> NotificationDelivery | None:
    """What is to be sent to a target next, None where nothing is: a test, else the oldest that is due and has no other
    of its subject before it."""
    target = NotificationTarget.objects.filter(pk=target_id, is_active=True).first()
    if target is None or (target.rests_until and target.rests_until > now):
        return None
    waiting = _waiting(target_id).filter(Q(event__type=EventType.TEST) | Q(event__cluster__in=target.granted))
    earlier = waiting.filter(subject=OuterRef("subject"), event__lt=OuterRef("event"))
    due = waiting.filter(~Exists(earlier), send_at__lte=now).select_related("event", "target")
    return due.filter(event__type=EventType.TEST).first() or due.order_by("event").first()


def due_together(first: NotificationDelivery, now: datetime) -> list[NotificationDelivery]:
    """What people are told in one message with `first`, in the order of events: all that is due, but what waits behind
    an earlier one of its subject. Empty for a minute after each message: 50 clusters at once are one message."""
    of_target = NotificationDelivery.objects.filter(target=first.target_id)
    if of_target.filter(delivered_at__gt=now - DIGEST).exclude(event__type=EventType.TEST).exists():
        return []
    waiting = _waiting(first.target_id).filter(event__cluster__in=first.target.granted)
    behind = waiting.filter(subject=OuterRef("subject"), event__lt=OuterRef("event"), send_at__gt=now)
    due = waiting.filter(~Exists(behind), send_at__lte=now).select_related("event", "target")
    return list(due.order_by("event")[:MOST_TOGETHER])


@transaction.atomic(durable=True)
def note_result(
    delivery: NotificationDelivery, result: PostResult, *, also: Iterable[NotificationDelivery] = ()
) -> None:
    """Keep what came of an attempt: it was delivered, is sent again later, or is dead; and so what went with it."""
    now = database_now()
    target = for_change(NotificationTarget.objects.filter(pk=delivery.target_id)).first()
    sent = (delivery, *also)
    now_due = dict(NotificationDelivery.objects.filter(pk__in=[it.pk for it in sent]).values_list("pk", "send_at"))
    known = [it for it in sent if it.send_at and now_due.get(it.pk) == it.send_at]
    if target is None or not known:  # deleted or switched off meanwhile
        return
    asked = timedelta(seconds=min(result.wait_seconds, LONGEST_ASKED_SECONDS))
    for each in known:
        each.attempts, each.tried_at, each.status = each.attempts + 1, now, result.status
        each.milliseconds, each.problem, each.send_at = result.milliseconds, result.problem[:500], None
        if not result.code:
            each.delivered_at = now
        elif each.event.type == EventType.TEST or each.attempts > len(WAITS_SECONDS):
            each.dead_at = now
        else:
            each.send_at = now + max(asked, _jittered(WAITS_SECONDS[each.attempts - 1]))
    columns = ["attempts", "tried_at", "status", "milliseconds", "problem", "send_at", "delivered_at", "dead_at"]
    NotificationDelivery.objects.bulk_update(known, columns)
    if not result.code:
        if target.failures:
            # What failed because it was away need not wait any longer; what was refused waits as it did.
            was_away = Q(status__in=(0, TOO_MANY)) | Q(status__gte=500)
            _waiting(target.pk).filter(was_away).update(send_at=now)
        _note_rest(target, failures=0, rests_until=None)
        return
    logger.warning(
        "an event was not delivered",
        extra={"target": target.name, "event": delivery.event_id, "status": result.status, "code": result.code},
    )
    if result.status == GONE:
        stop_target(target, f"{result.problem}: it is gone, and wants no more events")
        facts = {"name": target.name, "status": GONE}
        audit.record(verb="notification-target.stopped", actor=MACHINE, facts=facts)
    elif result.is_away:
        rest = _jittered(min(FIRST_REST_SECONDS * 2 ** min(target.failures, 16), LONGEST_REST_SECONDS))
        _note_rest(target, failures=target.failures + 1, rests_until=now + max(asked, rest))


def stop_target(target: NotificationTarget, why: str) -> None:
    """Switch a locked target off: what waits for it is dead, and can be sent again by hand."""
    target.is_active, target.stopped_because = False, why[:500]
    target.save(update_fields=["is_active", "stopped_because"])
    _waiting(target.pk).update(send_at=None, dead_at=database_now(), problem="the target was switched off")


def send_again(delivery: NotificationDelivery) -> bool:
    """Have a dead delivery sent once more, with all attempts anew; False where it is not dead any more."""
    rows = NotificationDelivery.objects.filter(pk=delivery.pk, dead_at__isnull=False)
    return rows.update(dead_at=None, send_at=database_now(), attempts=0) == 1


def clear_old(now: datetime) -> None:
    """Let go of what is older than KEPT. What waits by then is given up, and stays a while longer, so that nothing goes
    without a word."""
    aged = NotificationDelivery.objects.filter(send_at__isnull=False, event__at__lt=now - KEPT)
    for target_id in sorted({*aged.values_list("target_id", flat=True)}):
        with transaction.atomic(durable=True):
            target = for_change(NotificationTarget.objects.filter(pk=target_id)).first()
            count = aged.filter(target=target_id).update(send_at=None, dead_at=now, problem=AGED)
        if target and count:
            extra = {"target": target.name, "events": count}
            logger.warning("events were given up because of their age", extra=extra)
    just_aged = NotificationDelivery.objects.filter(event=OuterRef("pk"), problem=AGED, dead_at__gt=now - AGED_STAYS)
    old = OutboxEvent.objects.filter(~Exists(just_aged), at__lt=now - KEPT)
    while keys := list(old.values_list("pk", flat=True)[:SPREAD_AT_ONCE]):
        OutboxEvent.objects.filter(pk__in=keys).delete()


def latest_deliveries(targets: Iterable[NotificationTarget]) -> dict[int, NotificationDelivery]:
    """The last delivery of each target that was tried, by the target's key."""
    newest = NotificationDelivery.objects.filter(target=OuterRef("target"), tried_at__isnull=False).order_by("-pk")
    rows = NotificationDelivery.objects.filter(target__in=[target.pk for target in targets], pk=newest.values("pk")[:1])
    return {row.target_id: row for row in rows}


def forget_ungranted(target: NotificationTarget) -> None:
    """What it was given of clusters that it is told of no more: whoever sees it now may not see these (S53)."""
    given = NotificationDelivery.objects.filter(target=target.pk).exclude(event__type=EventType.TEST)
    given.exclude(event__cluster__in=target.granted).delete()


def _waiting(target_id: int) -> QuerySet[NotificationDelivery]:
    return NotificationDelivery.objects.filter(target=target_id, send_at__isnull=False)


def _note_rest(target: NotificationTarget, *, failures: int, rests_until: datetime | None) -> None:
    if (target.failures, target.rests_until) != (failures, rests_until):
        target.failures, target.rests_until = failures, rests_until
        target.save(update_fields=["failures", "rests_until"])


def _jittered(seconds: float) -> timedelta:
    share = random.random()  # noqa: S311 - spreads load, keeps no secret
    return timedelta(seconds=seconds * (1 - JITTER + 2 * JITTER * share))
