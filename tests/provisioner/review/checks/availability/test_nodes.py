"""Nodes that pods ask for, and the cluster has not."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Listed, Listing
from provisioner.review.checks.availability import pod_needs
from provisioner.review.frame import listings
from provisioner.values import Action, Finding, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, judged_by, planned

NODES = Listing("", "v1", "Node")


def node(name: str, *taints: str, **labels: str) -> dict[str, Any]:
    """`taints` as kubectl writes them: key=value:effect."""
    made = an_object("v1", "Node", name, spec={"taints": [taint(one) for one in taints]})
    made["metadata"]["labels"] = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **labels}
    return made


def taint(text: str) -> dict[str, str]:
    named, _, effect = text.partition(":")
    key, _, value = named.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


LISTED = Listed((node("one", disk="fast", size="4"), node("two", zone="a")), 2)


def workload(kind: str = "Deployment", **pod: Any) -> dict[str, Any]:
    return an_object("apps/v1", kind, "web", "shop", spec={"template": {"spec": pod}})


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def term(key: str, operator: str, *values: str, within: str = "matchExpressions") -> dict[str, Any]:
    return {within: [{"key": key, "operator": operator, "values": list(values)}]}


def found_by(obj: dict[str, Any], listed: Listed | None = LISTED) -> list[Finding]:
    around = ClusterSurroundings(lists={NODES: listed} if listed else {})
    found = judged_by(facts(planned(obj, Action.CREATE), around=around), [pod_needs.NODES_CHECK])
    return [one for one in found if one.rule != "UNCLAIMED"]


@pytest.mark.parametrize(
    ("pod", "severities"),
    [
        pytest.param({"nodeSelector": {"kubernetes.io/arch": "arm64"}}, [Severity.BREAKING], id="no such machine"),
        pytest.param({"nodeSelector": {"kubernetes.io/arch": "amd64"}}, [], id="one such machine"),
        pytest.param({"nodeSelector": {"disk": "slow"}}, [Severity.DANGEROUS], id="no such label"),
        pytest.param({"nodeSelector": {"disk": "fast"}}, [], id="such a label"),
        pytest.param({"nodeSelector": {"disk": "fast", "zone": "a"}}, [Severity.DANGEROUS], id="not on one node"),
        pytest.param(required(term("zone", "In", "a", "b")), [], id="affinity that fits"),
        pytest.param(required(term("zone", "In", "b")), [Severity.DANGEROUS], id="affinity that does not"),
        pytest.param(required(term("zone", "In", "b"), term("disk", "Exists")), [], id="one of two terms"),
        pytest.param(required({}), [Severity.DANGEROUS], id="a term without requirements"),
        pytest.param(required(term("size", "Gt", "3")), [], id="greater"),
        pytest.param(required(term("size", "Gt", "4")), [Severity.DANGEROUS], id="not greater"),
        pytest.param(required(term("size", "Lt", "x")), [Severity.DANGEROUS], id="no number"),
        pytest.param(required(term("metadata.name", "In", "two", within="matchFields")), [], id="by name"),
        pytest.param(
            {"nodeSelector": {"disk": "fast"}, **required(term("zone", "Exists"))},
            [Severity.DANGEROUS],
            id="both are needed",
        ),
        pytest.param({}, [], id="any node"),
    ],
)
def test_some_node_has_to_be_what_pods_ask_for(pod: dict[str, Any], severities: list[Severity]) -> None:
    assert [(one.rule, one.severity) for one in found_by(workload(**pod))] == [("IMG-10", it) for it in severities]


def test_what_the_pods_asked_of_nodes_before_is_not_new() -> None:
    old, new = (workload(nodeSelector={"disk": "slow"}, containers=[{"name": "a", "image": one}]) for one in "ab")
    around = ClusterSurroundings(lists={NODES: LISTED})
    changed = planned(new, Action.UPDATE, before=old)
    report = judged_by(facts(changed, previous=content_with(old), around=around), [pod_needs.NODES_CHECK])
    assert [one.is_new for one in report if one.rule == "IMG-10"] == [False]


def test_a_daemon_set_that_fits_no_node_runs_nowhere_which_is_notable() -> None:
    (found,) = found_by(workload("DaemonSet", nodeSelector={"gpu": "yes"}))
    assert (found.severity, "it runs no pod now" in found.message) == (Severity.NOTABLE, True)


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(None, id="not read"),
        pytest.param(Listed(total=None, problem="forbidden"), id="nobody may"),
        pytest.param(Listed(LISTED.objects, 5000), id="not all of them"),
    ],
)
def test_what_nobody_could_look_up_is_unknown(listed: Listed | None) -> None:
    assert [one.severity for one in found_by(workload(nodeSelector={"disk": "slow"}), listed)] == [Severity.UNKNOWN]
    assert found_by(workload(nodeSelector={"kubernetes.io/os": "linux"}), listed) == []


def test_nodes_are_read_only_where_pods_ask_for_some() -> None:
    assert listings(facts(planned(workload(), Action.CREATE)), [pod_needs.NODES_CHECK]) == []
    assert listings(facts(planned(workload(nodeSelector={"a": "b"}), Action.CREATE)), [pod_needs.NODES_CHECK]) == [
        NODES
    ]


TAINTED = Listed((node("gpu", "dedicated=gpu:NoSchedule", disk="fast"), node("control", "control:NoExecute")), 2)


def tolerates(**toleration: str) -> dict[str, Any]:
    return {"tolerations": [toleration]}


@pytest.mark.parametrize(
    ("pod", "is_kept_off"),
    [
        pytest.param(tolerates(key="dedicated", value="gpu"), False, id="the same value"),
        pytest.param(tolerates(key="dedicated", value="gpu", effect="NoSchedule"), False, id="the same effect"),
        pytest.param(tolerates(key="dedicated", operator="Exists"), False, id="any value"),
        pytest.param(tolerates(operator="Exists"), False, id="any taint"),
        pytest.param(tolerates(key="control"), False, id="a taint without a value"),
        pytest.param(tolerates(key="dedicated", value="db"), True, id="another value"),
        pytest.param(tolerates(key="dedicated"), True, id="no value"),
        pytest.param(tolerates(key="dedicated", value="gpu", effect="NoExecute"), True, id="another effect"),
        pytest.param(tolerates(value="gpu"), True, id="no key"),
        pytest.param(tolerates(key="others", operator="Exists"), True, id="another key"),
        pytest.param({}, True, id="no toleration"),
        pytest.param({"nodeSelector": {"disk": "fast"}, **tolerates(key="control")}, True, id="of another node"),
        pytest.param(
            {"nodeSelector": {"disk": "fast"}, **tolerates(key="dedicated", operator="Exists")},
            False,
            id="of that node",
        ),
    ],
)
def test_taints_keep_off_pods_that_do_not_tolerate_them(pod: dict[str, Any], is_kept_off: bool) -> None:
    found = found_by(workload(**pod), TAINTED)
    assert [(one.rule, one.severity) for one in found] == [("IMG-10", Severity.DANGEROUS)] * is_kept_off
    assert all("does not tolerate the taints of" in one.message for one in found)


def test_a_finding_names_the_taints_of_the_nodes_that_would_do() -> None:
    (found,) = found_by(workload(nodeSelector={"disk": "fast"}), TAINTED)
    assert "each of 1 node that would do (dedicated=gpu:NoSchedule): its pods wait" in found.message
    assert found.path == ("spec", "template", "spec", "tolerations")


@pytest.mark.parametrize("one", ["node.kubernetes.io/not-ready:NoSchedule", "other:PreferNoSchedule"])
def test_a_taint_that_passes_or_only_asks_keeps_nothing_off(one: str) -> None:
    assert found_by(workload(), Listed((node("one", one),), 1)) == []


def test_nobody_is_kept_off_where_not_all_nodes_were_read() -> None:
    assert found_by(workload(), Listed(TAINTED.objects, 5000)) == []


def test_nodes_are_read_where_pods_tolerate_taints() -> None:
    tolerant = workload(tolerations=[{"operator": "Exists"}])
    assert listings(facts(planned(tolerant, Action.CREATE)), [pod_needs.NODES_CHECK]) == [NODES]
