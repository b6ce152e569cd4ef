"""The level that pods need, as API server 1.36 admits them: recorded here, and asked again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.review.workloads.pod_security import Level, level_needed
from provisioner.review.workloads.pod_specs import pod_specs
from tests.support.kubernetes.connection import Server
from tests.support.kubernetes.endpoint import Endpoint

JsonDict = dict[str, Any]
R, B, P = Level.RESTRICTED, Level.BASELINE, Level.PRIVILEGED
STRICT: JsonDict = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
    "capabilities": {"drop": ["ALL"]},
}
NAMESPACES = {R: "levels-restricted", B: "levels-baseline", P: "levels-privileged"}


def container(name: str = "a", **body: Any) -> JsonDict:
    return {"name": name, "image": "x", **body}


def pod(*containers: JsonDict, annotations: JsonDict | None = None, **spec: Any) -> JsonDict:
    metadata = {"name": "p", "annotations": annotations or {}}
    listed = list(containers) or [container(securityContext=STRICT)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": listed, **spec}}


def having(**security: Any) -> JsonDict:
    """A strict pod, but for this of its container's security context."""
    return pod(container(securityContext={**STRICT, **security}))


def lacking(name: str, **spec: Any) -> JsonDict:
    return pod(container(securityContext={key: value for key, value in STRICT.items() if key != name}), **spec)


def running(**body: Any) -> JsonDict:
    return pod(container(securityContext=STRICT, **body))


def mounting(**volume: Any) -> JsonDict:
    return pod(volumes=[{"name": "v", **volume}])


def own_users(**security: Any) -> JsonDict:
    return pod(container(securityContext={**STRICT, **security}), hostUsers=False)


def annotated(value: str) -> JsonDict:
    return pod(annotations={"container.apparmor.security.beta.kubernetes.io/a": value})


def probing(host: str, how: str = "httpGet", probe: str = "livenessProbe") -> JsonDict:
    return running(**{probe: {how: {"port": 80, "host": host}}})


