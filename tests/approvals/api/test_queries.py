"""What may stand behind the `?`, and pages that stay where they are."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from approvals.models import KubernetesIdentity, Request
from tests.approvals.api.addresses import CLOSED, LISTS, path_of
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World


def page_of(call: Call, env: World, path: str) -> dict[str, Any]:
    response = call(env.ada, "get", path)
    assert response.status_code == 200, response.content
    found: dict[str, Any] = json.loads(response.content)
    return found


def test_a_parameter_that_nobody_knows_is_not_passed_over(env: World, afternoon: dict[str, Any], call: Call) -> None:
    for name, query in product([*LISTS, *CLOSED], ("severity=bar", "ordering=-created_at", "State=in_review", "%00=1")):
        path = path_of(name, afternoon)
        method = "post" if path.endswith(("pause", "ask-again", "reviews", "withdraw")) else "get"
        response = call(env.ada, method, f"{path}?{query}", {} if method == "post" else None)
        found = problem_of(response)
        assert (response.status_code, found["code"]) == (400, "invalid-query"), (path, query)
        assert found["parameter"] in found["detail"] or "\\x00" in found["detail"]
        assert isinstance(found["expected"], list)


# A query, the parameter that is refused, and what the answer says it expects.
REFUSED = [
    ("requests?state=foo", "state", "in_review"),  # a state that is none
    ("requests?state=In_Review", "state", "in_review"),  # a state in other letters
    ("requests?state=", "state", "in_review"),  # no state
    ("requests?purpose=fun", "purpose", "rollback"),  # a purpose that is none
    ("requests?worst=bar", "worst", "critical"),  # a severity that is none
    ("deployments?health=fine", "health", "InProgress"),  # a health that is none
    ("requests?deployment=", "deployment", "characters"),  # no name
    ("requests?deployment=a%00b", "deployment", "NUL"),  # NUL in a name
    ("requests?deployment=" + "x" * 254, "deployment", "253"),  # a name without end
    ("requests?state=denied&state=applied", "state", "once"),  # two states
    ("audit?verb=" + "x" * 10_000, "verb", "253"),  # a verb without end
    ("requests?page_size=0", "page_size", "from 1"),  # pages of nothing
    ("requests?page_size=-1", "page_size", "from 1"),  # pages of less than nothing
    ("requests?page_size=ten", "page_size", "from 1"),  # a size in words
    ("requests?page_size=", "page_size", "from 1"),  # no size
    ("requests?page_size=1e3", "page_size", "from 1"),  # a size with an exponent
    ("requests?page_size=%D9%A3", "page_size", "from 1"),  # a size in Arabic digits
    ("requests?page_size=" + "9" * 5000, "page_size", "18 digits"),  # a size without end
    ("requests?page=0", "page", "from 1"),  # page 0
    ("requests?page=-1", "page", "from 1"),  # a page before the first
    ("requests?page=x", "page", "from 1"),  # a page in words
    ("requests?anchor=-1", "anchor", "from 0"),  # an anchor that is none
]


def test_a_value_that_nothing_can_have_is_named_beside_what_can_be(env: World, call: Call) -> None:
    for query, parameter, expected in REFUSED:
        response = call(env.ada, "get", query)
        found = problem_of(response)
        assert (response.status_code, found["code"], found["parameter"]) == (400, "invalid-query", parameter), query
        assert expected in found["detail"], query
        assert len(found["detail"]) < 1000, query


def test_a_page_past_the_last_is_not_there_and_the_last_is_named(
    env: World, afternoon: dict[str, Any], call: Call
) -> None:
    for number in ("99", "9" * 18):
        response = call(env.ada, "get", f"requests?page={number}")
        assert (response.status_code, problem_of(response)["code"]) == (404, "not-found")
        assert "the last page is 1" in problem_of(response)["detail"]


def test_more_rows_than_the_limit_are_not_given_at_once(env: World, call: Call) -> None:
    where = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    first = where.requests.get()
    copied = {field.attname: getattr(first, field.attname) for field in Request._meta.concrete_fields}
    more = [{**copied, "id": None, "uid": world.seen("x", {})["metadata"]["uid"], "number": n} for n in range(2, 220)]
    Request.objects.bulk_create([Request(**{**one, "state": "denied", "subject_digest": "x"}) for one in more])
    assert len(page_of(call, env, "requests?page_size=100000")["results"]) == 200


@pytest.mark.parametrize("kind", ["requests", "deployments", "audit"])
def test_walking_all_pages_meets_every_row_once_while_rows_are_added(env: World, call: Call, kind: str) -> None:
    for number in range(12):
        scene.asked(env.cluster, f"d{number:02}", env.rita)
    there = page_of(call, env, f"{kind}?page_size=200")["results"]
    path, walked = f"{kind}?page_size=5", []
    while path:
        found = page_of(call, env, path)
        walked += found["results"]
        scene.asked(env.cluster, f"c{len(walked):02}", env.rita)
        path = (found["next"] or "").partition("/api/v1/")[2]
    assert [one.get("uid", one.get("number")) for one in walked] == [one.get("uid", one.get("number")) for one in there]


def test_requests_are_filtered_by_the_worst_of_their_present_round(env: World, call: Call) -> None:
    for name, worst in {"harbour": "critical", "quay": "safe"}.items():
        world.in_review(scene.asked(env.cluster, name, env.rita), worst=worst)
    old = Request.objects.get(deployment__name="harbour")
    assert [one["deployment"] for one in page_of(call, env, "requests?worst=critical")["results"]] == ["harbour"]
    Request.objects.filter(pk=old.pk).update(round=2)
    world.in_review(Request.objects.get(pk=old.pk), worst="notable")
    assert page_of(call, env, "requests?worst=critical")["results"] == []


def test_an_object_of_two_clusters_is_told_apart_by_cluster(env: World, call: Call) -> None:
    other = world.cluster("moon")
    KubernetesIdentity.objects.create(
        user=env.ada, cluster=other, username="ada", groups_seen_at=world.yesterday(), authenticator="mapped"
    )
    obj = world.seen("strimzi", world.spec())
    for where in (env.cluster, other):
        world.submit_spec(where, obj)
    path = f"deployments/{obj['metadata']['uid']}"
    both = call(env.ada, "get", path)
    assert (both.status_code, problem_of(both)["code"]) == (409, "ambiguous")
    assert page_of(call, env, f"{path}?cluster=moon")["cluster"] == "moon"
    assert "results" in page_of(call, env, f"{path}/revisions?cluster=moon&page_size=2")
