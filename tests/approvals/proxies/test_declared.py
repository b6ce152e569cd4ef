"""The operator's file of identity proxies: what it says, and what is refused before anything starts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.project import configuration
from approvals.proxies import parse_identity_proxies
from approvals.proxies.identity_proxies import CLEARED, Headers
from tests.support.folders import ROOT
from tests.support.patience import scaled

CLUSTER = {"name": "production", "username": {"prefix": "sso:"}, "groups": {"prefix": "sso:"}}
EXAMPLE: dict[str, Any] = {"name": "sso", "networks": ["10.20.0.4/32", "unix"], "clusters": [CLUSTER]}
ISSUER = {
    "name": "example",
    "url": "https://sso.example.com",
    "audiences": ["pratique"],
    "clusters": [{"name": "production", "claimMappings": {"username": {"claim": "sub", "prefix": "sso:x:"}}}],
}


def write(folder: Path, *proxies: Any) -> str:
    path = folder / "proxies.yaml"
    path.write_text(yaml.safe_dump({"proxies": [*proxies]}))
    return str(path)


def test_without_a_file_nobody_is_believed() -> None:
    assert tuple(parse_identity_proxies("")) == ()
    assert parse_identity_proxies("").at("127.0.0.1") is None


def test_a_proxy_counts_at_its_addresses_and_on_its_clusters(tmp_path: Path) -> None:
    proxies = parse_identity_proxies(write(tmp_path, EXAMPLE))
    proxy = proxies.named("sso")
    assert proxy
    assert proxy.headers == Headers("X-Remote-User", "X-Remote-Group", "", "")
    assert (proxy.title, proxy.sign_out_url, proxy.is_for_api) == ("sso", "", False)
    assert [proxies.at(peer) == proxy for peer in ("10.20.0.4", "::ffff:10.20.0.4", "", "10.20.0.5", "unknown")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert (proxy.names_on("production") is None, proxy.names_on("staging") is None) == (False, True)


def changed(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in {**EXAMPLE, **fields}.items() if value is not None}


REFUSED = {
    "no networks": (changed(networks=None), "networks is empty"),
    "empty networks": (changed(networks=[]), "networks is empty"),
    "everybody": (changed(networks=["0.0.0.0/0"]), "0.0.0.0/0 holds far more than a proxy"),
    "everybody in IPv6": (changed(networks=["::/0"]), "::/0 holds far more than a proxy"),
    "everybody in halves": (changed(networks=["0.0.0.0/1", "128.0.0.0/1"]), "holds far more than a proxy"),
    "all of IPv4 as IPv6": (changed(networks=["::/16"]), "holds far more than a proxy"),
    "this machine": (changed(networks=["127.0.0.1/32"]), "kubectl port-forward: they could say that they are anybody"),
    "this machine beside others": (
        changed(networks=["10.20.0.4/32", "127.0.0.6/32"]),
        "127.0.0.6/32 holds the loopback",
    ),
    "this machine in IPv6": (changed(networks=["::1/128"]), "::1/128 holds the loopback"),
    "this machine as IPv6": (changed(networks=["::ffff:127.0.0.1/128"]), "holds the loopback"),
    "this machine in a network": (changed(networks=["::/32"]), "holds the loopback"),
    "a host name": (changed(networks=["nginx"]), "networks: 'nginx'"),
    "bits of a host": (changed(networks=["10.0.0.5/8"]), "has host bits set"),
    "no clusters": (changed(clusters=[]), "clusters is empty"),
    "a cluster twice": (changed(clusters=[CLUSTER, CLUSTER]), "'production' is listed twice"),
    "no prefix": (changed(clusters=[{**CLUSTER, "username": {}}]), "username.prefix is missing"),
    "an underscore": (changed(headers={"user": "X_Remote_User"}), "no underscore"),
    "a header of others": (changed(headers={"user": "Authorization"}), "says something else"),
    "the client's address": (changed(headers={"groups": "X-Forwarded-For"}), "says something else"),
    "one header for two": (changed(headers={"groups": "x-remote-user"}), "is listed twice"),
    "people by e-mail": (changed(headers={"user": "X-Forwarded-Email"}), "which may change owner"),
    "keys of e-mail": (
        changed(headers={"user": "X-User", "uid": "X-Auth-Request-Email"}),
        "use an identifier that never changes owner",
    ),
    "what nginx hands on from anybody": (
        changed(headers={"user": "X-Pomerium-Claim-Sub"}),
        "hands X-Pomerium-Claim-Sub on",
    ),
    "groups that nginx hands on": (
        changed(headers={"groups": "Sso-Groups", "uid": "Sso-Id"}),
        "hands Sso-Groups, Sso-Id on",
    ),
    "letters between groups": (changed(headers={"groupSeparator": "a"}), "expected one of"),
    "a script to sign out": (changed(signOutUrl="javascript:alert(1)"), "expected https"),
    "another host to sign out": (changed(signOutUrl="//evil.example/"), "expected https"),
    "no switch": (changed(api="yes please"), "expected true or false"),
    "an issuer's people by name": (changed(issuer="https://sso.example.com"), "sends no uid"),
    "an issuer that is no address": (changed(issuer="sso", headers={"uid": "X-Remote-Uid"}), "expected https"),
    "an unknown field": (changed(cidr="10.0.0.0/8"), "unknown field cidr"),
}


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_S01_an_unsafe_file_is_refused_by_its_place(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_identity_proxies(write(tmp_path, content))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("proxies: []\nproxies: []\n", "the key 'proxies' is there twice"),
        ("proxies: []\n---\nproxies: []\n", "holds 2 documents; expected one"),
        ("proxies: [\n", "proxies.yaml:"),
        ("proxies: [{name: y}]\n", "is ambiguous YAML"),
        ("proxies: [{name: 1:30}]\n", "is ambiguous YAML"),
    ],
    ids=["a key twice", "two documents", "no YAML", "a truth or a letter", "a time or a number"],
)
def test_S01_a_file_that_can_be_read_in_two_ways_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """Of two lists of networks, PyYAML takes the last without a word."""
    path = tmp_path / "proxies.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        parse_identity_proxies(str(path))


def test_a_proxy_that_connects_by_itself_may_use_other_headers(tmp_path: Path) -> None:
    made = changed(networks=["10.20.0.4/32"], headers={"user": "X-Pomerium-Claim-Sub", "groups": "Sso-Groups"})
    (proxy,) = parse_identity_proxies(write(tmp_path, made))
    assert proxy.headers.names == ("X-Pomerium-Claim-Sub", "Sso-Groups")


def test_S01_the_shipped_nginx_takes_every_header_away_that_counts_at_its_socket() -> None:
    text = (ROOT / "deploy/nginx.conf").read_text()
    assert {name.lower() for name in re.findall(r'proxy_set_header (\S+) "";', text)} >= CLEARED


@pytest.mark.parametrize(("one", "other"), [("10.20.0.0/16", "10.20.3.0/24"), ("unix", "unix")])
def test_S01_a_connection_is_of_one_proxy(tmp_path: Path, one: str, other: str) -> None:
    """Else it would choose by its headers which it is."""
    others = {**CLUSTER, "username": {"prefix": "b:"}, "groups": {"prefix": "b:"}}
    both = changed(networks=[one]), changed(name="b", networks=[other], clusters=[others])
    with pytest.raises(ValueError, match="connect from the same networks"):
        parse_identity_proxies(write(tmp_path, *both))


def prefixed(username: str, groups: str) -> dict[str, Any]:
    of_cluster = {"name": "production", "username": {"prefix": username}, "groups": {"prefix": groups}}
    return changed(name="other", networks=["10.30.0.0/24"], clusters=[of_cluster])


@pytest.mark.parametrize(
    ("other", "is_refused"),
    [
        (prefixed("sso:b:", "b:"), True),
        (prefixed("", "b:"), True),
        (prefixed("b:", "sso:"), True),
        (prefixed("b:", "b:"), False),
    ],
    ids=["longer name", "no prefix", "same groups", "apart"],
)
def test_S01_no_proxy_names_anothers_people(tmp_path: Path, other: Any, is_refused: bool) -> None:
    environ = {"PRATIQUE_IDENTITY_PROXIES_FILE": write(tmp_path, EXAMPLE, other)}
    if is_refused:
        with pytest.raises(ValueError, match="either could name people of the other"):
            configuration.read(environ)
    else:
        with pytest.raises(ValueError, match="their people cannot be matched"):
            configuration.read(environ)


def environ_of(folder: Path, proxies: Iterable[Any], issuers: Iterable[Any]) -> dict[str, str]:
    path = folder / "issuers.yaml"
    path.write_text(yaml.safe_dump({"issuers": [*issuers]}))
    return {"PRATIQUE_IDENTITY_PROXIES_FILE": write(folder, *proxies), "PRATIQUE_OIDC_FILE": str(path)}


def test_S01_no_proxy_names_an_issuers_people(tmp_path: Path) -> None:
    environ = environ_of(tmp_path, [changed(**OF_ISSUER)], [ISSUER])
    with pytest.raises(ValueError, match="sso and example are both used on cluster production, and the prefix"):
        configuration.read(environ)


URL = "https://sso.example.com"
OF_ISSUER = {"issuer": URL, "headers": {"uid": "X-Remote-Uid"}}
APART = {
    **ISSUER,
    "clusters": [{"name": "production", "claimMappings": {"username": {"claim": "sub", "prefix": "o:"}}}],
}
ELSEWHERE = {**ISSUER, "clusters": [{**APART["clusters"][0], "name": "staging"}]}
NOWHERE = {**ISSUER, "name": "other", "url": "https://other.example.com", "clusters": []}
SECOND = {**prefixed("b:", "b:"), "name": "second"}
UNTOLD = "their people cannot be matched"

# Proxies and issuers, and why they may not count together; "" where they may.
TOGETHER: dict[str, tuple[list[Any], list[Any], str]] = {
    "a proxy alone": ([EXAMPLE], [], ""),
    "an issuer of another cluster": ([EXAMPLE], [ELSEWHERE], ""),
    "an issuer of the same cluster": (
        [EXAMPLE],
        [APART],
        f"sso and example are both used on cluster production, and {UNTOLD}",
    ),
    "with a uid of its own": ([changed(headers={"uid": "X-Remote-Uid"})], [APART], UNTOLD),
    "with the issuer's people": ([changed(**OF_ISSUER)], [APART], ""),
    "with the people of a slip": ([changed(**{**OF_ISSUER, "issuer": f"{URL}/"})], [APART], "is not a url in"),
    "with another issuer's people": ([changed(**{**OF_ISSUER, "issuer": NOWHERE["url"]})], [APART, NOWHERE], ""),
    "two proxies": ([EXAMPLE, SECOND], [], UNTOLD),
    "two proxies, one with an issuer's people": ([changed(**OF_ISSUER), SECOND], [], UNTOLD),
    "two proxies with an issuer's people": ([changed(**OF_ISSUER), {**SECOND, **OF_ISSUER}], [], ""),
}


@pytest.mark.parametrize(("proxies", "issuers", "words"), TOGETHER.values(), ids=TOGETHER)
def test_S12_whose_people_cannot_be_compared_do_not_count_on_one_cluster(
    tmp_path: Path, proxies: list[Any], issuers: list[Any], words: str
) -> None:
    environ = environ_of(tmp_path, proxies, issuers)
    if words:
        with pytest.raises(ValueError, match=words):
            configuration.read(environ)
    else:
        assert len(configuration.read(environ)["IDENTITY_PROXIES_FILE"].every) == len(proxies)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(changed(networks=["0.0.0.0/0"]), "0.0.0.0/0 holds far more than a proxy", id="everybody"),
        pytest.param(
            changed(networks=["127.0.0.1/32"]),
            "Have the proxy connect over a Unix socket",
            id="this machine",
            marks=pytest.mark.thorough,
        ),
        pytest.param(EXAMPLE, "", id="safe", marks=pytest.mark.thorough),
    ],
)
def test_S01_manage_py_check_refuses_an_unsafe_file(tmp_path: Path, content: Any, words: str) -> None:
    command = [sys.executable, ROOT / "manage.py", "check"]
    environment = {**os.environ, "PRATIQUE_IDENTITY_PROXIES_FILE": write(tmp_path, content)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=scaled(60))
    assert (done.returncode == 0, words in done.stderr + done.stdout) == (not words, True), done.stderr
