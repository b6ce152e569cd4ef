"""The schemas that the API servers publish: what they say of objects that cannot be tried yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from provisioner.cluster.evidence import published_schemas
from provisioner.schema import admit
from tests.contract.conftest import Server, admin
from tests.contract.objects import config, role, web
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.live import wait_until

# What CRDs may state is checked in code on both servers.
UNTOLD = {"CustomResourceDefinition"}
LEAST_KINDS = 30
POD = "spec.template.spec.containers[0]"
PORTS = [{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81, "targetPort": "http"}]


def ready(port: Any) -> dict[str, Any]:
    return {"readinessProbe": {"httpGet": {"path": "/", "port": port}}}


def limited(cpu: Any) -> dict[str, Any]:
    return {"resources": {"limits": {"cpu": cpu, "memory": "1Gi"}}}


def of(api_version: str, kind: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **rest}


def service(**spec: Any) -> dict[str, Any]:
    return of("v1", "Service", spec={"ports": PORTS, "selector": {"app": "web"}, **spec})


def nightly(**spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/a:1"}]}
    template = {"spec": {"backoffLimit": 1, "template": {"spec": pod}}}
    return of("batch/v1", "CronJob", spec={"schedule": "0 3 * * *", "jobTemplate": template, **spec})


def budget(**spec: Any) -> dict[str, Any]:
    return of("policy/v1", "PodDisruptionBudget", spec=spec)


def scaled(target: dict[str, Any]) -> dict[str, Any]:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    spec = {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "a"}, "metrics": [metric]}
    return of("autoscaling/v2", "HorizontalPodAutoscaler", spec=spec)


def told(schema: Mapping[str, Any], obj: dict[str, Any]) -> tuple[list[str], list[str]]:
    """(fields that the schema does not know, fields that it refuses) of an object."""
    found = admit(schema, obj)
    return list(found.pruned), [one.path for one in found.refusals]


def kind_of(obj: dict[str, Any]) -> tuple[str, str, str]:
    group, _, version = obj["apiVersion"].rpartition("/")
    return group, version, obj["kind"]


KNOWN: dict[tuple[str, tuple[str, str, str]], dict[str, Any]] = {}


def schema_of(server: Server, obj: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object's kind, read once; the real server publishes a custom one a moment after it is served."""
    kind = kind_of(obj)

    def is_published() -> bool:
        found = published_schemas([admin(server.endpoint)], [kind])
        KNOWN.update({(server.endpoint.server, name): schema for name, schema in found.items()})
        return kind in found

    if (server.endpoint.server, kind) not in KNOWN:
        wait_until(is_published, f"the schema of {kind}")
    return KNOWN[server.endpoint.server, kind]


