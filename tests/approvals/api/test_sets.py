"""Change sets over REST."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.models import Request, Review
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals.fixtures import World
from tests.support.approvals.sets import DELETION, member


def reviewed(shown: Request, *others: Request, **changes: Any) -> dict[str, Any]:
    members = [{"request": str(one.uid), "subject_digest": one.subject_digest} for one in (shown, *others)]
    return {"decision": "Approve", "shown": str(shown.uid), "members": members, "reason": "read", **changes}


def test_a_set_is_listed_shown_and_decided(env: World, call: Call) -> None:
    pair = [member(env.cluster, name, env.rita) for name in ("a", "b")]
    other = member(env.cluster, "c", env.rita, "other", actions=[DELETION])
    listed = json.loads(call(env.ada, "get", "sets").content)
    assert listed == {"results": [{"name": "spring", "members": 3, "open": 3, "decided": 0, "worst": "safe"}]}
    shown = json.loads(call(env.ada, "get", "sets/spring").content)
    assert [[one["request"] for one in group["members"]] for group in shown["groups"]] == [
        [str(one.uid) for one in pair],
        [str(other.uid)],
    ]
    assert shown["groups"][0]["differences"] is None
    (change,) = shown["groups"][1]["differences"]["objects"]
    assert (change["object"], change["was"], change["now"]) == ("ConfigMap harbour/old", "", "delete")
    answer = call(env.ada, "post", "sets/spring/review", reviewed(*pair, other))
    results = json.loads(answer.content)["results"]
    assert (answer.status_code, [one["code"] for one in results]) == (200, ["", "", "unlike-member"])
    assert [row.channel for row in Review.objects.all()] == ["rest", "rest"]


def test_what_is_no_decision_on_a_set_changes_nothing(env: World, call: Call) -> None:
    one = member(env.cluster, "a", env.rita)
    for change in ({"decision": "RequestChanges"}, {"members": []}, {"shown": "x"}, {"decision": "Deny", "reason": ""}):
        answer = call(env.ada, "post", "sets/spring/review", {**reviewed(one), **change})
        assert (answer.status_code, problem_of(answer)["code"]) == (422, "invalid-input"), change
    assert problem_of(call(env.ada, "post", "sets/autumn/review", reviewed(one)))["code"] == "not-found"
    assert not Review.objects.exists()


@pytest.mark.parametrize("name", ["a%00b", "%00", "a%20b", "x" * 300])
def test_what_is_no_name_of_a_set_is_not_found(env: World, call: Call, name: str) -> None:
    ring = {"ring": "all", "version": "-"}
    out = {"cluster": "prod", "deployment": "b"}
    for action, wish in (("order/approve", ring), ("order/take-out", out), ("order/end", {})):
        answer = call(env.ada, "post", f"sets/{name}/{action}", {"reason": "seen", **wish})
        assert (answer.status_code, problem_of(answer)["code"]) == (404, "not-found"), action
    assert call(env.ada, "get", f"sets/{name}").status_code == 404


def test_an_order_is_made_shown_and_ended(env: World, call: Call) -> None:
    env.kubernetes.allow("ada", "update")
    pair = [member(env.cluster, name, env.rita) for name in ("a", "b")]
    wish = {
        "members": [{"cluster": "prod", "deployment": one.deployment.name} for one in pair],
        "rings": [{"name": "all", "soakMinutes": 5}],
    }
    made = call(env.ada, "post", "sets/spring/order", wish)
    assert made.status_code == 201, made.content
    (ring,) = json.loads(call(env.ada, "get", "sets/spring").content)["order"]["rings"]
    assert ring["waits_for"][0] == "0 of 2 members healthy, 2 not approved"
    assert [(one["cluster"], one["deployment"], one["state"]) for one in ring["members"]] == [
        ("prod", "a", "not approved"),
        ("prod", "b", "not approved"),
    ]
    assert problem_of(call(env.ada, "post", "sets/spring/order", wish))["code"] == "invalid-input"
    early = call(
        env.ada, "post", "sets/spring/order/approve", {"ring": "all", "version": ring["version"], "reason": "seen"}
    )
    assert (early.status_code, problem_of(early)["code"]) == (409, "not-open")
    out = {"cluster": "prod", "deployment": "b", "reason": "not today"}
    assert call(env.ada, "post", "sets/spring/order/take-out", out).status_code == 204
    assert call(env.ada, "post", "sets/spring/order/end", {"reason": "done"}).status_code == 204
    assert json.loads(call(env.ada, "get", "sets/spring").content)["order"] is None
