from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.rbac import PolicyRule, allows_in, diff, effective_rules, grants, holders, subjects
from provisioner.values import AccessRequest, Identity
from tests.support.provisioner.roles import account, bound, cluster_role, group, role, rule, user

ROBOT = Identity.of_service_account("app", "robot")
READ_PODS = AccessRequest("get", resource="pods", namespace="app")


def held(*objects: dict[str, Any], by: Identity = ROBOT) -> Any:
    return effective_rules(by, objects)


@pytest.mark.parametrize(
    "binding",
    [
        pytest.param(bound("reader", account("robot", "app")), id="the whole cluster"),
        pytest.param(bound("reader", account("robot", "app"), namespace="app"), id="its namespace"),
        pytest.param(bound("reader", account("robot"), namespace="app"), id="the namespace goes without saying"),
        pytest.param(bound("reader", group("system:serviceaccounts")), id="all accounts"),
        pytest.param(bound("reader", group("system:serviceaccounts:app")), id="all accounts of the namespace"),
        pytest.param(bound("reader", group("system:authenticated")), id="everybody signed in"),
        pytest.param(bound("reader", user("system:serviceaccount:app:robot")), id="the account's user name"),
    ],
)
def test_an_account_holds_what_is_bound_to_it_in_any_way(binding: dict[str, Any]) -> None:
    assert allows_in(held(cluster_role("reader", rule("get")), binding), READ_PODS)


@pytest.mark.parametrize(
    "binding",
    [
        pytest.param(bound("reader", account("robot")), id="a cluster-wide binding names no namespace"),
        pytest.param(bound("reader", account("robot", "other")), id="another namespace's account"),
        pytest.param(bound("reader", account("other", "app")), id="another account"),
        pytest.param(bound("reader", user("robot")), id="a user of that name"),
        pytest.param(bound("reader", group("robot")), id="a group of that name"),
        pytest.param(bound("reader", account("robot", "app"), namespace="other"), id="in another namespace"),
        pytest.param(bound("reader", account("robot", "app"), kind="Role"), id="a role where a cluster role is"),
        pytest.param(bound("missing", account("robot", "app")), id="a role that does not exist"),
        pytest.param({**bound("reader"), "subjects": None}, id="nobody"),
        pytest.param({**bound("reader"), "subjects": ["robot"]}, id="a subject that is no object"),
    ],
)
def test_an_account_does_not_hold_what_is_bound_to_others(binding: dict[str, Any]) -> None:
    assert not allows_in(held(cluster_role("reader", rule("get")), binding), READ_PODS)


def test_a_cluster_role_bound_in_a_namespace_counts_there_only() -> None:
    found = held(cluster_role("reader", rule("get", "nodes pods")), bound("reader", account("robot"), namespace="app"))
    assert allows_in(found, READ_PODS)
    assert not allows_in(found, AccessRequest("get", resource="pods", namespace="other"))
    assert not allows_in(found, AccessRequest("get", resource="nodes"))


def test_urls_count_only_where_bound_for_the_whole_cluster() -> None:
    urls = cluster_role("urls", rule("get", urls="/metrics"))
    request = AccessRequest("get", path="/metrics")
    assert allows_in(held(urls, bound("urls", account("robot", "app"))), request)
    assert not allows_in(held(urls, bound("urls", account("robot"), namespace="app")), request)


def test_an_aggregated_role_has_the_rules_of_those_it_selects_and_not_its_own() -> None:
    found = held(
        cluster_role("part", rule("get", "secrets"), labels={"to": "all"}),
        cluster_role("other", rule("get", "nodes"), labels={"to": "none"}),
        cluster_role("all", rule("delete"), aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}),
        bound("all", account("robot", "app")),
    )
    assert [grant.rule.resources for grant in found.grants] == [("secrets",)]
    assert found.grants[0].origin.name == "part"
    assert found.grants[0].role.name == "all"


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"key": "a", "operator": "In", "values": ["1"]}, True),
        ({"key": "a", "operator": "NotIn", "values": ["1"]}, False),
        ({"key": "b", "operator": "NotIn", "values": ["1"]}, True),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "b", "operator": "DoesNotExist"}, True),
        ({"key": "a", "operator": "Nonsense"}, False),
    ],
    ids=str,
)
def test_aggregation_selects_by_expressions_too(term: dict[str, Any], expected: bool) -> None:
    found = held(
        cluster_role("part", rule("get"), labels={"a": "1"}),
        cluster_role("all", aggregationRule={"clusterRoleSelectors": [{"matchExpressions": [term]}]}),
        bound("all", account("robot", "app")),
    )
    assert bool(found.grants) is expected


