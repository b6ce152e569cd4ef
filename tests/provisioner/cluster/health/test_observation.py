"""How everything of a revision is read and explained, on real API servers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from provisioner import pipeline
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.client.transport import TransportCall
from provisioner.errors import Forbidden
from provisioner.health_checks import health_checks
from provisioner.values import Health, HealthState, Identity, JsonObject, ObjectRef
from tests.support.kubernetes.live import wait_until
from tests.support.provisioner.cluster_scene import Scene

CURRENT, FAILED, UNKNOWN = HealthState.CURRENT, HealthState.FAILED, HealthState.UNKNOWN
NOBODY = Identity("nobody-at-all", ())


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each verb was asked; the calls themselves go through."""
    counted: Counter[str] = Counter()
    send = ClusterClient._send

    def counting(self: ClusterClient, call: TransportCall) -> Any:
        counted[call.doing.verb] += 1
        return send(self, call)

    monkeypatch.setattr(ClusterClient, "_send", counting)
    return counted


def refs_of(objects: list[dict[str, Any]]) -> list[ObjectRef]:
    return [ObjectRef.of(obj) for obj in objects]


def until(scene: Scene, obj: JsonObject, words: str, **more: Any) -> Health:
    """The health of `obj` once its message holds `words`."""
    ref = ObjectRef.of(obj)
    seen: list[Health] = []

    def is_told() -> bool:
        seen.append(pipeline.observe(scene.cluster, [ref], **more)[ref])
        return words in f"{seen[-1].message}; {seen[-1].server_words}"

    wait_until(is_told, words)
    return seen[-1]


def test_many_objects_of_a_kind_cost_one_list(scene: Scene, calls: Counter[str]) -> None:
    scene.deploy(*(objects := [scene.config_map(f"c{i}") for i in range(20)]))
    calls.clear()
    found = pipeline.observe(scene.cluster, refs_of(objects))
    assert {health.state for health in found.values()} == {CURRENT}
    assert calls == {"list": 1}


def test_few_objects_among_many_others_are_read_one_by_one(scene: Scene, calls: Counter[str]) -> None:
    objects = [scene.config_map(f"c{i:02}") for i in range(40)]
    scene.deploy(*objects)
    ours = [objects[3], objects[30], objects[38]]
    calls.clear()
    found = pipeline.observe(scene.cluster, refs_of(ours))
    assert list(found) == refs_of(ours)
    assert {health.state for health in found.values()} == {CURRENT}
    assert calls["list"] == 1
    assert calls["get"] == 2


def test_what_is_gone_is_said_to_be_gone_in_a_list_too(scene: Scene) -> None:
    objects = [scene.config_map(f"c{i}") for i in range(5)]
    scene.deploy(*objects[:4])
    found = pipeline.observe(scene.cluster, refs_of(objects))
    assert [health.state for health in found.values()] == [CURRENT] * 4 + [HealthState.NOT_FOUND]


def test_what_may_not_be_read_is_unknown(scene: Scene) -> None:
    scene.deploy(*(objects := [scene.config_map(f"c{i}") for i in range(5)]))
    found = pipeline.observe(scene.cluster.acting_as(NOBODY), refs_of(objects))
    assert {health.state for health in found.values()} == {UNKNOWN}


def test_a_kind_that_is_not_served_is_not_found(scene: Scene) -> None:
    ref = ObjectRef("example.com", "v1", "Nonsense", scene.namespace, "x")
    assert pipeline.observe(scene.cluster, [ref])[ref].state is HealthState.NOT_FOUND


def test_values_of_secrets_are_not_even_read(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.deploy(*(objects := [scene.secret(f"s{i}", password="hunter2") for i in range(4)]))
    seen: list[str] = []
    send = ClusterClient._send

    def watching(self: ClusterClient, call: TransportCall) -> Any:
        answer = send(self, call)
        seen.append(str(answer.body))
        return answer

    monkeypatch.setattr(ClusterClient, "_send", watching)
    for some in (objects, objects[:1]):
        assert {it.state for it in pipeline.observe(scene.cluster, refs_of(some)).values()} == {CURRENT}
    assert seen
    assert not any("aHVudGVyMg" in text or "hunter2" in text for text in seen)


def test_checks_of_the_deployment_count_beside_the_built_in_rules(scene: Scene) -> None:
    scene.deploy(*(objects := [scene.config_map("right", colour="blue"), scene.config_map("wrong", colour="red")]))
    selects = {"apiVersion": "v1", "kind": "ConfigMap"}
    asked = [
        {**selects, "fieldValue": {"path": "data.colour", "value": "blue"}},
        {**selects, "cel": {"current": "data.colour == 'blue'", "failed": "data.colour == 'red'"}},
    ]
    found = pipeline.observe(scene.cluster, refs_of(objects), checks=health_checks({"healthChecks": asked}))
    right, wrong = found.values()
    assert right.state is CURRENT
    assert wrong == Health(FAILED, "its CEL check failed is true")


def test_a_webhook_without_anything_behind_it_is_not_well(scene: Scene) -> None:
    name = f"hook-{scene.namespace}"
    client = {"service": {"namespace": scene.namespace, "name": "hook"}}
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}
    webhook = {"name": "a.example.com", "clientConfig": client, "sideEffects": "None", "rules": [rule]}
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{**webhook, "admissionReviewVersions": ["v1"]}],
    }
    scene.deploy(hook)
    words, said = "the Service behind it has no ready endpoint", f"{scene.namespace}/hook"
    ref = ObjectRef.of(hook)
    assert pipeline.observe(scene.cluster, [ref])[ref] == Health(HealthState.IN_PROGRESS, words, said)
    slice_ = scene.namespaced("discovery.k8s.io/v1", "EndpointSlice", "hook-1", addressType="IPv4")
    slice_["metadata"]["labels"] = {"kubernetes.io/service-name": "hook"}
    slice_["endpoints"] = [{"addresses": ["192.0.2.7"], "conditions": {"ready": True}}]
    scene.cluster.create(slice_)
    assert pipeline.observe(scene.cluster, [ref])[ref].state is CURRENT


