"""The whole service, each process with the token of its own ServiceAccount and nothing else, on a real API server."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from approvals.management.demo.seeds import bundle_checksums, pack_bundles
from approvals.rights.needs import Process
from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.folders import ROOT
from tests.support.journeys.deployed_site import binding, group
from tests.support.journeys.machine import Machine
from tests.support.kubernetes import live
from tests.support.kubernetes.controlplane import ControlPlane
from tests.support.patience import scaled, wait_for
from tests.support.servers.process import free_port

APPLIED = (
    "deploy/rbac.yaml",
    "deploy/kubernetes/accounts.yaml",
    "deploy/admission/authors.yaml",
    "deploy/admission/author-stamp.yaml",
    "deploy/admission/finalizer.yaml",
)
NAME = "here"
NAMESPACE = "pratique"
SHOP = "harbour-system"
INSTALLER = "installer"
# A version of the lighthouse with another rhythm, which the demo has not.
LATER = "1.1.0"
PROBED = {"kind": "configMap", "configMap": {"name": "probe"}}
TOKEN_SECONDS = 3600
WAIT_SECONDS = 180.0
RBAC = "rbac.authorization.k8s.io/v1"
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": [f"system:serviceaccounts:{NAMESPACE}"]}],
}
USE_INSTALLER = {
    "apiGroups": [""],
    "resources": ["serviceaccounts"],
    "verbs": ["impersonate"],
    "resourceNames": [INSTALLER],
}


def audited(folder: Path) -> list[str]:
    """Flags of an API server that notes every call of our accounts in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.yaml").write_text(yaml.safe_dump(AUDIT_POLICY))
    return [f"--audit-policy-file={folder / 'policy.yaml'}", f"--audit-log-path={folder / 'audit.log'}"]


@dataclass(frozen=True, order=True)
class Call:
    """What one of our accounts asked of the API server; `user` is whom it acted as, "" for nobody else."""

    process: str
    user: str
    verb: str
    resource: str
    namespace: str
    code: int


def calls(folder: Path) -> set[Call]:
    """Every different call of our accounts so far; of discovery and /version nothing. A watch is noted at its start."""
    found = set()
    for line in (folder / "audit.log").read_text().splitlines():
        event = json.loads(line)
        about = event.get("objectRef") or {}
        if not about.get("resource"):
            continue
        process = event["user"]["username"].rpartition(":")[2]
        resource = "/".join(part for part in (about["resource"], about.get("subresource")) if part)
        user = (event.get("impersonatedUser") or {}).get("username", "")
        code = event["responseStatus"]["code"]
        found.add(Call(process, user, event["verb"], resource, about.get("namespace", ""), code))
    return found


