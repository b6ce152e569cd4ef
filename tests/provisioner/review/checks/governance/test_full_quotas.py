"""Quotas that are in the cluster and not in the bundle: whether they leave room for what a change adds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Facts, Listed, Listing
from provisioner.review.checks.governance import quotas
from provisioner.review.frame import listings
from provisioner.values import Action, Finding, PlannedAction, Severity
from tests.support.provisioner.contents import an_object, facts, judged_by, planned

QUOTAS, RANGES = Listing("", "v1", "ResourceQuota", "shop"), Listing("", "v1", "LimitRange", "shop")
SMALL = {"requests": {"cpu": "250m", "memory": "128Mi"}, "limits": {"cpu": "1"}}
Json = dict[str, Any]


def web(replicas: int = 2, resources: Json | None = SMALL) -> Json:
    pod = {"containers": [{"name": "main", **({"resources": resources} if resources else {})}]}
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"replicas": replicas, "template": {"spec": pod}})


def quota(hard: Json, used: Json, **spec: Any) -> Json:
    return an_object("v1", "ResourceQuota", "most", "shop", spec={"hard": hard, **spec}, status={"used": used})


def limits(**parts: Json) -> Json:
    return an_object("v1", "LimitRange", "usual", "shop", spec={"limits": [{"type": "Container", **parts}]})


def seen(*actions: PlannedAction, quotas: Listed, ranges: tuple[Json, ...] = ()) -> Facts:
    lists = {QUOTAS: quotas, RANGES: Listed(ranges, len(ranges))}
    return facts(*actions, around=ClusterSurroundings(lists=lists))


def found(*actions: PlannedAction, there: Json, ranges: tuple[Json, ...] = ()) -> list[Finding]:
    given = seen(*actions, quotas=Listed((there,), 1), ranges=ranges)
    return [one for one in judged_by(given, [quotas.FULL_QUOTAS_CHECK]) if one.rule == "QUO-03"]


def created(obj: Json) -> PlannedAction:
    return planned(obj, Action.CREATE)


def grown(before: Json, after: Json) -> PlannedAction:
    return planned(after, Action.UPDATE, before=before)


@pytest.mark.parametrize(
    ("action", "hard", "used", "exceeded"),
    [
        pytest.param(created(web()), {"pods": "10"}, {"pods": "9"}, ["pods"], id="one pod too many"),
        pytest.param(created(web()), {"pods": "10"}, {"pods": "8"}, [], id="just room enough"),
        pytest.param(grown(web(2), web(4)), {"pods": "10"}, {"pods": "9"}, ["pods"], id="what is added counts"),
        pytest.param(grown(web(4), web(4)), {"pods": "4"}, {"pods": "4"}, [], id="what runs is counted already"),
        pytest.param(grown(web(4), web(3)), {"pods": "2"}, {"pods": "4"}, [], id="less is never too much"),
        pytest.param(
            created(web()), {"requests.memory": "1Gi"}, {"requests.memory": "900Mi"}, ["requests.memory"], id="memory"
        ),
        pytest.param(
            created(web()),
            {"count/deployments.apps": "3"},
            {"count/deployments.apps": "3"},
            ["count/deployments.apps"],
            id="objects by their number",
        ),
        pytest.param(created(web()), {"pods": "1"}, {}, [], id="nothing is counted yet"),
    ],
)
def test_what_is_added_must_fit_into_what_a_quota_leaves(
    action: PlannedAction, hard: Json, used: Json, exceeded: list[str]
) -> None:
    told = found(action, there=quota(hard, used))
    assert [one.evidence.get("exceeded") for one in told] == ([exceeded] if exceeded else [])
    assert {(one.severity, str(one.ref)) for one in told} <= {(Severity.BREAKING, "Namespace shop")}


def test_the_words_say_what_is_limited_used_and_added() -> None:
    (told,) = found(created(web()), there=quota({"requests.memory": "1Gi"}, {"requests.memory": "900Mi"}))
    assert told.message == (
        "ResourceQuota shop/most leaves no room for what is added: requests.memory is limited to 1Gi, 900Mi is used, "
        "and 256Mi is added. The rest is refused"
    )


@pytest.mark.parametrize(
    ("resources", "ranges", "missing"),
    [
        pytest.param(None, (), ["limits.memory", "requests.cpu"], id="nothing is stated"),
        pytest.param({"limits": {"memory": "1Gi", "cpu": "1"}}, (), [], id="a limit stands for a request"),
        pytest.param({"requests": {"cpu": "1"}}, (), ["limits.memory"], id="one is missing"),
        pytest.param(
            None, (limits(default={"memory": "1Gi"}, defaultRequest={"cpu": "1"}),), [], id="given by a range"
        ),
        pytest.param(None, (limits(default={"memory": "1Gi"}),), ["requests.cpu"], id="a range gives one of them"),
    ],
)
def test_pods_that_do_not_state_what_a_quota_counts_are_refused(
    resources: Json | None, ranges: tuple[Json, ...], missing: list[str]
) -> None:
    there = quota({"requests.cpu": "10", "limits.memory": "10Gi"}, {"requests.cpu": "0", "limits.memory": "0"})
    told = found(created(web(1, resources)), there=there, ranges=ranges)
    assert [sorted(one.evidence["missing"]["Deployment shop/web"]) for one in told] == ([missing] if missing else [])


def test_with_scopes_it_is_not_known_which_pods_are_counted() -> None:
    assert found(created(web()), there=quota({"pods": "0"}, {"pods": "0"}, scopes=["BestEffort"])) == []


def test_a_quota_of_the_bundle_is_judged_by_what_it_becomes() -> None:
    own = quota({"pods": "1"}, {"pods": "1"})
    raised = quota({"pods": "9"}, {})
    assert found(created(web()), grown(own, raised), there=own) == []


@pytest.mark.parametrize(
    ("listed", "words"),
    [(Listed(problem="resourcequotas is forbidden"), ": resourcequotas is forbidden"), (Listed(total=9), "too many")],
    ids=["forbidden", "too many"],
)
def test_quotas_that_nobody_could_list_are_no_room(listed: Listed, words: str) -> None:
    given = seen(created(web()), quotas=listed)
    (told,) = [one for one in judged_by(given, [quotas.FULL_QUOTAS_CHECK]) if one.rule == "QUO-03"]
    assert told.severity is Severity.UNKNOWN
    assert told.message.endswith(words)


def test_quotas_are_read_only_where_something_is_added_to_a_namespace_that_is_there() -> None:
    asked = listings(facts(created(web())), [quotas.FULL_QUOTAS_CHECK])
    assert asked == [RANGES, QUOTAS]
    namespace = created(an_object("v1", "Namespace", "shop"))
    for actions in ((grown(web(4), web(4)),), (created(web()), namespace)):
        assert listings(facts(*actions), [quotas.FULL_QUOTAS_CHECK]) == []
    assert listings(replace(facts(created(web())), is_offline=True), [quotas.FULL_QUOTAS_CHECK]) == []
