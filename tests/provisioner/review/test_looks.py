"""A check is given what of the cluster it declares, and runs again only where that differs between two looks (S09)."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from provisioner.builtin.facts import defaulted
from provisioner.review.base.facts import Check, ClusterSurroundings, Facts, Listed, Listing, Reads, nothing
from provisioner.review.frame import CHECKS, report
from provisioner.values import Action, Finding, Plan
from tests.support.provisioner.contents import config_map, content_with, planned, web_workload

SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "cluster-admin", "uid": "u-9"},
    "rules": [],
}
QUOTAS = Listing("", "v1", "ResourceQuota", "shop")


def stored(obj: dict[str, Any]) -> dict[str, Any]:
    """As a server holds it that nobody else writes to."""
    made = defaulted(obj)
    if made["kind"] == "Service":
        made["spec"] |= {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ipFamilies": ["IPv4"]}
        made["spec"]["ipFamilyPolicy"] = "SingleStack"
    if made["kind"] == "Deployment":
        made["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "3"}
    return made


def upgrade(**live: Any) -> Facts:
    """A Deployment gets a new image; it, a ConfigMap and a Service are in the cluster as they were approved, but for
    `live`, which is written to the Deployment's spec."""
    old, new = ([web_workload(image=f"example.com/web:{tag}"), config_map(a="1"), SERVICE] for tag in (1, 2))
    actions = []
    for was, shall in zip(old, new, strict=True):
        before, after = copy.deepcopy(stored(was)), copy.deepcopy(stored(shall))
        if was["kind"] == "Deployment":
            before["spec"] |= live
            after["spec"] |= live
        action = Action.NONE if before == after else Action.UPDATE
        actions.append(planned(after, action, before=before, uid="u"))
    bundle = [planned(shall, Action.UPDATE, before=was) for was, shall in zip(old, new, strict=True)]
    around = ClusterSurroundings(lists={QUOTAS: Listed()})
    return Facts(
        content_with(*new),
        Plan(tuple(actions), "sha256:plan"),
        content_with(*old),
        live_rbac=(ROLE,),
        bundle=Plan(tuple(bundle), "sha256:bundle"),
        around=around,
    )


def counted(facts: Facts, runs: Counter[str]) -> tuple[Check, ...]:
    def counting(check: Check) -> Check:
        def changes(given: Facts) -> Iterator[Finding]:
            runs[check.name] += 1
            yield from check.changes(given)

        return replace(check, changes=changes)

    return tuple(map(counting, CHECKS))


def test_a_check_that_asks_nothing_of_the_cluster_runs_once_a_report() -> None:
    runs: Counter[str] = Counter()
    report(upgrade(), counted(upgrade(), runs))
    asking = {one.name for one in CHECKS if one.given}
    assert {name for name, count in runs.items() if count > 1} <= asking
    assert len(runs) == len(CHECKS)
    assert max(runs.values()) <= 3


def test_it_runs_once_more_where_somebody_wrote_to_an_object_of_ours() -> None:
    runs: Counter[str] = Counter()
    report(upgrade(replicas=4), counted(upgrade(), runs))
    quiet = [one.name for one in CHECKS if not one.given]
    assert {runs[name] for name in quiet} == {2}


def test_a_check_is_given_nothing_of_the_cluster_that_it_does_not_declare() -> None:
    seen: list[tuple[Any, ...]] = []

    def changes(given: Facts) -> Iterator[Finding]:
        service = next(one for one in given.plan.actions if one.ref.kind == "Service")
        seen.append((given.live, given.around.lists, given.live_rbac, (service.before or {})["spec"].get("clusterIP")))
        yield from ()

    report(upgrade(), [Check("asks nothing", changes=changes)])
    assert seen == [({}, {}, None, None)]
    report(upgrade(), [Check("asks all", changes=changes, reads=frozenset(Reads), lists=lambda _: (QUOTAS,))])
    assert seen[1][1:] == ({QUOTAS: Listed()}, (ROLE,), "10.96.0.7")


@pytest.mark.parametrize("check", CHECKS, ids=lambda it: it.name)
def test_what_asks_for_objects_or_lists_is_given_them(check: Check) -> None:
    is_asking = check.wants is not nothing or check.lists is not nothing
    assert (Reads.LIVE in check.given) is is_asking


def test_S09_defaults_are_no_values_of_the_cluster_and_what_somebody_wrote_is() -> None:
    plain = report(upgrade()).findings
    assert not [one.rule for one in plain if one.is_withheld and not one.sources]
    written = report(upgrade(template={"spec": {"hostNetwork": True, "containers": []}})).findings
    assert [one.rule for one in written if one.is_withheld and one.ref and one.ref.kind == "Deployment"]
