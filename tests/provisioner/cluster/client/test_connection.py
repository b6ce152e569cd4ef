"""Who answers is checked on every API server, so that credentials go to no other."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import BadSource, Unreachable
from provisioner.sandbox.sandbox import self_signed
from tests.support.kubernetes.endpoint import Endpoint


def test_S19_an_api_server_with_another_authority_is_refused(api_server: Endpoint) -> None:
    assert ClusterClient.connect(api_server.kubeconfig("admin")).uid()
    stranger = replace(api_server, ca_pem=self_signed()[0])
    for trusted in (False, True):
        with pytest.raises(Unreachable, match="certificate verify failed"):
            ClusterClient.connect(stranger.kubeconfig("admin"), trusted=trusted).uid()


def test_S19_an_api_server_under_another_name_is_refused(api_server: Endpoint) -> None:
    text = api_server.kubeconfig("admin").replace("    server:", "    tls-server-name: other.example\n    server:")
    with pytest.raises(Unreachable, match="certificate verify failed"):
        ClusterClient.connect(text).uid()


def test_S19_an_api_server_without_tls_is_refused(api_server: Endpoint) -> None:
    plain = replace(api_server, server=f"http://{urlsplit(api_server.server).netloc}")
    with pytest.raises(BadSource, match="plain text"):
        ClusterClient.connect(plain.kubeconfig("admin"))
