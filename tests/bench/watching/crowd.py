"""A watch and a worker on a real API server whose policies say who wrote, for benches of what one account brings."""

from __future__ import annotations

import io
import resource
import tarfile
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Unreachable
from provisioner.values import Identity
from tests.support.journeys.machine import Machine, environment
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.downloads import served
from tests.support.servers.process import wait_until

THREADS = 8
PATIENCE_SECONDS = 600.0
GROUP_VERSION = "core.rukpak.io/v1alpha2"
KNOWN = "SELECT count(*) FROM approvals_authoradmission WHERE sure_from IS NOT NULL"
IN_REVIEW = (
    "SELECT count(*) FROM approvals_request r JOIN approvals_bundledeployment d ON d.id = r.deployment_id"
    " WHERE r.state = 'in_review' AND r.is_requester_known AND d.name LIKE '{}%'"
)


@dataclass(frozen=True, slots=True)
class Crowd:
    """`mark` is the namespace of the installer and begins every name; `address` serves a bundle of one ConfigMap."""

    machine: Machine
    admin: Api
    mark: str
    folder: Path
    address: str

    @property
    def controller(self) -> Api:
        """The listed GitOps account."""
        return self.admin.acting_as(Identity.of_service_account(self.mark, "controller"))

    def bring(self, name: str, by: Api) -> None:
        """Create a BundleDeployment of that name."""
        path = self.folder / f"{name}.tgz"
        path.write_bytes(_bundle(name))
        source = {"kind": "http", "http": {"url": f"{self.address}/{path.name}"}}
        spec = {"installNamespace": self.mark, "serviceAccountName": "installer", "sources": [source]}
        by.create({"apiVersion": GROUP_VERSION, "kind": "BundleDeployment", "metadata": {"name": name}, "spec": spec})

    def bring_all(self, names: Iterable[str], by: Api) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda name: self.bring(name, by), names))

    def seconds_until_in_review(self, prefix: str, count: int = 1) -> float:
        """Until so many requests of deployments that begin so are, whose requesters are known."""
        began = time.perf_counter()
        there = IN_REVIEW.format(prefix)
        wait_until(lambda: int(str(self.machine.rows(there)[0][0])) >= count, "all in review", PATIENCE_SECONDS)
        return time.perf_counter() - began


@contextmanager
def crowd(folder: Path, controlplane: Endpoint, redis: str) -> Iterator[Crowd]:
    """All processes, with policies that are known to be in force."""
    mark = f"brought-{uuid.uuid4().hex[:6]}"
    listed = {
        "account": f"{mark}/controller",
        "cluster": "one",
        "deployments": {"matchNames": ["*"]},
        "installers": [f"{mark}/installer"],
    }
    (folder / "gitops.yaml").write_text(yaml.safe_dump({"controllers": [listed]}))
    (folder / "served").mkdir()
    settings = {
        "PRATIQUE_GITOPS_FILE": str(folder / "gitops.yaml"),
        "PRATIQUE_CLAIM_SECONDS": "30",
        "PRATIQUE_MUTABLE_HTTP": "true",
    }
    machine = Machine(folder, {**environment(folder, redis), **settings})
    kubeconfig = folder / "kubeconfig"
    controlplane.write(kubeconfig)
    machine.make_database()
    machine.run("-m", "tests.bench.watching.brought", kubeconfig, mark)
    admin = Api.connect(controlplane.kubeconfig("admin"), timeout_seconds=60)
    with served(folder / "served") as address:
        here = Crowd(machine, admin, mark, folder / "served", address)

        def is_brought() -> bool:
            try:
                here.bring(f"{mark}-first", here.controller)
            except Unreachable:  # of policies that were made a moment ago
                return False
            return True

        try:
            machine.start("manage.py", "watch")
            machine.worker()
            wait_until(is_brought, "the API server has the policies", PATIENCE_SECONDS)
            wait_until(lambda: machine.rows(KNOWN)[0][0] == 1, "the policies are in force", PATIENCE_SECONDS)
            time.sleep(15)
            yield here
        finally:
            machine.stop()


def processor_seconds() -> float:
    """Of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _bundle(name: str) -> bytes:
    """One ConfigMap, packed."""
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    text, packed = yaml.safe_dump(obj).encode(), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        about = tarfile.TarInfo("map.yaml")
        about.size = len(text)
        archive.addfile(about, io.BytesIO(text))
    return packed.getvalue()
