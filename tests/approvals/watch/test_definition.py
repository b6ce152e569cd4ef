"""What the watch says where a cluster does not serve BundleDeployments as Pratique defines them."""

from __future__ import annotations

import pytest

from approvals.watch.loop import _resource
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import UnknownKind
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.live import until_served
from tests.support.kubernetes.rukpak import RUKPAKS_OWN


def test_the_definition_of_rukpak_is_told_from_none(own_sandbox: Endpoint) -> None:
    api = ClusterClient.connect(own_sandbox.kubeconfig("admin"))
    with pytest.raises(UnknownKind, match="serves no BundleDeployment: pratique-manage cluster_manifests"):
        _resource(api)
    api.apply(RUKPAKS_OWN, field_manager="test")
    until_served(api, "core.rukpak.io", "v1alpha1", "BundleDeployment")
    with pytest.raises(UnknownKind, match="RukPak's own definition, which Pratique's does not replace"):
        _resource(api)
