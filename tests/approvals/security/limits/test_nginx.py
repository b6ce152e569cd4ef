"""The shipped nginx configuration before the shipped gunicorn: slow clients, floods and made-up addresses."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.approvals.security.limits.connections import HALVES, HEAD, SECONDS, answered, holding
from tests.support.patience import scaled, wait_for
from tests.support.servers.nginx import Nginx
from tests.support.servers.process import wait_until
from tests.support.servers.site import Site, status_of

pytestmark = pytest.mark.thorough
# So that nobody goes for being slow, and no limit allows more while the test runs, however slow this machine is.
PATIENT = {
    "client_header_timeout 10s;": "client_header_timeout 1h;",
    "client_body_timeout 10s;": "client_body_timeout 1h;",
    "rate=2r/s;": "rate=1r/m;",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, redis: str) -> Iterator[Site]:
    running = Site(tmp_path_factory.mktemp("site"), redis, PRATIQUE_TRUSTED_PROXIES="unix")
    yield running
    running.stop()


@pytest.fixture
def nginx(site: Site) -> Iterator[Nginx]:
    # One a test: what one test used up of its limits does not count in the next.
    running = Nginx(site.socket, edits=PATIENT)
    yield running
    running.stop()


def get(port: int, path: str, *, source: str = "127.0.0.1", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=scaled(SECONDS), source_address=(source, 0))
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


LARGE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"


def test_S29_who_does_not_read_the_answer_holds_no_thread(nginx: Nginx, site: Site) -> None:
    """More of them than the site has threads; the kernel itself takes more than one answer on the way to this machine."""
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(40):
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(scaled(SECONDS))
            sock.connect(("127.0.0.1", nginx.port))
            sock.sendall(f"GET {LARGE} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 4)
            held.append(sock)
        wait_for(lambda: answered(held), "all answers have begun", is_so=lambda count: count == 40)
        assert (site.page(), get(nginx.port, "/sign-in", source="127.0.0.2")) == (200, 200)


def test_S29_who_does_not_close_after_the_answer_stops_nobody(nginx: Nginx, site: Site) -> None:
    for said in (b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b"nonsense\r\n\r\n"):
        with holding(nginx.port, 40, said) as held:
            for sock in held:
                while sock.recv(4096):
                    pass
            assert site.page() == 200


def test_S29_who_takes_too_long_is_cut_off_by_nginx_as_shipped(site: Site) -> None:
    shipped = Nginx(site.socket)
    begin = time.monotonic()
    try:
        with holding(shipped.port, 20, HEAD) as held:
            wait_for(lambda: answered(held), "they are cut off", is_so=lambda count: count == 20)
        assert time.monotonic() - begin > 8
    finally:
        shipped.stop()


@pytest.mark.parametrize("said", HALVES.values(), ids=HALVES)
def test_S29_slow_clients_of_nginx_stop_nobody(nginx: Nginx, site: Site, said: bytes) -> None:
    with holding(nginx.port, 300, said):
        assert get(nginx.port, "/sign-in", source="127.0.0.2") == 200
        assert (site.page(), site.probe("/healthz")) == (200, 200)


def test_S29_a_drip_that_never_ends_does_not_reach_the_service(nginx: Nginx, site: Site) -> None:
    length = 30
    with holding(nginx.port, 50, HEAD + b"Content-Length: %d\r\n\r\n" % length) as held:
        for _ in range(6):
            time.sleep(0.3)  # it drips: nothing is waited for
            for sock in held:
                sock.sendall(b"x")
            assert site.page("/healthz") == 200


def test_S29_one_address_has_so_many_connections_at_nginx(nginx: Nginx) -> None:
    with holding(nginx.port, 70, b"POST /theme HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n") as held:
        wait_for(lambda: answered(held), "those beyond 60 are refused", is_so=lambda count: count == 10)
        assert get(nginx.port, "/healthz") == 429
        assert get(nginx.port, "/healthz", source="127.0.0.2") == 200


def test_S29_a_flood_of_sign_ins_is_stopped_before_the_service(nginx: Nginx) -> None:
    found = Counter(get(nginx.port, "/sign-in") for _ in range(60))
    assert found[429] > 20
    assert found[200] + found[429] == 60
    assert get(nginx.port, "/sign-in", source="127.0.0.2") == 200


def test_S29_an_address_that_the_client_made_up_is_overwritten(nginx: Nginx, site: Site) -> None:
    made_up = {"X_Forwarded_For": "203.0.113.66", "X_Real_IP": "203.0.113.67", "Forwarded": "for=203.0.113.68"}
    assert get(nginx.port, "/sign-in?mark=proxy", source="127.0.0.9", **made_up) == 200
    wait_until(lambda: '"client": "127.0.0.9"' in site.server.log.read_text(), "the request in the log", LOG_SECONDS)
    assert "203.0.113" not in site.server.log.read_text()


@pytest.fixture
def behind(site: Site) -> Iterator[Nginx]:
    """With an Ingress before it that connects from 127.0.0.7."""
    running = Nginx(site.socket, "127.0.0.7/32", edits=PATIENT)
    yield running
    running.stop()


INGRESS = "127.0.0.7"
LOG_SECONDS = 30.0


def logged(site: Site, mark: str) -> str:
    def lines() -> list[str]:
        return [line for line in site.server.log.read_text().splitlines() if f'"path": "/{mark}"' in line]

    wait_until(lambda: bool(lines()), "the request in the log", LOG_SECONDS)
    (line,) = lines()
    return str(json.loads(line)["client"])


@pytest.mark.parametrize(
    ("source", "forwarded", "expected"),
    [
        pytest.param(INGRESS, "203.0.113.5", "203.0.113.5", id="the Ingress says it"),
        pytest.param(INGRESS, "198.51.100.1, 203.0.113.5", "203.0.113.5", id="the client put one before it"),
        pytest.param(INGRESS, "203.0.113.5, 127.0.0.7", "203.0.113.5", id="two proxies"),
        pytest.param(INGRESS, "nonsense", INGRESS, id="nonsense"),
        pytest.param("127.0.0.8", "203.0.113.5", "127.0.0.8", id="a stranger says it"),
    ],
)
def test_S29_the_address_is_taken_from_proxies_that_the_operator_named(
    behind: Nginx, site: Site, source: str, forwarded: str, expected: str
) -> None:
    mark = f"mark-{abs(hash((source, forwarded)))}"
    assert get(behind.port, f"/{mark}", source=source, X_Forwarded_For=forwarded) == 404
    assert logged(site, mark) == expected


def test_S29_clients_behind_an_ingress_are_limited_one_by_one(behind: Nginx) -> None:
    def asked(client: str, times: int) -> Counter[int]:
        return Counter(get(behind.port, "/sign-in", source=INGRESS, X_Forwarded_For=client) for _ in range(times))

    assert asked("203.0.113.5", 60)[429] > 20
    assert asked("203.0.113.6", 1) == {200: 1}
    networks = ("2001:db8:1:2:a::%x", "2001:db8:1:2:%x:3:4:5")
    found = sum((asked(network % number, 1) for number in range(1, 31) for network in networks), Counter[int]())
    assert found[429] > 20, "addresses of one IPv6 network count as one"
    assert asked("2001:db8:1:3:a::1", 1) == {200: 1}


@pytest.mark.parametrize(
    ("source", "headers", "is_secure"),
    [
        pytest.param(INGRESS, {"X_Forwarded_For": "203.0.113.5", "X_Forwarded_Proto": "https"}, True, id="the Ingress"),
        pytest.param(INGRESS, {"X_Forwarded_For": "203.0.113.5", "X_Forwarded_Proto": "http"}, False, id="plain"),
        pytest.param(INGRESS, {"X_Forwarded_For": "203.0.113.5"}, False, id="says nothing"),
        pytest.param("127.0.0.8", {"X_Forwarded_For": "203.0.113.5", "X_Forwarded_Proto": "https"}, False, id="other"),
        pytest.param("127.0.0.8", {"X_Forwarded_Proto": "https"}, False, id="nobody"),
    ],
)
def test_S29_tls_is_believed_from_proxies_that_the_operator_named(
    tls: Nginx, source: str, headers: dict[str, str], is_secure: bool
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", tls.port, timeout=scaled(SECONDS), source_address=(source, 0))
    connection.request("GET", "/sign-in", headers={name.replace("_", "-"): value for name, value in headers.items()})
    assert (connection.getresponse().getheader("Strict-Transport-Security") is not None) is is_secure


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory, redis: str) -> Iterator[Nginx]:
    """A site that is reached over TLS, which ends at the Ingress."""
    folder = tmp_path_factory.mktemp("tls")
    running = Site(folder, redis, PRATIQUE_TRUSTED_PROXIES="unix", PRATIQUE_HTTPS="true")
    before = Nginx(running.socket, "127.0.0.7/32")
    yield before
    before.stop()
    running.stop()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 40_000 + b"\r\n\r\n", b"400"),
        (b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"414"),
        (HEAD + b"Content-Length: 5000000\r\n\r\n", b"413"),
        (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 99999\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: +5\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: 5, 99999\r\n\r\n", b"400"),
        (HEAD + b"Content-Length:\r\n\r\n", b"400"),
    ],
    ids=["head", "line", "body", "chunks and a length", "two lengths", "a sign", "a list", "no number"],
)
def test_S29_what_is_too_long_or_of_no_certain_length_is_refused_by_nginx(
    nginx: Nginx, head: bytes, status: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", nginx.port), timeout=scaled(SECONDS)) as sock:
        sock.sendall(head)
        assert sock.recv(100).startswith(b"HTTP/1.1 " + status)


def test_a_form_and_a_page_go_through(nginx: Nginx) -> None:
    assert status_of(nginx.port, "/sign-in") == 200
    connection = http.client.HTTPConnection("127.0.0.1", nginx.port, timeout=scaled(SECONDS))
    connection.request("POST", "/sign-in", body=b"a=" + b"x" * 200_000, headers={"Content-Type": "text/plain"})
    assert connection.getresponse().status == 403
