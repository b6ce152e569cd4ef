"""Quotas and limit ranges against what the bundle runs, and what is in use."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import Check
from provisioner.review.checks.governance import quotas
from provisioner.values import Action, Finding
from tests.support.provisioner.contents import an_object, content_with, core_ref, findings_of, named, planned

SMALL = {"requests": {"cpu": "250m", "memory": "128Mi"}, "limits": {"cpu": "1"}}


def workload(replicas: int = 2, kind: str = "Deployment", **pod: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "resources": SMALL}], **pod}
    return an_object("apps/v1", kind, "web", "shop", spec={"replicas": replicas, "template": {"spec": spec}})


def quota(scopes: list[str] | None = None, **hard: str) -> dict[str, Any]:
    named = {key.replace("_", "."): value for key, value in hard.items()}
    return an_object(
        "v1", "ResourceQuota", "most", "shop", spec={"hard": named, **({"scopes": scopes} if scopes else {})}
    )


def claim(size: str) -> dict[str, Any]:
    spec = {"resources": {"requests": {"storage": size}}}
    return an_object("v1", "PersistentVolumeClaim", "data", "shop", spec=spec)


def standing(check: Check, *objects: dict[str, Any]) -> list[Finding]:
    """What is refused of a bundle that holds these objects as they were."""
    found = findings_of(check, *(planned(one, Action.NONE, before=one) for one in objects))
    return [one for one in found if one.rule.startswith("QUO-")]


@pytest.mark.parametrize(
    ("objects", "exceeded"),
    [
        pytest.param([workload(), quota(pods="2", requests_cpu="500m")], [], id="exactly enough"),
        pytest.param([workload(3), quota(pods="2")], ["pods"], id="more pods"),
        pytest.param([workload(), quota(requests_cpu="400m")], ["requests.cpu"], id="more cpu"),
        pytest.param([workload(), quota(cpu="400m", memory="1Gi")], ["cpu"], id="by the short name"),
        pytest.param([workload(), quota(limits_cpu="1500m")], ["limits.cpu"], id="limits"),
        pytest.param(
            [workload(1, initContainers=[{"name": "first", "resources": {"requests": {"cpu": "2"}}}]), quota(cpu="1")],
            ["cpu"],
            id="an init container that asks for more",
        ),
        pytest.param([workload(9, kind="DaemonSet"), quota(pods="1")], [], id="a DaemonSet counts once"),
        pytest.param([workload(3), quota(["BestEffort"], pods="2")], [], id="a quota of some pods"),
        pytest.param([claim("10Gi"), quota(requests_storage="5Gi")], ["requests.storage"], id="claims"),
        pytest.param([claim("1Gi"), quota(persistentvolumeclaims="0")], ["persistentvolumeclaims"], id="objects"),
        pytest.param(
            [workload(), {**quota(), "spec": {"hard": {"count/deployments.apps": "0"}}}],
            ["count/deployments.apps"],
            id="objects by their kind",
        ),
        pytest.param(
            [workload(), {**quota(pods="0"), "metadata": {"name": "most", "namespace": "other"}}],
            [],
            id="of another namespace",
        ),
    ],
)
def test_a_quota_that_does_not_let_the_bundle_run_is_breaking(objects: list[Any], exceeded: list[str]) -> None:
    found = standing(quotas.QUOTAS_CHECK, *objects)
    assert [str(one.severity) for one in found] == (["breaking"] if exceeded else [])
    assert [one.evidence["exceeded"] for one in found] == ([exceeded] if exceeded else [])


def test_an_autoscaler_says_how_many_pods_there_may_be() -> None:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 9}
    scaler = an_object("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop", spec=spec)
    (one,) = standing(quotas.QUOTAS_CHECK, workload(), scaler, quota(pods="5"))
    assert "pods is limited to 5, and they ask for 9" in one.message


def changed(before: dict[str, Any] | None, after: dict[str, Any], used: dict[str, str] | None = None) -> list[Finding]:
    live = {core_ref("ResourceQuota", "most").identity: {"status": {"used": used}}} if used else {}
    action = planned(after, Action.UPDATE if before else Action.CREATE, before=before)
    previous = content_with(before) if before else None
    return named(findings_of(quotas.QUOTAS_CHECK, action, live=live, previous=previous), "QUO-01")


@pytest.mark.parametrize(
    ("before", "after", "used", "severity"),
    [
        pytest.param({"pods": "10"}, {"pods": "5"}, {"pods": "7"}, "dangerous", id="less than is used"),
        pytest.param({"pods": "10"}, {"pods": "8"}, {"pods": "7"}, "notable", id="less, and enough"),
        pytest.param({"pods": "10"}, {"pods": "20"}, {"pods": "30"}, "notable", id="more"),
        pytest.param({"pods": "10"}, {"pods": "10", "cpu": "1"}, {"cpu": "2"}, "dangerous", id="a new limit"),
        pytest.param({"pods": "10"}, {}, None, "notable", id="a limit less"),
        pytest.param({"pods": "10"}, {"pods": "10"}, {"pods": "30"}, "", id="nothing changes"),
        pytest.param({"cpu": "1"}, {"cpu": "1000m"}, None, "", id="the same in another form"),
        pytest.param(None, {"pods": "10"}, None, "notable", id="a new one"),
        pytest.param(None, {}, None, "notable", id="a new one without limits"),
    ],
)
def test_a_quota_that_changes_says_what_a_namespace_may_use(
    before: dict[str, str] | None, after: dict[str, str], used: dict[str, str] | None, severity: str
) -> None:
    old = quota(**before) if before is not None else None
    assert [str(one.severity) for one in changed(old, quota(**after), used)] == ([severity] if severity else [])


def test_scopes_that_change_are_told() -> None:
    (one,) = changed(quota(["BestEffort"], pods="3"), quota(["NotBestEffort"], pods="3"))
    assert (one.variant, one.evidence["field"]) == ("scopes", "scopes")


def limits(kind: str = "Container", **parts: dict[str, str]) -> dict[str, Any]:
    return an_object("v1", "LimitRange", "each", "shop", spec={"limits": [{"type": kind, **parts}]})


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        pytest.param([workload(), limits(max={"cpu": "1"})], "", id="just enough"),
        pytest.param([workload(), limits(max={"cpu": "500m"})], "asks for more cpu than 500m", id="more"),
        pytest.param([workload(), limits(max={"memory": "64Mi"})], "asks for more memory than 64Mi", id="a request"),
        pytest.param([workload(), limits(min={"cpu": "500m"})], "asks for less cpu than 500m", id="less"),
        pytest.param([workload(), limits("Pod", max={"cpu": "500m"})], "a pod of Deployment shop/web", id="a pod"),
        pytest.param(
            [claim("10Gi"), limits("PersistentVolumeClaim", max={"storage": "5Gi"})],
            "asks for more storage than 5Gi",
            id="a claim",
        ),
    ],
)
def test_a_limit_range_that_refuses_what_the_bundle_brings_is_breaking(objects: list[Any], words: str) -> None:
    found = standing(quotas.LIMIT_RANGES_CHECK, *objects)
    assert [(str(one.severity), words in one.message) for one in found] == ([("breaking", True)] if words else [])


def test_changed_defaults_of_a_limit_range_are_told() -> None:
    old, new = limits(default={"cpu": "1"}), limits(default={"cpu": "2"}, max={"cpu": "4"})
    action = planned(new, Action.UPDATE, before=old)
    (one,) = named(findings_of(quotas.LIMIT_RANGES_CHECK, action), "QUO-02")
    assert str(one.severity) == "notable"
    assert one.message.endswith("Container default cpu 1 → 2, Container max cpu (none) → 4")
    assert named(findings_of(quotas.LIMIT_RANGES_CHECK, planned(old, Action.UPDATE, before=old)), "QUO-02") == []
    (one,) = named(findings_of(quotas.LIMIT_RANGES_CHECK, planned(old, Action.CREATE)), "QUO-02")
    assert one.message.endswith("in the namespace shop that are created from now on: Container default cpu 1")
