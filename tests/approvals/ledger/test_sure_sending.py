"""Nothing is sent once the claim may be somebody else's, and what a former holder found is not recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db import OperationalError

from approvals import tasks, wake
from approvals.ledger import claims, process_claims
from approvals.ledger.process_claims import HELD, clock
from approvals.lifecycle import State
from approvals.models import BundleDeployment, Request
from approvals.steps import advance, apply
from approvals.working import Heartbeat
from provisioner.errors import BadBundle, TryLater
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.patience import scaled, wait_for

LONG_AGO = timedelta(hours=1)


@pytest.fixture
def request_(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return Request.objects.get()


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heartbeat]:
    """As in a worker, where a heartbeat renews: the test beats itself."""
    monkeypatch.setattr(HELD, "is_kept", True)
    yield Heartbeat(on_still=lambda _: None)
    HELD._holdings.clear()


def stand_still(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(process_claims, "clock", lambda: clock() + seconds)


def test_a_claim_just_taken_is_sure(request_: Request, kept: Heartbeat) -> None:
    claims.claim(request_.pk, "one")
    claims.sure_sending("one")()


def test_who_stood_still_and_lost_its_claim_sends_nothing(
    request_: Request, kept: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims.claim(request_.pk, "one")
    Request.objects.update(claimed_by="next")
    stand_still(monkeypatch, 11.0)
    threading.Timer(0.1, lambda: setattr(HELD._holdings["one"], "is_lost", True)).start()
    with pytest.raises(claims.LostClaim, match="nothing more is sent"):
        claims.sure_sending("one")()


def test_a_beat_tells_who_lost_its_claim_and_who_has_it_still(request_: Request, kept: Heartbeat) -> None:
    other = world.submit_spec(request_.deployment.cluster, world.seen("other", world.spec())).requests.get()
    claims.claim(request_.pk, "one")
    claims.claim(other.pk, "two")
    Request.objects.filter(pk=other.pk).update(claimed_by="next")
    kept.beat(clock() + 5)
    claims.sure_sending("one")()
    with pytest.raises(claims.LostClaim):
        claims.sure_sending("two")()


def test_who_stood_still_and_has_its_claim_still_goes_on_once_that_is_known(
    request_: Request, kept: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims.claim(request_.pk, "one")
    holding = HELD._holdings["one"]
    sent: list[str] = []
    asked: list[threading.Thread] = []

    def later() -> float:
        asked.append(threading.current_thread())
        return clock() + 11.0

    def send() -> None:
        claims.sure_sending("one")()
        sent.append("one")

    monkeypatch.setattr(process_claims, "clock", later)
    sending = threading.Thread(target=send)
    sending.start()
    wait_for(lambda: asked.count(sending), "it looks again and again", is_so=lambda times: times >= 4)
    assert sent == [], "nobody knows yet whose it is"
    beat_at = process_claims.clock()
    kept.beat(beat_at)
    sending.join(scaled(60))
    assert sent
    assert holding.sure_until > beat_at + 9


def test_nothing_is_sent_for_ever_while_the_database_does_not_say_whose_it_is(
    request_: Request, kept: Heartbeat, monkeypatch: pytest.MonkeyPatch, settings: object
) -> None:
    claims.claim(request_.pk, "one")
    stand_still(monkeypatch, 11.0)
    monkeypatch.setattr(process_claims, "claim_seconds", lambda: 0.2)
    with pytest.raises(claims.LostClaim):
        claims.sure_sending("one")()


def test_a_renewal_that_failed_makes_nothing_sure(
    request_: Request, kept: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims.claim(request_.pk, "one")
    before = HELD._holdings["one"].sure_until

    def is_away(*_: object) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(claims, "renew_held", is_away)
    with pytest.raises(OperationalError):
        kept.beat(clock() + 5)
    assert HELD._holdings["one"].sure_until == before


def test_the_claim_is_sure_from_when_its_renewal_was_asked_for_and_not_from_its_answer(
    request_: Request, kept: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims.claim(request_.pk, "one")
    renew = claims.renew_held

    asked_at: list[float] = []

    def slowly(*words: object) -> object:
        asked_at.append(clock())
        time.sleep(0.5)  # so that the time of the answer would be too late
        return renew(*words)  # type: ignore[arg-type]  # the same arguments, whatever they are

    monkeypatch.setattr(claims, "renew_held", slowly)
    kept.beat(clock() + 5)
    assert HELD._holdings["one"].sure_until <= asked_at[0] + process_claims.claim_seconds()


def test_a_slow_database_loses_no_claim(request_: Request, kept: Heartbeat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each renewal takes nearly 5 s, and is only seen by others in the end."""
    now = 0.0
    monkeypatch.setattr(process_claims, "clock", lambda: now)
    monkeypatch.setattr(claims, "clock", lambda: now)
    claims.claim(request_.pk, "one")

    def slowly(_: object, workers: list[str]) -> list[str]:
        nonlocal now
        now += 4.9
        assert now < HELD._holdings["one"].sure_until, "the claim had lapsed before it was renewed"
        return workers

    monkeypatch.setattr(claims, "renew_held", slowly)
    while now < 100.0:
        before = now
        kept.beat(now)
        now += kept.pause(now - before)


def test_clocks_that_differ_take_no_claim_away(request_: Request) -> None:
    claims.claim(request_.pk, "one")
    with time_machine.travel(datetime.now(UTC) + LONG_AGO, tick=True):
        assert not claims.claim(request_.pk, "ahead")
        assert claims.is_held(Request.objects.all(), "one")
    claims.release(request_.pk, "one")
    with time_machine.travel(datetime.now(UTC) + LONG_AGO, tick=True):
        assert claims.claim(request_.pk, "ahead")
    Request.objects.update(claimed_until=world.yesterday())
    assert claims.claim(request_.pk, "one"), "and a clock that is ahead holds on to nothing"


def test_what_a_dead_worker_was_writing_is_woken_before_the_sweep(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(wake, "request", woken.append)
    monkeypatch.setattr(wake, "drift", lambda pk: woken.append(-pk))
    world.in_review(request_)
    claims.claim(request_.pk, "dead")
    claims.take(BundleDeployment.objects.filter(pk=request_.deployment_id), "dead")
    Request.objects.update(state=State.APPLYING)
    tasks.take_over()
    assert woken == [], "they live"
    Request.objects.update(claimed_until=world.yesterday())
    type(request_.deployment).objects.update(claimed_until=world.yesterday())
    tasks.take_over()
    assert woken == [request_.pk, -request_.deployment_id]


@pytest.mark.parametrize("error", [TryLater("not now"), BadBundle("no"), ValueError("a bug")])
def test_what_a_former_holder_found_is_not_recorded(
    request_: Request, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def stand_still(request: Request, worker: str) -> None:
        Request.objects.update(claimed_by="next")
        raise error

    monkeypatch.setattr(advance.STEPS["preparing"], "run", stand_still)
    advance.advance(request_.pk)
    request_.refresh_from_db()
    assert (request_.state, request_.problem, request_.attempts, request_.claimed_by) == ("preparing", "", 0, "next")


def test_a_former_holder_neither_ends_an_apply_nor_gives_it_up(request_: Request) -> None:
    world.in_review(request_)
    claims.claim(request_.pk, "slow")
    Request.objects.update(state=State.APPLYING)
    request_.refresh_from_db()
    Request.objects.update(claimed_by="next")
    with pytest.raises(claims.LostClaim):
        apply._finish(request_, [], ())
    with pytest.raises(claims.LostClaim):
        apply.give_up(request_, BadBundle("no"))
    assert Request.objects.get().state == State.APPLYING
