"""Requesting changes: what it holds back, for how long, and who may dismiss it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction

from approvals import services
from approvals.errors import AlreadyReviewed, CouldNotAsk, InvalidInput, NotAllowed, NotOpen, SelfApproval
from approvals.ledger import rounds
from approvals.ledger.moves import locked
from approvals.models import AuditEntry, Dismissal, Request, Review
from approvals.selectors.status import status
from approvals.steps import evaluate
from approvals.steps.mirroring import conditions
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, save
from tests.support.approvals.world import acting


@pytest.fixture
def carol(env: World) -> User:
    """May approve and override everything."""
    made = world.user("carol", env.cluster, "platform")
    env.kubernetes.allow("carol", "approve")
    env.kubernetes.allow("carol", "override")
    return made


def say(request: Request, by: User, decision: str, **more: Any) -> Review:
    request.refresh_from_db()
    wish = {"reason": "pin the image", "channel": "browser", "subject_digest": request.subject_digest, **more}
    return services.review(by=acting(by), request_id=request.pk, decision=decision, **wish)


def dismiss(review: Review, by: User, **more: Any) -> Dismissal:
    wish = {"review_id": review.pk, "reason": "agreed by phone", "channel": "browser", **more}
    return services.dismiss(by=acting(by), request_id=review.request_id, **wish)


def looked_at(request: Request) -> Request:
    evaluate.run(Request.objects.get(pk=request.pk), "w")
    request.refresh_from_db()
    return request


def next_round(request: Request) -> None:
    with transaction.atomic():
        rounds.void(locked(request.pk), code="plan-changed", words="the cluster changed", facts={})
    Request.objects.filter(pk=request.pk).update(round=request.round + 1)
    request.refresh_from_db()
    world.in_review(request)


def test_nobodys_approval_counts_past_it_and_the_request_goes_on(env: World, request_: Request, carol: User) -> None:
    say(request_, env.ada, "RequestChanges")
    say(request_, carol, "Approve")
    assert (looked_at(request_).state, request_.problem_code) == ("in_review", "changes-requested")
    assert request_.problem == "ada requested changes"
    assert not request_.verdicts.exists()


def test_it_takes_a_reason(env: World, request_: Request) -> None:
    with pytest.raises(InvalidInput):
        say(request_, env.ada, "RequestChanges", reason="  ")
    assert not Review.objects.exists()


def test_promise_3_it_takes_the_right_to_approve(env: World, request_: Request) -> None:
    with pytest.raises(NotAllowed):
        say(request_, env.bert, "RequestChanges")


def test_its_author_reviews_anew(env: World, request_: Request) -> None:
    say(request_, env.ada, "RequestChanges")
    assert looked_at(request_).state == "in_review"
    say(request_, env.ada, "Approve")
    assert looked_at(request_).state == "approved"


def test_a_deny_still_ends_it(env: World, request_: Request, carol: User) -> None:
    say(request_, env.ada, "RequestChanges")
    say(request_, carol, "Deny")
    assert looked_at(request_).state == "denied"


def test_a_policy_gives_no_word_past_it(env: World, request_: Request, carol: User) -> None:
    grant = save(env, kind="grant", expression="true")
    allow(env, grant)
    asked = say(request_, env.ada, "RequestChanges")
    assert looked_at(request_).state == "in_review"
    assert not Review.objects.filter(policy=grant).exists()
    dismiss(asked, carol)
    assert looked_at(request_).state == "approved"


def test_it_holds_the_next_round_back_as_well(env: World, request_: Request, carol: User) -> None:
    say(request_, env.ada, "RequestChanges")
    next_round(request_)
    say(request_, carol, "Approve")
    assert (looked_at(request_).state, request_.problem_code) == ("in_review", "changes-requested")
    say(request_, env.ada, "Approve")
    assert looked_at(request_).state == "approved"


def test_who_approved_a_round_between_has_reviewed_anew(env: World, request_: Request, carol: User) -> None:
    say(request_, env.ada, "RequestChanges")
    next_round(request_)
    say(request_, env.ada, "Approve")
    next_round(request_)
    say(request_, carol, "Approve")
    assert looked_at(request_).state == "approved"


def test_who_may_override_dismisses_it_with_a_reason(env: World, request_: Request, carol: User) -> None:
    asked = say(request_, env.ada, "RequestChanges")
    say(request_, carol, "Approve")
    with pytest.raises(InvalidInput):
        dismiss(asked, carol, reason=" ")
    dismiss(asked, carol)
    assert looked_at(request_).state == "approved"
    entry = AuditEntry.objects.get(verb="review.dismissed")
    assert (entry.actor, entry.facts["reviewer"], entry.facts["reason"]) == ("carol", "ada", "agreed by phone")
    assert entry.facts["override"]


def test_a_dismissal_counts_while_its_giver_may_override(env: World, request_: Request, carol: User) -> None:
    asked = say(request_, env.ada, "RequestChanges")
    say(request_, carol, "Approve")
    dismiss(asked, carol)
    env.kubernetes.allowed.discard(("carol", "override", "*"))
    assert looked_at(request_).state == "in_review"
    assert "what carol dismissed counts again" in request_.problem


def test_without_override_nobody_dismisses(env: World, request_: Request, carol: User) -> None:
    asked = say(request_, carol, "RequestChanges")
    with pytest.raises(NotAllowed) as refused:
        dismiss(asked, env.ada)
    assert "override" in str(refused.value.facts["rule"])
    env.kubernetes.is_down = True
    with pytest.raises(CouldNotAsk):
        dismiss(asked, env.ada)
    assert not Dismissal.objects.exists()


def test_S05_nobody_dismisses_what_stands_in_the_way_of_their_own_change(env: World, request_: Request) -> None:
    env.kubernetes.allow("rita", "override")
    asked = say(request_, env.ada, "RequestChanges")
    with pytest.raises(SelfApproval):
        dismiss(asked, env.rita)


def test_S05_a_dismissal_does_not_count_once_its_giver_turns_out_to_have_asked(
    env: World, request_: Request, carol: User
) -> None:
    dora = world.user("dora", env.cluster, "platform")
    env.kubernetes.allow("dora", "approve")
    asked = say(request_, env.ada, "RequestChanges")
    say(request_, dora, "Approve")
    dismiss(asked, carol)
    request_.requesters.append({**request_.requesters[0], "username": "carol", "user_id": carol.pk})
    request_.save(update_fields=["requesters"])
    assert looked_at(request_).state == "in_review"
    assert "what carol dismissed counts again: they requested this change" in request_.problem


def test_S12_chat_and_machines_dismiss_nothing(env: World, request_: Request, carol: User) -> None:
    asked = say(request_, env.ada, "RequestChanges")
    for channel in ("chat", "webhook"):
        with pytest.raises(NotAllowed):
            dismiss(asked, carol, channel=channel)


def test_only_what_requests_changes_is_dismissed(env: World, request_: Request, carol: User) -> None:
    first = say(request_, env.ada, "RequestChanges")
    approval = say(request_, env.ada, "Approve")
    for review in (first, approval):
        with pytest.raises(AlreadyReviewed):
            dismiss(review, carol)
    assert looked_at(request_).state == "approved"
    with pytest.raises(NotOpen):
        dismiss(first, carol)


def test_a_dismissal_is_never_edited(env: World, request_: Request, carol: User) -> None:
    given = dismiss(say(request_, env.ada, "RequestChanges"), carol)
    with pytest.raises(DatabaseError), transaction.atomic():
        Dismissal.objects.filter(pk=given.pk).update(reason="other")
    with pytest.raises(DatabaseError), transaction.atomic():
        Review.objects.filter(pk=given.review_id).update(reason="other")


def test_what_came_between_reading_and_settling_is_looked_at_again(env: World, request_: Request, carol: User) -> None:
    """The approval that would finish it was counted before ada requested changes."""
    from approvals import gate
    from approvals.gate import reader

    say(request_, carol, "Approve")
    read = Request.objects.get(pk=request_.pk)
    facts = reader.deciding(read)
    answer = gate.judge(facts, facts.read_at)
    assert answer.may
    asked = say(request_, env.ada, "RequestChanges")
    evaluate._settle(read, facts, answer)
    request_.refresh_from_db()
    assert request_.state == "in_review"
    facts = reader.deciding(read)
    dismiss(asked, carol)
    evaluate._settle(read, facts, gate.judge(facts, facts.read_at))
    request_.refresh_from_db()
    assert request_.look_again_at is None


def test_the_request_and_its_mirror_say_who_asks_for_what(env: World, request_: Request) -> None:
    say(request_, env.ada, "RequestChanges")
    found = status(looked_at(request_))
    assert (found.label, found.cause, found.by) == ("changes requested", "Pin the image.", ("ada",))
    assert [one.label for one in found.steps] == ["Change it"]
    shown = {one.type: one for one in conditions.of_request(request_, None, None)}
    assert (shown["Applied"].is_true, shown["Applied"].reason) == (False, "ChangesRequested")
