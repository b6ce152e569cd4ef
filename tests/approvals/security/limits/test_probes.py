"""Slow clients stop the probes neither at the pages' address nor at their own, and their threads are freed."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from approvals.project import metrics_folder
from tests.approvals.security.limits.connections import HALVES, HEAD, SECONDS, holding
from tests.support.patience import scaled
from tests.support.servers.process import ServiceFailed, free_port
from tests.support.servers.site import Site, status_of

with pytest.MonkeyPatch.context() as patch:
    # What this process counts stays in it.
    patch.setattr(metrics_folder, "provide", lambda: None)
    from approvals.project import gunicorn

thorough = pytest.mark.thorough
# Of a site as it is shipped: two workers of eight.
THREADS = gunicorn.workers * gunicorn.threads


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, redis: str) -> Iterator[Site]:
    running = Site(tmp_path_factory.mktemp("site"), redis, is_patient=True)
    yield running
    running.stop()


@thorough
@pytest.mark.parametrize("said", HALVES.values(), ids=HALVES)
def test_S29_slow_clients_of_the_pages_do_not_stop_the_probes(site: Site, said: bytes) -> None:
    with holding(site.port, 180, said):
        assert (site.probe("/healthz"), site.probe("/readyz")) == (200, 200)


@thorough
def test_S29_slow_clients_do_not_stop_the_probes_own_address(site: Site) -> None:
    with holding(site.probe_port, 300, b"GET /healthz HTTP/1.1\r\n"):
        assert site.probe("/healthz") == 200


@thorough
def test_S29_who_sends_half_a_request_without_a_proxy_frees_its_thread(site: Site) -> None:
    """Each thread waits for one of them; the page is asked for while all do."""
    with holding(site.port, THREADS, HEAD):
        assert site.page("/healthz", seconds=3 * gunicorn.CLIENT_SECONDS) == 200
    assert "Traceback" not in site.server.log.read_text()


def test_S29_a_thread_waits_for_no_client_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection of a socket as gunicorn has it: in a thread of the pages, it has no time limit of Python's."""
    monkeypatch.setattr(gunicorn, "CLIENT_SECONDS", 1)
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        gunicorn.when_ready(SimpleNamespace(LISTENERS=[SimpleNamespace(sock=listening, getsockname=lambda: ("", 0))]))
        with socket.create_connection(listening.getsockname()) as client:
            accepted, _ = listening.accept()
            with accepted:
                client.sendall(HEAD)
                accepted.setblocking(True)
                assert accepted.recv(4096) == HEAD
                with pytest.raises(BlockingIOError):
                    accepted.recv(4096)
                with pytest.raises(BlockingIOError):
                    accepted.sendall(bytes(64 * 1024 * 1024))


@thorough
def test_a_probe_address_that_is_taken_stops_the_start_with_words(tmp_path: Path, redis: str, site: Site) -> None:
    with pytest.raises(ServiceFailed, match="cannot listen on PRATIQUE_PROBE_ADDRESS 127.0.0.1"):
        Site(tmp_path, redis, PRATIQUE_PROBE_ADDRESS=f"127.0.0.1:{site.probe_port}")


@thorough
def test_the_probes_answer_get_of_their_paths_only(site: Site) -> None:
    assert (site.probe("/healthz?x=1"), site.probe("/sign-in"), site.probe("/")) == (200, 404, 404)
    connection = http.client.HTTPConnection("127.0.0.1", site.probe_port, timeout=scaled(SECONDS))
    connection.request("POST", "/healthz")
    assert connection.getresponse().status == 405
    assert status_of(free_port(), "/healthz") == 0
