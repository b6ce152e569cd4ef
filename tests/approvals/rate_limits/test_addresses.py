"""Whose address a request comes from, and which addresses are counted as one client (security-rules.md S29)."""

from __future__ import annotations

import pytest
from django.test import RequestFactory
from pytest_django import Settings

from approvals.project import configuration
from approvals.rate_limits import client_address
from approvals.rate_limits.clients import counted_as


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "expected"),
    [
        ("", "192.0.2.1", "10.0.0.1", "192.0.2.1"),
        ("10.0.0.0/8", "192.0.2.1", "10.0.0.1", "192.0.2.1"),
        ("10.0.0.0/8", "10.0.0.5", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.0/8", "10.0.0.5", "203.0.113.9, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.0/8", "10.0.0.5", "203.0.113.9, 192.0.2.1, 10.0.0.6", "192.0.2.1"),
        ("10.0.0.0/8", "10.0.0.5", "", "10.0.0.5"),
        ("10.0.0.0/8", "10.0.0.5", "203.0.113.9, nonsense", "10.0.0.5"),
        ("10.0.0.0/8", "::ffff:10.0.0.5", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.0/8", "10.0.0.5", "10.0.0.7, " * 500 + "10.0.0.8", "10.0.0.7"),
        ("fd00::/8", "fd00::1", "2001:db8::1", "2001:db8::1"),
        ("", "", "192.0.2.1", "unknown"),
        ("10.0.0.0/8", "", "192.0.2.1", "unknown"),
        ("unix", "", "192.0.2.1", "192.0.2.1"),
        ("unix", "", "203.0.113.9, 192.0.2.1", "192.0.2.1"),
        ("unix", "", "", "unknown"),
        ("unix", "", "nonsense", "unknown"),
        ("unix", "127.0.0.1", "192.0.2.1", "127.0.0.1"),
        ("unix, 10.0.0.0/8", "", "192.0.2.1, 10.0.0.5", "192.0.2.1"),
        ("fe80::/10", "fe80::1%eth0", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.0/8", "10.0.0.5", "192.0.2.1:4711", "10.0.0.5"),
        ("10.0.0.0/8", "10.0.0.5", "::ffff:10.0.0.9, ::ffff:10.0.0.7", "10.0.0.9"),
    ],
)
def test_S29_a_forwarded_address_is_believed_from_trusted_proxies_only(
    settings: Settings, trusted: str, peer: str, forwarded: str, expected: str
) -> None:
    networks = configuration.read({"PRATIQUE_TRUSTED_PROXIES": trusted})["TRUSTED_PROXIES"]
    settings.PRATIQUE = {**settings.PRATIQUE, "TRUSTED_PROXIES": networks}
    http = RequestFactory().get("/", headers={"X-Forwarded-For": forwarded}, REMOTE_ADDR=peer)
    assert client_address(http) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("", "unknown"),
        ("x" * 1000, "unknown"),
    ],
)
def test_S29_what_is_counted_as_one_client(address: str, expected: str) -> None:
    assert counted_as(address) == expected
