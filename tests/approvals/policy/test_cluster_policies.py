"""ApprovalPolicies of a cluster on requests: the same judgement as policies in rows, and what only objects have."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import access
from approvals.ledger.deciding.deciding_objects import forget, observe
from approvals.models import Policy, PolicyEvaluation, Request, Review
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import HARMLESS, allow, look, save
from tests.support.approvals.world import acting

HOLDS: dict[str, Any] = {
    "effect": "Guard",
    "validations": [{"expression": "is_first == false", "message": "ask the platform team"}],
    "validationActions": ["Deny"],
}
GRANT: dict[str, Any] = {
    "effect": "Grant",
    "validations": [{"expression": HARMLESS}],
    "validationActions": ["Approve"],
}
FALSE = "ask the platform team"


def see(env: World, spec: dict[str, Any], name: str = "routine", generation: int = 1, **more: Any) -> Policy:
    """What the watch makes of an object, which ada wrote unless `writer` says otherwise."""
    meta = {"name": name, "uid": f"uid-{name}", "generation": generation, "resourceVersion": str(generation)}
    writer = access.person_of(acting(env.ada), env.cluster).record()
    about = {"writer": writer, "is_listed": False, **more}
    observe(cluster=env.cluster, kind="ApprovalPolicy", obj={"metadata": meta, "spec": spec}, **about)
    return Policy.objects.get(uid=f"uid-{name}")


def said(request: Request, policy: Policy) -> tuple[str, str]:
    look(request)
    found = PolicyEvaluation.objects.filter(policy=policy).latest("policy_version")
    return found.result, found.words


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (HOLDS, ("holds", FALSE)),
        ({**HOLDS, "matchConstraints": {"names": ["web"]}}, ("not-selected", "the name strimzi matches none of web")),
        ({**HOLDS, "matchConstraints": {"clusters": ["dev"]}}, ("not-selected", "the cluster prod is not listed")),
        (
            {**HOLDS, "matchConditions": [{"name": "upgrades", "expression": "!is_first"}]},
            ("not-selected", "its match condition upgrades is false"),
        ),
        (
            {**HOLDS, "validations": [{**HOLDS["validations"][0], "messageExpression": "name + ' is new here'"}]},
            ("holds", "strimzi is new here"),
        ),
        (
            {**HOLDS, "validations": [{**HOLDS["validations"][0], "messageExpression": "string(unjudged)"}]},
            ("holds", FALSE),
        ),
        (
            {**HOLDS, "validations": [{"expression": "true"}, {"expression": "!is_first", "message": "m"}]},
            ("holds", "m"),
        ),
    ],
    ids=["holds", "name", "cluster", "condition", "message", "a message about the report", "which of them"],
)
def test_a_guard_says_why_it_holds_or_does_not_select(
    env: World, request_: Request, spec: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert said(request_, see(env, spec)) == expected


def test_a_guard_holds_what_people_approve_until_it_is_deleted(env: World, request_: Request) -> None:
    save(env, expression="true")
    allow(env, Policy.objects.get(name="routine"))
    see(env, HOLDS, "first")
    assert look(request_).state == "in_review"
    forget(cluster=env.cluster, uid="uid-first")
    assert look(request_).state == "approved"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"matchConstraints": {"names": ["strimzi"]}}, "it cannot be read, so the requests that it might select wait"),
        ({**HOLDS, "validations": [{"expression": "nothing > 0"}]}, "does not compile"),
        (
            {**HOLDS, "matchConditions": [{"name": "broken", "expression": "rules[99] == 'x'"}]},
            "its match condition broken could not be evaluated",
        ),
    ],
    ids=["unreadable", "does not compile", "a condition without a value"],
)
def test_S47_what_of_a_guard_nobody_can_tell_holds(
    env: World, request_: Request, spec: dict[str, Any], words: str
) -> None:
    save(env, expression="true")
    allow(env, Policy.objects.get(name="routine"))
    result, told = said(request_, see(env, spec, "guard"))
    assert (result in ("holds", "error"), words in told, request_.state) == (True, True, "in_review")


def test_a_grant_of_a_cluster_approves_by_its_name_and_its_version_counts(env: World, request_: Request) -> None:
    policy = see(env, GRANT)
    assert look(request_).state == "in_review"
    env.kubernetes.allow("pratique:policy:routine", "approve")
    assert look(request_).state == "approved"
    given = Review.objects.get()
    assert (given.username, given.policy, given.policy_version) == ("pratique:policy:routine", policy, 1)


@pytest.mark.parametrize(
    "spec",
    [
        {**GRANT, "validations": "true"},
        {**GRANT, "validationActions": ["Audit"]},
        {**GRANT, "matchConditions": [{"name": "a", "expression": "rules[99] == 'x'"}]},
        {**GRANT, "matchConditions": [{"name": "a", "expression": "false"}]},
        {**GRANT, "matchConstraints": {"clusters": ["dev"]}},
    ],
    ids=["unreadable", "only recorded", "a condition without a value", "a condition that is false", "elsewhere"],
)
def test_S47_what_of_a_grant_nobody_can_tell_approves_nothing(
    env: World, request_: Request, spec: dict[str, Any]
) -> None:
    env.kubernetes.allow("pratique:policy:routine", "approve")
    see(env, spec)
    assert look(request_).state == "in_review"


@pytest.mark.parametrize("generation", [1, 2], ids=["created", "changed later"])
def test_S46_a_grant_that_somebody_unknown_ever_wrote_approves_nothing(
    env: World, request_: Request, generation: int
) -> None:
    env.kubernetes.allow("pratique:policy:routine", "approve")
    see(env, {**GRANT, "validationActions": ["Audit"]}, writer=None if generation == 1 else {"username": "ada"})
    policy = see(env, GRANT, generation=2, writer={"username": "ada"} if generation == 1 else None)
    result, words = said(request_, policy)
    assert (result, request_.state) == ("silent", "in_review")
    assert "nobody can tell who wrote every version of this ApprovalPolicy" in words


def test_S46_a_grant_approves_no_work_of_anybody_who_ever_wrote_it(env: World, request_: Request) -> None:
    env.kubernetes.allow("pratique:policy:routine", "approve")
    rita = access.person_of(acting(env.rita), env.cluster).record()
    see(env, {**GRANT, "validationActions": ["Audit"]}, writer=rita)
    result, words = said(request_, see(env, GRANT, generation=2))
    assert (result, request_.state) == ("silent", "in_review")
    assert "its author or editor rita requested this change" in words


def test_S46_an_object_never_gets_the_identity_of_a_policy_in_a_row(env: World, request_: Request) -> None:
    row = save(env, expression="false")
    allow(env, row)
    result, words = said(request_, see(env, GRANT, str(row.pk)))
    assert (result, request_.state) == ("error", "in_review")
    assert "not digits alone" in words
