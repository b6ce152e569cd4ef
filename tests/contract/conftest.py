"""One suite, two API servers: where they differ, the sandbox is wrong."""

from __future__ import annotations

import json
import ssl
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner.cluster.client.api import ClusterClient
from provisioner.values import AccessRequest, Identity
from tests.contract.objects import crd
from tests.support.folders import ROOT
from tests.support.kubernetes import live
from tests.support.kubernetes.endpoint import USERS, Endpoint
from tests.support.patience import scaled

CRD = ROOT / "deploy/crds/bundledeployments.yaml"
PATH = "/apis/core.rukpak.io/v1alpha2/bundledeployments"

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

    def get(self, *words: str) -> Any:
        shown = self.ctl("get", *words, "-n", self.namespace, "-o", "json", "--show-managed-fields")
        return json.loads(shown)

    def apply(self, obj: dict[str, Any], manager: str = "one", *flags: str) -> subprocess.CompletedProcess[str]:
        words = ("apply", "--server-side", f"--field-manager={manager}", "-n", self.namespace, "-f", "-", *flags)
        return self.run(*words, given=json.dumps(obj))

    def send(self, request: Request) -> Reply:
        """The answer to a request, whatever its code."""
        body = request.body
        token = request.token or self.endpoint.tokens[request.user]
        asked = urllib.request.Request(
            self.endpoint.server + request.path,
            method=request.method,
            data=body if body is None or isinstance(body, bytes) else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {token}",
                "Content-Type": request.content_type,
                "User-Agent": "contract/1",
                **request.headers,
            },
        )
        context = ssl.create_default_context(cadata=self.endpoint.ca_pem)
        try:
            with urllib.request.urlopen(asked, timeout=scaled(TIMEOUT_SECONDS), context=context) as answer:
                return _reply(answer.status, answer.read(), answer.headers)
        except urllib.error.HTTPError as exc:
            return _reply(exc.code, exc.read(), exc.headers)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Reply:
        return self.send(Request(method, path, body, content_type))

    def until_may(self, user: str, verb: str, resource: str, group: str = "", name: str = "") -> None:
        """Until the API server has seen what was granted to `user` here a moment ago."""
        who = next(Identity(one.name, one.groups) for one in USERS if one.name == user)
        live.until_may(admin(self.endpoint), who, AccessRequest(verb, group, resource, "", self.namespace, name))

    def define_things(self) -> str:
        """Create the kind Thing, until it is served: its group, which is the test's own."""
        group = f"{self.namespace}.example.com"
        self.ctl("create", "-f", "-", given=crd(group))
        live.wait_until(lambda: self.run("get", f"things.{group}", "-n", self.namespace).returncode == 0)
        return group

    def place(self, plural: str = "configmaps", name: str = "", api: str = "/api/v1") -> str:
        """The path of a collection in the test's namespace, or of an object in it."""
        return f"{api}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def apply_to(self, path: str, obj: Any, manager: str = "one", more: str = "") -> Reply:
        return self.ask("PATCH", f"{path}?fieldManager={manager}{more}", obj, APPLY)


def admin(endpoint: Endpoint) -> ClusterClient:
    return ClusterClient.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(TIMEOUT_SECONDS))


def _reply(code: int, body: bytes, headers: Any) -> Reply:
    text = body.decode()
    is_json = (headers.get_content_type() or "") == "application/json"
    warnings = [it.partition(" - ")[2][1:-1].replace('\\"', '"') for it in headers.get_all("Warning") or []]
    return Reply(code, json.loads(text) if is_json else text, warnings)


@pytest.fixture(params=[pytest.param("controlplane", marks=pytest.mark.controlplane), "sandbox"])
def server(request: pytest.FixtureRequest, kubectl: str, tmp_path: Path) -> Iterator[Server]:
    endpoint = request.getfixturevalue(request.param)
    kubeconfig = tmp_path / "kubeconfig"
    endpoint.write(kubeconfig)
    made = Server(endpoint, str(kubectl), kubeconfig, f"contract-{uuid.uuid4().hex[:8]}")
    # Not with kubectl, whose start costs more than most of the tests.
    made_here = made.ask("POST", "/api/v1/namespaces", {"metadata": {"name": made.namespace}})
    assert made_here.code == 201, made_here
    yield made
    made.ask("DELETE", f"/api/v1/namespaces/{made.namespace}")


@pytest.fixture
def wishing(server: Server) -> Server:
    """A server with our CRD."""
    definition = yaml.safe_load(CRD.read_text())
    server.ctl("apply", "--server-side", "--force-conflicts", "-f", "-", given=definition)
    server.ctl("wait", "--for=condition=Established", f"crd/{definition['metadata']['name']}")
    return server


def asked(server: Server, **options: Any) -> Reply:
    """The answer to a dry-run of a BundleDeployment with these options."""
    source = {"kind": "http", "http": {"url": "https://example.com/x.tar.gz"}}
    spec = {"installNamespace": "a", "serviceAccountName": "b", "sources": [source], **options}
    obj = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "x"}, "spec": spec}
    return server.ask("POST", f"{PATH}?dryRun=All&fieldValidation=Strict", obj)
