"""A proxy's word in a request's headers: what is believed, from whom, and what can be read in two ways. Pure."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.networks import Proxies
from approvals.proxies import (
    ClusterNames,
    Headers,
    IdentityProxies,
    IdentityProxy,
    NameRefused,
    Said,
    Unusable,
    drop,
    identity_on,
    joined,
    said_in,
)
from provisioner.values import Identity

PROXY = IdentityProxy("sso", "SSO", Proxies.read("10.0.0.5/32"), (ClusterNames("prod", "sso:", "sso:"),))
KNOWN = IdentityProxies((PROXY,))
WITH_UID = IdentityProxy("uid", "U", Proxies.read("10.0.0.6/32"), PROXY.clusters, Headers(uid="X-Remote-Uid"))
COMMAS = IdentityProxy("commas", "C", Proxies.read("unix"), PROXY.clusters, Headers(separator=","))
EVERY = IdentityProxies((PROXY, WITH_UID, COMMAS))
HERE = "10.0.0.5"


def environ(user: str = "", groups: str = "", **more: str) -> dict[str, Any]:
    known = {"HTTP_X_REMOTE_USER": user, "HTTP_X_REMOTE_GROUP": groups, **more}
    return {name: value for name, value in known.items() if value}


def test_the_proxy_names_a_person_and_their_groups() -> None:
    assert said_in(environ("ada", "night\nplatform"), HERE, KNOWN) == Said(PROXY, "ada", ("night", "platform"))


PEERS = {
    "the proxy": ("10.0.0.5", True),
    "the proxy in IPv6": ("::ffff:10.0.0.5", True),
    "its neighbour": ("10.0.0.7", False),
    "a Unix socket that nobody named": ("", False),
    "nobody knows": ("unknown", False),
    "a list": ("10.0.0.5, 10.0.0.7", False),
    "an IPv6 that looks alike": ("a00:5::", False),
}


@pytest.mark.parametrize(("peer", "is_believed"), PEERS.values(), ids=PEERS)
def test_S01_only_the_other_end_of_the_connection_counts(peer: str, is_believed: bool) -> None:
    """Whoever is behind it, X-Forwarded-For is a client's word for this."""
    made_up = environ("ada", HTTP_X_FORWARDED_FOR="10.0.0.5", HTTP_X_REAL_IP="10.0.0.5", HTTP_FORWARDED="for=10.0.0.5")
    assert isinstance(said_in(made_up, peer, KNOWN), Said) is is_believed


USERS = {
    "two headers": "ada\nalice",
    "two headers, joined by a server": "ada,alice",
    "a folded header": "ada\r\n alice",
    "non-ASCII": "ad\u00e0",
    "Latin-1 of UTF-8": "ada\u00c3\u00a0",
    "NUL": "ada\0",
    "a tab": "a\tda",
    "DEL": "ada\x7f",
    "a space before": " ada",
    "a space after": "ada ",
    "only a space": " ",
    "too long": "a" * 251,
    "a control character": "ada\x01",
    "bidi": "ada\u202egpj",
}


@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
def test_S01_a_name_that_can_be_read_in_two_ways_is_nobodys(user: str) -> None:
    found = said_in(environ(user), HERE, KNOWN)
    assert isinstance(found, Unusable)
    assert "X-Remote-User" in found.why
    assert user.strip() not in found.why or not user.strip()


GROUPS = {
    "non-ASCII": "platform\nb\u00fcro",
    "a control character": "platform\x01",
    "too long": "g" * 251,
    "too many": "\n".join(f"g{number}" for number in range(501)),
    "a space after": "platform ",
}


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_S25_groups_that_cannot_be_read_are_not_taken_for_none(groups: str) -> None:
    assert isinstance(said_in(environ("ada", groups), HERE, KNOWN), Unusable)


def test_without_a_name_nobody_is_named() -> None:
    for word in (environ(), environ(groups="platform"), {"HTTP_X_REMOTE_USER": ""}):
        assert said_in(word, HERE, KNOWN) is None


def test_groups_stand_in_headers_of_their_own_or_are_divided_as_the_operator_says() -> None:
    of_lines, of_commas = said_in(environ("ada", "a, b\nc"), HERE, EVERY), said_in(environ("ada", "a, b\nc"), "", EVERY)
    assert isinstance(of_lines, Said)
    assert isinstance(of_commas, Said)
    assert (of_lines.groups, of_commas.groups) == (("a, b", "c"), ("a", "b", "c"))


