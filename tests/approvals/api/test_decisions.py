"""Deciding and wishing over REST."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals import services
from approvals.models import Request, Review
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

WISH = {"cluster": "prod", "name": "barge", "spec": world.spec(), "labels": {"team": "a"}}


def reviewed(request: Request, **changes: Any) -> dict[str, Any]:
    return {"decision": "Approve", "subject_digest": request.subject_digest, "reason": "read", **changes}


@pytest.mark.parametrize("decision", ["Approve", "RequestChanges", "Deny"])
def test_a_decision_is_kept_with_its_channel(here: World, request_: Request, call: Call, decision: str) -> None:
    response = call(here.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_, decision=decision))
    assert response.status_code == 201, response.content
    given = Review.objects.get()
    assert (given.decision, given.channel, given.subject_digest) == (decision, "rest", request_.subject_digest)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param({"subject_digest": "sha256:old"}, 409, "digest-moved", id="S03 another subject"),
        pytest.param({"subject_digest": ""}, 422, "invalid-input", id="S03 no subject"),
        pytest.param({"decision": "approve"}, 422, "invalid-input", id="a word that is none"),
        pytest.param({"reason": "x" * 5000}, 422, "invalid-input", id="a reason without end"),
    ],
)
def test_what_is_no_decision_on_this_subject_changes_nothing(
    here: World, request_: Request, call: Call, body: dict[str, Any], status: int, code: str
) -> None:
    response = call(here.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_, **body))
    assert (response.status_code, problem_of(response)["code"]) == (status, code)
    assert not Review.objects.exists()


def test_S03_a_moved_subject_is_named_beside_the_one_that_was_seen(here: World, request_: Request, call: Call) -> None:
    response = call(
        here.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_, subject_digest="sha256:old")
    )
    found = problem_of(response)
    assert (found["seen"], found["current"]) == ("sha256:old", request_.subject_digest)


def test_S03_deletions_have_to_be_named(here: World, afternoon: dict[str, Any], call: Call) -> None:
    deleting = afternoon["deleting"]
    response = call(here.ada, "post", f"requests/{deleting.uid}/reviews", reviewed(deleting))
    missing = problem_of(response)["missing"]
    assert missing == services.to_acknowledge(deleting) != []
    body = reviewed(deleting, acknowledges=missing)
    assert call(here.ada, "post", f"requests/{deleting.uid}/reviews", body).status_code == 201


def test_S20_what_is_somebody_elses_is_refused_with_the_remedy(here: World, request_: Request, call: Call) -> None:
    report = request_.reports.get()
    met = {"action": "adopt", "ref": {}, "problem": "ConfigMap a exists already", "problemCode": "already-exists"}
    report.body["plan"]["actions"] = [met]
    report.save(update_fields=["body"])
    found = problem_of(call(here.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_)))
    assert (found["status"], found["code"], found["objects"]) == (409, "collides", 1)
    assert "IfNoController" in found["detail"]
    assert not Review.objects.exists()


def test_the_problem_of_a_request_comes_with_its_remedy(here: World, request_: Request, call: Call) -> None:
    Request.objects.update(problem="it is paused", problem_code="paused", remedy="Somebody resumes it.")
    shown = json.loads(call(here.ada, "get", f"requests/{request_.uid}").content)
    assert (shown["problem"], shown["remedy"]) == ("it is paused", "Somebody resumes it.")


def test_what_an_approval_has_to_name_comes_with_what_goes_with_it(
    here: World, afternoon: dict[str, Any], call: Call
) -> None:
    deleting = afternoon["deleting"]
    shown = json.loads(call(here.ada, "get", f"requests/{deleting.uid}").content)["to_acknowledge"]
    assert [one["name"] for one in shown] == services.to_acknowledge(deleting)
    assert any("its data may go with it" in one["words"] for one in shown)
    call(here.ada, "post", f"requests/{deleting.uid}/reviews", reviewed(deleting, decision="Deny"))
    Request.objects.filter(pk=deleting.pk).update(state="denied")
    assert json.loads(call(here.ada, "get", f"requests/{deleting.uid}").content)["to_acknowledge"] == []


def test_S05_who_asked_does_not_approve(here: World, request_: Request, call: Call) -> None:
    here.kubernetes.allow("rita", "approve")
    here.kubernetes.allow("rita", "get")
    response = call(here.rita, "post", f"requests/{request_.uid}/reviews", reviewed(request_))
    assert (response.status_code, problem_of(response)["code"]) == (403, "self-approval")
    assert not Review.objects.exists()


@pytest.mark.parametrize("state", ["denied", "applied", "superseded", "withdrawn", "expired", "preparing"])
def test_what_is_not_in_review_takes_no_decision(here: World, request_: Request, call: Call, state: str) -> None:
    Request.objects.update(state=state)
    response = call(here.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_))
    assert (response.status_code, problem_of(response)["code"]) == (409, "not-open")


def test_until_the_verdict_a_review_may_be_given_again(here: World, request_: Request, call: Call) -> None:
    path = f"requests/{request_.uid}"
    assert call(here.ada, "post", f"{path}/reviews", reviewed(request_)).status_code == 201
    assert call(here.ada, "post", f"{path}/reviews", reviewed(request_, decision="Deny")).status_code == 201
    given = json.loads(call(here.ada, "get", path).content)["reviews"]
    assert [(one["decision"], one["is_replaced"]) for one in given] == [("Approve", True), ("Deny", False)]
    Request.objects.filter(pk=request_.pk).update(state="denied")
    late = call(here.ada, "post", f"{path}/reviews", reviewed(request_))
    assert (late.status_code, problem_of(late)["code"]) == (409, "not-open")


def test_a_deployment_from_its_making_to_its_end(here: World, call: Call) -> None:
    here.kubernetes.allow("rita", "get")
    made = call(here.rita, "post", "deployments", WISH)
    assert made.status_code == 201, made.content
    found = json.loads(made.content)
    path = f"deployments/{found['uid']}"
    changed = call(here.rita, "put", path, {"generation": found["generation"], "spec": world.spec("2.0.0")})
    assert json.loads(changed.content)["spec"] == world.spec("2.0.0")
    stale = call(here.rita, "put", path, {"generation": found["generation"], "spec": world.spec("3.0.0")})
    assert (stale.status_code, problem_of(stale)["code"]) == (409, "changed")
    paused = call(here.rita, "post", f"{path}/pause", {"is_paused": True, "reason": "freeze"})
    assert json.loads(paused.content)["is_paused"] is True
    shown = {"generation": json.loads(paused.content)["generation"]}
    unseen = call(here.rita, "post", f"{path}/ask-again", {"generation": found["generation"]})
    assert (unseen.status_code, problem_of(unseen)["code"]) == (409, "changed")
    assert call(here.rita, "post", f"{path}/ask-again", shown).status_code == 200
    assert Request.objects.filter(state="preparing").count() == 1
    Request.objects.filter(state="preparing").update(state="failed")
    assert call(here.rita, "post", f"{path}/ask-again", shown).status_code == 200
    assert Request.objects.filter(state="preparing").count() == 1
    assert call(here.rita, "delete", path).status_code == 202


def test_withdrawing_is_for_who_asked(here: World, request_: Request, call: Call) -> None:
    here.kubernetes.allow("rita", "get")
    assert call(here.ada, "post", f"requests/{request_.uid}/withdraw", {"reason": ""}).status_code == 403
    assert (
        call(here.rita, "post", f"requests/{request_.uid}/withdraw", {"reason": "changed my mind"}).status_code == 200
    )
    request_.refresh_from_db()
    assert request_.state == "withdrawn"


@pytest.mark.parametrize("decision", ["Approve", "Deny"])
def test_S02_who_may_read_but_not_approve_decides_nothing(
    here: World, request_: Request, call: Call, decision: str
) -> None:
    here.kubernetes.allow("bert", "get")
    response = call(here.bert, "post", f"requests/{request_.uid}/reviews", reviewed(request_, decision=decision))
    found = problem_of(response)
    assert (response.status_code, found["code"]) == (403, "not-allowed")
    assert "approve" in found["rule"]
    assert not Review.objects.exists()


def test_promise_4_a_cluster_that_does_not_answer_takes_no_decision(here: World, request_: Request, call: Call) -> None:
    here.kubernetes.is_down = True
    response = call(here.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_))
    assert (response.status_code, problem_of(response)["code"]) == (503, "could-not-ask")
    assert not Review.objects.exists()


@pytest.mark.parametrize("method", ["put", "delete"])
def test_what_changed_since_it_was_read_is_not_overwritten(here: World, call: Call, method: str) -> None:
    here.kubernetes.allow("rita", "get")
    found = json.loads(call(here.rita, "post", "deployments", WISH).content)
    path = f"deployments/{found['uid']}"
    body = {"generation": found["generation"], "spec": world.spec("2.0.0")} if method == "put" else None
    for stale in ('"other"', 'W/"other"'):
        refused = call(here.rita, method, path, body, **{"if-match": stale})
        assert (refused.status_code, problem_of(refused)["code"]) == (412, "precondition-failed")
    assert here.kubernetes.objects["barge"]["spec"] == WISH["spec"]
    etag = call(here.rita, "get", path)["ETag"]
    assert call(here.rita, method, path, body, **{"if-match": f'"other", {etag}'}).status_code in (200, 202)


def test_a_condition_that_nothing_can_meet_is_not_passed_over(here: World, request_: Request, call: Call) -> None:
    path = f"requests/{request_.uid}/reviews"
    response = call(here.ada, "post", path, reviewed(request_), **{"if-match": '"x"'})
    assert (response.status_code, problem_of(response)["code"]) == (412, "precondition-failed")
    assert not Review.objects.exists()


def test_what_requests_changes_is_dismissed_by_who_may_override(here: World, request_: Request, call: Call) -> None:
    wish = reviewed(request_, decision="RequestChanges")
    made = call(here.ada, "post", f"requests/{request_.uid}/reviews", wish).json()
    address = f"requests/{request_.uid}/reviews/{made['id']}/dismiss"
    refused = call(here.ada, "post", address, {"reason": "agreed"})
    assert (refused.status_code, problem_of(refused)["code"]) == (403, "not-allowed")
    here.kubernetes.allow("ada", "override")
    assert call(here.ada, "post", address, {"reason": ""}).status_code == 422
    assert call(here.ada, "post", address, {"reason": "agreed"}).status_code == 201
    assert call(here.ada, "post", address, {"reason": "once more"}).status_code == 201
    shown = call(here.ada, "get", f"requests/{request_.uid}").json()
    assert [one["reason"] for one in shown["reviews"][0]["dismissals"]] == ["agreed", "once more"]
    unknown = f"requests/{request_.uid}/reviews/{made['id'] + 999}/dismiss"
    assert call(here.ada, "post", unknown, {"reason": "x"}).status_code == 409


def test_the_request_says_how_it_stands_and_what_differs_since_the_review(
    here: World, request_: Request, call: Call
) -> None:
    world.review(request_, world.acting(here.ada), "RequestChanges", reason="pin it", channel="rest")
    shown = call(here.ada, "get", f"requests/{request_.uid}").json()
    assert (shown["status"]["summary"], shown["status"]["by"]) == ("changes requested", ["ada"])
    assert shown["since_your_review"] is None
    world.wish(
        here.cluster, world.seen("strimzi", world.spec("2.0.0"), uid=request_.deployment.uid, generation=2), here.rita
    )
    later = world.in_review(Request.objects.get(number=2))
    since = call(here.ada, "get", f"requests/{later.uid}").json()["since_your_review"]
    assert (since["decision"], since["request"], since["is_blocking"]) == ("RequestChanges", str(request_.uid), False)
    before = call(here.ada, "get", f"requests/{request_.uid}").json()["status"]
    assert (before["summary"], before["cause"], before["by"]) == ("superseded", "Request 2 replaced it.", ["rita"])
    assert before["steps"] == [{"name": "Open request 2", "url": f"/requests/{later.uid}", "verb": ""}]
