"""Pods: the level that a namespace must let through, by the version it enforces, and how they behave on a node."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings
from provisioner.review.checks.pods import runtime, security
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, content_with, facts, judged_by, planned

ENFORCE = "pod-security.kubernetes.io/enforce"

STRICT = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def workload(namespace: str = "shop", *, container: dict[str, Any] | None = None, **pod: Any) -> dict[str, Any]:
    inner = {"name": "main", "image": "x", "securityContext": STRICT, **(container or {})}
    spec = {"template": {"spec": {"containers": [inner], **pod}}}
    return an_object("apps/v1", "Deployment", "web", namespace, spec=spec)


def namespace(level: str, version: str = "") -> dict[str, Any]:
    labels = {ENFORCE: level}
    if version:
        labels[f"{ENFORCE}-version"] = version
    found = an_object("v1", "Namespace", "shop")
    return {**found, "metadata": {**found["metadata"], "labels": labels}}


def rejected(pod: dict[str, Any], level: str, version: str, server: str) -> list[str]:
    live = {ObjectRef("", "v1", "Namespace", "", "shop").identity: namespace(level, version)}
    given = facts(planned(pod, Action.CREATE), live=live, around=ClusterSurroundings(version=server))
    found = judged_by(given, [security.PODS_CHECK])
    return [str(finding.evidence["version"]) for finding in found if finding.rule == "POD-20"]


PROBE = {"livenessProbe": {"httpGet": {"host": "10.0.0.1", "port": 80}}}
SYSCTL = {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "1"}]}}
ROOT = {"securityContext": {"runAsUser": 0}}


@pytest.mark.parametrize(
    ("pod", "level", "version", "server", "expected"),
    [
        pytest.param(workload(), "restricted", "", "v1.36.0", [], id="strict enough"),
        pytest.param(workload(hostPID=True), "baseline", "", "v1.36.0", ["v1.36"], id="too loose"),
        pytest.param(workload(container=PROBE), "baseline", "latest", "v1.36.0", ["v1.36"], id="a row of today"),
        pytest.param(workload(container=PROBE), "baseline", "v1.33", "v1.36.0", [], id="a row that came later"),
        pytest.param(workload(container=PROBE), "baseline", "latest", "v1.33.0", [], id="a server before the row"),
        pytest.param(workload(**SYSCTL), "baseline", "v1.31", "v1.36.0", ["v1.31"], id="allowed only later"),
        pytest.param(workload(**SYSCTL), "baseline", "v1.32", "v1.36.0", [], id="allowed by then"),
        pytest.param(workload(**ROOT), "restricted", "v1.22", "v1.36.0", [], id="root before it was asked"),
        pytest.param(workload(**ROOT), "restricted", "v1.23", "v1.36.0", ["v1.23"], id="root since it is"),
        pytest.param(
            workload(container={"securityContext": {"runAsNonRoot": True}}, os={"name": "windows"}),
            "restricted",
            "",
            "v1.36.0",
            [],
            id="what Windows has not is not asked of it",
        ),
        pytest.param(
            workload(container={"securityContext": {"runAsNonRoot": True}}, os={"name": "windows"}),
            "restricted",
            "v1.24",
            "v1.36.0",
            ["v1.24"],
            id="before 1.25 it was",
        ),
    ],
)
def test_pods_are_held_against_the_standards_that_their_namespace_enforces(
    pod: dict[str, Any], level: str, version: str, server: str, expected: list[str]
) -> None:
    assert rejected(pod, level, version, server) == expected


@pytest.mark.parametrize(
    ("before", "after", "variant"),
    [
        ("restricted", "baseline", "loosened"),
        ("baseline", None, "label-removed"),
        (None, "privileged", "label-added"),
        (None, "baseline", "tightened"),
        ("baseline", "restricted", "tightened"),
    ],
)
def test_a_bundle_that_lets_its_namespace_admit_more_or_less_is_told(
    before: str | None, after: str | None, variant: str | None
) -> None:
    old, new = ({"labels": {ENFORCE: level}} if level else {} for level in (before, after))
    old, new = ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", **it}} for it in (old, new))
    found = judged_by(facts(planned(new, Action.UPDATE, before=old), previous=content_with(old)), [security.PODS_CHECK])
    assert [finding.variant for finding in found if finding.rule == "POD-22"] == ([variant] if variant else [])


def habits(*actions: Any, **rest: Any) -> list[Finding]:
    return [
        finding for finding in judged_by(facts(*actions, **rest), [runtime.HABITS_CHECK]) if finding.rule != "UNCLAIMED"
    ]


GOOD = {
    "securityContext": {"readOnlyRootFilesystem": True},
    "resources": {"limits": {"memory": "1Gi"}},
    "readinessProbe": {"tcpSocket": {"port": 1}},
    "ports": [{"containerPort": 1}],
}
WELL = {"container": GOOD, "serviceAccountName": "web"}


@pytest.mark.parametrize(
    ("pod", "rules"),
    [
        pytest.param(workload(**WELL), [], id="well behaved"),
        pytest.param(
            workload(container={**GOOD, "resources": {}}, serviceAccountName="web"), ["POD-24"], id="no limit"
        ),
        pytest.param(workload(container=GOOD), ["POD-24"], id="a token for nothing"),
        pytest.param(workload(container=GOOD, automountServiceAccountToken=False), [], id="no token"),
        pytest.param(workload("kube-system", **WELL), ["POD-25"], id="among the cluster's own"),
        pytest.param(workload(**WELL, priorityClassName="system-node-critical"), ["POD-26"], id="before all others"),
        pytest.param(workload(**WELL, priorityClassName="shop"), [], id="a class of its own"),
        pytest.param(workload(**WELL, runtimeClassName="gvisor"), ["POD-26"], id="another runtime"),
    ],
)
def test_habits_of_pods_are_said(pod: dict[str, Any], rules: list[str]) -> None:
    assert [one.rule for one in habits(planned(pod, Action.CREATE))] == rules


def test_a_class_that_nobody_has_is_breaking() -> None:
    missing = ObjectRef("scheduling.k8s.io", "v1", "PriorityClass", "", "shop")
    around = ClusterSurroundings(exists={missing.identity: False})
    (found,) = habits(planned(workload(**WELL, priorityClassName="shop"), Action.CREATE), around=around)
    assert (found.rule, found.severity, found.is_new) == ("POD-26", Severity.BREAKING, True)
    old, new = (workload(container={**GOOD, "image": one}, priorityClassName="shop") for one in "ab")
    found = next(
        one
        for one in habits(planned(new, Action.UPDATE, before=old), previous=content_with(old), around=around)
        if one.rule == "POD-26"
    )
    assert not found.is_new, "the pods asked for it before"


def test_a_user_namespace_that_is_given_up_is_said() -> None:
    old, new = workload(**WELL, hostUsers=False), workload(**WELL)
    found = habits(planned(new, Action.UPDATE, before=old), previous=content_with(old))
    assert [finding.rule for finding in found] == ["POD-27"]
