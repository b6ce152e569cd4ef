"""One suite, two API servers: where they differ, the sandbox is wrong."""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from provisioner.cluster.client.api import ClusterClient
from provisioner.values import AccessRequest, Identity
from tests.contract.objects import binding, crd, role
from tests.support.folders import ROOT
from tests.support.kubernetes import live
from tests.support.kubernetes.endpoint import USERS, Endpoint
from tests.support.patience import scaled

CRD = ROOT / "deploy/crds/bundledeployments.yaml"
PATH = "/apis/core.rukpak.io/v1alpha2/bundledeployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPS, BATCH = "/apis/apps/v1", "/apis/batch/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TIMEOUT_SECONDS = 60
# More than the longest --timeout of a command.
COMMAND_SECONDS = 180


@dataclass(frozen=True)
class Reply:
    """What an API server answered: `body` is JSON where it is JSON, else text."""

    code: int
    body: Any
    warnings: list[str]

    @property
    def message(self) -> str:
        """What a Status says; "" where the answer is none."""
        is_status = isinstance(self.body, dict) and self.body.get("kind") == "Status"
        return str(self.body.get("message", "")) if is_status else ""


@dataclass(frozen=True)
class Request:
    """One HTTP request; `body` is JSON unless it is bytes already. Without `token` it is `user`'s."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    user: str = "admin"
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str = ""


@functools.cache
def connections(ca_pem: str) -> urllib3.PoolManager:
    """Kept open from test to test: a handshake costs more than most of the requests."""
    return urllib3.PoolManager(ca_cert_data=ca_pem, cert_reqs="CERT_REQUIRED", timeout=scaled(TIMEOUT_SECONDS))


@dataclass(frozen=True)
class Server:
    """An API server with kubectl, and a namespace of the test's own."""

    endpoint: Endpoint
    kubectl: str
    kubeconfig: Path
    namespace: str

    def run(self, *words: str, user: str = "admin", given: str = "") -> subprocess.CompletedProcess[str]:
        command = [self.kubectl, "--kubeconfig", str(self.kubeconfig), "--context", user, *words]
        return subprocess.run(
            command, input=given, capture_output=True, text=True, check=False, timeout=scaled(COMMAND_SECONDS)
        )

    def ctl(self, *words: str, user: str = "admin", given: Any = None) -> str:
        text = given if isinstance(given, str) else json.dumps(given) if given is not None else ""
        done = self.run(*words, user=user, given=text)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def here(self, *words: str, user: str = "admin", given: Any = None) -> str:
        """What kubectl prints of a command in the test's namespace."""
        return self.ctl(*words, "-n", self.namespace, user=user, given=given)

    def get(self, plural: str, name: str = "", api: str = "/api/v1", query: str = "") -> Any:
        reply = self.ask("GET", self.place(plural, name, api) + query)
        assert reply.code == 200, reply.message
        return reply.body

    def apply(self, obj: dict[str, Any], manager: str = "one", *flags: str) -> subprocess.CompletedProcess[str]:
        words = ("apply", "--server-side", f"--field-manager={manager}", "-n", self.namespace, "-f", "-", *flags)
        return self.run(*words, given=json.dumps(obj))

    def create(self, plural: str, obj: dict[str, Any], api: str = "/api/v1") -> Any:
        """The object as it is made, without kubectl, whose start costs more than most of the tests."""
        made = self.ask("POST", self.place(plural, api=api), obj)
        assert made.code == 201, made.message
        return made.body

    def send(self, request: Request) -> Reply:
        """The answer to a request, whatever its code."""
        body = request.body
        token = request.token or self.endpoint.tokens[request.user]
        sent = {"Content-Type": request.content_type, "User-Agent": "contract/1", **request.headers}
        answer = connections(self.endpoint.ca_pem).request(
            request.method,
            self.endpoint.server + request.path,
            body=body if body is None or isinstance(body, bytes) else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", **sent},
            retries=False,
        )
        warnings = [words.partition(" - ")[2][1:-1].replace('\\"', '"') for words in answer.headers.getlist("Warning")]
        is_json = answer.headers.get("Content-Type", "").partition(";")[0] == "application/json"
        text = answer.data.decode()
        return Reply(answer.status, json.loads(text) if is_json else text, warnings)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Reply:
        return self.send(Request(method, path, body, content_type))

    def until_may(self, user: str, verb: str, resource: str, group: str = "", name: str = "") -> None:
        """Until the API server has seen what was granted to `user` here a moment ago."""
        who = next(Identity(known.name, known.groups) for known in USERS if known.name == user)
        live.until_may(admin(self.endpoint), who, AccessRequest(verb, group, resource, "", self.namespace, name))

    def grant(self, user: str, *rules: dict[str, list[str]]) -> None:
        """Give `user` these rights in the test's namespace, and wait until the last of them counts."""
        self.create("roles", role("some", *rules), RBAC)
        self.create("rolebindings", binding("some", user, "Role"), RBAC)
        self.until_may(user, rules[-1]["verbs"][-1], rules[-1]["resources"][0], rules[-1]["apiGroups"][0])

    def place(self, plural: str = "configmaps", name: str = "", api: str = "/api/v1") -> str:
        """The path of a collection in the test's namespace, or of an object in it."""
        return f"{api}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def apply_to(self, path: str, obj: Any, manager: str = "one", more: str = "") -> Reply:
        return self.ask("PATCH", f"{path}?fieldManager={manager}{more}", obj, APPLY)


