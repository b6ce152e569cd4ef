"""Who is told of an event, once each; and what becomes of what could not be delivered."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from approvals.clock import database_now
from approvals.events.signed_post import PostResult
from approvals.ledger import notifications
from approvals.ledger.notifications import (
    AGED,
    AGED_STAYS,
    KEPT,
    WAITS_SECONDS,
    due_together,
    is_told_of,
    next_delivery,
    note_result,
    spread_events,
)
from approvals.models import NotificationDelivery, NotificationTarget, OutboxEvent, Request
from tests.support.approvals.fixtures import World
from tests.support.notification_targets import happened, target_row

URL = "https://hooks.example.com/pratique"
EVENT = {
    "type": "dev.pratique.request.ready.v1",
    "cluster": "prod",
    "labels": {"team": "harbour"},
    "severity": "notable",
}
BAD = PostResult(status=500, code="unreachable", problem="hooks.example.com answered 500", is_away=True)
REFUSED = PostResult(status=400, code="source-unavailable", problem="hooks.example.com answered 400")


@pytest.mark.parametrize(
    ("target", "event", "is_told"),
    [
        ({}, {}, True),
        ({"granted": []}, {}, False),
        ({"granted": ["staging"]}, {}, False),
        ({"granted": ["prod"], "clusters": ["stag*"]}, {}, False),
        ({"clusters": ["pr*"]}, {}, True),
        ({}, {"cluster": ""}, False),
        ({"granted": ["prod", ""]}, {"type": "dev.pratique.test.v1"}, False),
        ({"event_types": ["dev.pratique.request.ready.v1"]}, {}, True),
        ({"event_types": ["dev.pratique.request.denied.v1"]}, {}, False),
        ({"labels": {"team": "harbour"}}, {}, True),
        ({"labels": {"team": "harbour", "tier": "1"}}, {}, False),
        ({"labels": {"team": "harbour"}}, {"labels": {}}, False),
        ({"labels": {"team": "harbour"}}, {"labels": [{}, {"team": "harbour"}]}, True),
        ({"labels": {"team": "harbour"}}, {"labels": [{"team": "quay"}]}, False),
        ({"labels": {"team": "harbour"}}, {"labels": [{"tier": str(number)} for number in range(12)]}, True),
        ({"labels": {"team": "harbour"}}, {"type": "dev.pratique.policy.changed.v1", "labels": []}, True),
        ({"min_severity": "notable"}, {}, True),
        ({"min_severity": "critical"}, {}, False),
        ({"min_severity": "critical"}, {"severity": ""}, True),
        ({"min_severity": "dangerous"}, {"severity": "unknown"}, True),
    ],
)
def test_S53_a_target_is_told_of_what_it_chose_on_clusters_that_its_writer_may_see(
    target: dict[str, Any], event: dict[str, Any], is_told: bool
) -> None:
    row = NotificationTarget(**{"granted": ["prod"], **target})
    assert is_told_of(row, OutboxEvent(subject="prod/strimzi", **{**EVENT, **event})) is is_told


@pytest.fixture
def hook(env: World) -> NotificationTarget:
    return target_row(URL)


def spread() -> list[int]:
    """The events that wait for a target now."""
    assert not spread_events()
    return list(NotificationDelivery.objects.order_by("event").values_list("event_id", flat=True))


def test_S53_what_was_given_under_an_earlier_grant_is_neither_sent_nor_kept(
    request_: Request, hook: NotificationTarget
) -> None:
    assert spread()
    NotificationTarget.objects.update(granted=["staging"])
    assert next_delivery(hook.pk, database_now()) is None
    hook.refresh_from_db()
    notifications.forget_ungranted(hook)
    assert not NotificationDelivery.objects.exists()


def test_each_event_is_given_to_each_target_once(request_: Request, hook: NotificationTarget) -> None:
    known = spread()
    other, off = target_row(URL, name="other"), target_row(URL, name="off", is_active=False)
    number = happened("request.withdraw", request=request_)
    assert notifications.is_anything_to_spread()
    assert spread() == [*known, number, number]
    # As a worker that stood still would do it once more.
    OutboxEvent.objects.filter(pk=number).update(spread_at=None)
    assert spread() == [*known, number, number]
    assert not off.deliveries.exists()
    assert list(other.deliveries.values_list("event_id", flat=True)) == [number]
    assert notifications.targets_due(database_now()) == [hook.pk, other.pk]


def test_one_subject_keeps_its_order_and_another_does_not_wait_for_it(
    request_: Request, hook: NotificationTarget
) -> None:
    spread()
    NotificationDelivery.objects.all().delete()
    deployment = request_.deployment
    first, second = (happened(verb, request=request_) for verb in ("request.start", "request.fail"))
    drift = happened("drift.found", deployment=deployment)
    spread()
    now = database_now()
    taken = next_delivery(hook.pk, now)
    assert taken is not None
    assert taken.event_id == first
    note_result(taken, REFUSED)
    other = next_delivery(hook.pk, now)
    assert other is not None
    assert other.event_id == drift
    note_result(other, PostResult(status=204))
    assert next_delivery(hook.pk, now) is None, "what is about the same request waits"
    NotificationDelivery.objects.filter(event=first).update(dead_at=now, send_at=None)
    left = next_delivery(hook.pk, now)
    assert left is not None
    assert left.event_id == second, "a dead one lets it go"


def test_what_is_not_delivered_is_tried_ever_more_rarely_then_dead_and_sent_again_by_hand(
    request_: Request, hook: NotificationTarget
) -> None:
    number = happened("request.start", request=request_)
    spread()
    NotificationDelivery.objects.exclude(event=number).delete()
    now, waits = database_now(), []
    while (row := hook.deliveries.get()).dead_at is None:
        assert row.send_at is not None
        with time_machine.travel(max(row.send_at, now), tick=False):
            now = database_now()
            note_result(row, REFUSED)
        row.refresh_from_db()
        waits.append((row.send_at - now).total_seconds() if row.send_at else None)
    assert waits[-1] is None
    assert len(waits) == len(WAITS_SECONDS) + 1
    for wait, wanted in zip(waits, WAITS_SECONDS, strict=False):
        assert wait == pytest.approx(wanted, rel=0.21)
    assert (row.status, row.problem) == (400, "hooks.example.com answered 400")
    assert notifications.send_again(row)
    assert not notifications.send_again(row), "once"
    row.refresh_from_db()
    assert (row.dead_at, row.attempts) == (None, 0)


def test_a_target_that_is_away_rests_and_gets_all_in_order_once_it_is_back(
    request_: Request, hook: NotificationTarget
) -> None:
    spread()
    NotificationDelivery.objects.all().delete()
    numbers = [happened(verb, request=request_) for verb in ("request.start", "request.fail")]
    numbers.append(happened("drift.found", deployment=request_.deployment))
    spread()
    now, tries = database_now(), 0
    end = now + timedelta(hours=1)
    while now < end:
        with time_machine.travel(now, tick=False):
            if delivery := next_delivery(hook.pk, now):
                note_result(delivery, BAD)
                tries += 1
        now += timedelta(seconds=30)
    assert 3 < tries < 20, "neither given up nor asked all the time"
    got = []
    with time_machine.travel(now + timedelta(hours=3), tick=False):
        while delivery := next_delivery(hook.pk, database_now()):
            got.append(delivery.event_id)
            note_result(delivery, PostResult(status=200))
    assert got == numbers
    hook.refresh_from_db()
    assert (hook.failures, hook.rests_until) == (0, None)


def test_what_failed_while_a_target_was_away_is_sent_as_soon_as_something_else_arrives(
    request_: Request, hook: NotificationTarget
) -> None:
    spread()
    NotificationDelivery.objects.all().delete()
    first = happened("request.start", request=request_)
    happened("drift.found", deployment=request_.deployment)
    spread()
    NotificationDelivery.objects.filter(event=first).update(attempts=5)
    now = database_now()
    failed = next_delivery(hook.pk, now)
    assert failed is not None
    note_result(failed, BAD)
    assert next_delivery(hook.pk, now) is None, "the target rests"
    with time_machine.travel(now + timedelta(seconds=10), tick=False):
        other = next_delivery(hook.pk, database_now())
        assert other is not None
        note_result(other, PostResult(status=200))
        again = next_delivery(hook.pk, database_now())
    assert again is not None
    assert again.event_id == first


def test_what_was_refused_waits_its_time_whatever_else_arrives(request_: Request, hook: NotificationTarget) -> None:
    spread()
    NotificationDelivery.objects.all().delete()
    first = happened("request.start", request=request_)
    happened("drift.found", deployment=request_.deployment)
    spread()
    refused = next_delivery(hook.pk, database_now())
    assert refused is not None and refused.event_id == first
    NotificationDelivery.objects.filter(pk=refused.pk).update(attempts=5)
    refused.refresh_from_db()
    note_result(refused, REFUSED)
    later = NotificationDelivery.objects.get(pk=refused.pk).send_at
    NotificationTarget.objects.update(failures=1)
    other = next_delivery(hook.pk, database_now())
    assert other is not None
    note_result(other, PostResult(status=200))
    assert NotificationDelivery.objects.get(pk=refused.pk).send_at == later


def test_a_wait_that_is_asked_for_is_kept_and_gone_switches_the_target_off(
    request_: Request, hook: NotificationTarget
) -> None:
    spread()
    now = database_now()
    with time_machine.travel(now, tick=False):
        row = next_delivery(hook.pk, now)
        assert row is not None
        note_result(row, PostResult(status=429, code="unreachable", wait_seconds=7200, is_away=True))
        hook.refresh_from_db()
        assert hook.rests_until == now + timedelta(seconds=7200)
        assert notifications.targets_due(now + timedelta(seconds=7199)) == []
    hook.rests_until = None
    hook.save()
    with time_machine.travel(now + timedelta(days=1), tick=False):
        row = next_delivery(hook.pk, database_now())
        assert row is not None
        note_result(row, PostResult(status=410, code="source-unavailable", problem="hooks.example.com answered 410"))
    hook.refresh_from_db()
    assert (hook.is_active, "answered 410" in hook.stopped_because) == (False, True)
    assert not hook.deliveries.filter(send_at__isnull=False).exists()
    assert next_delivery(hook.pk, now + timedelta(days=9)) is None


def test_what_is_old_is_let_go(request_: Request, hook: NotificationTarget) -> None:
    spread()
    now = database_now()
    notifications.clear_old(now + KEPT - timedelta(minutes=1))
    assert OutboxEvent.objects.exists()
    later = now + KEPT + timedelta(minutes=1)
    notifications.clear_old(later)
    assert [(row.send_at, row.dead_at, row.problem) for row in hook.deliveries.all()] == [(None, later, AGED)]
    notifications.clear_old(later + AGED_STAYS)
    assert not OutboxEvent.objects.exists()
    assert not NotificationDelivery.objects.exists()


def test_people_get_one_message_a_minute_of_all_that_is_due(hook: NotificationTarget) -> None:
    subjects = [f"c{number:02}/web" for number in range(50)]
    numbers = [happened("revision.overdue") for _ in subjects]
    for number, subject in zip(numbers, subjects, strict=True):
        OutboxEvent.objects.filter(pk=number).update(subject=subject, cluster="prod")
    spread_events()
    now = database_now()

    def due(at: datetime) -> list[NotificationDelivery]:
        first = next_delivery(hook.pk, at)
        return due_together(first, at) if first else []

    together = due(now)
    assert [each.event_id for each in together] == numbers
    with time_machine.travel(now, tick=False):
        note_result(together[0], REFUSED, also=together[1:])
    assert hook.deliveries.filter(attempts=1, send_at__gt=now, status=400).count() == 50
    hook.deliveries.filter(event__in=numbers[:49]).update(send_at=now)
    # Another event of the one that waits longer is told after it.
    last = OutboxEvent.objects.get(pk=happened("revision.overdue"))
    OutboxEvent.objects.filter(pk=last.pk).update(subject=subjects[49], cluster="prod")
    spread_events()
    later = due(now + timedelta(seconds=2))
    assert [each.event_id for each in later] == numbers[:49]
    with time_machine.travel(now, tick=False):
        note_result(later[0], PostResult(status=200), also=later[1:])
    assert hook.deliveries.filter(delivered_at=now).count() == 49
    hook.deliveries.filter(delivered_at=None).update(send_at=now)
    assert due(now + timedelta(seconds=59)) == []
    assert [each.event_id for each in due(now + timedelta(seconds=61))] == [numbers[49], last.pk]
