"""What kubectl shows of a deployment whose latest request ended: why, and what people can do next."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals.models import Request
from approvals.steps.advance import advance
from approvals.steps.mirroring import conditions
from approvals.steps.mirroring.mirror import _stands
from tests.support.approvals import world
from tests.support.approvals.fixtures import World


@pytest.fixture
def request_(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return world.in_review(Request.objects.get())


def shown(request: Request, **columns: str) -> conditions.Condition:
    Request.objects.filter(pk=request.pk).update(**columns)
    request.refresh_from_db()
    words = _stands(request.deployment, request)
    found = conditions.of_deployment(request.deployment, request, words, "")
    return next(one for one in found if one.type == "UpToDate")


def test_a_failure_is_told_with_its_reason_its_words_and_what_to_do(request_: Request) -> None:
    failed = {"state": "failed", "problem": "the range cannot be read", "problem_code": "invalid-range"}
    found = shown(request_, **failed, remedy="Correct it.")
    assert (found.is_true, found.reason) == (False, "InvalidRange")
    assert found.message == "request strimzi-1 is failed: the range cannot be read. Correct it."
    found = shown(request_, remedy="")
    assert (
        "cannot be read. To request it again, someone who may update it changes it, or runs `kubectl annotate bd"
        in found.message
    )
    assert "strimzi core.rukpak.io/ask-again" in found.message


@pytest.mark.parametrize(
    ("state", "reason", "is_told"),
    [
        ("in_review", "InReview", True),
        ("approved", "Approved", True),
        ("applying", "Applying", True),
        ("expired", "Expired", True),
        ("applied", "Applied", False),
        ("superseded", "Superseded", False),
    ],
)
def test_what_a_request_waits_for_is_last_event_well(request_: Request, state: str, reason: str, is_told: bool) -> None:
    found = shown(request_, state=state, problem="it waits for rita", problem_code="forbidden", remedy="Ask rita.")
    assert found.reason == reason
    assert ("it waits for rita. Ask rita." in found.message) is is_told


@pytest.mark.parametrize("state", ["in_review", "approved"])
def test_a_request_that_expires_says_what_it_waited_for_and_how_to_ask_anew(request_: Request, state: str) -> None:
    long_ago = timezone.now() - timedelta(days=1)
    Request.objects.update(state=state, expires_at=long_ago, problem="it is paused", problem_code="paused")
    advance(request_.pk)
    request_.refresh_from_db()
    assert (request_.state, request_.problem_code) == ("expired", "expired")
    assert request_.problem.endswith("what it waited for: it is paused")
    assert "ask-again" in request_.remedy
    (told,) = [one for one in conditions.of_request(request_, None, None) if one.type == "Expired"]
    assert request_.problem in told.message
    assert request_.remedy in told.message
