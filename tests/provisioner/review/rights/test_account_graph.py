"""The ways of an account to its rights, drawn from a report alone."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.rbac import RbacSubject
from provisioner.review.base.record import Mark, from_record, to_record
from provisioner.review.rights.account_graph import MAX_BINDINGS, MAX_RULES, AccountGraph, account_graph, accounts_of
from provisioner.values import ObjectRef, Report
from tests.support.provisioner.contents import an_object, content_with
from tests.support.provisioner.example_roles import APPS, GROUP, PODS, ROBOT, SECRETS, binding, role


def reported(old: list[dict[str, Any]] | None, new: list[dict[str, Any]]) -> Report:
    """As it comes out of the database."""
    found = look_offline(content_with(*new), content_with(*old) if old is not None else None)
    return from_record(to_record(found))


def ways(graph: AccountGraph) -> list[tuple[str, str, list[tuple[str, str]]]]:
    return [
        (str(one.mark), str(one.role_mark), [(str(rule.mark), rule.objects) for rule in (*one.rules, *one.same)])
        for one in graph.bindings
    ]


CASES: dict[str, tuple[list[dict[str, Any]] | None, list[dict[str, Any]], list[Any]]] = {
    "a new account": (None, [role("a", PODS), binding("a", "a")], [("new", "new", [("new", "pods")])]),
    "a rule more": (
        [role("a", PODS), binding("a", "a")],
        [role("a", PODS, APPS), binding("a", "a")],
        [("as before", "changed", [("new", "deployments.apps"), ("as before", "pods")])],
    ),
    "a rule less": (
        [role("a", PODS, APPS), binding("a", "a")],
        [role("a", PODS), binding("a", "a")],
        [("as before", "changed", [("gone", "deployments.apps"), ("as before", "pods")])],
    ),
    "rules in another order": (
        [role("a", PODS, APPS), binding("a", "a")],
        [role("a", APPS, PODS), binding("a", "a")],
        [("as before", "changed", [("as before", "deployments.apps"), ("as before", "pods")])],
    ),
    "a new binding to an old role": (
        [role("a", PODS)],
        [role("a", PODS), binding("a", "a")],
        [("new", "as before", [("new", "pods")])],
    ),
    "a binding that goes": (
        [role("a", PODS), binding("a", "a")],
        [role("a", PODS), binding("a", "a", subject=RbacSubject("User", "eve"))],
        [("gone", "as before", [("gone", "pods")])],
    ),
    "a binding of one namespace": (
        None,
        [role("a", PODS), binding("a", "a", namespace="shop")],
        [("new", "new", [("new", "pods")])],
    ),
    "a role of the cluster": (None, [binding("a", "view")], [("new", "as before", [])]),
}


@pytest.mark.parametrize(("old", "new", "expected"), CASES.values(), ids=CASES)
def test_each_way_says_what_the_change_does_to_it(
    old: list[dict[str, Any]] | None, new: list[dict[str, Any]], expected: list[Any]
) -> None:
    assert ways(account_graph(reported(old, new), ROBOT)) == expected


def test_a_finding_stands_at_the_rule_that_gives_the_power() -> None:
    graph = account_graph(
        reported([role("a", PODS), binding("a", "a")], [role("a", PODS, SECRETS), binding("a", "a")]), ROBOT
    )
    (way,) = graph.bindings
    (rule,) = way.rules
    assert (rule.verbs, rule.objects, rule.index) == ("get, list, watch", "secrets", 1)
    assert [finding.rule for finding in rule.findings] == ["OWN-PRATIQUE-03", "RB-11"]
    assert [finding.rule for finding in graph.findings] == ["RB-DIFF"]


def test_rules_of_the_cluster_are_named_by_their_findings() -> None:
    graph = account_graph(reported([], [binding("a", "cluster-admin")]), ROBOT)
    (way,) = graph.bindings
    assert not way.is_role_known
    assert [(rule.mark, rule.index, rule.verbs) for rule in way.rules] == [(Mark.NEW, 0, ""), (Mark.NEW, 1, "")]
    assert "RB-01" in [finding.rule for finding in way.rules[0].findings]


def test_splitting_a_role_is_only_another_way() -> None:
    old = [role("a", PODS, APPS), binding("a", "a")]
    split = [role("b", PODS), role("c", APPS), binding("b", "b"), binding("c", "c")]
    assert account_graph(reported(old, split), ROBOT).is_only_rearranged
    assert not account_graph(reported(old, old), ROBOT).is_only_rearranged
    assert not account_graph(reported(old, [role("a", APPS), binding("a", "a")]), ROBOT).is_only_rearranged


def test_a_rule_that_comes_by_aggregation_names_the_role_where_it_stands() -> None:
    labels = {"collect": "yes"}
    part = role("part", SECRETS)
    part["metadata"]["labels"] = labels
    whole = role("whole", aggregationRule={"clusterRoleSelectors": [{"matchLabels": labels}]})
    (way,) = account_graph(reported(None, [part, whole, binding("a", "whole")]), ROBOT).bindings
    assert [(rule.origin, rule.objects) for rule in way.rules] == [
        ("ClusterRole.rbac.authorization.k8s.io part", "secrets")
    ]


def test_large_graphs_keep_what_is_worst_and_say_how_much_is_not_drawn() -> None:
    rules = [{"verbs": ["get"], "apiGroups": ["x.example"], "resources": [f"r{number}"]} for number in range(300)]
    bindings = [binding(f"b{number:03}", "small", namespace=f"n{number:03}") for number in range(100)]
    new = [role("big", *rules, SECRETS), role("small", PODS), binding("z-big", "big"), *bindings]
    graph = account_graph(reported(None, new), ROBOT)
    first = graph.bindings[0]
    assert (first.binding.endswith(" z-big"), first.rules[0].objects) == (True, "secrets")
    assert (len(first.rules), first.left_out) == (MAX_RULES, 301 - MAX_RULES)
    assert (len(graph.bindings), graph.left_out) == (MAX_BINDINGS, 101 - MAX_BINDINGS)
    assert dict(graph.totals) == {Mark.NEW: 401}


def test_of_hidden_roles_and_bindings_only_the_number_is_told() -> None:
    report = reported([role("a", PODS), binding("a", "a")], [role("a", PODS, APPS), binding("a", "a")])
    hidden = {
        ObjectRef(GROUP, "v1", "ClusterRole", "", "a").identity,
        ObjectRef(GROUP, "v1", "ClusterRoleBinding", "", "a").identity,
    }
    graph = account_graph(report, ROBOT, hidden=hidden)
    assert graph.hidden == 2
    assert [rule for one in graph.bindings for rule in (*one.rules, *one.same) if rule.verbs or rule.objects] == []


def test_the_accounts_of_a_report_are_those_of_its_findings_then_those_of_its_bindings() -> None:
    eve = RbacSubject("User", "eve")
    old = [role("a", PODS), role("b", PODS), binding("a", "a"), binding("b", "b", subject=eve)]
    report = reported(old, [role("a", PODS), role("b", SECRETS), binding("a", "a"), binding("b", "b", subject=eve)])
    assert accounts_of(report) == [eve, ROBOT]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(role("a", {"verbs": "get"}), id="verbs are no list"),
        pytest.param(an_object(f"{GROUP}/v1", "ClusterRole", "a", rules={"0": PODS}), id="rules are no list"),
        pytest.param(an_object(f"{GROUP}/v1", "ClusterRole", "a", rules=[None, 3]), id="rules are no objects"),
    ],
)
def test_what_cannot_be_read_is_drawn_as_a_role_without_rules(broken: dict[str, Any]) -> None:
    graph = account_graph(reported(None, [broken, binding("a", "a")]), ROBOT)
    assert [one.role_mark for one in graph.bindings] == [Mark.NEW]
    assert [(one.rules, one.same) for one in graph.bindings] == [((), ())]
