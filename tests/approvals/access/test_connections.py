"""Every step of a worker goes over connections that are made already; what decides how to connect makes new ones."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from django.utils import timezone

from approvals.access import port
from approvals.models import Cluster
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Forbidden, PreconditionFailed
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled

CHUNK = 65536


class Door(socketserver.ThreadingTCPServer):
    """Lets everything through to a server, and counts who came in."""

    daemon_threads = True

    def __init__(self, behind: tuple[str, int]):
        super().__init__(("127.0.0.1", 0), _Visit)
        self.behind = behind
        self.visits = 0
        self._inside: list[socket.socket] = []

    def hang_up(self) -> None:
        """End what goes on, as a server does with connections that nobody has used for a while."""
        for one in self._inside:
            one.shutdown(socket.SHUT_RDWR)
        self._inside.clear()

    def enter(self, visitor: socket.socket) -> None:
        self.visits += 1
        self._inside.append(visitor)


class _Visit(socketserver.BaseRequestHandler):
    server: Door

    def handle(self) -> None:
        self.server.enter(self.request)
        with socket.create_connection(self.server.behind) as there:
            threading.Thread(target=_pass_on, args=(there, self.request), daemon=True).start()
            _pass_on(self.request, there)


def _pass_on(of: socket.socket, to: socket.socket) -> None:
    try:
        while chunk := of.recv(CHUNK):
            to.sendall(chunk)
        to.shutdown(socket.SHUT_WR)
    except OSError:
        return  # either side has hung up


@pytest.fixture
def door(sandbox: Endpoint) -> Iterator[Door]:
    at = urlsplit(sandbox.server)
    assert at.hostname
    assert at.port
    with Door((at.hostname, at.port)) as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture
def cluster(sandbox: Endpoint, door: Door) -> Cluster:
    through = replace(sandbox, server=f"https://127.0.0.1:{door.server_address[1]}")
    return Cluster(pk=4711, name="behind-a-door", kubeconfig=through.kubeconfig("admin"))


def test_steps_share_connections_and_for_seconds_what_is_served(door: Door, cluster: Cluster) -> None:
    uids = {port.connect(cluster).uid() for _ in range(5)}
    assert (len(uids), door.visits) == (1, 1)
    first, second = port.connect(cluster), port.connect(cluster)
    assert first.served() is second.served()


def test_another_kubeconfig_is_another_connection(sandbox: Endpoint, door: Door, cluster: Cluster) -> None:
    port.connect(cluster).uid()
    cluster.kubeconfig = cluster.kubeconfig.replace(sandbox.tokens["admin"], sandbox.tokens["mallory"])
    with pytest.raises(Forbidden):
        port.connect(cluster).uid()
    assert door.visits == 2


def test_what_a_trusted_kubeconfig_names_is_asked_again_sooner(
    door: Door, cluster: Cluster, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    port.connect(cluster).uid()
    monkeypatch.setattr(port, "TRUSTED_KEPT_SECONDS", 0.0)
    port.connect(cluster).uid()
    assert door.visits == 1
    settings.PRATIQUE = {**settings.PRATIQUE, "TRUSTED_KUBECONFIGS": [cluster.name]}
    for visits in (2, 3):
        port.connect(cluster).uid()
        assert door.visits == visits


def test_no_connection_is_kept_for_ever(door: Door, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    port.connect(cluster).uid()
    monkeypatch.setattr(port, "KEPT_SECONDS", 0.0)
    port.connect(cluster).uid()
    assert door.visits == 2


def test_another_timeout_is_another_connection(door: Door, cluster: Cluster, settings: Any) -> None:
    port.connect(cluster).uid()
    settings.PRATIQUE = {**settings.PRATIQUE, "CLUSTER_TIMEOUT_SECONDS": "77"}
    port.connect(cluster).uid()
    assert door.visits == 2


def test_what_is_kept_does_not_show_credentials(sandbox: Endpoint, cluster: Cluster) -> None:
    assert sandbox.tokens["admin"] not in repr(port.ClusterRoute.to(cluster))


def test_a_server_that_hung_up_meanwhile_is_met_again(door: Door, cluster: Cluster) -> None:
    port.connect(cluster).uid()
    door.hang_up()
    assert port.connect(cluster).uid()
    assert door.visits == 2


@pytest.mark.django_db
@pytest.mark.parametrize("known", [None, "of this one", "of another"])
def test_S19_a_token_of_another_cluster_behind_the_name_is_nobodys(sandbox: Endpoint, known: str | None) -> None:
    """Whoever has that other cluster makes tokens of anybody there."""
    api = Api.connect(sandbox.kubeconfig("admin"), timeout_seconds=scaled(60))
    uid = api.uid() if known == "of this one" else known
    cluster = Cluster.objects.create(
        name="prod", uid=uid, kubeconfig=sandbox.kubeconfig("admin"), created_at=timezone.now()
    )
    token = yaml.safe_load(sandbox.kubeconfig("alice"))["users"][0]["user"]["token"]
    if known == "of another":
        with pytest.raises(PreconditionFailed, match="cluster prod is a different cluster: its kube-system has uid"):
            port.RealKubernetes().review_token(cluster, token)
        return
    port.RealKubernetes().review_token(cluster, token)
    cluster.refresh_from_db()
    assert cluster.uid == api.uid()
