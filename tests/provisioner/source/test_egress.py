"""Where sources may lead: addresses in every spelling, URLs that two readers read differently, hosts by pattern (S18)."""

from __future__ import annotations

import ipaddress
from dataclasses import replace

import pytest

from provisioner.errors import BadSource, ForbiddenAddress, Unreachable
from provisioner.source.egress import (
    EgressPolicy,
    Origin,
    check_address,
    check_place,
    pinned_url,
    place_of,
    resolve,
    shown,
)
from tests.provisioner.source.places import LOOPBACK, OPEN, STRICT

SECONDS = 60.0
# Those of the blocks below are refused there, and within other addresses too.
INSIDE = {
    "loopback": "127.0.0.1",
    "metadata of one cloud": "168.63.129.16",
    "IPv6 link-local with a zone": "fe80::1%1",
    "compatible loopback": "::127.0.0.1",
    "translated": "::ffff:0:7f00:1",
}


@pytest.mark.parametrize("address", INSIDE.values(), ids=INSIDE)
def test_s18_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(ForbiddenAddress, match=r"evil\.example resolves to .*PRATIQUE_ALLOWED_NETWORKS"):
        check_address(address, STRICT, "evil.example")


# Every block of IANA's two special-purpose registries, and of its multicast ones; 64:ff9b::/96 and 2002::/16 hold IPv4
# addresses, and are judged by these.
REGISTERED = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "::/128", "::1/128",
    "::ffff:0:0/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32",
    "2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
]  # fmt: skip


@pytest.mark.parametrize("block", REGISTERED)
def test_S18_every_block_that_iana_keeps_is_refused_from_its_first_address_to_its_last(block: str) -> None:
    network = ipaddress.ip_network(block)
    mapped = ipaddress.ip_network("::ffff:0:0/96")
    ends = (network[0], network[-1]) if network != mapped else (network[0x7F000001],)
    for address in ends:
        with pytest.raises(ForbiddenAddress):
            check_address(str(address), STRICT, "evil.example")


@pytest.mark.parametrize("block", [block for block in REGISTERED if ":" not in block])
def test_S18_an_address_inside_another_is_refused_in_each_spelling(block: str) -> None:
    inner = int(ipaddress.ip_network(block)[1])
    outer = (
        ipaddress.IPv6Address(int(ipaddress.IPv6Address("::ffff:0:0")) + inner),
        ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) + inner),
        ipaddress.IPv6Address(int(ipaddress.IPv6Address("2002::")) + (inner << 80)),
    )
    for address in outer:
        with pytest.raises(ForbiddenAddress):
            check_address(str(address), STRICT, "evil.example")


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1"])
def test_a_public_address_is_allowed(address: str) -> None:
    assert check_address(address, STRICT, "example.com") == address


def test_the_operator_s_network_counts_for_the_address_inside_too() -> None:
    policy = EgressPolicy(allowed_networks=(ipaddress.ip_network("10.0.0.0/8"),))
    for address in ("10.9.9.9", "::ffff:10.9.9.9", "64:ff9b::10.9.9.9"):
        assert check_address(address, policy, "registry.example") == address
    with pytest.raises(ForbiddenAddress):
        check_address("192.168.0.1", policy, "registry.example")


# The system's resolver reads all of these as an address of this machine, or as the metadata service.
SPELLINGS = (
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0x7f.1",
    "017700000001",
    "2852039166",
    "0",
    "localhost",
)


@pytest.mark.parametrize("host", SPELLINGS)
def test_s18_a_host_that_the_resolver_reads_as_this_machine_is_refused(host: str) -> None:
    with pytest.raises(ForbiddenAddress):
        resolve(host, 443, STRICT, SECONDS)


def test_a_name_is_resolved_to_the_addresses_that_were_checked() -> None:
    assert set(resolve("localhost", 443, OPEN, SECONDS)) <= {"127.0.0.1", "::1"}


def test_one_forbidden_address_of_a_name_forbids_the_name() -> None:
    """Otherwise who answers for the name could choose between two answers."""
    only_v6 = replace(STRICT, allowed_networks=(LOOPBACK[1],))
    with pytest.raises(ForbiddenAddress):
        resolve("localhost", 443, only_v6, SECONDS)


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 64 + ".example", "a..b"])
def test_a_name_that_cannot_be_resolved_may_be_tried_later(host: str) -> None:
    with pytest.raises(Unreachable, match="cannot be resolved"):
        resolve(host, 443, STRICT, SECONDS)