CASES: dict[str, tuple[JsonDict, Level]] = {
    "strict": (pod(), R),
    "nothing said": (pod(container()), B),
    "one strict, one not": (pod(container(securityContext=STRICT), container("b")), B),
    "init container that says nothing": (pod(initContainers=[container("i")]), B),
    "init container that is privileged": (
        pod(initContainers=[container("i", securityContext={"privileged": True})]),
        P,
    ),
    "host network": (pod(hostNetwork=True), P),
    "host ipc refused": (pod(hostIPC=False), R),
    "privileged": (having(privileged=True, allowPrivilegeEscalation=True), P),
    "not privileged": (having(privileged=False), R),
    "low ports": (having(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}), R),
    "usual capability": (having(capabilities={"drop": ["ALL"], "add": ["CHOWN"]}), B),
    "unusual capability": (having(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), P),
    "capability in small letters": (having(capabilities={"drop": ["ALL"], "add": ["chown"]}), P),
    "capability with its prefix": (having(capabilities={"drop": ["ALL"], "add": ["CAP_CHOWN"]}), P),
    "all dropped in small letters": (having(capabilities={"drop": ["all"]}), B),
    "some dropped": (having(capabilities={"drop": ["NET_RAW"]}), B),
    "folder of the node": (mounting(hostPath={"path": "/"}), P),
    "empty folder": (mounting(emptyDir={}), R),
    "folder of a server": (mounting(nfs={"server": "a", "path": "/"}), B),
    "folder of an image": (mounting(image={"reference": "a"}), R),
    "folder of a driver": (mounting(csi={"driver": "a"}), R),
    "port of the node": (running(ports=[{"containerPort": 80, "hostPort": 80}]), P),
    "port 0 of the node": (running(ports=[{"containerPort": 80, "hostPort": 0}]), R),
    "probe of another host": (probing("1.2.3.4"), P),
    "probe of the node": (probing("127.0.0.1"), P),
    "probe of the node by name": (probing("localhost"), P),
    "probe by tcp": (probing("::1", "tcpSocket", "startupProbe"), P),
    "probe by grpc": (running(livenessProbe={"grpc": {"port": 80}}), R),
    "probe of itself": (probing(""), R),
    "hook that calls a host": (running(lifecycle={"preStop": {"httpGet": {"port": 80, "host": "x"}}}), P),
    "no AppArmor": (having(appArmorProfile={"type": "Unconfined"}), P),
    "AppArmor of the node": (having(appArmorProfile={"type": "Localhost", "localhostProfile": "x"}), R),
    "no AppArmor, by annotation": (annotated("unconfined"), P),
    "AppArmor of the node, by annotation": (annotated("localhost/x"), R),
    "SELinux type": (having(seLinuxOptions={"type": "spc_t"}), P),
    "SELinux type of containers": (having(seLinuxOptions={"type": "container_engine_t"}), R),
    "SELinux user": (having(seLinuxOptions={"user": "u"}), P),
    "SELinux level": (having(seLinuxOptions={"level": "s0:c1,c2"}), R),
    "SELinux role of the pod": (pod(securityContext={"seLinuxOptions": {"role": "r"}}), P),
    "whole proc for own users": (own_users(procMount="Unmasked"), B),
    "usual proc": (having(procMount="Default"), R),
    "no seccomp": (having(seccompProfile={"type": "Unconfined"}), P),
    "no seccomp for the pod": (pod(securityContext={"seccompProfile": {"type": "Unconfined"}}), P),
    "seccomp unsaid": (lacking("seccompProfile"), B),
    "seccomp of the pod": (
        lacking("seccompProfile", securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
        R,
    ),
    "safe kernel parameter": (pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "1"}]}), R),
    "kernel parameter": (pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}), P),
    "kernel parameter with slashes": (
        pod(securityContext={"sysctls": [{"name": "net/ipv4/tcp_syncookies", "value": "1"}]}),
        P,
    ),
    "escalation": (having(allowPrivilegeEscalation=True), B),
    "escalation unsaid": (lacking("allowPrivilegeEscalation"), B),
    "not root, by the pod": (lacking("runAsNonRoot", securityContext={"runAsNonRoot": True}), R),
    "not root, but for a container": (
        pod(container(securityContext={**STRICT, "runAsNonRoot": False}), securityContext={"runAsNonRoot": True}),
        B,
    ),
    "root, but for its containers": (pod(securityContext={"runAsNonRoot": False}), B),
    "user 0": (having(runAsUser=0), B),
    "user 0 of the pod": (pod(securityContext={"runAsUser": 0}), B),
    "user 1": (having(runAsUser=1), R),
    "user 0 of own users": (own_users(runAsUser=0, runAsNonRoot=False), R),
    "own users and nothing else": (pod(container(), hostUsers=False), B),
    "windows": (pod(container(securityContext={"runAsNonRoot": True}), os={"name": "windows"}), R),
}
ASKED = pytest.mark.parametrize(("wished", "level"), CASES.values(), ids=CASES)


def needed(wished: JsonDict, minor: int = 36) -> Level:
    (found,) = pod_specs([wished])
    return level_needed(found, minor)


@ASKED
def test_a_pod_needs_the_level_that_admits_it(wished: JsonDict, level: Level) -> None:
    assert needed(wished) is level


@pytest.mark.parametrize(
    ("wished", "minor", "level"),
    [
        pytest.param(CASES["whole proc for own users"][0], 34, P, id="whole proc before own users were thought of"),
        pytest.param(CASES["user 0 of own users"][0], 34, B, id="user 0 before own users were thought of"),
        pytest.param(CASES["probe of the node"][0], 33, R, id="a probe before anybody minded"),
        pytest.param(CASES["folder of an image"][0], 22, R, id="folders of images always"),
    ],
)
def test_the_level_is_that_of_the_version_which_a_namespace_enforces(
    wished: JsonDict, minor: int, level: Level
) -> None:
    assert needed(wished, minor) is level


@pytest.fixture(scope="module")
def server(controlplane: Endpoint) -> Iterator[Server]:
    made = Server(controlplane)
    for level, name in NAMESPACES.items():
        labels = {"pod-security.kubernetes.io/enforce": level.word}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        made.ask("POST", "/api/v1/namespaces", namespace)
        made.ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    yield made
    for name in NAMESPACES.values():
        made.ask("DELETE", f"/api/v1/namespaces/{name}")
    made.close()


@pytest.mark.controlplane
@ASKED
def test_the_api_server_still_admits_it_there_and_no_stricter(server: Server, wished: JsonDict, level: Level) -> None:
    answers = {
        one: server.ask("POST", f"/api/v1/namespaces/{name}/pods?dryRun=All", wished)[0]
        for one, name in NAMESPACES.items()
    }
    assert answers == {namespace: 201 if namespace >= level else 403 for namespace in NAMESPACES}
