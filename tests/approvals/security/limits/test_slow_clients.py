"""Half-open connections, slow heads, slow bodies and slow readers hold neither the pages nor the probes."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.project.serving.shares import CONNECTIONS_OF_ONE_CLIENT
from tests.approvals.security.limits.connections import HALVES, HEAD, READ, SECONDS, answered, holding
from tests.support.patience import scaled, wait_for
from tests.support.servers.process import free_port
from tests.support.servers.site import Site, status_of

pytestmark = pytest.mark.thorough

# Threads of the site are 16: two workers of eight.
COUNTS = (8, 64, 180)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, redis: str) -> Iterator[Site]:
    # As behind a proxy, whose connections are not counted by address.
    folder = tmp_path_factory.mktemp("site")
    running = Site(folder, redis, is_patient=True, PRATIQUE_TRUSTED_PROXIES="127.0.0.0/8")
    yield running
    running.stop()


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("said", HALVES.values(), ids=HALVES)
def test_S29_half_open_connections_stop_neither_probes_nor_pages(site: Site, said: bytes, count: int) -> None:
    with holding(site.port, count, said):
        assert (site.probe("/healthz"), site.probe("/readyz")) == (200, 200)
        assert site.page() == 200
        assert site.page("/healthz") == 200


def test_S29_who_drips_bytes_is_cut_off(tmp_path: Path, redis: str) -> None:
    site = Site(tmp_path, redis, PRATIQUE_TRUSTED_PROXIES="127.0.0.0/8")
    begin = time.monotonic()

    def is_cut() -> bool:
        try:
            for sock in held:
                sock.sendall(b"X")
        except OSError:
            return True
        assert site.page("/healthz") == 200
        return False

    try:
        with holding(site.port, 20, HEAD) as held:
            wait_for(is_cut, "who drips bytes is cut off", every=0.5)
        assert time.monotonic() - begin > 8
    finally:
        site.stop()


def test_S29_half_a_request_on_a_kept_connection_holds_no_thread(site: Site) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with holding(site.port, 64, whole) as held:
        for sock in held:
            assert b"200 OK" in sock.recv(4096)
            sock.sendall(HEAD)
        assert site.page() == 200
    with holding(site.port, 64, whole + HEAD):
        assert site.page() == 200


def test_S29_who_does_not_close_after_the_answer_stops_nobody(site: Site) -> None:
    for said in (b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b"nonsense\r\n\r\n"):
        with holding(site.port, 64, said) as held:
            for sock in held:
                while sock.recv(4096):
                    pass
            assert site.page() == 200


LARGE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"


def test_S29_who_does_not_read_the_answer_holds_no_thread(site: Site) -> None:
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(64):
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(scaled(SECONDS))
            sock.connect(("127.0.0.1", site.port))
            # Several: the kernel itself takes more than one on the way to this machine.
            sock.sendall(f"GET {LARGE} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 4)
            held.append(sock)
        wait_for(lambda: answered(held), "all answers have begun", is_so=lambda count: count == 64)
        assert site.page() == 200


def test_a_large_answer_comes_whole_to_who_reads_slowly(site: Site) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=scaled(SECONDS))
    connection.request("GET", LARGE)
    whole = connection.getresponse().read()
    connection.request("GET", LARGE)
    answer = connection.getresponse()
    pieces = []
    while piece := answer.read(65536):
        pieces.append(piece)
        time.sleep(0.02)
    assert len(whole) > 1_000_000
    assert b"".join(pieces) == whole
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200


def test_S29_slow_clients_do_not_stop_the_probes_own_address(site: Site) -> None:
    with holding(site.probe_port, 300, b"GET /healthz HTTP/1.1\r\n"):
        assert site.probe("/healthz") == 200


@pytest.mark.parametrize("size", [10, 100_000, 3_000_000])
def test_bodies_come_through_whole_also_in_pieces(site: Site, size: int) -> None:
    body = b"with=password&username=a&password=" + b"x" * size
    with socket.create_connection(("127.0.0.1", site.port), timeout=scaled(SECONDS)) as sock:
        kind = b"Content-Type: application/x-www-form-urlencoded\r\n"
        sock.sendall(HEAD + kind + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body))
        for begin in range(0, len(body), max(1, len(body) // 7)):
            sock.sendall(body[begin : begin + max(1, len(body) // 7)])
            time.sleep(0.02)
        answer = sock.recv(65536)
    # Refused for want of a CSRF token: the body was read and the form understood.
    assert answer.startswith(b"HTTP/1.1 403"), answer[:200]


def test_connections_are_kept_and_pipelined_requests_answered_in_order(site: Site) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=scaled(SECONDS))
    for path, status in (("/healthz", 200), ("/nowhere", 404), ("/sign-in", 200)):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert (answer.status, connection.sock is not None) == (status, True)
    connection.close()
    one = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n"
    with socket.create_connection(("127.0.0.1", site.port), timeout=scaled(SECONDS)) as sock:
        sock.sendall(one % (b"/nowhere", b"") + one % (b"/healthz", b"Connection: close\r\n"))
        said = b"".join(iter(lambda: sock.recv(65536), b""))
    assert said.index(b"404 Not Found") < said.index(b"200 OK")


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        pytest.param(b"Transfer-Encoding: chunked\r\n", b"411", id="chunks"),
        pytest.param(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"411", id="chunks and a length"),
        pytest.param(b"Content-Length: 000000000000000000099999\r\n", b"400", id="leading zeros"),
        pytest.param(b"Content-Length: 5\r\nContent-Length: 99999\r\n", b"400", id="two lengths"),
        pytest.param(b"Content-Length: +5\r\n", b"400", id="a sign"),
        pytest.param(b"Content-Length: 5, 99999\r\n", b"400", id="a list of lengths"),
        pytest.param(b"Content-Length:\r\n", b"400", id="no number"),
        pytest.param(b"Content-Length: 6000000\r\n", b"413", id="too large"),
    ],
)
def test_S29_a_body_whose_length_is_in_doubt_reaches_no_thread(site: Site, lines: bytes, status: bytes) -> None:
    with holding(site.port, 40, READ + lines + b"\r\n--x\r\n") as held:
        assert {sock.recv(100).split()[1] for sock in held} == {status}
        assert site.page() == 200


def test_S29_a_head_that_is_too_long_is_refused(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=scaled(SECONDS)) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 100_000)
        assert sock.recv(100).startswith(b"HTTP/1.1 4")


def test_S29_one_address_has_so_many_connections_at_most(tmp_path: Path, redis: str) -> None:
    site = Site(tmp_path, redis, is_patient=True)
    try:
        with holding(site.port, 900, b"") as held:
            most = 2 * CONNECTIONS_OF_ONE_CLIENT
            wait_for(lambda: answered(held), "the others are closed", is_so=lambda count: count >= 900 - most)
            # The site's workers have 2,000 places between them; another address still finds some.
            connection = http.client.HTTPConnection(
                "127.0.0.1", site.port, timeout=scaled(SECONDS), source_address=("127.0.0.2", 0)
            )
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
        wait_for(lambda: site.page("/healthz") == 200, "the address is served again")
    finally:
        site.stop()


def test_a_probe_address_that_is_taken_stops_the_start_with_words(tmp_path: Path, redis: str, site: Site) -> None:
    from tests.support.servers.process import ServiceFailed

    with pytest.raises(ServiceFailed, match="cannot listen on PRATIQUE_PROBE_ADDRESS 127.0.0.1"):
        Site(tmp_path, redis, PRATIQUE_PROBE_ADDRESS=f"127.0.0.1:{site.probe_port}")


def test_the_probes_answer_get_of_their_paths_only(site: Site) -> None:
    assert (site.probe("/healthz?x=1"), site.probe("/sign-in"), site.probe("/")) == (200, 404, 404)
    connection = http.client.HTTPConnection("127.0.0.1", site.probe_port, timeout=scaled(SECONDS))
    connection.request("POST", "/healthz")
    assert connection.getresponse().status == 405
    assert status_of(free_port(), "/healthz") == 0
