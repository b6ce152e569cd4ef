"""Whose word about a client counts, and what the operator is told where everybody seems to be one."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, RequestFactory
from pytest_django import Settings

from approvals.health_endpoints.checks import PROBES
from approvals.networks import Proxies
from approvals.project.middleware import Forwarding
from approvals.rate_limits import clients
from tests.support.approvals.fixtures import World
from tests.support.patience import scaled
from tests.support.servers.http import Listening, Reply
from tests.support.servers.process import free_port
from tests.support.servers.site import Site, refusal_of

PROXY, CLIENT = "10.0.0.5", "198.51.100.9"
PUBLIC = "https://pratique.example"


@pytest.fixture(autouse=True)
def noticed_nothing() -> Iterator[None]:
    clients.notes.forget()
    yield
    clients.notes.forget()


@pytest.fixture
def trusting(settings: Settings) -> None:
    trust(settings, "10.0.0.0/8")


def trust(settings: Settings, proxies: str) -> None:
    known = {"TRUSTED_PROXIES": Proxies.read(proxies), "PUBLIC_URL": PUBLIC}
    settings.PRATIQUE = {**settings.PRATIQUE, **known}


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize(
    ("peer", "said", "expected"),
    [
        (PROXY, "https", True),
        (PROXY, "HTTPS", True),
        (PROXY, "https, https", True),
        (CLIENT, "https", False),
        ("", "https", False),
        ("unknown", "https", False),
        (PROXY, "", False),
        (PROXY, "http", False),
        (PROXY, "https, http", False),
        (PROXY, "http, https", False),
        (PROXY, "https,", False),
        (PROXY, "https;x", False),
        (PROXY, "wss", False),
    ],
)
def test_S29_tls_is_believed_from_trusted_proxies_only(peer: str, said: str, expected: bool) -> None:
    seen: list[bool] = []
    request = RequestFactory().get("/", headers={"X-Forwarded-Proto": said}, REMOTE_ADDR=peer)
    Forwarding(lambda passed: seen.append(passed.is_secure()))(request)
    assert seen == [expected]


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize("peer", [PROXY, CLIENT])
def test_S29_other_headers_of_proxies_reach_nothing(peer: str) -> None:
    hostile = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Port": "1",
        "X-Forwarded-Ssl": "on",
        "Forwarded": "for=203.0.113.1;proto=https;host=evil.example",
        "X-Real-IP": "203.0.113.1",
    }
    kept: dict[str, Any] = {}
    request = RequestFactory().get("/", headers=hostile, REMOTE_ADDR=peer)
    Forwarding(lambda passed: kept.update(passed.META))(request)
    assert not kept.keys() & {f"HTTP_{name.upper().replace('-', '_')}" for name in hostile}


@pytest.mark.usefixtures("trusting")
def test_S29_a_stranger_gets_no_promise_of_tls(env: World, settings: Settings) -> None:
    settings.SECURE_HSTS_SECONDS = 60
    for peer, is_promised in ((PROXY, True), (CLIENT, False)):
        answer = Client(REMOTE_ADDR=peer, headers={"X-Forwarded-Proto": "https"}).get("/sign-in")
        assert ("Strict-Transport-Security" in answer) is is_promised


def ready() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(PROBES["/readyz"]({}).body)
    return answer


def test_S29_a_proxy_that_nobody_named_is_told_of_once(
    env: World, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    trust(settings, "")
    client = Client(REMOTE_ADDR=PROXY, headers={"X-Forwarded-For": CLIENT})
    for _ in range(5):
        client.get("/sign-in")
    assert [one.message for one in caplog.records if one.levelname == "WARNING"].count(clients.UNBELIEVED) == 1
    assert clients.UNBELIEVED in ready()["notes"]["addresses"]


def test_a_proxy_that_was_named_is_nothing_to_tell(env: World, settings: Settings) -> None:
    trust(settings, "10.0.0.0/8")
    for number in range(clients.LOOKED_AT):
        Client(REMOTE_ADDR=PROXY, headers={"X-Forwarded-For": f"198.51.100.{number % 50}"}).get("/nowhere")
    assert "notes" not in ready()


def test_S29_what_strangers_say_of_others_reaches_nothing(settings: Settings) -> None:
    trust(settings, "10.0.0.0/8")
    for peer, is_kept in ((PROXY, True), (CLIENT, False)):
        kept: dict[str, Any] = {}
        request = RequestFactory().get("/", headers={"X-Forwarded-For": "203.0.113.1"}, REMOTE_ADDR=peer)
        Forwarding(lambda passed, into=kept: into.update(passed.META))(request)
        assert ("HTTP_X_FORWARDED_FOR" in kept) is is_kept


def test_health_checks_of_a_load_balancer_are_no_crowd(env: World, settings: Settings) -> None:
    trust(settings, "")
    for _ in range(clients.LOOKED_AT):
        Client(REMOTE_ADDR=PROXY).get("/healthz")
    assert clients.found() == []


def noticed(addresses: list[str]) -> list[str]:
    for client in addresses:
        clients.notes.note(PROXY, client, is_unbelieved=False)
    return clients.found()


@pytest.mark.parametrize(
    ("addresses", "is_told"),
    [
        pytest.param(["10.9.0.1"] * 200, True, id="an ingress that hides the addresses"),
        pytest.param(["127.0.0.1"] * 200, True, id="nginx beside it that was not named"),
        pytest.param(["100.64.3.4"] * 200, True, id="an address of a carrier or a cluster"),
        pytest.param(["fd00::1"] * 200, True, id="a private address of IPv6"),
        pytest.param([CLIENT] * 5 + ["10.9.0.1"] * 195, True, id="nearly all"),
        pytest.param(["10.9.0.1"] * 199, False, id="too few to tell"),
        pytest.param([CLIENT, "10.9.0.1"] * 100, False, id="half of them"),
        pytest.param(["9.9.9.9"] * 200, False, id="one busy address of the internet"),
        pytest.param([f"10.9.0.{number}" for number in range(200)], False, id="many of one network"),
        pytest.param(["10.9.0.1"] * 200 + [CLIENT] * 20, False, id="not any more"),
    ],
)
def test_S29_the_operator_is_told_when_everybody_is_one_address(addresses: list[str], is_told: bool) -> None:
    assert (clients.CROWDED in noticed(addresses)) is is_told


def test_what_is_noticed_does_not_make_the_service_unready(settings: Settings, db: None) -> None:
    noticed(["10.9.0.1"] * 200)
    assert clients.CROWDED in ready()["notes"]["addresses"]
    assert clients.CROWDED not in ready()["checks"].values()


def test_nothing_is_told_where_the_site_is_for_this_machine_alone(env: World) -> None:
    for _ in range(clients.LOOKED_AT):
        Client(REMOTE_ADDR="127.0.0.1", headers={"X-Forwarded-For": CLIENT}).get("/nowhere")
    assert clients.found() == []


class OverSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=scaled(60))
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


@pytest.mark.thorough
def test_S29_a_unix_socket_is_refused_until_a_proxy_on_it_is_trusted(tmp_path: Path, redis: str) -> None:
    words = refusal_of("--bind", f"unix:{tmp_path}/x.sock", PRATIQUE_TRUSTED_PROXIES="10.0.0.0/8")
    assert "add unix to PRATIQUE_TRUSTED_PROXIES" in words
    public = {"PRATIQUE_PUBLIC_URL": PUBLIC, "PRATIQUE_ALLOWED_HOSTS": "localhost"}
    site = Site(tmp_path, redis, is_patient=True, PRATIQUE_TRUSTED_PROXIES="unix", **public)
    path = site.socket
    try:
        for number in range(302):
            over = OverSocket(path)
            over.request("GET", "/nowhere", headers={"X-Forwarded-For": f"203.0.113.{number}, {CLIENT}"})
            status = over.getresponse().status
            over.close()
        assert status == 429, "made-up addresses on the left count nothing"
        over = OverSocket(path)
        over.request("GET", "/sign-in", headers={"X-Forwarded-For": "192.0.2.7"})
        assert over.getresponse().status == 200, "another client is counted apart"
        over.close()
        assert clients.NAMELESS not in site.server.log.read_text()
        over = OverSocket(path)
        over.request("GET", "/sign-in")
        assert over.getresponse().status == 200
        assert clients.NAMELESS in site.server.log.read_text()
    finally:
        site.stop()


@pytest.mark.thorough
def test_S01_a_unix_socket_that_everybody_may_open_is_refused(tmp_path: Path) -> None:
    words = refusal_of("--bind", f"unix:{tmp_path}/x.sock", "--umask", "0", PRATIQUE_TRUSTED_PROXIES="unix")
    assert "everyone on this machine can open the Unix socket" in words


# What would have gunicorn itself believe what a client writes, and what it is called in the refusal.
BELIEVING = {
    "--forwarded-allow-ips=*": "forwarded_allow_ips",
    "--forwarded-allow-ips=10.0.0.5": "forwarded_allow_ips",
    "--forwarder-headers=X_REMOTE_USER": "forwarder_headers",
    "--forwarder-headers=*": "forwarder_headers",
    "--proxy-protocol": "proxy_protocol",
    "--proxy-protocol=v2": "proxy_protocol",
    "--protocol=uwsgi": "protocol",
    "--header-map=dangerous": "header_map",
    "--permit-obsolete-folding": "permit_obsolete_folding",
    "--strip-header-spaces": "strip_header_spaces",
    "--http2-cleartext=upgrade": "http2_cleartext",
    "--worker-class=asgi": "worker_class",
    "--proxy-protocol=auto --forwarder-headers=X_REMOTE_USER": "forwarder_headers, proxy_protocol",
}


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "named"), BELIEVING.items(), ids=BELIEVING)
def test_S01_gunicorn_does_not_start_where_it_would_believe_its_clients(words: str, named: str) -> None:
    said = refusal_of("--bind", f"127.0.0.1:{free_port()}", GUNICORN_CMD_ARGS=words)
    assert f"{named}: with another value than the shipped one, clients could forge the headers or addresses" in said


@pytest.mark.thorough
def test_S01_nor_where_its_command_line_says_so() -> None:
    said = refusal_of("--bind", f"127.0.0.1:{free_port()}", "--proxy-protocol", "v1")
    assert "proxy_protocol: with another value than the shipped one" in said


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("trusted", "is_told"), [("127.0.0.1/32", True), ("::1/128", True), ("unix", False), ("10.0.0.0/8", False)]
)
def test_S29_the_operator_is_told_that_the_loopback_address_is_no_proxys_own(trusted: str, is_told: bool) -> None:
    taken = Listening(lambda asked: Reply())
    try:
        # Its warnings come before it fails.
        said = refusal_of("--bind", taken.host, PRATIQUE_TRUSTED_PROXIES=trusted, PRATIQUE_PROBE_ADDRESS=taken.host)
    finally:
        taken.stop()
    assert ("PRATIQUE_TRUSTED_PROXIES contains the loopback address" in said) is is_told


def test_S29_a_setting_of_proxies_that_cannot_be_read_is_refused() -> None:
    from approvals.project import configuration

    for text in ("10.0.0.0/40", "nginx", "10.0.0.5/8", "socket"):
        with pytest.raises(ValueError, match="PRATIQUE_TRUSTED_PROXIES"):
            configuration.read({"PRATIQUE_TRUSTED_PROXIES": text})