BAD_URLS = {
    "file": "file:///etc/passwd",
    "gopher": "gopher://example.com/",
    "no scheme": "example.com/a.tgz",
    "no host": "https:///a.tgz",
    "credentials": "https://user:topsecret@example.com/",
    "a user": "https://topsecret@example.com/",
    "an empty password": "https://:@example.com/",
    "backslash before the host": "https://example.com\\@evil.example/",
    "backslash": "https:\\\\evil.example/",
    "line break": "https://example.com/\r\nHost: evil.example",
    "tab": "https://exam\tple.com/",
    "blank": "https://example.com/a b",
    "not ASCII": "https://exämple.com/",
    "dotless i": "https://ⅼocalhost/",
    "encoded host": "https://127%2e0.0.1/",
    "zone": "https://[fe80::1%25eth0]/",
    "IPv4 in brackets": "https://[127.0.0.1]/",
    "half a bracket": "https://[::1/",
    "port that is no number": "https://example.com:x/",
    "port that is too large": "https://example.com:65536/",
    "negative port": "https://example.com:-1/",
    "a folder above": "https://example.com/ours/../theirs/a.tgz",
    "an encoded folder above": "https://example.com/ours/%2E./theirs/a.tgz",
    "folders above in one part": "https://example.com/ours/..%2f../theirs/a.tgz",
    "the same folder": "https://example.com/./theirs/a.tgz",
}


@pytest.mark.parametrize("url", BAD_URLS.values(), ids=BAD_URLS)
def test_a_url_that_can_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(BadSource) as caught:
        place_of(url)
    assert "topsecret" not in str(caught.value)


def test_the_place_is_scheme_host_and_port() -> None:
    assert (
        place_of("https://EXAMPLE.com/a") == Origin("https", "example.com", 443) == place_of("https://example.com:443")
    )
    assert str(place_of("http://[::1]:8080/")) == "[::1]:8080"
    assert place_of("https://example.com") != place_of("http://example.com")
    assert place_of("https://example.com:0/").port == 0


def test_what_is_shown_of_a_url_has_no_credentials_query_or_fragment() -> None:
    assert shown("https://me:secret@example.com:8443/a.tgz?token=secret#secret") == "https://example.com:8443/a.tgz"
    assert shown("https://me:secret@[::1") == "the URL"
    secret = "https://a.example.com/dl/3f9aZ81kQpLm20xYtR77/a.tgz"
    assert shown(f"{secret}?x=y") == "https://a.example.com/dl/hidden/a.tgz"
    assert pinned_url(f"{secret}?x=y") == secret, "policies tell two of them apart"


LISTED = {
    "itself": ("", "https://own.example/", True),
    "another host": ("", "https://other.example/", False),
    "another port": ("", "https://own.example:8443/", False),
    "a subdomain": ("", "https://a.own.example/", False),
    "a listed host": ("other.example", "https://other.example/", True),
    "a listed host on any port": ("other.example", "https://other.example:8443/", True),
    "a listed port": ("other.example:8443", "https://other.example:8443/", True),
    "another port than listed": ("other.example:8443", "https://other.example/", False),
    "a pattern": ("*.example", "https://cdn.other.example/", True),
    "a pattern is no suffix of a word": ("*.own.example", "https://evilown.example/", False),
    "a pattern is not the host itself": ("*.other.example", "https://other.example/", False),
    "upper case": ("Other.EXAMPLE", "https://OTHER.example/", True),
    "plain http to itself": ("", "http://own.example/", False),
    "plain http to a listed host": ("other.example", "http://other.example/", False),
}


@pytest.mark.parametrize(
    ("hosts", "url", "is_allowed"),
    [
        ((), "http://own.example/", False),
        (("own.example",), "http://own.example:5000/", True),
        (("own.example:5000",), "http://own.example:5000/", True),
        (("own.example:5000",), "http://own.example/", False),
        (("*.example",), "http://own.example/", True),
        (("*",), "http://own.example/", True),
        (("other.example",), "http://own.example/", False),
        (("example",), "http://own.example/", False),
    ],
)
def test_plain_http_is_allowed_host_by_host(hosts: tuple[str, ...], url: str, is_allowed: bool) -> None:
    policy = EgressPolicy(plain_http_hosts=hosts)
    if is_allowed:
        assert check_place(url, place_of(url), policy) == place_of(url)
        return
    with pytest.raises(BadSource, match="PRATIQUE_PLAIN_HTTP_HOSTS can allow http for own.example"):
        check_place(url, place_of(url), policy)


@pytest.mark.parametrize(("listed", "url", "allowed"), LISTED.values(), ids=LISTED)
def test_only_the_source_s_own_place_and_listed_hosts_may_be_led_to(listed: str, url: str, allowed: bool) -> None:
    policy = EgressPolicy(allowed_hosts=(listed,) if listed else ())
    own = place_of("https://own.example/")
    if allowed:
        assert check_place(url, own, policy) == place_of(url)
        return
    with pytest.raises(BadSource, match=r"PRATIQUE_(ALLOWED_SOURCE_HOSTS|PLAIN_HTTP_HOSTS)"):
        check_place(url, own, policy)
