"""The heartbeat of a worker: which claims it holds on to, and which it gives back."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models import QuerySet
from django.utils import timezone

from approvals.ledger import claims
from approvals.ledger.process_claims import HELD
from approvals.models import Request
from approvals.working import Heartbeat
from tests.approvals.working.deaths import LONG_AGO, deaths


def test_S26_the_heartbeat_holds_on_to_a_step_that_takes_long_and_not_to_one_that_stands_still(
    request_: Request, settings: Any
) -> None:
    claims.claim(request_.pk, "slow")
    still: list[str] = []
    heart, now = Heartbeat(on_still=still.extend), time.monotonic()
    Request.objects.update(claimed_until=timezone.now())
    heart.beat(now + 30)
    assert claims.is_held(Request.objects.all(), "slow")
    Request.objects.update(claimed_until=timezone.now() - LONG_AGO)
    heart.beat(now + settings.PRATIQUE["STEP_MINUTES"] * 60 + 1)
    assert still == ["slow"]
    assert not claims.is_held(Request.objects.all(), "slow")


def test_S26_who_is_told_to_stop_gives_its_claims_back_and_takes_no_more(request_: Request) -> None:
    claims.claim(request_.pk, "stopping")
    heart, now = Heartbeat(on_still=lambda _: None), time.monotonic()
    HELD.is_stopping = True
    heart.beat(now)
    assert claims.is_held(Request.objects.all(), "stopping"), "a step that ends at once ends as ever"
    assert not claims.claim(request_.pk, "the same process")
    heart.beat(now + 5)
    HELD.is_stopping = False
    assert not claims.renew(request_.pk, "stopping")
    assert claims.claim(request_.pk, "another worker")
    assert deaths(request_) == 0


def test_S26_a_claim_that_the_database_did_not_take_back_is_given_back_later(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_away(*_: object, **__: object) -> int:
        raise OperationalError("the database is away")

    claims.claim(request_.pk, "one")
    with monkeypatch.context() as away:
        away.setattr(QuerySet, "update", is_away)
        with pytest.raises(OperationalError):
            claims.release(request_.pk, "one")
    assert claims.is_held(Request.objects.all(), "one")
    Heartbeat(on_still=lambda _: None).beat(time.monotonic())
    assert claims.claim(request_.pk, "two")
    assert deaths(request_) == 0
