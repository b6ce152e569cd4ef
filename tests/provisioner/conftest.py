"""A real API server as its admin, and a namespace of the test's own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from provisioner.cluster.client.api import ClusterClient
from provisioner.values import ObjectRef
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled
from tests.support.provisioner import findings_made

findings_made.watch()


def pytest_sessionfinish() -> None:
    findings_made.write()


@pytest.fixture(autouse=True)
def rules_are_as_their_files_say() -> Iterator[None]:
    """A finding has a severity and the section that the file of its rule lists, whatever test made it."""
    before = set(findings_made.made)
    yield
    assert findings_made.not_as_written(findings_made.made - before) == []


@pytest.fixture
def api(controlplane: Endpoint) -> ClusterClient:
    return ClusterClient.connect(controlplane.kubeconfig("admin"), timeout_seconds=scaled(60))


@pytest.fixture
def namespace(api: ClusterClient) -> Iterator[str]:
    name = f"pipeline-{uuid.uuid4().hex[:8]}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    api.delete(ObjectRef("", "v1", "Namespace", "", name))
