"""A worker whose claim has passed to another writes nothing about the request any more."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from approvals.gate import Stale, judge, reader
from approvals.gate.answers import Next, Reason
from approvals.ledger.claims import LostClaim
from approvals.models import Request
from approvals.steps import apply, evaluate, prepare
from approvals.steps.mirroring import mirror
from tests.support.approvals.fixtures import World


def stands_still(request: Request) -> Request:
    """As a worker read it that has lost its claim since."""
    read = Request.objects.select_related("deployment__cluster").get(pk=request.pk)
    Request.objects.filter(pk=request.pk).update(claimed_by="another")
    return read


def test_no_verdict_is_given_by_who_lost_the_claim(env: World, request_: Request) -> None:
    read = stands_still(request_)
    facts = reader.deciding(read)
    with pytest.raises(LostClaim):
        evaluate._settle(read, facts, judge(facts, timezone.now()))


def test_no_report_is_recorded_by_who_lost_the_claim(env: World, request_: Request) -> None:
    Request.objects.update(state="stale")
    read = stands_still(request_)
    prepared: Any = None  # it is not looked at
    with pytest.raises(LostClaim):
        prepare._record(read, prepared)


def test_a_report_of_another_round_is_not_recorded(env: World, request_: Request) -> None:
    Request.objects.update(state="stale")
    read = Request.objects.get()
    Request.objects.update(round=2)
    prepared: Any = None
    prepare._record(read, prepared)
    assert Request.objects.get().state == "stale"


def test_nothing_becomes_stale_by_who_lost_the_claim(env: World, request_: Request) -> None:
    Request.objects.update(state="approved")
    read = stands_still(request_)
    why = Stale(Reason(Next.REPORT_AGAIN, code="plan-changed", words="it changed", remedy=""))
    with pytest.raises(LostClaim):
        apply._find_stale(read, (), why)
    assert not request_.voided_rounds.exists()


@pytest.mark.parametrize("said", ["problem", "problem_code", "remedy"])
def test_what_is_said_while_the_mirror_is_written_is_shown_by_the_next_look(
    env: World, request_: Request, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    def write(api: Any, deployment: Any, request: Request) -> str:
        Request.objects.filter(pk=request.pk).update(**{said: "collides"}, mirrored_at=None)
        return "7"

    monkeypatch.setattr(mirror, "_mirror_request", write)
    monkeypatch.setattr(mirror.events, "tell", lambda *_, **__: None)
    api: Any = None
    mirror._mirror_requests(api, request_.deployment)
    assert Request.objects.get().mirrored_at is None
    monkeypatch.setattr(mirror, "_mirror_request", lambda *_: "8")
    mirror._mirror_requests(api, request_.deployment)
    assert Request.objects.get().mirrored_at == Request.objects.get().changed_at
