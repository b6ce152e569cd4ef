"""Deciding, accepting findings, wishing and revoking over REST."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals import services
from approvals.models import BundleDeployment, Report, Request, Review, Revision
from approvals.services.waivers import MAX_WAIVERS
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.revisions import keep_password
from tests.support.approvals.waivers import finding, report

WISH = {"cluster": "prod", "name": "barge", "spec": world.spec(), "labels": {"team": "a"}}


def reviewed(request: Request, **changes: Any) -> dict[str, Any]:
    return {"decision": "Approve", "subject_digest": request.subject_digest, "reason": "read", **changes}


@pytest.mark.parametrize("decision", ["Approve", "RequestChanges", "Deny"])
def test_a_decision_is_kept_with_its_channel(env: World, request_: Request, call: Call, decision: str) -> None:
    response = call(env.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_, decision=decision))
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
    env: World, request_: Request, call: Call, body: dict[str, Any], status: int, code: str
) -> None:
    response = call(env.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_, **body))
    assert (response.status_code, problem_of(response)["code"]) == (status, code)
    assert not Review.objects.exists()


def test_S03_a_moved_subject_is_named_beside_the_one_that_was_seen(env: World, request_: Request, call: Call) -> None:
    response = call(
        env.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_, subject_digest="sha256:old")
    )
    found = problem_of(response)
    assert (found["seen"], found["current"]) == ("sha256:old", request_.subject_digest)


def test_S03_deletions_have_to_be_named(env: World, afternoon: dict[str, Any], call: Call) -> None:
    deleting = afternoon["deleting"]
    response = call(env.ada, "post", f"requests/{deleting.uid}/reviews", reviewed(deleting))
    missing = problem_of(response)["missing"]
    assert missing == services.to_acknowledge(deleting) != []
    body = reviewed(deleting, acknowledges=missing)
    assert call(env.ada, "post", f"requests/{deleting.uid}/reviews", body).status_code == 201


def test_S20_what_is_somebody_elses_is_refused_with_the_remedy(env: World, request_: Request, call: Call) -> None:
    report = request_.reports.get()
    met = {"action": "adopt", "ref": {}, "problem": "ConfigMap a exists already", "problemCode": "already-exists"}
    report.body["plan"]["actions"] = [met]
    report.save(update_fields=["body"])
    found = problem_of(call(env.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_)))
    assert (found["status"], found["code"], found["objects"]) == (409, "collides", 1)
    assert "IfNoController" in found["detail"]
    assert not Review.objects.exists()


def test_the_problem_of_a_request_comes_with_its_remedy(env: World, request_: Request, call: Call) -> None:
    Request.objects.update(problem="it is paused", problem_code="paused", remedy="Somebody resumes it.")
    shown = json.loads(call(env.ada, "get", f"requests/{request_.uid}").content)
    assert (shown["problem"], shown["remedy"]) == ("it is paused", "Somebody resumes it.")


def test_what_an_approval_has_to_name_comes_with_what_goes_with_it(
    env: World, afternoon: dict[str, Any], call: Call
) -> None:
    deleting = afternoon["deleting"]
    shown = json.loads(call(env.ada, "get", f"requests/{deleting.uid}").content)["to_acknowledge"]
    assert [one["name"] for one in shown] == services.to_acknowledge(deleting)
    assert any("its data may go with it" in one["words"] for one in shown)
    call(env.ada, "post", f"requests/{deleting.uid}/reviews", reviewed(deleting, decision="Deny"))
    Request.objects.filter(pk=deleting.pk).update(state="denied")
    assert json.loads(call(env.ada, "get", f"requests/{deleting.uid}").content)["to_acknowledge"] == []


def test_S05_who_asked_does_not_approve(env: World, request_: Request, call: Call) -> None:
    env.kubernetes.allow("rita", "approve")
    env.kubernetes.allow("rita", "get")
    response = call(env.rita, "post", f"requests/{request_.uid}/reviews", reviewed(request_))
    assert (response.status_code, problem_of(response)["code"]) == (403, "self-approval")
    assert not Review.objects.exists()


@pytest.mark.parametrize("state", ["denied", "applied", "superseded", "withdrawn", "expired", "preparing"])
def test_what_is_not_in_review_takes_no_decision(env: World, request_: Request, call: Call, state: str) -> None:
    Request.objects.update(state=state)
    response = call(env.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_))
    assert (response.status_code, problem_of(response)["code"]) == (409, "not-open")


def test_until_the_verdict_a_review_may_be_given_again(env: World, request_: Request, call: Call) -> None:
    path = f"requests/{request_.uid}"
    assert call(env.ada, "post", f"{path}/reviews", reviewed(request_)).status_code == 201
    assert call(env.ada, "post", f"{path}/reviews", reviewed(request_, decision="Deny")).status_code == 201
    given = json.loads(call(env.ada, "get", path).content)["reviews"]
    assert [(one["decision"], one["is_replaced"]) for one in given] == [("Approve", True), ("Deny", False)]
    Request.objects.filter(pk=request_.pk).update(state="denied")
    late = call(env.ada, "post", f"{path}/reviews", reviewed(request_))
    assert (late.status_code, problem_of(late)["code"]) == (409, "not-open")


def test_a_deployment_from_its_making_to_its_end(env: World, call: Call) -> None:
    env.kubernetes.allow("rita", "get")
    made = call(env.rita, "post", "deployments", WISH)
    assert made.status_code == 201, made.content
    found = json.loads(made.content)
    path = f"deployments/{found['uid']}"
    changed = call(env.rita, "put", path, {"generation": found["generation"], "spec": world.spec("2.0.0")})
    assert json.loads(changed.content)["spec"] == world.spec("2.0.0")
    stale = call(env.rita, "put", path, {"generation": found["generation"], "spec": world.spec("3.0.0")})
    assert (stale.status_code, problem_of(stale)["code"]) == (409, "changed")
    paused = call(env.rita, "post", f"{path}/pause", {"is_paused": True, "reason": "freeze"})
    assert json.loads(paused.content)["is_paused"] is True
    shown = {"generation": json.loads(paused.content)["generation"]}
    unseen = call(env.rita, "post", f"{path}/ask-again", {"generation": found["generation"]})
    assert (unseen.status_code, problem_of(unseen)["code"]) == (409, "changed")
    assert call(env.rita, "post", f"{path}/ask-again", shown).status_code == 200
    assert Request.objects.filter(state="preparing").count() == 1
    Request.objects.filter(state="preparing").update(state="failed")
    assert call(env.rita, "post", f"{path}/ask-again", shown).status_code == 200
    assert Request.objects.filter(state="preparing").count() == 1
    assert call(env.rita, "delete", path).status_code == 202


def test_withdrawing_is_for_who_asked(env: World, request_: Request, call: Call) -> None:
    env.kubernetes.allow("rita", "get")
    assert call(env.ada, "post", f"requests/{request_.uid}/withdraw", {"reason": ""}).status_code == 403
    assert call(env.rita, "post", f"requests/{request_.uid}/withdraw", {"reason": "changed my mind"}).status_code == 200
    request_.refresh_from_db()
    assert request_.state == "withdrawn"


@pytest.mark.parametrize("decision", ["Approve", "Deny"])
def test_S02_who_may_read_but_not_approve_decides_nothing(
    env: World, request_: Request, call: Call, decision: str
) -> None:
    env.kubernetes.allow("bert", "get")
    response = call(env.bert, "post", f"requests/{request_.uid}/reviews", reviewed(request_, decision=decision))
    found = problem_of(response)
    assert (response.status_code, found["code"]) == (403, "not-allowed")
    assert "approve" in found["rule"]
    assert not Review.objects.exists()


def test_promise_4_a_cluster_that_does_not_answer_takes_no_decision(env: World, request_: Request, call: Call) -> None:
    env.kubernetes.is_down = True
    response = call(env.ada, "post", f"requests/{request_.uid}/reviews", reviewed(request_))
    assert (response.status_code, problem_of(response)["code"]) == (503, "could-not-ask")
    assert not Review.objects.exists()


@pytest.mark.parametrize("method", ["put", "delete"])
def test_what_changed_since_it_was_read_is_not_overwritten(env: World, call: Call, method: str) -> None:
    env.kubernetes.allow("rita", "get")
    found = json.loads(call(env.rita, "post", "deployments", WISH).content)
    path = f"deployments/{found['uid']}"
    body = {"generation": found["generation"], "spec": world.spec("2.0.0")} if method == "put" else None
    for stale in ('"other"', 'W/"other"'):
        refused = call(env.rita, method, path, body, **{"if-match": stale})
        assert (refused.status_code, problem_of(refused)["code"]) == (412, "precondition-failed")
    assert env.kubernetes.objects["barge"]["spec"] == WISH["spec"]
    etag = call(env.rita, "get", path)["ETag"]
    assert call(env.rita, method, path, body, **{"if-match": f'"other", {etag}'}).status_code in (200, 202)


def test_a_condition_that_nothing_can_meet_is_not_passed_over(env: World, request_: Request, call: Call) -> None:
    path = f"requests/{request_.uid}/reviews"
    response = call(env.ada, "post", path, reviewed(request_), **{"if-match": '"x"'})
    assert (response.status_code, problem_of(response)["code"]) == (412, "precondition-failed")
    assert not Review.objects.exists()


def test_what_requests_changes_is_dismissed_by_who_may_override(env: World, request_: Request, call: Call) -> None:
    wish = reviewed(request_, decision="RequestChanges")
    made = call(env.ada, "post", f"requests/{request_.uid}/reviews", wish).json()
    address = f"requests/{request_.uid}/reviews/{made['id']}/dismiss"
    refused = call(env.ada, "post", address, {"reason": "agreed"})
    assert (refused.status_code, problem_of(refused)["code"]) == (403, "not-allowed")
    env.kubernetes.allow("ada", "override")
    assert call(env.ada, "post", address, {"reason": ""}).status_code == 422
    assert call(env.ada, "post", address, {"reason": "agreed"}).status_code == 201
    assert call(env.ada, "post", address, {"reason": "once more"}).status_code == 201
    shown = call(env.ada, "get", f"requests/{request_.uid}").json()
    assert [one["reason"] for one in shown["reviews"][0]["dismissals"]] == ["agreed", "once more"]
    unknown = f"requests/{request_.uid}/reviews/{made['id'] + 999}/dismiss"
    assert call(env.ada, "post", unknown, {"reason": "x"}).status_code == 409


def test_the_request_says_how_it_stands_and_what_differs_since_the_review(
    env: World, request_: Request, call: Call
) -> None:
    world.review(request_, world.acting(env.ada), "RequestChanges", reason="pin it", channel="rest")
    shown = call(env.ada, "get", f"requests/{request_.uid}").json()
    assert (shown["status"]["summary"], shown["status"]["by"]) == ("changes requested", ["ada"])
    assert shown["since_your_review"] is None
    world.submit_spec(
        env.cluster, world.seen("strimzi", world.spec("2.0.0"), uid=request_.deployment.uid, generation=2), env.rita
    )
    later = world.in_review(Request.objects.get(number=2))
    since = call(env.ada, "get", f"requests/{later.uid}").json()["since_your_review"]
    assert (since["decision"], since["request"], since["is_blocking"]) == ("RequestChanges", str(request_.uid), False)
    before = call(env.ada, "get", f"requests/{request_.uid}").json()["status"]
    assert (before["summary"], before["cause"], before["by"]) == ("superseded", "Request 2 replaced it.", ["rita"])
    assert before["steps"] == [{"name": "Open request 2", "url": f"/requests/{later.uid}", "verb": ""}]


def test_a_revocation_is_taken_shown_and_taken_back(env: World, twice: BundleDeployment, call: Call) -> None:
    at = f"deployments/{twice.uid}"
    response = call(env.ada, "post", f"{at}/revoke", {"revision": 1, "reason": "leaks keys"})
    assert response.status_code == 200, response.content
    listed = {row["number"]: row for row in json.loads(call(env.ada, "get", f"{at}/revisions").content)["results"]}
    assert (listed[1]["revoked_by"], listed[1]["revoked_reason"]) == ("ada", "leaks keys")
    assert (listed[1]["revoked_at"], listed[2]["revoked_at"]) == (json.loads(response.content)["revoked_at"], None)
    refused = problem_of(call(env.ada, "post", f"{at}/rollback", {"revision": 1}))
    assert (refused["code"], refused["revision"]) == ("revoked", 1)
    assert refused["detail"] == "revision 1 was revoked by ada: leaks keys"
    assert call(env.ada, "post", f"{at}/reinstate", {"revision": 1}).status_code == 200
    assert not Revision.objects.exclude(revoked_at=None).exists()
    again = call(env.ada, "post", f"{at}/reinstate", {"revision": 1})
    assert (again.status_code, problem_of(again)["code"]) == (409, "changed")


def test_new_values_are_asked_for_by_the_names_that_a_refusal_lists(
    env: World, twice: BundleDeployment, call: Call
) -> None:
    keep_password(twice, "Xk2abcdef")
    at = f"deployments/{twice.uid}/rotate"
    for body in ({}, {"target": ""}, {"target": "x" * 521}):
        assert call(env.ada, "post", at, body).status_code == 422
    refused = problem_of(call(env.ada, "post", at, {"target": "nosuch"}))
    assert (refused["code"], refused["field"]) == ("invalid-input", "target")
    assert refused["detail"].endswith("There are: db, db/password")
    assert call(env.ada, "post", at, {"target": "db"}).status_code == 200
    made = Request.objects.get(purpose="rotate")
    shown = json.loads(call(env.ada, "get", f"requests/{made.uid}").content)
    assert (shown["purpose"], shown["rotation"]) == ("rotate", ["db"])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"revision": 1}, id="no reason"),
        pytest.param({"revision": 1, "reason": ""}, id="an empty reason"),
        pytest.param({"revision": 1, "reason": "x" * 1001}, id="a reason without end"),
        pytest.param({"reason": "x"}, id="no revision"),
        pytest.param({"revision": 7, "reason": "x"}, id="no such revision"),
    ],
)
def test_what_is_no_revocation_changes_nothing(
    env: World, twice: BundleDeployment, call: Call, body: dict[str, Any]
) -> None:
    response = call(env.ada, "post", f"deployments/{twice.uid}/revoke", body)
    assert (response.status_code, problem_of(response)["code"]) == (422, "invalid-input")
    assert not Revision.objects.exclude(revoked_at=None).exists()


def test_who_may_only_read_is_told_what_would_allow_it(env: World, twice: BundleDeployment, call: Call) -> None:
    env.kubernetes.allow("bert", "get")
    response = call(env.bert, "post", f"deployments/{twice.uid}/revoke", {"revision": 1, "reason": "leaks keys"})
    found = problem_of(response)
    assert (response.status_code, found["code"]) == (403, "not-allowed")
    assert 'verbs: ["approve"]' in found["rule"]


@pytest.fixture
def asked(env: World) -> Request:
    env.kubernetes.allow("ada", "override")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return report(Request.objects.get(), finding(1), finding(2, "unknown"))


def body(request: Request, *waives: Any, **changes: Any) -> dict[str, Any]:
    return {"decision": "Approve", "subject_digest": request.subject_digest, "waives": list(waives), **changes}


def test_a_waiver_is_kept_and_shown_with_the_review(env: World, asked: Request, call: Call) -> None:
    waiver = {"fingerprint": "f1", "reason": "known \u202esince May"}
    response = call(env.ada, "post", f"requests/{asked.uid}/reviews", body(asked, waiver))
    assert response.status_code == 201, response.content
    assert json.loads(response.content)["waives"] == [waiver]
    shown = json.loads(call(env.ada, "get", f"requests/{asked.uid}").content)
    assert shown["reviews"][0]["waives"] == [waiver]


@pytest.mark.parametrize(
    ("waives", "status", "code"),
    [
        pytest.param([{"fingerprint": "f9", "reason": "a"}], 422, "unknown-finding", id="foreign"),
        pytest.param([{"fingerprint": "f1"}], 422, "invalid-input", id="no reason"),
        pytest.param([{"fingerprint": "f1", "reason": " "}], 422, "invalid-input", id="a blank reason"),
        pytest.param([{"reason": "a"}], 422, "invalid-input", id="no fingerprint"),
        pytest.param([{"fingerprint": "f2", "reason": "a"}], 422, "not-waivable", id="promise 4 unknown"),
        pytest.param(["f1"], 422, "invalid-input", id="no object"),
        pytest.param("f1", 422, "invalid-input", id="no list"),
        pytest.param([{"fingerprint": "f1", "reason": "x" * 1001}], 422, "invalid-input", id="an endless reason"),
        pytest.param(
            [{"fingerprint": f"f{number}", "reason": "a"} for number in range(10_000)],
            422,
            "invalid-input",
            id="ten thousand",
        ),
        pytest.param([{"fingerprint": "f1", "reason": "a"}] * 2, 422, "invalid-input", id="twice"),
        pytest.param([{"fingerprint": "f1", "reason": "a\0b"}], 400, "parse-error", id="NUL"),
    ],
)
def test_what_is_no_waiver_changes_nothing(
    env: World, asked: Request, call: Call, waives: Any, status: int, code: str
) -> None:
    response = call(env.ada, "post", f"requests/{asked.uid}/reviews", {**body(asked), "waives": waives})
    assert (response.status_code, problem_of(response)["code"]) == (status, code)
    assert not Review.objects.exists()


def test_unknown_fingerprints_are_named(env: World, asked: Request, call: Call) -> None:
    waives = [{"fingerprint": one, "reason": "a"} for one in ("f9", "f1", "f8")]
    response = call(env.ada, "post", f"requests/{asked.uid}/reviews", body(asked, *waives))
    assert problem_of(response)["unknown"] == ["f8", "f9"]


def test_S12_without_the_right_it_says_what_would_allow_it(env: World, asked: Request, call: Call) -> None:
    env.kubernetes.allowed.discard(("ada", "override", "*"))
    response = call(env.ada, "post", f"requests/{asked.uid}/reviews", body(asked, {"fingerprint": "f1", "reason": "a"}))
    found = problem_of(response)
    assert (found["status"], found["code"]) == (403, "not-allowed")
    assert "override" in found["rule"]
    assert not Review.objects.exists()


def test_S03_a_waiver_of_another_subject_is_refused(env: World, asked: Request, call: Call) -> None:
    wish = body(asked, {"fingerprint": "f1", "reason": "a"}, subject_digest="sha256:old")
    assert problem_of(call(env.ada, "post", f"requests/{asked.uid}/reviews", wish))["code"] == "digest-moved"


def test_nobody_accepts_twice(env: World, asked: Request, call: Call) -> None:
    wish = body(asked, {"fingerprint": "f1", "reason": "a"})
    answers = [call(env.ada, "post", f"requests/{asked.uid}/reviews", wish).status_code for _ in range(2)]
    assert answers == [201, 201]
    assert Review.objects.count() == 1, "the same once more is one review"


def test_a_whole_long_report_is_accepted_at_once(env: World, asked: Request, call: Call) -> None:
    Report.objects.all().delete()
    report(asked, *(finding(number) for number in range(MAX_WAIVERS)))
    waives = [{"fingerprint": f"f{number}", "reason": "x" * 1000} for number in range(MAX_WAIVERS)]
    assert call(env.ada, "post", f"requests/{asked.uid}/reviews", body(asked, *waives)).status_code == 201
