"""Quotas and limit ranges, of the bundle and of the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.review.base.facts import Check, ClusterSurroundings, Facts, Listed, Listing
from provisioner.review.checks.governance import quotas
from provisioner.review.frame import listings
from provisioner.values import Action, Finding, PlannedAction, Severity
from tests.support.provisioner.contents import (
    an_object,
    content_with,
    core_ref,
    facts,
    findings_of,
    judged_by,
    named,
    planned,
)

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
    return [finding for finding in found if finding.rule.startswith("QUO-")]


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
    assert [str(finding.severity) for finding in found] == (["breaking"] if exceeded else [])
    assert [finding.evidence["exceeded"] for finding in found] == ([exceeded] if exceeded else [])


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
    assert [(str(finding.severity), words in finding.message) for finding in found] == (
        [("breaking", True)] if words else []
    )


def test_changed_defaults_of_a_limit_range_are_told() -> None:
    old, new = limits(default={"cpu": "1"}), limits(default={"cpu": "2"}, max={"cpu": "4"})
    action = planned(new, Action.UPDATE, before=old)
    (one,) = named(findings_of(quotas.LIMIT_RANGES_CHECK, action), "QUO-02")
    assert str(one.severity) == "notable"
    assert one.message.endswith("Container default cpu 1 → 2, Container max cpu (none) → 4")
    assert named(findings_of(quotas.LIMIT_RANGES_CHECK, planned(old, Action.UPDATE, before=old)), "QUO-02") == []
    (one,) = named(findings_of(quotas.LIMIT_RANGES_CHECK, planned(old, Action.CREATE)), "QUO-02")
    assert one.message.endswith("in the namespace shop that are created from now on: Container default cpu 1")


QUOTAS, RANGES = Listing("", "v1", "ResourceQuota", "shop"), Listing("", "v1", "LimitRange", "shop")
Json = dict[str, Any]


def web(replicas: int = 2, resources: Json | None = SMALL) -> Json:
    pod = {"containers": [{"name": "main", **({"resources": resources} if resources else {})}]}
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"replicas": replicas, "template": {"spec": pod}})


def live_quota(hard: Json, used: Json, **spec: Any) -> Json:
    return an_object("v1", "ResourceQuota", "most", "shop", spec={"hard": hard, **spec}, status={"used": used})


def live_limits(**parts: Json) -> Json:
    return an_object("v1", "LimitRange", "usual", "shop", spec={"limits": [{"type": "Container", **parts}]})


def seen(*actions: PlannedAction, quotas: Listed, ranges: tuple[Json, ...] = ()) -> Facts:
    lists = {QUOTAS: quotas, RANGES: Listed(ranges, len(ranges))}
    return facts(*actions, around=ClusterSurroundings(lists=lists))


def find_full(*actions: PlannedAction, there: Json, ranges: tuple[Json, ...] = ()) -> list[Finding]:
    given = seen(*actions, quotas=Listed((there,), 1), ranges=ranges)
    return [finding for finding in judged_by(given, [quotas.FULL_QUOTAS_CHECK]) if finding.rule == "QUO-03"]


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
    told = find_full(action, there=live_quota(hard, used))
    assert [one.evidence.get("exceeded") for one in told] == ([exceeded] if exceeded else [])
    assert {(one.severity, str(one.ref)) for one in told} <= {(Severity.BREAKING, "Namespace shop")}


def test_the_words_say_what_is_limited_used_and_added() -> None:
    (told,) = find_full(created(web()), there=live_quota({"requests.memory": "1Gi"}, {"requests.memory": "900Mi"}))
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
            None, (live_limits(default={"memory": "1Gi"}, defaultRequest={"cpu": "1"}),), [], id="given by a range"
        ),
        pytest.param(None, (live_limits(default={"memory": "1Gi"}),), ["requests.cpu"], id="a range gives one of them"),
    ],
)
def test_pods_that_do_not_state_what_a_quota_counts_are_refused(
    resources: Json | None, ranges: tuple[Json, ...], missing: list[str]
) -> None:
    there = live_quota({"requests.cpu": "10", "limits.memory": "10Gi"}, {"requests.cpu": "0", "limits.memory": "0"})
    told = find_full(created(web(1, resources)), there=there, ranges=ranges)
    assert [sorted(one.evidence["missing"]["Deployment shop/web"]) for one in told] == ([missing] if missing else [])


def test_with_scopes_it_is_not_known_which_pods_are_counted() -> None:
    assert find_full(created(web()), there=live_quota({"pods": "0"}, {"pods": "0"}, scopes=["BestEffort"])) == []


def test_a_quota_of_the_bundle_is_judged_by_what_it_becomes() -> None:
    own = live_quota({"pods": "1"}, {"pods": "1"})
    raised = live_quota({"pods": "9"}, {})
    assert find_full(created(web()), grown(own, raised), there=own) == []


@pytest.mark.parametrize(
    ("listed", "words"),
    [(Listed(problem="resourcequotas is forbidden"), ": resourcequotas is forbidden"), (Listed(total=9), "too many")],
    ids=["forbidden", "too many"],
)
def test_quotas_that_nobody_could_list_are_no_room(listed: Listed, words: str) -> None:
    given = seen(created(web()), quotas=listed)
    (told,) = [finding for finding in judged_by(given, [quotas.FULL_QUOTAS_CHECK]) if finding.rule == "QUO-03"]
    assert told.severity is Severity.UNKNOWN
    assert told.message.endswith(words)


def test_quotas_are_read_only_where_something_is_added_to_a_namespace_that_is_there() -> None:
    asked = listings(facts(created(web())), [quotas.FULL_QUOTAS_CHECK])
    assert asked == [RANGES, QUOTAS]
    namespace = created(an_object("v1", "Namespace", "shop"))
    for actions in ((grown(web(4), web(4)),), (created(web()), namespace)):
        assert listings(facts(*actions), [quotas.FULL_QUOTAS_CHECK]) == []
    assert listings(replace(facts(created(web())), is_offline=True), [quotas.FULL_QUOTAS_CHECK]) == []