def test_S01_a_group_with_a_comma_is_not_two_groups() -> None:
    """Servers join headers of one name with commas; whoever may name a group `x,platform` would be in `platform`."""
    pairs = [("X-REMOTE-USER", "ada"), ("X-REMOTE-GROUP", "x,platform"), ("ACCEPT", "a"), ("ACCEPT", "b")]
    assert joined([*pairs, ("x-remote-group", "night")], KNOWN) == [
        ("ACCEPT", "a"),
        ("ACCEPT", "b"),
        ("X-REMOTE-USER", "ada"),
        ("X-REMOTE-GROUP", "x,platform\nnight"),
    ]


def test_S01_a_person_is_kept_by_the_proxys_identifier_where_it_sends_one() -> None:
    said = said_in(environ("ada", HTTP_X_REMOTE_UID="42"), "10.0.0.6", EVERY)
    again = said_in(environ("ada.married", HTTP_X_REMOTE_UID="42"), "10.0.0.6", EVERY)
    by_name = said_in(environ("uid:42"), HERE, EVERY)
    assert isinstance(said, Said)
    assert isinstance(again, Said)
    assert isinstance(by_name, Said)
    assert said.subject == again.subject == "uid:42"
    assert by_name.subject == "user:uid:42"
    assert isinstance(said_in(environ("ada"), "10.0.0.6", EVERY), Unusable), "no identifier, no person"


@pytest.mark.parametrize("known", [KNOWN, IdentityProxies()], ids=["believed", "off"])
def test_S01_nothing_of_it_goes_on(known: IdentityProxies) -> None:
    names = ("X_REMOTE_USER", "X_REMOTE_GROUP", "X_REMOTE_EXTRA_SCOPES", "X_REMOTE_UID", "REMOTE_USER")
    more = ("X_FORWARDED_USER", "X_FORWARDED_GROUPS", "X_FORWARDED_EMAIL", "X_AUTH_REQUEST_USER")
    found = {**{f"HTTP_{name}": "x" for name in (*names, *more)}, "HTTP_ACCEPT": "x", "REMOTE_ADDR": HERE}
    drop(found, known)
    assert found == {"HTTP_ACCEPT": "x", "REMOTE_ADDR": HERE}


def test_S01_headers_of_the_operators_own_go_on_no_further() -> None:
    headers = Headers(user="Sso-User", groups="Sso-Groups", uid="Sso-Id")
    known = IdentityProxies((IdentityProxy("sso", "SSO", PROXY.peers, PROXY.clusters, headers),))
    found = {"HTTP_SSO_USER": "x", "HTTP_SSO_GROUPS": "x", "HTTP_SSO_ID": "x", "HTTP_SSO_OTHER": "x"}
    drop(found, known)
    assert found == {"HTTP_SSO_OTHER": "x"}


def test_names_have_the_prefixes_of_the_cluster() -> None:
    said = Said(PROXY, "ada", ("platform",))
    assert identity_on(ClusterNames("prod", "a:", "b:"), said) == Identity("a:ada", ("b:platform",))
    assert identity_on(ClusterNames("prod", "a:"), said) == Identity("a:ada")


SYSTEM = {
    "a name": (ClusterNames("prod", "", ""), Said(PROXY, "system:admin")),
    "a group": (ClusterNames("prod", "", ""), Said(PROXY, "ada", ("system:masters",))),
    "a group of everybody": (ClusterNames("prod", "", ""), Said(PROXY, "ada", ("system:authenticated",))),
    "by the prefix": (ClusterNames("prod", "system", ""), Said(PROXY, ":admin")),
    "by the prefix of groups": (ClusterNames("prod", "", "sys"), Said(PROXY, "ada", ("tem:masters",))),
    "too long": (ClusterNames("prod", "sso:", ""), Said(PROXY, "a" * 250)),
}


@pytest.mark.parametrize(("names", "said"), SYSTEM.values(), ids=SYSTEM)
def test_S01_no_proxy_names_what_is_the_clusters_own(names: ClusterNames, said: Said) -> None:
    with pytest.raises(NameRefused):
        identity_on(names, said)