def test_roles_that_aggregate_each_other_do_not_hang() -> None:
    def aggregating(name: str, other: str) -> dict[str, Any]:
        selector = {"matchLabels": {other: "yes"}}
        return cluster_role(name, labels={name: "yes"}, aggregationRule={"clusterRoleSelectors": [selector]})

    assert held(aggregating("a", "b"), aggregating("b", "a"), bound("a", account("robot", "app"))).grants == ()


def test_a_missing_role_and_an_unreadable_rule_are_said_and_not_passed_over() -> None:
    broken = cluster_role("broken", {"verbs": "get"}, rule("list"))
    found = held(broken, bound("broken", account("robot", "app")), bound("gone", account("robot", "app")))
    assert [grant.rule.verbs for grant in found.grants] == [("list",)]
    assert any("rule 0" in str(problem) for problem in found.problems)
    assert any("gone, which does not exist" in str(problem) for problem in found.problems)


def test_every_grant_says_by_which_binding_role_and_rule() -> None:
    objects = (
        role("app", "reader", rule("list"), rule("get")),
        bound("reader", account("robot"), namespace="app", kind="Role"),
    )
    (found,) = grants(held(*objects), READ_PODS)
    assert (found.binding.name, found.role.name, found.rule_index, found.scope) == (
        "reader-binding",
        "reader",
        1,
        "app",
    )
    assert str(found.subject) == "ServiceAccount app/robot"


def test_objects_are_not_changed_and_their_order_does_not_matter() -> None:
    objects = [
        cluster_role("part", rule("get"), labels={"to": "all"}),
        cluster_role("all", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}),
        bound("all", account("robot", "app")),
        role("app", "own", rule("list")),
        bound("own", account("robot"), namespace="app", kind="Role"),
    ]
    before = copy.deepcopy(objects)
    assert held(*objects) == held(*reversed(objects))
    assert objects == before


def test_all_subjects_are_found_once() -> None:
    objects = (
        bound("a", account("robot", "app"), user("ann")),
        bound("b", account("robot"), group("ops"), namespace="app"),
    )
    assert [str(it) for it in subjects(objects)] == ["Group ops", "ServiceAccount app/robot", "User ann"]


def test_everybody_is_found_who_holds_a_right_and_where() -> None:
    reader = cluster_role("reader", rule("get"))
    objects = (
        reader,
        cluster_role("other", rule("list")),
        bound("reader", user("ann"), group("ops")),
        bound("reader", account("robot"), user("ann"), namespace="app"),
        bound("reader", user("eve"), namespace="elsewhere"),
        bound("other", user("bob")),
        bound("gone", user("cid")),
    )
    assert [str(it) for it in holders(objects, READ_PODS)] == ["Group ops", "ServiceAccount app/robot", "User ann"]
    everywhere = AccessRequest("get", resource="pods")
    assert [str(it) for it in holders(objects, everywhere)] == ["Group ops", "User ann"]


def test_splitting_and_renaming_roles_is_no_change() -> None:
    old = held(cluster_role("one", rule("get list", "pods secrets")), bound("one", account("robot", "app")))
    new = held(
        cluster_role("first", rule("get", "pods secrets")),
        cluster_role("second", rule("list", "secrets"), rule("list", "pods")),
        bound("first", account("robot", "app")),
        bound("second", group("system:serviceaccounts:app")),
    )
    assert diff(old, new).is_empty


def test_a_wider_reach_is_gained_once_and_nothing_is_lost() -> None:
    reader = cluster_role("reader", rule("get"))
    old = held(reader, bound("reader", account("robot"), namespace="app"))
    new = held(reader, bound("reader", account("robot"), namespace="app"), bound("reader", account("robot", "app")))
    found = diff(old, new)
    assert [(it.scope, it.rule) for it in found.added] == [("", PolicyRule.from_object(rule("get")))]
    assert found.removed == ()
    back = diff(new, old)
    assert back.added == ()
    assert [it.scope for it in back.removed] == [""]


def test_a_new_wildcard_is_a_gain_even_where_all_verbs_were_listed() -> None:
    def with_verbs(verbs: str) -> Any:
        return held(cluster_role("r", rule(verbs)), bound("r", account("robot", "app")))

    found = diff(with_verbs("get list watch create update patch delete deletecollection"), with_verbs("*"))
    assert [it.rule.verbs for it in found.added] == [("*",)]
    assert found.removed == ()


def test_an_aggregated_role_that_selects_no_rule_keeps_its_own() -> None:
    """The controller applies no rules in their place, and what it does not apply stays: seen on API server 1.36."""
    selector = {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}
    written, binding = cluster_role("all", rule("get"), aggregationRule=selector), bound("all", account("robot", "app"))
    empty = cluster_role("empty", labels={"to": "all"})
    assert allows_in(held(written, binding), READ_PODS)
    assert allows_in(held(written, empty, binding), READ_PODS)
    other = cluster_role("other", rule("delete"), labels={"to": "all"})
    assert not allows_in(held(written, other, binding), READ_PODS)
