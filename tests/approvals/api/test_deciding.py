"""Objects that say how requests are decided, over REST: on the truth that kubectl writes, and as the person."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.cache import cache

from approvals.models import AuditEntry, DecidingObject, Request
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals import world
from tests.support.approvals.exceptions import second_person, spec_of
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import look
from tests.support.approvals.waivers import finding, report

RULES = "clusters/prod/approval-rules"
EXCEPTIONS = "clusters/prod/finding-exceptions"
SPEC = {"require": [{"name": "security", "groups": ["security"]}]}


def body_of(response: Any) -> Any:
    return json.loads(response.content)


def test_a_rule_is_created_read_changed_and_deleted(env: World, call: Call) -> None:
    made = call(env.ada, "post", RULES, {"name": "four-eyes", "spec": SPEC})
    assert (made.status_code, body_of(made)["summary"]) == (201, "1 of group security")
    assert env.kubernetes.objects["four-eyes"]["spec"] == SPEC
    read = call(env.ada, "get", f"{RULES}/four-eyes")
    assert (read["ETag"], body_of(read)["version"]) == (made["ETag"], made["ETag"].strip('"'))
    assert [one["name"] for one in body_of(call(env.ada, "get", RULES))["results"]] == ["four-eyes"]

    wish = {"spec": {"require": [{"name": "a", "count": 2}]}}
    missing = call(env.ada, "put", f"{RULES}/four-eyes", wish)
    assert (missing.status_code, problem_of(missing)["code"]) == (428, "precondition-required")
    stale = call(env.ada, "put", f"{RULES}/four-eyes", wish, **{"If-Match": '"0"'})
    assert (stale.status_code, problem_of(stale)["code"]) == (412, "precondition-failed")
    changed = call(env.ada, "put", f"{RULES}/four-eyes", wish, **{"If-Match": read["ETag"]})
    assert (changed.status_code, body_of(changed)["summary"]) == (200, "2 of all who may approve")

    assert call(env.ada, "delete", f"{RULES}/four-eyes").status_code == 428
    assert call(env.ada, "delete", f"{RULES}/four-eyes", **{"If-Match": changed["ETag"]}).status_code == 204
    verbs = AuditEntry.objects.filter(verb__startswith="deciding-object").values_list("verb", "via")
    assert [*verbs.order_by("number")] == [
        ("deciding-object.created", "rest"),
        ("deciding-object.changed", "rest"),
        ("deciding-object.deleted", "rest"),
    ]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"require": []}, "spec.require is empty"),
        ({**SPEC, "when": "size(rules"}, "spec.when"),
        ({**SPEC, "when": "nothing > 0"}, "spec.when"),
        ({**SPEC, "selector": {"minSeverity": "worst"}}, "spec.selector.minSeverity is 'worst'"),
    ],
)
def test_what_pratique_could_not_read_is_refused_before_it_holds_anything(
    env: World, call: Call, spec: dict[str, Any], words: str
) -> None:
    refused = call(env.ada, "post", RULES, {"name": "wrong", "spec": spec})
    assert (refused.status_code, words in problem_of(refused)["detail"]) == (422, True)
    assert not DecidingObject.objects.exists()


def test_S02_whoever_may_not_get_a_rule_sees_and_writes_none(env: World, call: Call) -> None:
    call(env.ada, "post", RULES, {"name": "four-eyes", "spec": SPEC})
    env.kubernetes.closed.add("approvalrules")
    cache.clear()
    for method, path in (("get", RULES), ("get", f"{RULES}/four-eyes"), ("post", RULES)):
        assert call(env.ada, method, path, {"name": "x", "spec": SPEC}).status_code == 404, (method, path)
    assert call(env.ada, "delete", f"{RULES}/four-eyes", **{"If-Match": '"1"'}).status_code == 404
    assert set(env.kubernetes.objects) == {"four-eyes"}


def test_a_finding_exception_counts_once_a_second_person_confirms_it_and_the_report_says_so(
    env: World, call: Call
) -> None:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = report(Request.objects.get(), finding(1), finding(2))
    made = body_of(call(env.ada, "post", EXCEPTIONS, {"name": "web", "spec": spec_of()}))
    assert (made["ready"]["status"], made["ready"]["reason"]) == (False, "NeedsSecondPerson")
    carla, address = second_person(env), f"{EXCEPTIONS}/web/confirm"
    version = DecidingObject.objects.get().version
    stale = call(carla, "post", address, {"version": "another.1"})
    assert (stale.status_code, problem_of(stale)["code"]) == (412, "precondition-failed")
    own = call(env.ada, "post", address, {"version": version})
    assert (own.status_code, "you wrote web" in problem_of(own)["detail"]) == (403, True)
    confirmed = body_of(call(carla, "post", address, {"version": version}))
    assert (confirmed["ready"]["status"], confirmed["ready"]["reason"]) == (True, "Confirmed")
    assert [one["ready"]["status"] for one in body_of(call(env.ada, "get", EXCEPTIONS))["results"]] == [True]

    look(request)
    shown = body_of(call(env.ada, "get", f"requests/{request.uid}"))["finding_exceptions"]
    assert [(one["name"], one["by"], one["fingerprints"]) for one in shown] == [("web", ["ada", "carla"], ["f1"])]
    first, second = body_of(call(env.ada, "get", f"requests/{request.uid}/report"))["findings"]
    (accepted,) = first["accepted"]
    assert (accepted["exception"], accepted["by"], accepted["ticket"]) == ("web", "ada and carla", "SEC-1")
    assert "accepted" not in second


def test_S52_a_deputy_is_not_made_over_rest(env: World, call: Call) -> None:
    spec = {"user": "dora", "deputyFor": "ada", "clusterRole": "r", "until": "2099-01-01T00:00:00Z"}
    refused = call(env.ada, "post", "clusters/prod/deputies", {"name": "dora", "spec": spec})
    assert (refused.status_code, problem_of(refused)["code"]) == (422, "invalid-input")
    assert "kubectl pratique deputy" in problem_of(refused)["detail"]
    assert "dora" not in env.kubernetes.objects
