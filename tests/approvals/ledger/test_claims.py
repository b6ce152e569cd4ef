"""Claims and the sweep: one worker at a time, nothing forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.utils import timezone

from approvals import clock, gate, jobs, tasks, wake
from approvals.ledger import claims
from approvals.models import BundleDeployment, Request
from approvals.steps import advance, failures
from provisioner.errors import TryLater
from tests.support.approvals import world
from tests.support.approvals.fixtures import World


@pytest.fixture
def request_(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return Request.objects.get()


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the sweep wakes; the queue itself is no part of these tests."""
    found: list[int] = []
    monkeypatch.setattr(wake, "request", found.append)
    monkeypatch.setattr(wake, "deployment", lambda _: None)
    return found


def test_two_workers_cannot_hold_the_same_request(request_: Request) -> None:
    assert claims.claim(request_.pk, "one")
    assert not claims.claim(request_.pk, "two")
    claims.release(request_.pk, "two")
    assert not claims.claim(request_.pk, "two")
    claims.release(request_.pk, "one")
    assert claims.claim(request_.pk, "two")


def test_a_dead_workers_claim_lapses_and_its_own_renewal_fails_then(request_: Request) -> None:
    claims.claim(request_.pk, "dead")
    Request.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    assert claims.claim(request_.pk, "next")
    assert not claims.renew(request_.pk, "dead")
    assert claims.renew(request_.pk, "next")


def test_a_settled_request_is_not_claimed(request_: Request) -> None:
    Request.objects.update(state="withdrawn")
    assert not claims.claim(request_.pk, "one")


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_is_hours_off_changes_nothing(
    env: World, woken: list[int], monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Who compares times of several processes goes by the database's clock."""

    @contextmanager
    def off() -> Iterator[None]:
        true = timezone.now()
        with monkeypatch.context() as patch, time_machine.travel(true + timedelta(hours=hours), tick=True):
            patch.setattr(clock, "_ahead", timedelta())
            clock.learn(true)
            yield

    true = timezone.now()
    with off():
        world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
        assert claims.hold_watch(env.cluster.pk, "one")
        request = Request.objects.get()
        claims.rest(Request.objects.all(), 60)
        failures.postpone_request(request, TryLater("the registry does not respond"))
    request.refresh_from_db()
    life = timedelta(hours=settings.PRATIQUE["REQUEST_HOURS"])
    moments = request.expires_at - life, request.look_again_at, request.rests_until, request.problem_since
    assert all(at is not None and abs(at - true) < timedelta(minutes=2) for at in moments)
    assert not claims.hold_watch(env.cluster.pk, "two")
    world.in_review(request)
    for expires, looks, is_due in ((600, 600, False), (600, -1, True), (-1, 600, True)):
        request.expires_at = timezone.now() + timedelta(seconds=expires)
        request.look_again_at = timezone.now() + timedelta(seconds=looks)
        request.save(update_fields=["expires_at", "look_again_at"])
        woken.clear()
        with off():
            tasks.sweep()
            said = gate.judge(gate.reader.deciding(request), clock.database_now())
        assert bool(woken) is is_due
        assert ("expired" in {reason.code for reason in said.reasons}) is (expires < 0)


def test_messages_that_piled_up_are_answered_by_one_look(
    request_: Request, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[tuple[Any, ...]] = []
    looked: list[int] = []

    def look(pk: int) -> None:
        looked.append(pk)
        BundleDeployment.objects.update(looked_after_at=timezone.now())

    def send(times: int) -> list[tuple[Any, ...]]:
        sent.clear()
        with django_capture_on_commit_callbacks(execute=True):
            for _ in range(times):
                wake.deployment(request_.deployment_id)
        return list(sent)

    monkeypatch.setattr(wake, "_send", lambda _, *args, **__: sent.append(args))
    monkeypatch.setattr(jobs, "look_after", look)
    for number in (1, 2):  # never looked after before, and once
        for args in send(3):
            tasks.look_after_deployment(*args)
        assert len(looked) == number
    tasks.look_after_deployment(request_.deployment_id)
    assert len(looked) == 3, "a message of an earlier version says nothing"


def test_the_sweep_finds_what_a_lost_message_left(request_: Request, woken: list[int]) -> None:
    tasks.sweep()
    assert woken == [request_.pk]


def test_the_sweep_leaves_alone_what_is_claimed_or_not_yet_due(request_: Request, woken: list[int]) -> None:
    claims.claim(request_.pk, "busy")
    tasks.sweep()
    claims.release(request_.pk, "busy")
    Request.objects.update(look_again_at=timezone.now() + timedelta(minutes=1))
    tasks.sweep()
    assert woken == []


def test_the_sweep_wakes_what_has_expired(request_: Request, woken: list[int]) -> None:
    world.in_review(request_)
    tasks.sweep()
    assert woken == []
    Request.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    tasks.sweep()
    assert woken == [request_.pk]


def test_a_wake_while_somebody_works_makes_them_look_once_more(request_: Request) -> None:
    claims.claim(request_.pk, "one")
    assert not claims.claim(request_.pk, "two")
    assert claims.release(request_.pk, "one")
    assert claims.claim(request_.pk, "one")
    assert not claims.release(request_.pk, "one")


def test_a_review_given_while_the_policies_are_asked_is_counted_at_once(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.in_review(request_)
    looks: list[int] = []

    def evaluate(request: Request, worker: str) -> None:
        looks.append(request.pk)
        if len(looks) == 1:
            advance.advance(request.pk)

    monkeypatch.setattr(advance.STEPS["in_review"], "run", evaluate)
    advance.advance(request_.pk)
    assert len(looks) == 2


def test_an_apply_that_waits_leaves_room_for_reports(
    request_: Request, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPLIES_AT_ONCE": 1}
    other = world.submit_spec(request_.deployment.cluster, world.seen("other", world.spec())).requests.get()
    taken: list[tuple[int, str]] = []

    def waits(request: Request, _: str) -> None:
        taken.append((request.pk, request.state))
        if request.state == "approved":
            advance.advance(other.pk)
            Request.objects.filter(pk=other.pk).update(state="preparing")
            advance.advance(other.pk)

    for state in ("preparing", "approved"):
        monkeypatch.setattr(advance.STEPS[state], "run", waits)
    for one in (request_, other):
        world.in_review(one)
    Request.objects.update(state="approved")
    advance.advance(request_.pk)
    assert taken == [(request_.pk, "approved"), (other.pk, "preparing")]
    other.refresh_from_db()
    assert (other.problem_code, other.problem[:33]) == ("full", "1 of 1 requests are being applied")
    Request.objects.filter(pk=other.pk).update(state="approved")
    advance.advance(other.pk)
    assert (other.pk, "approved") in taken
