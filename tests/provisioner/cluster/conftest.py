"""The cluster room is tested on real API servers: the control plane of tests/controlplane, and the sandbox."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator

import pytest

from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import PratiqueError
from provisioner.values import ObjectRef
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import Scene


@pytest.fixture(
    params=[pytest.param("controlplane", marks=[pytest.mark.controlplane, pytest.mark.thorough]), "sandbox"]
)
def api_server(request: pytest.FixtureRequest) -> Endpoint:
    """Either API server: in `make test` the real one where a test is a proof, else the sandbox."""
    found: Endpoint = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def kubernetes_api(api_server: Endpoint) -> ClusterClient:
    """Either API server, as its admin."""
    return ClusterClient.connect(api_server.kubeconfig("admin"), timeout_seconds=scaled(60))


@pytest.fixture
def real_api(controlplane) -> ClusterClient:
    return ClusterClient.connect(controlplane.kubeconfig("admin"), timeout_seconds=scaled(60))


@pytest.fixture
def scene(kubernetes_api: ClusterClient) -> Iterator[Scene]:
    yield from _scene(kubernetes_api)


@pytest.fixture
def real_scene(real_api: ClusterClient) -> Iterator[Scene]:
    yield from _scene(real_api)


def _scene(cluster: ClusterClient) -> Iterator[Scene]:
    """A namespace of the test's own, deleted afterwards with what the test made outside of it."""
    scene = Scene(cluster, f"cluster-{uuid.uuid4().hex[:10]}")
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scene.namespace}})
    yield scene
    leftovers = [*scene.inventory.items().values()]
    refs = [item.ref for item in leftovers if not item.ref.namespace]
    for ref in [*refs, ObjectRef("", "v1", "Namespace", "", scene.namespace)]:
        with contextlib.suppress(PratiqueError):  # cleaning up is no part of the test
            cluster.delete(ref)


@pytest.fixture
def nobody_there() -> ClusterClient:
    """A cluster at whose address nobody listens."""
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {"token": "s3cret"}}],
    }
    return ClusterClient.connect(config, timeout_seconds=2.0)
