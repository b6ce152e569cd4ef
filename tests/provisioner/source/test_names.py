"""Names that resolve as an attacker likes (S18): what was checked is what is connected to."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from provisioner.errors import ForbiddenAddress, Unreachable
from provisioner.source import EgressPolicy, HttpSource, fetch
from provisioner.source.egress import resolve
from tests.support.servers.hostile import HERE, MAX
from tests.support.servers.http import FileServer


def _resolver(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """A hostile name server: each look-up of a name takes the next of `answers`; returns the names asked for."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *rest: Any, **more: Any) -> list[Any]:
        if host.replace(".", "").isdigit() or ":" in host:
            return real(host, port, *rest, **more)
        asked.append(host)
        addresses = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def test_S18_a_name_with_one_public_and_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolver(monkeypatch, ["1.1.1.1", "10.0.0.1"])
    with pytest.raises(ForbiddenAddress, match=r"evil\.example resolves to 10\.0\.0\.1"):
        resolve("evil.example", 443, EgressPolicy(), 5)


def test_S18_the_address_that_was_checked_is_the_one_that_is_connected_to(
    monkeypatch: pytest.MonkeyPatch, web: FileServer
) -> None:
    url = web.serve("/x.yaml", b"kind: A\n").replace("127.0.0.1", "rebinding.example")
    asked = _resolver(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
    assert fetch(HttpSource(url), egress=HERE, max_bytes=MAX).archives[0].data == b"kind: A\n"
    assert asked == ["rebinding.example"]


def test_S18_a_name_that_moves_inside_between_two_connections_is_refused(
    monkeypatch: pytest.MonkeyPatch, web: FileServer
) -> None:
    port = web.url.rpartition(":")[2]
    web.serve(
        "/x.yaml", status=302, headers={"Location": f"http://rebinding.example:{port}/y.yaml", "Connection": "close"}
    )
    _resolver(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
    with pytest.raises(ForbiddenAddress, match=r"169\.254\.169\.254"):
        fetch(HttpSource(f"http://rebinding.example:{port}/x.yaml"), egress=HERE, max_bytes=MAX)


def test_an_address_that_does_not_answer_is_followed_by_the_next(
    monkeypatch: pytest.MonkeyPatch, web: FileServer
) -> None:
    url = web.serve("/x.yaml", b"1").replace("127.0.0.1", "two.example")
    _resolver(monkeypatch, ["127.0.0.77", "127.0.0.1"])
    assert fetch(HttpSource(url), egress=HERE, max_bytes=MAX).archives[0].data == b"1"


def test_a_name_that_does_not_exist_can_be_tried_later() -> None:
    with pytest.raises(Unreachable, match="cannot be resolved"):
        resolve("does-not-exist.invalid", 443, EgressPolicy(), 10)


def test_a_resolver_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [never.wait()][:0])
    with pytest.raises(Unreachable, match="cannot be resolved in time"):
        resolve("slow.example", 443, EgressPolicy(), 0.2)
    never.set()