def token_of(api: Api, namespace: str, name: str) -> str:
    """A new token of an account, as a pod's volume would hold it."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    wish = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    return str(api.post(path, wish, subject=name)["status"]["token"])


def prepare(api: Api) -> None:
    """What an operator applies, in the order of the manual, and people with rights of their own."""
    for path in sorted((ROOT / "deploy/crds").glob("*.yaml")):
        api.apply(yaml.safe_load(path.read_text()), field_manager="operator")
    for file in APPLIED:
        for obj in yaml.safe_load_all((ROOT / file).read_text()):
            api.apply(obj, field_manager="operator")
    for obj in _place():
        api.apply(obj, field_manager="operator")
    for kind in ("BundleDeployment", "BundleDeploymentRequest"):
        live.until_served(api, "core.rukpak.io", "v1alpha2", kind)
    # An API server that has policies about a kind that it has learned a moment ago refuses all writes of it.
    probe = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "probe"}}
    spec = {"installNamespace": SHOP, "serviceAccountName": INSTALLER, "sources": [PROBED]}
    live.wait_until(
        lambda: not live.is_unreachable(lambda: api.create({**probe, "spec": spec}, dry_run=True)),
        "the policies know the kind that they are about",
    )


def _place() -> list[dict[str, Any]]:
    about = {"apiVersion": RBAC, "metadata": {"name": "use-installer", "namespace": SHOP}}
    who = [group("requesters"), group("platform")]
    reads = {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get"]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": INSTALLER, "namespace": SHOP}},
        binding("harbour-installer", "cluster-admin", {"kind": "ServiceAccount", "name": INSTALLER, "namespace": SHOP}),
        {**about, "kind": "Role", "rules": [USE_INSTALLER, reads]},
        {
            **about,
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": RBAC.partition("/")[0], "kind": "Role", "name": "use-installer"},
            "subjects": who,
        },
        *(binding(f"reader-{name}", "pratique-reader", group(name)) for name in ("platform", "requesters")),
        binding("approver", "pratique-approver", group("platform")),
        binding("requester", "pratique-requester", group("requesters")),
    ]


class Household:
    """`folder` holds all; `control_plane` is the cluster. The database knows no credential of it."""

    def __init__(self, folder: Path, control_plane: ControlPlane, environment: dict[str, str]):
        self.folder, self.control_plane = folder, control_plane
        self.sources = folder / "sources"
        self.machine = Machine(folder, environment)
        self.api = Api.connect(control_plane.kubeconfig("admin"), timeout_seconds=scaled(60))
        self.bundles_port, self.port, self.probe_port = free_port(), free_port(), free_port()
        self.admin = folder / "admin"
        self.admin.write_text(control_plane.kubeconfig("admin"))

    def begin(self) -> None:
        """Make accounts, tokens and database, register the cluster without credentials, start every process."""
        prepare(self.api)
        shutil.copytree(ROOT / "deploy/demo/bundles", self.sources)
        later = self.sources / "lighthouse" / LATER
        shutil.copytree(self.sources / "lighthouse/1.0.0", later)
        settings = later / "manifests/02_settings.yaml"
        settings.write_text(settings.read_text().replace("3 s on, 7 s off", "1 s on, 1 s off"))
        pack_bundles(self.sources, self.folder / "bundles")
        served = ("--bind", "127.0.0.1", "--directory", self.folder / "bundles")
        self.machine.start("-m", "http.server", self.bundles_port, *served)
        self.machine.make_database()
        (self.folder / "registered").write_text(self._kubeconfig(None))
        self.machine.run("manage.py", "register_cluster", NAME, "--kubeconfig", self.folder / "registered")
        for process in Process:
            folder = self.folder / "credentials" / process
            folder.mkdir(parents=True)
            (folder / NAME).write_text(self._kubeconfig(token_of(self.api, NAMESPACE, process)))
        self.start(Process.WORKER, *self._worker())
        self.start(Process.WATCH, "manage.py", "watch")
        site = ("-m", "gunicorn", "--config", "python:approvals.project.gunicorn", "approvals.project.wsgi:application")
        self.start(Process.WEB, *site, "--bind", f"127.0.0.1:{self.port}")
        self.until(lambda: self.readiness()["status"] == "ok", "the site is ready")

    def _worker(self) -> tuple[object, ...]:
        schedule = ("--beat", "--schedule", self.folder / "beat")
        return ("-m", "celery", "--app", "approvals.project.celery", "worker", "--pool", "threads", "-c", 2, *schedule)

    def start(self, process: Process, *command: object) -> subprocess.Popen[bytes]:
        """A process that finds its own credentials, and those of no other."""
        before = dict(self.machine.environment)
        self.machine.environment |= {
            "PRATIQUE_KUBECONFIGS_DIR": str(self.folder / "credentials" / process),
            "PRATIQUE_PROBE_ADDRESS": f"127.0.0.1:{self.probe_port}",
        }
        try:
            return self.machine.start(*command)
        finally:
            self.machine.environment = before

    def _kubeconfig(self, token: str | None) -> str:
        """With this token, or nobody's."""
        config = yaml.safe_load(self.control_plane.kubeconfig("admin"))
        if token is None:
            del config["users"], config["contexts"][0]["context"]["user"]
        else:
            config["users"][0]["user"] = {"token": token}
        return yaml.safe_dump(config)

    def rights(self, *words: str, process: Process = Process.WEB) -> subprocess.CompletedProcess[str]:
        """`pratique-manage rights`, as the operator runs it in a process's pod."""
        environment = {
            **self.machine.environment,
            "PRATIQUE_KUBECONFIGS_DIR": str(self.folder / "credentials" / process),
        }
        command = [sys.executable, "manage.py", "rights", "--cluster", NAME, *words]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=scaled(60)
        )

    def kubectl(self, *words: str, given: str = "") -> str:
        command = [str(self.control_plane.kubectl), "--kubeconfig", str(self.admin), *words]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=scaled(60))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def grant(self, *words: str) -> str:
        """Print the roles and apply them, as the manual says, and wait until the API server goes by them."""
        done = self.rights(*words)
        assert done.returncode == 0, done.stderr
        self.kubectl("apply", "-f", "-", given=done.stdout)
        self.until(lambda: self.rights("--check", *words).returncode == 0, "the printed rights are in force")
        return done.stdout

    def readiness(self) -> dict[str, Any]:
        """What `/readyz` of the web process answers; without an answer its status is ""."""
        try:
            answer: dict[str, Any] = requests.get(
                f"http://127.0.0.1:{self.probe_port}/readyz", timeout=scaled(60)
            ).json()
        except requests.RequestException:
            return {"status": ""}
        return answer

    def until(self, is_so: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
        """What `is_so` returned first that is true."""
        # The site allows a person so many requests a minute.
        return wait_for(is_so, what, seconds, every=0.5, log=self.machine.log)

    def archive(self, name: str, version: str) -> dict[str, str]:
        file = f"{name}-{version}.tar.gz"
        return {"url": f"http://127.0.0.1:{self.bundles_port}/{file}", "checksum": bundle_checksums(self.sources)[file]}

    def person(self, name: str) -> Person:
        return Person(self, name)


class Person:
    """Somebody who signs in with a token of the cluster and uses the site's REST API."""

    def __init__(self, household: Household, name: str):
        self.household, self.base = household, f"http://127.0.0.1:{household.port}"
        self.session = requests.Session()
        self.session.get(f"{self.base}/sign-in", timeout=scaled(60))
        token = household.control_plane.endpoint.tokens[name]
        form = {"with": "token", "cluster": NAME, "token": token, "next": "/"}
        answer = self.session.post(
            f"{self.base}/sign-in", data=self._protected(form), timeout=scaled(60), allow_redirects=False
        )
        assert answer.status_code == 302, (answer.status_code, answer.text[:2000], household.machine.log())

    def _protected(self, form: dict[str, str]) -> dict[str, str]:
        return {**form, "csrfmiddlewaretoken": self.session.cookies["csrftoken"]}

    def ask(self, method: str, path: str, body: Any = None, *, if_match: str = "") -> requests.Response:
        headers = {"X-CSRFToken": self.session.cookies["csrftoken"], **({"If-Match": if_match} if if_match else {})}
        return self.session.request(
            method, f"{self.base}/api/v1/{path}", json=body, headers=headers, timeout=scaled(60)
        )

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def submit_spec(self, name: str, spec: dict[str, Any]) -> requests.Response:
        return self.ask("POST", "deployments", {"cluster": NAME, "name": name, "spec": spec, "labels": {}})

    def change(self, name: str, spec: dict[str, Any]) -> requests.Response:
        """Replace the spec, as of the deployment that this person sees now."""
        path = f"deployments/{self.deployment(name)['uid']}"
        body = {"spec": spec, "generation": self.deployment(name)["generation"]}
        return self.ask("PUT", path, body)

    def deployment(self, name: str) -> Any:
        return next(one for one in self.get("deployments")["results"] if one["name"] == name)

    def until(self, name: str, number: int, states: Iterable[str], problem_code: str = "") -> Any:
        """The request of this number of a deployment, as soon as it is in one of these states, with this problem."""

        def found() -> Any:
            for one in self.get("requests")["results"]:
                if (one["deployment"], one["number"]) == (name, number):
                    request = self.get(f"requests/{one['uid']}")
                    is_so = request["state"] in states and (not problem_code or request["problem_code"] == problem_code)
                    return request if is_so else None
            return None

        return self.household.until(found, f"request {number} of {name} is {'/'.join(states)} {problem_code}")

    def approve(self, request: Any) -> None:
        wish = {
            "decision": "Approve",
            "subject_digest": request["subject_digest"],
            "reason": "read it",
            "acknowledges": [one["name"] for one in request["to_acknowledge"]],
        }
        answer = self.ask("POST", f"requests/{request['uid']}/reviews", wish)
        assert answer.status_code == 201, answer.text


def basic_auth(name: str) -> dict[str, Any]:
    """A Secret that opens a source."""
    values = {"username": "u", "password": "canary-of-a-source"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": SHOP},
        "type": "kubernetes.io/basic-auth",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }
