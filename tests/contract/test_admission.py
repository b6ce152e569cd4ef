"""What the API server fills in, and what it refuses, in the kinds that people deploy."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.conftest import APPS, BATCH, MERGE, Server
from tests.contract.objects import LABELS, config, web
from tests.support.kubernetes.live import wait_until


def _workload(kind: str, **spec: Any) -> dict[str, Any]:
    selected = {"selector": {"matchLabels": LABELS}, "template": web()["spec"]["template"]}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": {**selected, **spec}}


def _job(**pod: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "one", "image": "example.com/one:1"}], "restartPolicy": "Never", **pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": {"template": {"spec": spec}}}


SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
RULES = {"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}


@pytest.mark.parametrize(
    ("api", "plural", "obj", "filled"),
    [
        (
            APPS,
            "deployments",
            _workload("Deployment"),
            {
                "replicas": 1,
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            },
        ),
        (
            APPS,
            "statefulsets",
            _workload("StatefulSet", serviceName="web"),
            {
                "podManagementPolicy": "OrderedReady",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            },
        ),
        (
            APPS,
            "daemonsets",
            _workload("DaemonSet"),
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}},
        ),
        (
            BATCH,
            "jobs",
            _job(),
            {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed"},
        ),
        (
            "/api/v1",
            "services",
            SERVICE,
            {
                "type": "ClusterIP",
                "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
                "sessionAffinity": "None",
                "ipFamilyPolicy": "SingleStack",
            },
        ),
    ],
    ids=["Deployment", "StatefulSet", "DaemonSet", "Job", "Service"],
)
def test_what_is_left_out_is_filled_in(server: Server, api: str, plural: str, obj: Any, filled: dict[str, Any]) -> None:
    made = server.ask("POST", server.place(plural, api=api), obj)
    assert made.code == 201, made.message
    assert {key: made.body["spec"][key] for key in filled} == filled


def test_containers_are_filled_in(server: Server) -> None:
    container = {
        "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"port": 80}},
        "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }
    made = server.ask("POST", server.place("deployments", api=APPS), web("example.com/web", **container))
    (seen,) = made.body["spec"]["template"]["spec"]["containers"]
    assert seen == {
        "name": "web",
        "image": "example.com/web",
        "imagePullPolicy": "Always",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "env": [{"name": "N", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
        "livenessProbe": {
            "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def _without(obj: dict[str, Any], name: str) -> dict[str, Any]:
    return {**obj, "spec": {key: value for key, value in obj["spec"].items() if key != name}}


def _unlabelled() -> dict[str, Any]:
    obj = web()
    obj["spec"]["template"]["metadata"] = {"labels": {"app": "other"}}
    return obj


@pytest.mark.parametrize(
    ("api", "plural", "obj", "said"),
    [
        (APPS, "deployments", _without(web(), "selector"), "spec.selector: Required value"),
        (APPS, "deployments", _unlabelled(), "`selector` does not match template `labels`"),
        (APPS, "deployments", web(name="Not A Name"), "spec.template.spec.containers[0].name: Invalid value"),
        (APPS, "deployments", web(image=""), "spec.template.spec.containers[0].image: Required value"),
        (BATCH, "jobs", _job(restartPolicy="Always"), "spec.template.spec.restartPolicy"),
        (BATCH, "jobs", _job(containers=[]), "spec.template.spec.containers: Required value"),
        ("/api/v1", "services", {**SERVICE, "spec": {}}, "spec.ports: Required value"),
        (
            "/api/v1",
            "services",
            {**SERVICE, "spec": {**SERVICE["spec"], "type": "Odd"}},
            'spec.type: Unsupported value: "Odd"',
        ),
        ("/api/v1", "configmaps", config(**{"a b": "1"}), "data[a b]: Invalid value"),
        ("/api/v1", "configmaps", config(big="x" * (1024 * 1024 + 1)), "Too long: may not be more than 1048576 bytes"),
    ],
    ids=["selector", "labels", "container name", "image", "restart", "containers", "ports", "type", "key", "size"],
)
def test_what_cannot_be_is_invalid(server: Server, api: str, plural: str, obj: Any, said: str) -> None:
    refused = server.ask("POST", server.place(plural, api=api), obj)
    assert refused.code == 422, refused.message
    assert said in refused.message


@pytest.mark.parametrize(
    ("api", "plural", "obj", "change", "said"),
    [
        (APPS, "deployments", web(), {"selector": {"matchLabels": {"b": "c"}}}, "field is immutable"),
        (
            APPS,
            "statefulsets",
            _workload("StatefulSet"),
            {"serviceName": "other"},
            "updates to statefulset spec for fields other than",
        ),
        (BATCH, "jobs", _job(), {"template": {"spec": {"restartPolicy": "OnFailure"}}}, "field is immutable"),
        (
            "/api/v1",
            "services",
            SERVICE,
            {"clusterIP": "10.96.99.99", "clusterIPs": ["10.96.99.99"]},
            "may not change once set",
        ),
    ],
    ids=["Deployment", "StatefulSet", "Job", "Service"],
)
def test_what_is_fixed_stays(server: Server, api: str, plural: str, obj: Any, change: Any, said: str) -> None:
    assert server.ask("POST", server.place(plural, api=api), obj).code == 201
    refused = server.ask("PATCH", server.place(plural, obj["metadata"]["name"], api), {"spec": change}, MERGE)
    assert refused.code == 422, refused.message
    assert said in refused.message


def test_an_immutable_config_map_stays_as_it_is(server: Server) -> None:
    server.ask("POST", server.place(), {**config(a="1"), "immutable": True})
    refused = server.ask("PATCH", server.place(name="settings"), {"data": {"a": "2"}}, MERGE)
    assert refused.code == 422
    assert "field is immutable when `immutable` is set" in refused.message


def test_a_secret_keeps_its_type_and_writes_its_strings(server: Server) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
    made = server.ask("POST", server.place("secrets"), secret)
    assert (made.body["type"], made.body["data"]) == ("Opaque", {"a": "Yg=="})
    assert "stringData" not in made.body
    refused = server.ask("PATCH", server.place("secrets", "s"), {"type": "other"}, MERGE)
    assert refused.code == 422
    assert "type: Invalid value" in refused.message


def test_a_secret_that_is_no_base64_cannot_be_read(server: Server) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "%"}}
    refused = server.ask("POST", server.place("secrets"), secret)
    assert refused.code == 400
    assert "illegal base64 data" in refused.message


def test_nothing_is_made_in_a_namespace_that_is_not_there(server: Server) -> None:
    refused = server.ask("POST", "/api/v1/namespaces/no-such-place/configmaps", config(a="1"))
    assert refused.code == 404
    assert refused.message == 'namespaces "no-such-place" not found'


def test_a_name_is_made_up_where_only_its_beginning_is_given(server: Server) -> None:
    made = server.ask("POST", server.place(), {**config(), "metadata": {"generateName": "part-"}})
    assert made.code == 201
    assert made.body["metadata"]["name"].startswith("part-")
    assert len(made.body["metadata"]["name"]) == len("part-") + 5


@pytest.mark.parametrize("name", ["uid", "resourceVersion"])
def test_a_delete_may_presume_what_it_deletes(server: Server, name: str) -> None:
    meta = server.ask("POST", server.place(), config(a="1")).body["metadata"]
    options = {"apiVersion": "v1", "kind": "DeleteOptions"}
    wrong = {**options, "preconditions": {name: "7"}}
    refused = server.ask("DELETE", server.place(name="settings"), wrong)
    assert refused.code == 409
    assert "in the precondition (7) does not match" in refused.message
    right = {**options, "preconditions": {name: meta[name]}}
    assert server.ask("DELETE", server.place(name="settings"), right).code == 200


def test_finalizers_hold_an_object_until_they_are_gone(server: Server) -> None:
    held = config(a="1")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    server.create("configmaps", held)
    place = server.place(name="settings")
    assert server.ask("DELETE", place).body["metadata"]["deletionTimestamp"]
    assert server.ask("GET", place).code == 200
    server.ask("PATCH", place, {"metadata": {"finalizers": None}}, MERGE)
    assert server.ask("GET", place).code == 404


def test_a_claim_goes_once_no_pod_uses_it(server: Server) -> None:
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "hold"}, "spec": size}
    made = server.create("persistentvolumeclaims", claim)
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    volume = {"name": "hold", "persistentVolumeClaim": {"claimName": "hold"}}
    container = {"name": "main", "image": "registry.example.com/main"}
    spec = {"nodeName": "elsewhere", "containers": [container], "volumes": [volume]}
    wait_until(lambda: server.ask("GET", server.place("serviceaccounts", "default")).code == 200, "its account")
    server.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": spec})
    place = server.place("persistentvolumeclaims", "hold")
    assert server.ask("DELETE", place).body["metadata"]["deletionTimestamp"]
    assert server.ask("GET", place).code == 200
    now = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    assert server.ask("DELETE", server.place("pods", "user"), now).code == 200
    wait_until(lambda: server.ask("GET", place).code == 404, "the claim is gone")
