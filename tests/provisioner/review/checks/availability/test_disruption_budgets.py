"""Disruption budgets that let no pod go, also those that the bundle does not bring."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Listed, Listing
from provisioner.review.checks.availability import disruption_budgets
from provisioner.review.frame import listings
from provisioner.review.workloads.workload_changes import part_of
from provisioner.values import Action, Finding
from tests.support.provisioner.contents import an_object, facts, judged_by, planned

BUDGETS = Listing("policy", "", "PodDisruptionBudget")


def workload(replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}}
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"replicas": replicas, "template": template})


def budget(**spec: Any) -> dict[str, Any]:
    return an_object("policy/v1", "PodDisruptionBudget", "web", "shop", spec=spec)


SELECTOR = {"matchLabels": {"app": "web"}}


def found_by(*objects: dict[str, Any], live: tuple[Any, ...] = ()) -> list[Finding]:
    around = ClusterSurroundings(lists={BUDGETS: Listed(live, len(live))})
    actions = [planned(one, Action.CREATE) for one in objects]
    found = judged_by(facts(*actions, around=around), [disruption_budgets.CHECK])
    return [finding for finding in found if finding.rule != "UNCLAIMED"]


@pytest.mark.parametrize(
    ("replicas", "spec", "count"),
    [
        pytest.param(2, {"selector": SELECTOR, "minAvailable": 1}, 0, id="one may go"),
        pytest.param(1, {"selector": SELECTOR, "minAvailable": 1}, 1, id="the only one may not"),
        pytest.param(2, {"selector": SELECTOR, "minAvailable": "100%"}, 1, id="all have to stay"),
        pytest.param(3, {"selector": SELECTOR, "maxUnavailable": "1%"}, 0, id="a percentage is rounded up"),
        pytest.param(3, {"selector": SELECTOR, "maxUnavailable": "0%"}, 1, id="none may go"),
        pytest.param(3, {"selector": {}, "maxUnavailable": 0}, 1, id="every pod"),
        pytest.param(3, {"maxUnavailable": 0}, 1, id="whichever pods, none may go"),
        pytest.param(3, {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 9}, 0, id="pods of others"),
        pytest.param(0, {"selector": SELECTOR, "minAvailable": 1}, 0, id="nothing runs"),
        pytest.param(2, {"selector": SELECTOR, "minAvailable": "many"}, 0, id="no number"),
        pytest.param(2, {"selector": SELECTOR}, 0, id="no limit"),
    ],
)
def test_a_budget_that_lets_no_pod_go_is_said(replicas: int, spec: dict[str, Any], count: int) -> None:
    found = found_by(workload(replicas), budget(**spec))
    assert [finding.rule for finding in found if finding.variant != "selects-none"] == ["AVL-01"] * count


def test_a_budget_of_somebody_else_counts_where_fewer_pods_run() -> None:
    other = budget(selector=SELECTOR, minAvailable=2)
    (found,) = found_by(workload(2), live=(other,))
    assert "none of the 2 pods of Deployment shop/web" in found.message
    assert found_by(workload(3), live=(other,)) == []
    fewer, more = ([planned(workload(2), Action.UPDATE, before=workload(count))] for count in (3, 1))
    assert listings(facts(*fewer), [disruption_budgets.CHECK]) == [BUDGETS]
    assert listings(facts(*more), [disruption_budgets.CHECK]) == []


@pytest.mark.parametrize(
    ("value", "up", "part"),
    [
        (2, True, 2),
        ("50%", True, 2),
        ("50%", False, 1),
        ("0%", True, 0),
        (True, True, None),
        ("half", True, None),
        (None, True, None),
    ],
)
def test_a_number_or_a_percentage_of_three(value: object, up: bool, part: int | None) -> None:
    assert part_of(value, 3, up=up) == part


def named_budget(name: str, **labels: str) -> dict[str, Any]:
    return an_object(
        "policy/v1",
        "PodDisruptionBudget",
        name,
        "shop",
        spec={"maxUnavailable": 1, "selector": {"matchLabels": labels}},
    )


def test_two_budgets_that_select_the_same_pods_block_every_eviction() -> None:
    (found,) = found_by(workload(3), named_budget("a", app="web"), named_budget("b", app="web"))
    assert (found.variant, found.severity, found.evidence["other"].name) == ("overlap", "dangerous", "b")
    assert [
        finding.variant for finding in found_by(workload(3), named_budget("a", app="web"), named_budget("b", app="x"))
    ] == ["selects-none"]


def test_a_budget_beside_one_of_somebody_else_blocks_every_eviction() -> None:
    (found,) = found_by(workload(3), named_budget("a", app="web"), live=(named_budget("theirs", app="web"),))
    assert (found.variant, found.evidence["other"].name) == ("overlap", "theirs")


@pytest.mark.parametrize(
    ("kind", "spec", "severities"),
    [
        ("Job", {"maxUnavailable": 1}, ["dangerous"]),
        ("Job", {"minAvailable": "50%"}, ["dangerous"]),
        ("Job", {"minAvailable": 1}, []),
        ("DaemonSet", {"maxUnavailable": 1}, ["notable"]),
        ("Deployment", {"maxUnavailable": 1}, []),
    ],
)
def test_a_budget_cannot_count_pods_whose_workload_has_no_scale(
    kind: str, spec: dict[str, Any], severities: list[str]
) -> None:
    group = "batch/v1" if kind == "Job" else "apps/v1"
    template = {"metadata": {"labels": {"app": "web"}}}
    made = an_object(group, kind, "web", "shop", spec={"replicas": 3, "template": template})
    assert [finding.severity for finding in found_by(made, budget(selector=SELECTOR, **spec))] == severities
