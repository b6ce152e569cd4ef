"""File descriptors, places and memory that run short: whoever holds most gives way, and no worker ends or spins."""

from __future__ import annotations

import contextlib
import http.client
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.networks import Proxies
from approvals.project.serving import worker
from approvals.project.serving.shares import CONNECTIONS_OF_ONE_CLIENT, MAX_GATHERED, Shares
from tests.approvals.security.limits.connections import HEAD, SECONDS, answered
from tests.support.patience import scaled, wait_for
from tests.support.servers.site import Site

thorough = pytest.mark.thorough
DESCRIPTORS = 120
# Of a worker that spins, the share is 1, also beside much other work; of those that rest, hardly anything.
SPINNING = 0.5
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
ONCE = b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"
REFUSED = HEAD + b"Content-Length: 9999999\r\n\r\n"


@pytest.fixture(scope="module", params=["", "127.0.0.0/8"], ids=["strangers", "a proxy"])
def poor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, redis: str) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("poor")
    site = Site(folder, redis, descriptors=DESCRIPTORS, is_patient=True, PRATIQUE_TRUSTED_PROXIES=request.param)
    yield site
    site.stop()


def workers_of(site: Site) -> list[int]:
    children = Path(f"/proc/{site.server.pid}/task/{site.server.pid}/children").read_text().split()
    return sorted(int(one) for one in children)


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def wait_until_none_spins(pids: list[int]) -> None:
    """Until there is a second in which their main loops hardly work: who spins has none."""
    wait_for(lambda: busy_share(pids), "no worker spins", is_so=lambda share: share < SPINNING)


def busy_share(pids: list[int]) -> float:
    """The share of a second in which their main loops worked, or waited for a processor; their sum."""
    begin, before = time.monotonic(), sum(busy_seconds(pid) for pid in pids)
    time.sleep(1)
    return (sum(busy_seconds(pid) for pid in pids) - before) / (time.monotonic() - begin)


def busy_seconds(pid: int) -> float:
    """So far, of the main thread: on a processor, and waiting for one (Documentation/scheduler/sched-stats.rst)."""
    on_processor, waiting, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return (int(on_processor) + int(waiting)) / 1e9


def status_from(port: int, source: str, path: str = "/sign-in") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=scaled(SECONDS), source_address=(source, 0))
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


@thorough
@pytest.mark.parametrize(
    "said", [b"", HEAD, WHOLE, ONCE, REFUSED], ids=["silent", "half", "kept", "lingering", "refused"]
)
def test_S29_without_file_descriptors_no_worker_ends_or_spins(poor: Site, said: bytes) -> None:
    before = workers_of(poor)
    with contextlib.ExitStack() as stack:
        for number in range(2, 9):
            source = (f"127.0.0.{number}", 0)
            for _ in range(60):
                sock = stack.enter_context(socket.create_connection(("127.0.0.1", poor.port), scaled(SECONDS), source))
                with contextlib.suppress(OSError):
                    sock.sendall(said)
        wait_until_none_spins(before)
        assert status_from(poor.port, "127.0.0.99") == 200
    assert status_from(poor.port, "127.0.0.99") == 200
    assert workers_of(poor) == before


@thorough
@pytest.mark.parametrize("spare", [None, 12], ids=["none at all", "some"])
def test_S29_accepting_that_fails_ends_no_worker_and_is_tried_again(
    tmp_path: Path, redis: str, spare: int | None
) -> None:
    """The limit is lowered once the worker has counted on a higher one: accepting itself fails then.

    One worker, so that whoever answers the probe is the one that has started whole.
    """
    site = Site(tmp_path, redis, GUNICORN_CMD_ARGS="--workers 1")
    try:
        before = workers_of(site)
        for pid in before:
            highest = max(int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir())
            _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (3 if spare is None else highest + 1 + spare, most))
        with contextlib.ExitStack() as stack:
            for number in range(2, 22):
                for _ in range(15):
                    source = (f"127.0.0.{number}", 0)
                    stack.enter_context(socket.create_connection(("127.0.0.1", site.port), scaled(SECONDS), source))
            wait_for(lambda: "cannot accept connections: EMFILE" in site.server.log.read_text(), "accepting fails")
            wait_until_none_spins(before)
        for pid in before:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
        wait_for(lambda: status_from(site.port, "127.0.0.99", "/healthz"), "served again", is_so=lambda one: one == 200)
        assert workers_of(site) == before
    finally:
        site.stop()