@pytest.mark.controlplane
def test_why_a_pod_cannot_be_scheduled_is_told_with_the_schedulers_words(real_scene: Scene) -> None:
    obj = real_scene.deployment()
    obj["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "of-gold"}
    real_scene.deploy(obj)
    health = until(real_scene, obj, "Unschedulable")
    assert health.state is HealthState.IN_PROGRESS
    assert "Unschedulable: 0/1 nodes are available" in health.server_words


@pytest.mark.controlplane
def test_why_a_claim_is_pending_is_told_with_the_words_of_its_event(real_scene: Scene) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = real_scene.namespaced("v1", "PersistentVolumeClaim", "disk", spec={**spec, "storageClassName": "of-gold"})
    real_scene.deploy(claim)
    health = until(real_scene, claim, "ProvisioningFailed")
    assert health.server_words == ('ProvisioningFailed: storageclass.storage.k8s.io "of-gold" not found')


def is_over_quota(scene: Scene) -> bool:
    """Whether admission goes by the quota for pods."""
    pod = scene.namespaced("v1", "Pod", "one", spec=scene.deployment()["spec"]["template"]["spec"])
    try:
        scene.cluster.create(pod, dry_run=True)
    except Forbidden as exc:
        return "exceeded quota" in exc.server_words
    return False


@pytest.mark.controlplane
def test_why_no_pod_can_be_made_is_told(real_scene: Scene) -> None:
    real_scene.cluster.create(real_scene.namespaced("v1", "ResourceQuota", "none", spec={"hard": {"pods": "0"}}))
    wait_until(lambda: is_over_quota(real_scene))
    real_scene.deploy(obj := real_scene.deployment())
    health = until(real_scene, obj, "exceeded quota")
    assert health.state is HealthState.IN_PROGRESS
    assert "FailedCreate: pods" in health.server_words
    assert "exceeded quota" in health.server_words


@pytest.mark.controlplane
def test_why_a_volume_cannot_be_mounted_is_told_from_the_events_of_the_pod(real_scene: Scene) -> None:
    obj = real_scene.deployment()
    template = obj["spec"]["template"]["spec"]
    template["nodeName"] = "no-such-node"
    real_scene.deploy(obj)
    pods = ObjectRef("", "v1", "Pod", real_scene.namespace, "")
    resource = real_scene.cluster.resource_of("", "v1", "Pod")
    assert resource is not None
    wait_until(lambda: bool(list(real_scene.cluster.list(resource, pods.namespace))), "a pod")
    meta = next(iter(real_scene.cluster.list(resource, pods.namespace)))["metadata"]
    about = {"kind": "Pod", "namespace": real_scene.namespace, "name": meta["name"], "uid": meta["uid"]}
    event = real_scene.namespaced("v1", "Event", "mount.1", involvedObject=about, reason="FailedMount")
    real_scene.cluster.create({**event, "message": 'secret "token" not found', "type": "Warning"})
    health = until(real_scene, obj, "FailedMount")
    assert f'pod {meta["name"]}: FailedMount: secret "token" not found' in health.server_words


@pytest.mark.controlplane
def test_an_event_that_quotes_a_container_is_not_told(real_scene: Scene) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = real_scene.namespaced("v1", "PersistentVolumeClaim", "disk", spec={**spec, "storageClassName": "none"})
    real_scene.deploy(claim)
    live = real_scene.live(claim)
    assert live is not None
    meta = live["metadata"]
    about = {"kind": "PersistentVolumeClaim", "namespace": real_scene.namespace, "name": "disk", "uid": meta["uid"]}
    for reason, words in (
        ("Unhealthy", "Readiness probe failed: password=hunter2"),
        ("FailedBinding", "<b>no\nvolume"),
    ):
        event = real_scene.namespaced("v1", "Event", f"disk.{reason.lower()}", involvedObject=about, reason=reason)
        real_scene.cluster.create(
            {**event, "message": words, "type": "Warning", "lastTimestamp": "2026-11-21T12:00:00Z"}
        )
    health = until(real_scene, claim, "FailedBinding")
    assert "FailedBinding: <b>no volume" in health.server_words
    assert "hunter2" not in health.server_words
