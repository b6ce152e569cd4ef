"""What is refused of single objects, as the real server answered (test_differential holds the two against each other)."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest
import yaml

from provisioner.builtin import WhyUnknown, judge, knows, schemas
from provisioner.builtin.schemas import MINORS, minor_of, schemas_of
from tests.provisioner.builtin.asking import SPECIMENS
from tests.provisioner.builtin.differential import PAIRS

Object = dict[str, Any]
WRITTEN = {one["name"]: one for one in yaml.load(PAIRS.read_text(), Loader=yaml.CSafeLoader)}
ALL_SPECIMENS = yaml.load(SPECIMENS.read_text(), Loader=yaml.CSafeLoader)


def refused(name: str) -> list[str]:
    """The fields that are refused of a change in pairs.yaml."""
    found = judge(WRITTEN[name]["new"], sent=WRITTEN[name].get("old"))
    return [one.field for one in found.refusals]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("recreate after the default strategy", ["spec.strategy.rollingUpdate"]),
        ("recreate after a strategy that was written", ["spec.strategy.rollingUpdate"]),
        ("recreate after a strategy that was written in full", []),
        ("recreate with null", ["spec.strategy.rollingUpdate"]),
        ("recreate anew", []),
        ("recreate anew beside rolling", ["spec.strategy.rollingUpdate"]),
        ("management policy of a stateful set that had the default", ["spec.podManagementPolicy"]),
        ("the same policy written down", []),
        ("reclaim policy after the default", ["reclaimPolicy"]),
        ("the same reclaim policy", []),
        ("headless after an address", ["spec.clusterIP"]),
        ("an address after headless", []),
        ("address left out", []),
        ("labels do not match", ["spec.template.metadata.labels"]),
        ("fewest above most", ["spec.maxReplicas"]),
        ("minute 61", ["spec.schedule"]),
        ("unknown field", ["spec.replicaz"]),
        ("replicas as text", ["spec.replicas"]),
        ("mount without volume", ["spec.template.spec.containers[0].volumeMounts[0].name"]),
        ("variable twice", ["spec.template.spec.containers[0].env[1]"]),
        ("requests above limits", ["spec.template.spec.containers[0].resources.requests.cpu"]),
        ("job changes its image", ["spec.template.spec.containers[0].image"]),
        ("suspended job gets a node selector", []),
        ("indexed job grows", []),
        ("claim that shrinks", ["spec.resources.requests.storage"]),
        ("claim in other units", []),
        ("budget of both", ["spec"]),
        ("role of a binding changes", ["roleRef.name"]),
        ("back from node ports", []),
        ("load balancer with local traffic back", []),
        ("class of a load balancer that becomes internal", []),
        ("class of a load balancer changes", ["spec.loadBalancerClass"]),
        ("certificate without a key", ["data.tls.key"]),
        ("namespace with dots", ["metadata.name"]),
        ("role by a name with colons", ["rules[0].verbs"]),
    ],
)
def test_a_change_is_refused_as_the_real_server_does(name: str, fields: list[str]) -> None:
    assert refused(name) == fields


@pytest.mark.parametrize("obj", ALL_SPECIMENS, ids=lambda one: f"{one['kind']} {one['metadata']['name']}")
def test_what_the_real_server_took_is_taken_and_so_is_the_same_again(obj: Object) -> None:
    assert judge(obj).refusals == ()
    assert judge(obj, sent=obj).refusals == ()


def test_an_object_is_not_changed_by_looking_at_it() -> None:
    for one in ALL_SPECIMENS:
        before = copy.deepcopy(one)
        judge(one, sent=one)
        assert one == before


def test_the_field_that_was_meant_is_named() -> None:
    (found,) = judge(WRITTEN["unknown field"]["new"]).refusals
    assert found.words.endswith("did you mean replicas?")
    assert found.is_of_schema


def test_a_field_of_a_newer_kubernetes_is_told_apart_unless_the_version_is_known() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    pod["spec"] = {"hostnameOverride": "a.example.com", "containers": [{"name": "a", "image": "a"}]}  # type: ignore[assignment]  # an object of JSON
    found = judge(pod)
    assert (found.refusals, found.since) == ((), "1.34")
    assert [one.field for one in found.refused_before] == ["spec.hostnameOverride"]
    assert [one.field for one in judge(pod, version="v1.33.2").refusals] == ["spec.hostnameOverride"]
    assert judge(pod, version="v1.36.3").refused_before == ()


def test_the_nearest_supported_minor_judges() -> None:
    assert [minor_of(one) for one in ("v1.36.3", "v1.34.0+k3s1", "v1.31.9", "v1.40.0", "")] == [
        "1.36",
        "1.34",
        "1.32",
        "1.36",
        "1.36",
    ]
    assert all(schemas_of(one) is not None for one in MINORS)


def test_kinds_are_known_by_version() -> None:
    assert knows("apps/v1", "Deployment")
    assert knows("policy/v1beta1", "PodSecurityPolicy") is False
    assert knows("shop.example.com/v1", "Order") is False


def test_the_metadata_of_a_definition_is_judged_and_nothing_else_of_it() -> None:
    metadata = {
        "name": "things.example.com",
        "annotations": {"gates.example.com/": ""},
        "labels": {"app": "{{ name }}"},
    }
    found = judge({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata})
    assert [one.path[:2] for one in found.refusals] == [("metadata", "labels"), ("metadata", "annotations")]


def test_without_the_schemas_nothing_is_called_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas_of.cache_clear()
    monkeypatch.setattr(schemas, "_PACKAGE", "no_such_package")
    try:
        found = judge(WRITTEN["recreate anew"]["new"])
        assert found.refusals == ()
        assert found.unknown == (WhyUnknown.NO_SCHEMAS,)
        assert knows("apps/v1", "Deployment")
        assert knows("shop.example.com/v1", "Order") is None
    finally:
        schemas_of.cache_clear()


def test_a_secret_is_judged_without_its_values_in_the_words() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "hunter2!"}}
    assert [one.words for one in judge(secret).refusals] == ["must be base64"]
    tls = {**secret, "type": "kubernetes.io/tls", "data": {}, "stringData": {"tls.crt": "hunter2"}}
    assert "hunter2" not in str(judge(tls).refusals)


def test_what_others_wrote_stays_and_what_was_ours_goes() -> None:
    deployment = WRITTEN["recreate anew"]["new"]
    live = {
        **deployment,
        "spec": {**deployment["spec"], "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
    }
    assert [one.field for one in judge(deployment, live=live).refusals] == ["spec.strategy.rollingUpdate"]
    assert judge(deployment, sent=live, live=live).refusals == ()


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"spec": None},
        {"spec": []},
        {"spec": "text"},
        {"spec": {"template": None, "selector": []}},
        {"spec": {"template": {"spec": {"containers": {}}}}},
        {"spec": {"template": {"spec": {"containers": [None, 1, {}]}}}},
        {"metadata": []},
        {"metadata": {"labels": [], "annotations": 1, "name": None}},
    ],
    ids=str,
)
def test_objects_of_any_shape_are_judged_and_never_crash(broken: Object) -> None:
    for kind in ("apps/v1 Deployment", "batch/v1 Job", "v1 Service", "v1 PersistentVolumeClaim", "v1 Secret"):
        api_version, name = kind.split(" ")
        obj = {"apiVersion": api_version, "kind": name, "metadata": {"name": "a"}, **broken}
        judge(obj)
        judge(obj, sent=obj)
        assert judge(obj).refusals or name in ("Service", "Secret", "PersistentVolumeClaim", "Job")


def _hostile() -> dict[str, Object]:
    long, digits = "a" * 200_000, "1" * 200_000
    pod = {
        "containers": [{"name": "a", "image": "a", "resources": {"limits": {"cpu": digits, "memory": "1e999999999"}}}]
    }
    pod |= {"securityContext": {"sysctls": [{"name": long + "!", "value": "1"}]}, "nodeSelector": {long: long}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
    cron = WRITTEN["minute 61"]["new"]
    many = [{"name": f"a{number}", "port": number + 1} for number in range(10_000)]
    rolling = {"rollingUpdate": {"maxSurge": digits + "%", "maxUnavailable": digits}}
    return {
        "deployment": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": long}}
        | {"spec": {"selector": {"matchLabels": {"a": "b"}}, "strategy": rolling, "template": template}},
        "cron job": {**cron, "spec": {**cron["spec"], "schedule": f"{digits} {long} 1-{digits} */{digits} *"}},
        "every": {**cron, "spec": {**cron["spec"], "schedule": "@every " + "1h" * 100_000 + "x", "timeZone": long}},
        "service": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": many}},
        "labels": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "labels": dict.fromkeys(map(str, range(20_000)), "-")},
        },
    }


@pytest.mark.parametrize("name", ["deployment", "cron job", "every", "service", "labels"])
def test_hostile_values_are_refused_soon(name: str) -> None:
    obj = _hostile()[name]
    judge({**obj, "spec": {}}) if name == "deployment" else None  # reads the schemas
    began = time.process_time()
    assert judge(obj).refusals or name == "service"
    judge(obj, sent=obj)
    assert time.process_time() - began < 5
    assert all(len(one.words) < 500 for one in judge(obj).refusals)


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"type": "ClusterIP", "externalTrafficPolicy": "Local"}, ["spec.externalTrafficPolicy"]),
        ({"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30080}]}, ["spec.ports[0].nodePort"]),
        ({"type": "NodePort", "allocateLoadBalancerNodePorts": False}, ["spec.allocateLoadBalancerNodePorts"]),
        ({"type": "NodePort", "externalTrafficPolicy": "Local"}, []),
        ({"type": "ClusterIP", "externalTrafficPolicy": "Local", "externalIPs": ["192.0.2.1"]}, []),
    ],
)
def test_a_service_keeps_nothing_that_its_type_does_not_need(spec: Object, fields: list[str]) -> None:
    """It was dropped when the type changed, so it is not in the object that the next apply is held against."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80}], **spec},
    }
    assert [one.field for one in judge(service, sent=service).refusals] == fields