@thorough
def test_S29_who_comes_when_all_places_are_taken_gets_one(poor: Site) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(2, 12):
            for _ in range(40):
                source = (f"127.0.0.{number}", 0)
                stack.enter_context(socket.create_connection(("127.0.0.1", poor.port), scaled(SECONDS), source))
        assert status_from(poor.port, "127.0.0.99") == 200


@thorough
def test_S29_whoever_sends_most_unfinished_bytes_gives_way(tmp_path: Path, redis: str) -> None:
    """One client fills the memory for unfinished requests; another one's form goes through meanwhile."""
    site = Site(tmp_path, redis, is_patient=True)
    kind = b"Content-Type: application/x-www-form-urlencoded\r\n"
    greedy = HEAD + kind + b"Content-Length: 5000000\r\n\r\n" + b"x" * 4_900_000
    body = b"with=password&username=a&password=" + b"x" * 1_000_000
    try:
        with socket.create_connection(("127.0.0.1", site.port), scaled(SECONDS), ("127.0.0.9", 0)) as slow:
            slow.sendall(HEAD + kind + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body[:-1])
            with contextlib.ExitStack() as stack:
                held = []
                for _ in range(60):
                    sock = stack.enter_context(
                        socket.create_connection(("127.0.0.1", site.port), timeout=scaled(SECONDS))
                    )
                    held.append(sock)
                    with contextlib.suppress(OSError):
                        sock.sendall(greedy)
                most = 2 * (MAX_GATHERED // 4_900_000)
                wait_for(lambda: answered(held), "the others give way", is_so=lambda count: count >= 60 - most)
                slow.sendall(body[-1:])
                assert slow.recv(100).startswith(b"HTTP/1.1 403"), "read whole, and refused for want of a CSRF token"
    finally:
        site.stop()


@thorough
def test_S29_answered_connections_that_do_not_close_still_count(tmp_path: Path, redis: str) -> None:
    site = Site(tmp_path, redis, is_patient=True)
    try:
        before = sum(descriptors_of(pid) for pid in workers_of(site))
        with contextlib.ExitStack() as stack:
            clients = []
            for _ in range(600):
                sock = stack.enter_context(socket.create_connection(("127.0.0.1", site.port), timeout=scaled(SECONDS)))
                clients.append(sock)
                with contextlib.suppress(OSError):
                    sock.sendall(REFUSED)
            wait_for(lambda: answered(clients), "all are answered or closed", is_so=lambda count: count == 600)
            held = sum(descriptors_of(pid) for pid in workers_of(site)) - before
        assert held <= 2 * CONNECTIONS_OF_ONE_CLIENT + 20
    finally:
        site.stop()


def test_S29_shares_are_counted_by_network_of_ipv6() -> None:
    shares = Shares(Proxies.read("10.0.0.0/8"))
    asked = [shares.enter(f"2001:db8::{number:x}") for number in range(CONNECTIONS_OF_ONE_CLIENT + 1)]
    assert asked == [True] * CONNECTIONS_OF_ONE_CLIENT + [False]
    assert shares.enter("2001:db8:0:1::1")
    assert all(shares.enter("10.0.0.1") for _ in range(CONNECTIONS_OF_ONE_CLIENT * 2))
    assert all(shares.enter("::ffff:10.0.0.1") for _ in range(10))
    assert shares.greediest() == "10.0.0.1"


def test_S29_the_largest_holder_of_unfinished_bytes_is_found_over_all_its_addresses() -> None:
    shares = Shares(Proxies())
    shares.gather("192.0.2.1", MAX_GATHERED // 3)
    for number in range(16):
        shares.gather(f"2001:db8::{number:x}", MAX_GATHERED // 24)
    assert shares.too_much() is None
    shares.gather("192.0.2.2", 1)
    shares.gather("192.0.2.3", 64)
    assert shares.too_much() == "2001:db8::/64"


@pytest.mark.parametrize(
    ("limit", "expected"), [(120, 60), (200, 100), (1024, 896), (1_000_000, 1000), (1, 1)], ids=str
)
def test_a_worker_takes_no_more_connections_than_leave_it_file_descriptors(
    limit: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.resource, "getrlimit", lambda _: (limit, limit))
    assert worker.places(1000) == expected