def admin(endpoint: Endpoint) -> ClusterClient:
    return ClusterClient.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(TIMEOUT_SECONDS))


@pytest.fixture(params=[pytest.param("controlplane", marks=pytest.mark.controlplane), "sandbox"])
def server(request: pytest.FixtureRequest, kubectl: str, tmp_path: Path) -> Iterator[Server]:
    endpoint = request.getfixturevalue(request.param)
    kubeconfig = tmp_path / "kubeconfig"
    endpoint.write(kubeconfig)
    made = Server(endpoint, str(kubectl), kubeconfig, f"contract-{uuid.uuid4().hex[:8]}")
    made_here = made.ask("POST", "/api/v1/namespaces", {"metadata": {"name": made.namespace}})
    assert made_here.code == 201, made_here
    yield made
    # The real one looks for objects of every kind then, by a hundred requests for each test. It ends with the run.
    if request.param == "sandbox":
        made.ask("DELETE", f"/api/v1/namespaces/{made.namespace}")


@pytest.fixture(scope="session")
def define_things() -> Iterator[Callable[[Server], str]]:
    """Has a server serve the kind Thing, once for all tests of this process; answers with its group."""
    defined: dict[str, tuple[Server, str]] = {}

    def define(server: Server) -> str:
        if server.endpoint.server not in defined:
            group = f"{server.namespace}.example.com"
            assert server.ask("POST", CRDS, crd(group)).code == 201
            path = server.place("things", api=f"/apis/{group}/v1")
            live.wait_until(lambda: server.ask("GET", path).code == 200, "the kind Thing is served")
            defined[server.endpoint.server] = server, group
        return defined[server.endpoint.server][1]

    yield define
    for server, group in defined.values():
        with contextlib.suppress(urllib3.exceptions.HTTPError):  # it may have ended before
            server.ask("DELETE", f"{CRDS}/things.{group}")


@pytest.fixture
def things(server: Server, define_things: Callable[[Server], str]) -> str:
    """The group of a custom kind, `things`, that is served."""
    return define_things(server)


@pytest.fixture
def wishing(server: Server) -> Server:
    """A server with our CRD."""
    if asked(server).code != 201:
        definition = yaml.safe_load(CRD.read_text())
        applied = server.apply_to(f"{CRDS}/{definition['metadata']['name']}", definition, more="&force=true")
        assert applied.code in (200, 201), applied.message
        live.wait_until(lambda: asked(server).code == 201, "our CRD is served")
    return server


def asked(server: Server, **options: Any) -> Reply:
    """The answer to a dry-run of a BundleDeployment with these options."""
    source = {"kind": "http", "http": {"url": "https://example.com/x.tar.gz"}}
    spec = {"installNamespace": "a", "serviceAccountName": "b", "sources": [source], **options}
    obj = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "x"}, "spec": spec}
    return server.ask("POST", f"{PATH}?dryRun=All&fieldValidation=Strict", obj)
