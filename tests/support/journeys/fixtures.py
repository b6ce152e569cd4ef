"""One station a test: its own namespace, deployments and rows; the cluster is shared. Or one machine, with processes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache

from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.journeys import deployed_site
from tests.support.journeys.contents.strimzi import room_for_strimzi
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.machine import Machine, environment
from tests.support.kubernetes.endpoint import Endpoint, Refused
from tests.support.patience import scaled
from tests.support.stores import use_folder

_numbers = itertools.count(1)
# Clusters, by their address, to which this process has brought what all journeys need.
_prepared: set[str] = set()


@pytest.fixture
def real_site(
    db: None, controlplane: Endpoint, tmp_path: Path, settings: Any, worker_id: str
) -> Iterator[DeployedSite]:
    """The service meets the cluster as user `pratique`, with exactly the rights of deploy/rbac.yaml."""
    yield from _site(controlplane, tmp_path, settings, worker_id)


@pytest.fixture
def strimzi_site(real_site: DeployedSite) -> Iterator[DeployedSite]:
    """For the one test at a time that installs strimzi: its names are the same in each."""
    with room_for_strimzi(real_site):
        yield real_site


@pytest.fixture(
    params=[pytest.param("controlplane", marks=[pytest.mark.controlplane, pytest.mark.thorough]), "sandbox"]
)
def site(
    request: pytest.FixtureRequest, db: None, tmp_path: Path, settings: Any, worker_id: str
) -> Iterator[DeployedSite]:
    """The same on either API server; on the sandbox without kubectl.

    The contract suite holds the two against each other: `make test` runs what is a proof of a promise on the real one,
    and all else on the sandbox.
    """
    endpoint = request.getfixturevalue(request.param)
    yield from _site(endpoint, tmp_path, settings, worker_id, is_sandbox=request.param == "sandbox")


@pytest.fixture
def sandbox_site(db: None, sandbox: Endpoint, tmp_path: Path, settings: Any, worker_id: str) -> Iterator[DeployedSite]:
    """The same on the sandbox alone, for journeys whose question is not what an API server does; without kubectl."""
    yield from _site(sandbox, tmp_path, settings, worker_id, is_sandbox=True)


def _site(
    endpoint: Endpoint, tmp_path: Path, settings: Any, worker_id: str, *, is_sandbox: bool = False
) -> Iterator[DeployedSite]:
    cache.clear()
    deployed_site.open_to_loopback(settings)
    use_folder(settings, tmp_path / "content")
    api = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(60))
    namespace = f"journey-{worker_id}-{next(_numbers)}"
    if endpoint.server not in _prepared:
        deployed_site.prepare_cluster(api)
        _prepared.add(endpoint.server)
    deployed_site.prepare_namespace(api, namespace)
    kubeconfig = tmp_path / "kubeconfig"
    endpoint.write(kubeconfig)
    cluster = deployed_site.register(endpoint.kubeconfig("pratique"))
    made = DeployedSite(cluster, api, namespace, endpoint.kubectl, kubeconfig)
    made.people = {name: deployed_site.user(name, cluster) for name in deployed_site.PEOPLE}
    yield made
    # Its roles slow down what is asked about rights in the tests that follow. The real one is not slowed down by them.
    if is_sandbox:
        with contextlib.suppress(Refused):  # the test may have deleted it
            endpoint.ask("DELETE", f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def machine(tmp_path: Path, redis: str) -> Iterator[Machine]:
    made = Machine(tmp_path, environment(tmp_path, redis))
    yield made
    made.stop()
