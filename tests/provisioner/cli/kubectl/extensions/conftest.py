"""Extensions in the real cluster that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from provisioner.cluster.client.api import ClusterClient
from tests.provisioner.cli.kubectl.extensions.scene import ExtensionScene
from tests.support.folders import ROOT
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig
from tests.support.kubernetes.live import until_served


@pytest.fixture
def scene(controlplane: Endpoint, tmp_path: Path) -> Iterator[ExtensionScene]:
    """One extension without APIs as yet, and a namespace."""
    api = ClusterClient.connect(kubeconfig(controlplane, tmp_path).read_text(), trusted=True)
    for path in sorted((ROOT / "deploy/crds").glob("*.yaml")):
        for obj in yaml.safe_load_all(path.read_text()):
            api.apply(obj, field_manager="test", force=True)
    until_served(api, "core.rukpak.io", "v1alpha2", "BundleDeployment")
    made = ExtensionScene(controlplane, tmp_path, api)
    made.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made.mark}})
    made.install()
    try:
        yield made
    finally:
        made.close()