def outline(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without sizes of numbers, defaults and status, which no bundle writes; what is required in order."""
    found = {key: value for key, value in schema.items() if key not in ("format", "default")}
    if "required" in found:
        found["required"] = sorted(found["required"])
    if "properties" in found:
        found["properties"] = {name: outline(one) for name, one in found["properties"].items() if name != "status"}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), Mapping):
            found[key] = outline(found[key])
    return found


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(web(), id="deployment"),
        pytest.param(of("apps/v1", "Deployment"), id="a deployment of which only code says that it lacks its spec"),
        pytest.param(web(**ready("http"), **limited("1")), id="deployment, port and quantity as words"),
        pytest.param(web(**ready(80), **limited(1.5)), id="deployment, port and quantity as numbers"),
        pytest.param(service(), id="service, target ports by number and by name"),
        pytest.param(config(a="1"), id="config map"),
        pytest.param(of("v1", "Secret", data={"a": "YQ=="}), id="secret"),
        pytest.param(role("a", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}), id="role"),
        pytest.param(nightly(suspend=True), id="cron job"),
        pytest.param(budget(maxUnavailable="10%", selector={}), id="budget in percent"),
        pytest.param(budget(minAvailable=1), id="budget in numbers"),
        pytest.param(scaled({"type": "Value", "value": 1}), id="autoscaler, quantity as a number"),
        pytest.param(of("apps/v1", "ControllerRevision", revision=1), id="revision without data"),
        pytest.param(of("apps/v1", "ControllerRevision", revision=1, data={"a": 1}), id="revision of anything"),
    ],
)
def test_a_sound_object_fits_the_schema_that_is_published(server: Server, obj: dict[str, Any]) -> None:
    assert told(schema_of(server, obj), obj) == ([], [])


@pytest.mark.parametrize(
    ("obj", "pruned", "refused"),
    [
        pytest.param(web(comand=["a"]), [f"{POD}.comand"], [], id="deployment, a field misspelt"),
        pytest.param(web(**ready(True)), [], [f"{POD}.readinessProbe.httpGet.port"], id="deployment, no port"),
        pytest.param(web(command="a"), [], [f"{POD}.command"], id="deployment, text for a list"),
        pytest.param(web(env=[{"value": "1"}]), [], [f"{POD}.env[0].name"], id="deployment, a name missing"),
        pytest.param(service(typ="NodePort"), ["spec.typ"], [], id="service, a field misspelt"),
        pytest.param(service(type="Nodeport"), [], ["spec.type"], id="service, none of the types"),
        pytest.param(service(ports="http"), [], ["spec.ports"], id="service, text for a list"),
        pytest.param({**config(), "data": {"a": 1}}, [], ["data.a"], id="config map, a number"),
        pytest.param({**config(), "date": {}}, ["date"], [], id="config map, a field misspelt"),
        pytest.param(role("a", {"resources": ["pods"]}), [], ["rules[0].verbs"], id="role, verbs missing"),
        pytest.param({**role("a"), "rules": [{"verbs": "get"}]}, [], ["rules[0].verbs"], id="role, text for a list"),
        pytest.param(nightly(schedule=3), [], ["spec.schedule"], id="cron job, a number for text"),
        pytest.param(nightly(concurrencyPolicy="forbid"), [], ["spec.concurrencyPolicy"], id="cron job, no policy"),
        pytest.param(nightly(suspended=True), ["spec.suspended"], [], id="cron job, a field misspelt"),
        pytest.param(of("apps/v1", "ControllerRevision"), [], ["revision"], id="revision without a number"),
    ],
)
def test_an_unsound_object_does_not(server: Server, obj: dict[str, Any], pruned: list[str], refused: list[str]) -> None:
    assert told(schema_of(server, obj), obj) == (pruned, refused)


def test_a_custom_resource_is_held_against_the_schema_of_its_definition(server: Server, things: str) -> None:
    sound = of(f"{things}/v1", "Thing", spec={"size": 3})
    schema = schema_of(server, sound)
    assert told(schema, sound) == ([], [])
    assert told(schema, {**sound, "spec": {"size": 3, "color": "red"}}) == (["spec.color"], [])
    assert told(schema, {**sound, "spec": {"size": "3"}}) == ([], ["spec.size"])
    assert told(schema, {**sound, "spec": {}}) == ([], ["spec.size"])


@pytest.mark.controlplane
def test_every_kind_of_the_sandbox_has_the_fields_that_the_real_server_publishes(
    controlplane: Endpoint, sandbox: Endpoint
) -> None:
    kinds = {(one.group, one.version, one.kind) for one in admin(sandbox).resources() if "patch" in one.verbs}
    # Whatever other tests have installed there by now is no kind of the sandbox.
    resource = admin(sandbox).resource_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    assert resource
    installed = {one["spec"]["group"] for one in admin(sandbox).snapshot(resource).objects}
    kinds = {kind for kind in kinds if kind[0] not in installed and kind[2] not in UNTOLD}
    assert len(kinds) > LEAST_KINDS
    real, own = (published_schemas([admin(endpoint)], kinds) for endpoint in (controlplane, sandbox))
    for kind in sorted(kinds):
        expected, found = (outline(one[kind])["properties"] for one in (real, own))
        assert found.keys() == expected.keys(), kind
        for name in expected:
            assert found[name] == expected[name], (kind, name)
