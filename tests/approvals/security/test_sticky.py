"""No review of one round counts in another, whoever gave it and through which door (security-rules.md S04)."""

from __future__ import annotations

import pytest

from approvals import gate
from approvals.models import Finding, Report, Request, Review, Verdict
from tests.support.approvals import world
from tests.support.approvals.asked_gate import ask_again
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, look, save
from tests.support.approvals.waivers import approve

PEOPLES = [one for one in Review.Channel if one is not Review.Channel.POLICY]


def next_round(request: Request, subject_digest: str = f"sha256:{'2' * 64}") -> Request:
    """The same request a round later; the same content, for a request has but one."""
    Request.objects.filter(pk=request.pk).update(state="stale", round=request.round + 1)
    request.refresh_from_db()
    found = world.in_review(request)
    Request.objects.filter(pk=request.pk).update(subject_digest=subject_digest)
    found.refresh_from_db()
    return found


@pytest.mark.parametrize("channel", PEOPLES)
@pytest.mark.parametrize("has_same_digest", [False, True], ids=["another subject", "even of the same subject"])
def test_S04_what_a_person_said_of_one_round_is_not_said_of_the_next(
    env: World, request_: Request, channel: str, has_same_digest: bool
) -> None:
    approve(request_, env.ada, channel=channel)
    assert look(request_).state == "approved"
    again = next_round(request_, request_.subject_digest) if has_same_digest else next_round(request_)
    assert look(again).state == "in_review"
    assert list(Verdict.objects.values_list("round", flat=True)) == [1]
    with pytest.raises(gate.Waiting, match="some approvals no longer count"):
        ask_again(again)


def test_S04_a_person_says_it_of_the_next_round_anew(env: World, request_: Request) -> None:
    approve(request_, env.ada)
    look(request_)
    again = next_round(request_)
    approve(again, env.ada)
    assert look(again).state == "approved"


def test_S04_a_denial_of_one_round_does_not_deny_the_next(env: World, request_: Request) -> None:
    approve(request_, env.ada, decision="Deny")
    again = next_round(request_)
    approve(again, env.ada)
    assert look(again).state == "approved"


def test_S04_a_grant_is_asked_anew_about_what_the_next_round_found(env: World, request_: Request) -> None:
    allow(env, save(env))
    assert look(request_).state == "approved"
    again = next_round(request_)
    found = Report.objects.get(request=again, round=2)
    Finding.objects.create(
        report=found,
        position=0,
        rule="RB-01",
        section="permissions",
        severity="dangerous",
        message="m",
        fingerprint="f",
    )
    assert look(again).state == "in_review"
    assert list(Review.objects.values_list("round", flat=True)) == [1]


def test_S04_a_new_request_for_the_same_content_begins_without_reviews(env: World, request_: Request) -> None:
    approve(request_, env.ada)
    Request.objects.update(state="failed")
    deployment = request_.deployment
    obj = world.seen("strimzi", world.spec(progressDeadlineMinutes=5), uid=deployment.uid, generation=2)
    world.submit_spec(env.cluster, obj, env.rita)
    second = world.in_review(Request.objects.get(number=2))
    assert second.content_id == request_.content_id
    assert look(second).state == "in_review"
