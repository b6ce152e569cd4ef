"""200 BundleDeployments that one listed GitOps account makes at once: how soon all are in review, by how many calls.

Run by `make bench`. One worker, one watch, a real API server whose policies say who wrote.
"""

from __future__ import annotations

import io
import re
import tarfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import Identity
from tests.support.journeys.machine import Machine, environment
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.downloads import served
from tests.support.servers.process import wait_until

AT_ONCE = 200
THREADS = 8
GOAL_SECONDS = 120.0
PATIENCE_SECONDS = 600.0
STATES = "SELECT count(*) FROM approvals_request WHERE state = 'in_review' AND is_requester_known"
KNOWN = "SELECT count(*) FROM approvals_authoradmission WHERE sure_from IS NOT NULL"
# Leases and nodes of the control plane are no calls of ours.
CALLS = re.compile(r"^apiserver_request_total\{([^}]*)\} ([0-9.e+]+)$", re.MULTILINE)


def bundle(name: str) -> bytes:
    """One ConfigMap, packed."""
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    text, packed = yaml.safe_dump(obj).encode(), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        about = tarfile.TarInfo("map.yaml")
        about.size = len(text)
        archive.addfile(about, io.BytesIO(text))
    return packed.getvalue()


def calls(endpoint: Endpoint) -> int:
    """All that the API server has answered, but watches."""
    found = CALLS.findall(str(endpoint.ask("GET", "/metrics")))
    kept = [float(count) for labels, count in found if 'verb="WATCH"' not in labels and '"leases"' not in labels]
    return int(sum(kept))


@pytest.mark.controlplane
def test_figures_of_200_at_once(tmp_path: Path, controlplane: Endpoint, redis: str) -> None:
    mark = f"brought-{uuid.uuid4().hex[:6]}"
    folder = tmp_path / "served"
    folder.mkdir()
    names = [f"{mark}-{number:03}" for number in range(AT_ONCE + 1)]
    for name in names:
        (folder / f"{name}.tgz").write_bytes(bundle(name))
    listed = {
        "account": f"{mark}/controller",
        "cluster": "one",
        "deployments": {"matchNames": ["*"]},
        "installers": [f"{mark}/installer"],
    }
    (tmp_path / "gitops.yaml").write_text(yaml.safe_dump({"controllers": [listed]}))
    settings = {"PRATIQUE_GITOPS_FILE": str(tmp_path / "gitops.yaml"), "PRATIQUE_CLAIM_SECONDS": "30"}
    machine = Machine(tmp_path, {**environment(tmp_path, redis), "PRATIQUE_MUTABLE_HTTP": "true", **settings})
    kubeconfig = tmp_path / "kubeconfig"
    controlplane.write(kubeconfig)
    machine.make_database()
    machine.run("-m", "tests.bench.watching.brought", kubeconfig, mark)
    admin = Api.connect(controlplane.kubeconfig("admin"), timeout_seconds=60)
    account = admin.acting_as(Identity.of_service_account(mark, "controller"))
    with served(folder) as address:

        def bring(name: str) -> Any:
            http = {"url": f"{address}/{name}.tgz"}
            spec = {
                "installNamespace": mark,
                "serviceAccountName": "installer",
                "sources": [{"kind": "http", "http": http}],
            }
            about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": name}}
            return account.create({**about, "spec": spec})

        try:
            machine.start("manage.py", "watch")
            machine.worker()
            bring(names[-1])
            wait_until(lambda: machine.rows(KNOWN)[0][0] == 1, "the policies are in force", PATIENCE_SECONDS)
            time.sleep(15)
            before, began = calls(controlplane), time.perf_counter()
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(bring, names[:-1]))
            wait_until(lambda: machine.rows(STATES)[0][0] >= AT_ONCE, "all are in review", PATIENCE_SECONDS)
            took = time.perf_counter() - began
            made = calls(controlplane) - before
        finally:
            machine.stop()
    print(
        f"\n{AT_ONCE} BundleDeployments at once are in review after {took:.0f} s; {made / AT_ONCE:.1f} calls for each"
    )
    assert took <= GOAL_SECONDS
