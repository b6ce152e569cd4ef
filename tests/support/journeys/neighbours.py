"""A whole service beside hostile strangers: its worker and its watch are processes of their own, on one cluster."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import ObjectRef
from tests.support.folders import ROOT
from tests.support.journeys import deployed_site
from tests.support.journeys.hostile_content import HOSTILE, harmless, spec
from tests.support.journeys.machine import LONG_CLAIM, Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled, wait_for
from tests.support.servers.downloads import served

STATES = (
    "SELECT d.name, r.state, r.problem_code, r.problem FROM approvals_request r"
    " JOIN approvals_bundledeployment d ON d.id = r.deployment_id"
)
SURE = "SELECT 1 FROM approvals_authoradmission WHERE sure_from IS NOT NULL"
STRANGER = "mallory"
GONE = "SELECT name FROM approvals_bundledeployment GROUP BY name HAVING sum(gone_at IS NULL) = 0"


class Neighbourhood:
    """`wish` asks for a bundle as somebody with kubectl would; `rows` says what became of all of them."""

    def __init__(self, machine: Machine, endpoint: Endpoint, namespace: str, address: str):
        self.machine = machine
        self.namespace = namespace
        self.address = address
        self.api = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(60))
        self.endpoint = endpoint
        self.hostile_api = self.api
        deployed_site.prepare(self.api, namespace)
        kubeconfig = machine.folder / "service-kubeconfig"
        kubeconfig.write_text(endpoint.kubeconfig("pratique"))
        machine.make_database()
        machine.run("manage.py", "register_cluster", "here", "--kubeconfig", kubeconfig)
        self.worker: subprocess.Popen[bytes] = machine.worker()
        machine.start("manage.py", "watch")

    @property
    def served(self) -> Path:
        return self.machine.folder / "served"

    def submit_spec(self, name: str, data: bytes, **more: Any) -> None:
        self._create(name, spec(self.served, self.address, name, self.namespace, data, more))

    def wish_hostile(self) -> list[str]:
        """All of HOSTILE at once; the names of their BundleDeployments."""
        made = {f"{self.namespace}-{word}": (make, more) for word, (make, more) in HOSTILE.items()}
        specs = {
            name: spec(self.served, self.address, name, self.namespace, make(name), more)
            for name, (make, more) in made.items()
        }
        for name, wanted in specs.items():
            self._create(name, wanted, self.hostile_api)
        return list(specs)

    def know_authors(self) -> None:
        """Let the cluster prove who writes from now on, as docs/operating/kubectl.md has it; what is hostile is a stranger's."""
        for file in ("author-stamp.yaml", "authors.yaml"):
            for obj in yaml.safe_load_all((ROOT / "deploy/admission" / file).read_text()):
                self.api.apply(obj, field_manager=deployed_site.SEEDER)
        as_admin = deployed_site.binding("strangers", "cluster-admin", deployed_site.user_subject(STRANGER))
        self.api.apply(as_admin, field_manager=deployed_site.SEEDER)
        self.hostile_api = Api.connect(self.endpoint.kubeconfig(STRANGER), timeout_seconds=scaled(60))
        wait_for(lambda: self.machine.rows(SURE), "it is sure who writes", 90, log=self.machine.log)

    def rows(self) -> dict[str, tuple[str, str, str]]:
        """State, problem code and problem of the newest request of each deployment."""
        found = self.machine.rows(f"{STATES} ORDER BY r.number")
        return {str(name): (str(state), str(code), str(problem)) for name, state, code, problem in found}

    def until(self, names: Collection[str], states: Collection[str], seconds: float) -> dict[str, tuple[str, str, str]]:
        """The rows as soon as the requests of all these deployments are in one of these states."""
        return wait_for(
            self.rows,
            f"all of {', '.join(names)} are {' or '.join(states)}",
            seconds,
            is_so=lambda rows: all(name in rows and rows[name][0] in states for name in names),
            log=self.machine.log,
        )

    def seconds_until_ready(self, name: str, make: Callable[[str], bytes] = harmless) -> float:
        """From the wish for a bundle, a harmless one of `make`, to its report."""
        data = make(name)
        began = time.monotonic()
        self.submit_spec(name, data)
        self.until([name], ["in_review"], 240)
        return time.monotonic() - began

    def worker_mib(self) -> float:
        """The most memory that the worker has held so far."""
        status = Path(f"/proc/{self.worker.pid}/status").read_text()
        (peak,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
        return int(peak.split()[1]) / 1024

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            self.api.delete(_ref(name))

    def until_gone(self, names: Collection[str], seconds: float = 60) -> None:
        """Until the service has let go of all these deployments, so that the same names can be wished for anew."""

        def left() -> list[str]:
            gone = {str(name) for (name,) in self.machine.rows(GONE)}
            return [name for name in names if name not in gone or self.api.get(_ref(name))]

        wait_for(left, "all of them are gone", seconds, is_so=lambda names: not names, log=self.machine.log)

    def _create(self, name: str, wanted: dict[str, Any], api: Api | None = None) -> None:
        about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": name}}
        (api or self.api).create({**about, "spec": wanted})


def _ref(name: str) -> ObjectRef:
    return ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", name)


@contextmanager
def neighbourhood(machine: Machine, endpoint: Endpoint, namespace: str) -> Iterator[Neighbourhood]:
    machine.environment |= {"PRATIQUE_MUTABLE_HTTP": "true", **LONG_CLAIM}
    with served(machine.folder / "served") as address:
        yield Neighbourhood(machine, endpoint, namespace, address)
