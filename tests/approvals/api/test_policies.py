"""Policies over REST: written by the rules of their page, and drafts tried on past requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.ledger.deciding import policy_rows
from approvals.models import Policy, PolicyEvaluation, Request
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import look, save

WISH = {
    "name": "nights",
    "kind": "guard",
    "mode": "enforce",
    "cluster": "prod",
    "names": ["strim*"],
    "expression": 'worst_new in ["safe", "notable"]',
}
DRAFT: dict[str, Any] = {
    "apiVersion": "core.rukpak.io/v1alpha2",
    "kind": "ApprovalPolicy",
    "metadata": {"name": "draft"},
    "spec": {
        "effect": "Guard",
        "validations": [{"expression": 'worst == "safe" && !is_first'}],
        "validationActions": ["Audit"],
    },
}


def test_a_policy_is_created_changed_and_disabled_by_the_state_that_was_read(env: World, call: Call) -> None:
    made = call(env.ada, "post", "policies", WISH)
    assert (made.status_code, json.loads(made.content)["version"]) == (201, 1)
    assert problem_of(call(env.ada, "post", "policies", WISH))["code"] == "changed"
    change = {key: value for key, value in WISH.items() if key != "name"} | {"expression": "true"}
    for nothing in ({}, {"If-Match": "no-quotes"}):
        assert problem_of(call(env.ada, "put", "policies/nights", change, **nothing))["code"] == "precondition-required"
    read = {"If-Match": call(env.ada, "get", "policies/nights")["ETag"]}
    changed = call(env.ada, "put", "policies/nights", change, **read)
    assert (changed.status_code, json.loads(changed.content)["version"]) == (200, 2)
    for method, body in (("put", change), ("delete", None)):
        stale = call(env.ada, method, "policies/nights", body, **read)
        assert (stale.status_code, problem_of(stale)["code"]) == (412, "precondition-failed")
    read = {"If-Match": call(env.ada, "get", "policies/nights")["ETag"]}
    gone = call(env.ada, "delete", "policies/nights", **read)
    assert (gone.status_code, json.loads(gone.content)["is_active"]) == (200, False)
    row = Policy.objects.get()
    assert (row.version, row.is_active, row.expression) == (3, False, "true")


def test_S13_nobody_writes_over_rest_what_they_may_not_approve(env: World, call: Call) -> None:
    save(env, name="nights")
    env.kubernetes.allow("bert", "get")
    change = {key: value for key, value in WISH.items() if key != "name"}
    read = {"If-Match": call(env.bert, "get", "policies/nights")["ETag"]}
    for answer in (
        call(env.bert, "post", "policies", {**WISH, "name": "other"}),
        call(env.bert, "put", "policies/nights", change, **read),
        call(env.bert, "delete", "policies/nights", **read),
    ):
        assert (answer.status_code, problem_of(answer)["code"]) == (403, "not-allowed")
    assert (Policy.objects.get().version, Policy.objects.get().is_active) == (1, True)


def test_a_disabled_policy_keeps_what_it_said(env: World, request_: Request, call: Call) -> None:
    save(env, name="nights", kind="guard", expression="false")
    look(request_)
    read = {"If-Match": call(env.ada, "get", "policies/nights")["ETag"]}
    call(env.ada, "delete", "policies/nights", **read)
    look(request_)
    assert PolicyEvaluation.objects.get().result == "holds"


def test_a_request_says_what_each_policy_said_and_each_of_its_terms(env: World, request_: Request, call: Call) -> None:
    save(env, name="nights", kind="guard", expression='worst == "safe" && !is_first', message="not the first one")
    save(env, name="others", kind="guard", names=["argo*"])
    look(request_)
    nights, others = json.loads(call(env.ada, "get", f"requests/{request_.uid}").content)["evaluations"]
    assert (nights["policy"], nights["result"]) == ("nights", "holds")
    assert nights["terms"] == [
        {
            "text": 'worst == "safe"',
            "before": "",
            "after": "",
            "value": True,
            "words": "",
            "facts": {"worst": '"safe"'},
        },
        {
            "text": "!is_first",
            "before": "and ",
            "after": "",
            "value": False,
            "words": "",
            "facts": {"is_first": "true"},
        },
    ]
    assert (others["result"], others["words"], others["terms"]) == (
        "not-selected",
        "the name strimzi matches none of argo*",
        [],
    )


def test_what_a_policy_said_by_an_earlier_version_has_no_terms(env: World, request_: Request, call: Call) -> None:
    save(env, name="nights", kind="guard", expression="false")
    look(request_)
    save(env, name="nights", kind="guard", expression="true")
    (told,) = json.loads(call(env.ada, "get", f"requests/{request_.uid}").content)["evaluations"]
    assert (told["result"], told["terms"]) == ("holds", [])


@pytest.mark.parametrize("is_hidden", [False, True])
def test_S09_the_terms_of_a_policy_tell_a_reader_nothing_of_secrets(
    env: World, request_: Request, call: Call, *, is_hidden: bool
) -> None:
    body = scene.report_of("secret-in-the-bundle")
    for action in body["plan"]["actions"]:
        if action["ref"]["kind"] == "Secret":
            action.update(action="update", before={"kind": "Secret"})
    for finding in body["findings"]:
        finding["evidence"] = {"key": "zqsecretzq"}
    request_.reports.all().delete()
    scene.reported(request_, body)
    rule = body["findings"][0]["rule"]
    save(env, name="nights", kind="guard", expression=f'!("{rule}" in rules) && worst == "x"')
    look(request_)
    env.kubernetes.closed = {"secrets"} if is_hidden else set()
    (told,) = json.loads(call(env.ada, "get", f"requests/{request_.uid}").content)["evaluations"]
    first = told["terms"][0]
    assert first["value"] is (None if is_hidden else False)
    assert (rule in json.dumps(first["facts"])) is not is_hidden


def test_a_draft_is_tried_on_past_requests(env: World, request_: Request, call: Call) -> None:
    _, token = world.api_token(env.ada, scopes=["read"])
    reading = {"authorization": f"Bearer {token}"}
    answer = call(env.ada, "post", "policy-tests", {"policy": DRAFT, "days": 30}, **reading)
    found = json.loads(answer.content)
    assert (answer.status_code, found["counts"]["held"], found["left_out"]) == (200, 1, 0)
    (row,) = found["requests"]
    assert (row["uid"], row["result"], row["state"]) == (str(request_.uid), "held", "in_review")
    assert [(term["text"], term["value"]) for term in row["terms"]] == [('worst == "safe"', True), ("!is_first", False)]


@pytest.mark.parametrize(
    ("draft", "place"),
    [
        ({**DRAFT, "kind": "Policy"}, "kind"),
        ({**DRAFT, "spec": {**DRAFT["spec"], "validations": [{"expression": "wrst"}]}}, "spec.validations[0]"),
    ],
)
def test_a_draft_that_is_wrong_is_refused_with_its_place(
    env: World, call: Call, draft: dict[str, Any], place: str
) -> None:
    problem = problem_of(call(env.ada, "post", "policy-tests", {"policy": draft}))
    assert (problem["status"], problem["code"]) == (422, "invalid-input")
    assert place in problem["detail"]


def test_a_built_in_guard_is_switched_off_for_a_cluster_by_whom_may_approve_all_of_it(
    env: World, settings: Any, call: Call
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "BUILT_IN_GUARDS": ["hold-unknown"]}
    policy_rows.keep_built_in(env.cluster)
    address, off = "clusters/prod/built-in-guards/hold-unknown", {"is_active": False}
    env.kubernetes.allow("bert", "get")
    assert problem_of(call(env.bert, "put", address, off))["code"] == "not-allowed"
    assert problem_of(call(env.ada, "put", address, {}))["code"] == "invalid-input"
    assert problem_of(call(env.ada, "put", "clusters/prod/built-in-guards/routine", off))["code"] == "not-found"
    said = json.loads(call(env.ada, "put", address, off).content)
    assert (said["name"], said["is_built_in"], said["is_active"]) == ("hold-unknown", True, False)
    (listed,) = json.loads(call(env.ada, "get", "policies").content)["results"]
    assert (listed["name"], listed["is_active"]) == ("hold-unknown", False)
