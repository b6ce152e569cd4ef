"""What external checks answer, with a token that is good for one run and one subject; and who has them asked again."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.cache import cache

from approvals import services
from approvals.chat.tools.slack import Slack
from approvals.clock import database_now
from approvals.deciding.external_checks import ExternalCheck
from approvals.errors import CheckClosed, CheckTokenRefused, DigestMoved, InvalidInput, NotAllowed, NotFound, NotOpen
from approvals.ledger.deciding import check_runs, deciding_objects
from approvals.models import AuditEntry, CheckRun, CheckSecret, DecidingObject, Request, Review
from approvals.services.policies.external_checks import MOST_RUNS
from approvals.steps import evaluate
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting

URL = "https://checks.example.com/tickets"


def observed(env: World, uid: str = "u-1", **spec: Any) -> None:
    meta = {"name": "tickets", "uid": uid, "generation": 1, "resourceVersion": "1"}
    obj = {"metadata": meta, "spec": {"url": URL, **spec}}
    deciding_objects.observe(cluster=env.cluster, kind=ExternalCheck.kind, obj=obj, is_listed=True)


@pytest.fixture
def run(env: World, request_: Request) -> CheckRun:
    """A mandatory check was asked about the request, and its event was sent."""
    observed(env)
    services.make_check_secret(by=ada_who_writes(env), cluster=env.cluster, name="tickets", via="browser")
    evaluate.run(request_, "")
    CheckRun.objects.update(attempts=1)
    return CheckRun.objects.get()


def ada_who_writes(env: World) -> Any:
    env.kubernetes.allow("ada", "update")
    cache.clear()
    return acting(env.ada)


def answer(run: CheckRun, outcome: str, **changes: Any) -> CheckRun:
    said = {"token": check_runs.token_of(run), "subject_digest": run.subject_digest, "outcome": outcome, **changes}
    return services.answer_check(run=run.uid, **said)


def state_of(request: Request) -> tuple[str, str]:
    evaluate.run(request, "")
    request.refresh_from_db()
    return request.state, request.external_checks[0]["state"]


def test_what_is_approved_waits_until_the_check_has_passed_exactly_this(
    env: World, request_: Request, run: CheckRun
) -> None:
    world.review(request_, acting(env.ada))
    assert state_of(request_) == ("in_review", "waiting")
    assert request_.checks_left == [f"tickets: {request_.external_checks[0]['words']}"]
    answer(run, "pending", message="  waits for\nCHG-7 ", link="https://tickets.example.com/7")
    assert state_of(request_) == ("in_review", "pending")
    assert "it answered pending: waits for CHG-7" in request_.external_checks[0]["words"]
    answer(run, "passed")
    assert state_of(request_)[0] == "approved"
    told = AuditEntry.objects.filter(verb__startswith="external-check").order_by("number")
    assert [(one.verb, one.actor, one.facts.get("outcome")) for one in told] == [
        ("external-check.secret-made", "ada", None),
        ("external-check.asked", "pratique", None),
        ("external-check.answered", "external check tickets", "pending"),
        ("external-check.answered", "external check tickets", "passed"),
    ]
    assert not Review.objects.exclude(user=env.ada).exists()


def test_a_check_that_fails_or_says_nothing_holds_it_and_says_so(env: World, request_: Request, run: CheckRun) -> None:
    world.review(request_, acting(env.ada))
    with time_machine.travel(run.due_at + timedelta(seconds=1)):
        assert state_of(request_) == ("in_review", "no answer")
        assert (request_.problem_code, "did not answer within 600 s" in request_.problem) == (
            "external-check-failed",
            True,
        )
    answer(run, "failed", message="no such ticket")
    assert state_of(request_) == ("in_review", "failed")
    assert "external check tickets: it answered failed: no such ticket" in request_.problem


def test_people_are_told_once_that_a_check_holds_what_nothing_else_will_move(
    env: World, request_: Request, run: CheckRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("approvals.wake.notice", lambda _, occasion: told.append(occasion))
    state_of(request_)
    assert told == []
    with time_machine.travel(run.due_at + timedelta(seconds=1)):
        state_of(request_)
        state_of(request_)
    assert told == ["check_holds"]
    message = Slack().message(request_, "check_holds")
    assert message is not None and "is held by external check tickets: it was asked at" in message["text"]


def test_S49_a_token_is_good_for_its_run_and_subject_and_no_answer_undoes_a_no(
    env: World, request_: Request, run: CheckRun
) -> None:
    other = world.in_review(world.submit_spec(env.cluster, world.seen("kafka", world.spec()), env.rita).requests.get())
    evaluate.run(other, "")
    another = CheckRun.objects.exclude(pk=run.pk).get()
    for token in (check_runs.token_of(another), "", "prc_", check_runs.token_of(run)[:-1], "ключ"):
        with pytest.raises(CheckTokenRefused):
            answer(run, "passed", token=token)
    with pytest.raises(CheckTokenRefused):
        services.answer_check(run=uuid.uuid4(), token="x", outcome="passed", subject_digest="")
    with pytest.raises(DigestMoved):
        answer(run, "passed", subject_digest=another.subject_digest)

    answer(run, "failed", message="no such ticket")
    answer(run, "failed", message="used twice")
    for outcome in ("passed", "pending"):
        with pytest.raises(CheckClosed, match="has answered failed already"):
            answer(run, outcome)
    run.refresh_from_db()
    assert (run.outcome, run.message) == ("failed", "no such ticket")
    answer(another, "passed")
    answer(another, "failed")
    assert state_of(other)[1] == "failed"


@pytest.mark.parametrize("ends", ["time", "round", "verdict", "again"])
def test_S49_no_answer_counts_once_the_question_is_over(
    env: World, request_: Request, run: CheckRun, ends: str
) -> None:
    at = database_now()
    if ends == "time":
        at = run.due_at
    elif ends == "round":
        Request.objects.filter(pk=request_.pk).update(round=2, subject_digest="sha256:2")
    elif ends == "verdict":
        Request.objects.filter(pk=request_.pk).update(state="denied")
    else:
        services.run_check_again(by=acting(env.ada), request_id=request_.pk, name="tickets", via="browser")
    with time_machine.travel(at, tick=False), pytest.raises(CheckClosed):
        answer(run, "passed")
    assert CheckRun.objects.get(pk=run.pk).outcome == ""


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"outcome": "approved"}, "expected passed, failed or pending"),
        ({"outcome": ""}, "expected passed, failed or pending"),
        ({"message": "x" * 1001}, "1001 characters"),
        ({"link": "http://x.example"}, "no https URL"),
        ({"link": "javascript:alert(1)"}, "no https URL"),
        ({"link": f"https://x.example/{'a' * 500}"}, "no https URL"),
    ],
)
def test_what_no_answer_may_hold(run: CheckRun, wish: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        answer(run, **{"outcome": "passed", **wish})


def test_who_may_approve_has_it_run_again_and_nobody_else(env: World, request_: Request, run: CheckRun) -> None:
    answer(run, "failed")
    with pytest.raises(NotAllowed):
        services.run_check_again(by=acting(env.bert), request_id=request_.pk, name="tickets", via="browser")
    with pytest.raises(NotFound):
        services.run_check_again(by=acting(env.ada), request_id=request_.pk, name="other", via="browser")
    again = services.run_check_again(by=acting(env.ada), request_id=request_.pk, name="tickets", via="rest")
    assert (again.number, again.asked_by, state_of(request_)) == (2, "ada", ("in_review", "waiting"))
    answer(again, "passed")
    assert state_of(request_)[1] == "passed"
    # The first one nobody asked for: so it is with those that are asked anew because their answer is too old.
    for _ in range(MOST_RUNS - 1):
        services.run_check_again(by=acting(env.ada), request_id=request_.pk, name="tickets", via="rest")
    with pytest.raises(NotOpen, match="run again 20 times"):
        services.run_check_again(by=acting(env.ada), request_id=request_.pk, name="tickets", via="rest")


def test_nothing_is_asked_without_a_secret_and_another_object_of_the_name_has_another(
    env: World, request_: Request
) -> None:
    observed(env)
    world.review(request_, acting(env.ada))
    assert state_of(request_) == ("in_review", "no secret")
    with pytest.raises(NotAllowed):
        services.make_check_secret(by=acting(env.ada), cluster=env.cluster, name="tickets", via="browser")
    with pytest.raises(NotFound):
        services.make_check_secret(by=acting(env.ada), cluster=env.cluster, name="other", via="browser")
    first, second = (
        services.make_check_secret(by=ada_who_writes(env), cluster=env.cluster, name="tickets", via="browser")
        for _ in range(2)
    )
    kept = CheckSecret.objects.get()
    assert (kept.secret, kept.earlier, first != second) == (second, first, True)
    assert state_of(request_) == ("in_review", "waiting")
    observed(env, uid="u-2")
    assert state_of(request_) == ("in_review", "no secret")


def test_a_secret_that_is_made_twice_in_a_row_takes_none_away_that_is_in_use(env: World) -> None:
    observed(env)
    now, made = database_now(), dict[str, str]()
    for name, after in (("in use", 0), ("first click", 3600), ("second click", 3601), ("next day", 90000)):
        with time_machine.travel(now + timedelta(seconds=after)):
            made[name] = services.make_check_secret(
                by=ada_who_writes(env), cluster=env.cluster, name="tickets", via="browser"
            )
            kept = CheckSecret.objects.get()
        earlier = {"first click": "in use", "second click": "in use", "next day": "second click"}.get(name)
        assert (kept.secret, kept.earlier) == (made[name], made[earlier] if earlier else ""), name


def test_the_secret_of_a_check_goes_with_its_object(env: World) -> None:
    observed(env)
    services.make_check_secret(by=ada_who_writes(env), cluster=env.cluster, name="tickets", via="browser")
    deciding_objects.clear_gone(database_now())
    assert CheckSecret.objects.exists()
    DecidingObject.objects.update(gone_at=database_now() - timedelta(days=4))
    deciding_objects.clear_gone(database_now())
    assert not CheckSecret.objects.exists()


def test_an_advisory_check_and_one_that_selects_something_else_hold_nothing(env: World, request_: Request) -> None:
    observed(env, selector={"names": ["kafka"]})
    world.review(request_, acting(env.ada))
    evaluate.run(request_, "")
    request_.refresh_from_db()
    assert (request_.state, request_.external_checks) == ("approved", [])


def test_one_that_nobody_can_read_or_evaluate_holds(env: World, request_: Request) -> None:
    observed(env, stage="Sometimes", selector={"names": ["strimzi"]})
    world.review(request_, acting(env.ada))
    assert state_of(request_) == ("in_review", "unreadable")
    assert request_.problem_code == "external-check-unreadable"
    observed(env, uid="u-2", when="rules[99] == 'x'")
    assert state_of(request_) == ("in_review", "no secret")
    assert "could not be evaluated" in request_.external_checks[0]["words"]
