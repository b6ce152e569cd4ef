"""SourceCertificates of private sources against real servers: whom they are shown, whom they make trusted, and nobody else."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from provisioner.errors import BadSource, SourceUnavailable
from provisioner.source import (
    EgressPolicy,
    Fetched,
    GitSource,
    HttpSource,
    ImageSource,
    RemoteSource,
    fetch,
    with_secret,
)
from provisioner.unpack import unpack
from tests.provisioner.source.places import LOOPBACK, MIB, STRICT, secret, sha256
from tests.support.servers.certificates import Asking, CertificateAuthority, Pair
from tests.support.servers.fixtures import _program
from tests.support.servers.http import Asked, Authority, GitServer, Listening, Reply
from tests.support.servers.registry import CREDENTIALS, Registry

HERE = replace(STRICT, allowed_networks=LOOPBACK)
BODY = b"kind: A\n"
FOUND = Reply(BODY)
FILES = {"a.yaml": BODY}
TLS = "kubernetes.io/tls"
Start = Callable[..., tuple[Listening, list[Asked]]]


class Yard:
    """Two authorities that know nothing of each other, one with a server here, and their clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = CertificateAuthority("own")
        self.other = CertificateAuthority("other")
        self.between = CertificateAuthority("between", above=self.own)
        self.ada = self.own.pair("ada")
        self.eve = self.other.pair("eve")
        self.server = self.own.server(folder / "own")
        self.asking = Asking.beside(self.server, self.own.pem)

    def under_between(self, name: str, *, chain: bool) -> Authority:
        return self.between.server(self.folder / name, chain=self.between.pem if chain else "")


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Yard:
    return Yard(tmp_path_factory.mktemp("yard"))


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(authority, reply)` starts a server that answers everything so, and lists what it was asked."""
    started: list[Listening] = []

    def begin(authority: Authority | None, answer: Reply | Callable[[Asked], Reply] = FOUND):
        asked: list[Asked] = []

        def noting(one: Asked) -> Reply:
            asked.append(one)
            return answer if isinstance(answer, Reply) else answer(one)

        started.append(Listening(noting, authority))
        return started[-1], asked

    yield begin
    for one in started:
        one.stop()


def file_at(server: Listening) -> HttpSource:
    return HttpSource(f"{server.url}/a.yaml", checksum=sha256(BODY))


def get(source: RemoteSource, egress: EgressPolicy = HERE, **values: str) -> Fetched:
    return fetch(with_secret(source, secret("Opaque", **values)), egress=egress, max_bytes=MIB)


def refusal(source: RemoteSource, egress: EgressPolicy = HERE, **values: str) -> BadSource:
    with pytest.raises(BadSource) as caught:
        get(source, egress, **values) if values else fetch(source, egress=egress, max_bytes=MIB)
    lines = [line for text in values.values() for line in text.splitlines() if "-----" not in line and line]
    assert not any(line in str(caught.value) for line in lines)
    return caught.value


def shown(pair: Pair) -> dict[str, str]:
    return {"tls.crt": pair.certificate, "tls.key": pair.key}


class TestAuthorities:
    def test_the_right_one_opens_the_source(self, yard: Yard, start: Start) -> None:
        server, asked = start(yard.server)
        assert get(file_at(server), **{"ca.crt": yard.own.pem}).archives[0].data == BODY
        assert len(asked) == 1

    def test_without_one_only_the_system_s_are_trusted(self, yard: Yard, start: Start) -> None:
        server, asked = start(yard.server)
        words = str(refusal(file_at(server)))
        assert "its certificate is not trusted: " in words
        assert words.endswith("(SSL_CERT_FILE), or for the source's own host one of ca.crt in its Secret")
        assert asked == []

    def test_another_is_refused(self, yard: Yard, start: Start) -> None:
        server, asked = start(yard.server)
        words = str(refusal(file_at(server), **{"ca.crt": yard.other.pem}))
        assert words.endswith(
            "; expected an authority of ca.crt in the source's Secret, which replaces those of the system"
        )
        assert asked == []

    def test_it_stands_in_place_of_all_others(self, yard: Yard, start: Start) -> None:
        server, asked = start(yard.server)
        policy = replace(HERE, ca_pem=yard.own.pem)
        assert get(file_at(server), policy, **shown(yard.ada)).archives
        assert "is not trusted" in str(refusal(file_at(server), policy, **{"ca.crt": yard.other.pem}))
        assert len(asked) == 1

    def test_one_of_several_is_enough(self, yard: Yard, start: Start) -> None:
        server, _ = start(yard.server)
        assert get(file_at(server), **{"ca.crt": yard.other.pem + yard.own.pem}).archives

    def test_a_chain_that_the_server_shows_leads_to_the_root(self, yard: Yard, start: Start) -> None:
        server, _ = start(yard.under_between("whole", chain=True))
        assert get(file_at(server), **{"ca.crt": yard.own.pem}).archives

    def test_an_authority_between_may_be_trusted_by_itself(self, yard: Yard, start: Start) -> None:
        server, _ = start(yard.under_between("half", chain=False))
        assert get(file_at(server), **{"ca.crt": yard.between.pem}).archives
        assert "is not trusted" in str(refusal(file_at(server), **{"ca.crt": yard.own.pem}))

    OTHERS = {
        "of another name": ({"host": "127.0.0.2"}, "certificate is not valid for '127.0.0.1'"),
        "of the past": ({"days": (-9, -2)}, "certificate has expired"),
    }

    @pytest.mark.parametrize(("how", "words"), OTHERS.values(), ids=OTHERS)
    def test_a_server_s_certificate_must_be_for_its_name_and_of_today(
        self, yard: Yard, start: Start, tmp_path: Path, how: dict[str, Any], words: str
    ) -> None:
        server, asked = start(yard.own.server(tmp_path / "wrong", **how))
        found = str(refusal(file_at(server), **{"ca.crt": yard.own.pem}))
        assert words in found
        assert "Secret" not in found
        assert asked == []

    def test_a_self_signed_server_is_trusted_by_its_own_certificate(self, yard: Yard, start: Start) -> None:
        alone = yard.own.server(yard.folder / "alone")
        server, _ = start(alone)
        assert get(file_at(server), **{"ca.crt": alone.chain_file.read_text()}).archives


WRONG = {
    "none": (
        {},
        "the server wants a client certificate (certificate required); tls.crt and tls.key in a source's Secret",
    ),
    "of another authority": ("eve", "the server does not accept the client certificate (unknown ca)"),
    "of an authority between, without it": ("under", "the server does not accept the client certificate (unknown ca)"),
}


class TestClientCertificates:
    @pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
    def test_one_that_is_demanded_opens_the_source(self, yard: Yard, start: Start, newest: ssl.TLSVersion) -> None:
        server, asked = start(replace(yard.asking, newest=newest))
        assert get(file_at(server), **{"ca.crt": yard.own.pem}, **shown(yard.ada)).archives[0].data == BODY
        assert [one.client for one in asked] == ["ada"]

    def test_its_chain_is_shown_too(self, yard: Yard, start: Start) -> None:
        server, asked = start(yard.asking)
        pair = yard.between.pair("grace")
        chained = Pair(pair.certificate + yard.between.pem, pair.key)
        assert get(file_at(server), **{"ca.crt": yard.own.pem}, **shown(chained)).archives
        assert asked[0].client == "grace"

    @pytest.mark.parametrize(("whose", "words"), WRONG.values(), ids=WRONG)
    @pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
    def test_without_the_right_one_the_server_s_no_is_told(
        self, yard: Yard, start: Start, whose: object, words: str, newest: ssl.TLSVersion
    ) -> None:
        server, asked = start(replace(yard.asking, newest=newest))
        pairs = {"eve": yard.eve, "under": yard.between.pair("grace")}
        more = shown(pairs[whose]) if isinstance(whose, str) else {}
        error = refusal(file_at(server), **{"ca.crt": yard.own.pem}, **more)
        assert isinstance(error, SourceUnavailable)
        if not more and newest == ssl.TLSVersion.TLSv1_2:
            words = "the server refused the handshake (handshake failure), perhaps for want of a client certificate"
        assert words in str(error)
        assert asked == []

    def test_it_goes_together_with_a_password(self, yard: Yard, start: Start) -> None:
        server, asked = start(yard.asking)
        user, password = CREDENTIALS
        given = {"ca.crt": yard.own.pem, **shown(yard.ada), "username": user, "password": password}
        assert get(file_at(server), **given).archives
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        assert (asked[0].client, asked[0].headers["authorization"]) == ("ada", f"Basic {pair}")

    def test_it_goes_together_with_a_token(self, yard: Yard, start: Start) -> None:
        server, asked = start(yard.asking)
        assert get(file_at(server), bearerToken="letmein", **{"ca.crt": yard.own.pem}, **shown(yard.ada)).archives
        assert (asked[0].client, asked[0].headers["authorization"]) == ("ada", "Bearer letmein")

    def test_a_refusal_behind_tls_is_told_of_the_credentials(self, yard: Yard, start: Start) -> None:
        server, _ = start(yard.asking, Reply(b"", 403))
        error = refusal(file_at(server), **{"ca.crt": yard.own.pem}, **shown(yard.ada))
        assert "answered 403: the given credentials do not fit" in str(error)

    def test_S08_the_certificate_of_one_source_is_never_shown_for_another(self, yard: Yard, start: Start) -> None:
        server, asked = start(replace(yard.asking, insists=False))
        whole = {"ca.crt": yard.own.pem, **shown(yard.ada)}
        for values in (whole, {"ca.crt": yard.own.pem}, whole):
            get(file_at(server), **values)
        assert [one.client for one in asked] == ["ada", "", "ada"]
        assert "is not trusted" in str(refusal(file_at(server)))


# The other host shows a certificate of the same authority, and asks for one of the client without insisting.


def redirecting(start: Start, yard: Yard, other: Listening) -> tuple[Listening, list[Asked]]:
    """A source that leads to another server, which has a certificate of the same authority."""
    return start(yard.asking, Reply(status=302, headers={"Location": f"{other.url}/b.yaml"}))


def test_S08_a_redirect_to_another_host_takes_no_authority_along(yard: Yard, start: Start) -> None:
    other, heard = start(replace(yard.asking, insists=False))
    server, asked = redirecting(start, yard, other)
    policy = replace(HERE, allowed_hosts=(other.host,))
    error = refusal(file_at(server), policy, **{"ca.crt": yard.own.pem}, **shown(yard.ada))
    assert f"{other.url}/b.yaml: its certificate is not trusted: " in str(error)
    assert ([one.client for one in asked], heard) == (["ada"], [])


def test_S08_a_redirect_to_another_host_takes_no_client_certificate_along(yard: Yard, start: Start) -> None:
    other, heard = start(replace(yard.asking, insists=False))
    server, asked = redirecting(start, yard, other)
    policy = replace(HERE, allowed_hosts=(other.host,), ca_pem=yard.own.pem)
    assert get(file_at(server), policy, **{"ca.crt": yard.own.pem}, **shown(yard.ada)).archives
    assert [one.client for one in (*asked, *heard)] == ["ada", ""]


def test_S08_a_redirect_to_a_host_that_demands_one_ends_there(yard: Yard, start: Start) -> None:
    other, heard = start(yard.asking)
    server, _ = redirecting(start, yard, other)
    policy = replace(HERE, allowed_hosts=(other.host,), ca_pem=yard.own.pem)
    error = refusal(file_at(server), policy, **{"ca.crt": yard.own.pem}, **shown(yard.ada))
    assert f"{other.url}/b.yaml: the server wants a client certificate" in str(error)
    assert heard == []


def test_S08_the_certificate_is_shown_again_when_the_way_leads_home(yard: Yard, start: Start) -> None:
    home: list[str] = []
    other, heard = start(
        replace(yard.asking, insists=False), lambda _: Reply(status=302, headers={"Location": f"{home[0]}/b.yaml"})
    )
    server, asked = start(
        yard.asking,
        lambda one: Reply(BODY) if one.path == "/b.yaml" else Reply(status=302, headers={"Location": f"{other.url}/x"}),
    )
    home.append(server.url)
    policy = replace(HERE, allowed_hosts=(other.host,), ca_pem=yard.own.pem)
    assert get(file_at(server), policy, **{"ca.crt": yard.own.pem}, **shown(yard.ada)).archives
    assert [one.client for one in (*asked, *heard)] == ["ada", "ada", ""]


class TestGit:
    @pytest.fixture
    def served(self, yard: Yard, tmp_path: Path) -> Iterator[GitServer]:
        server = GitServer(tmp_path, CREDENTIALS, yard.asking)
        yield server
        server.stop()

    @pytest.fixture
    def source(self, served: GitServer) -> GitSource:
        made = served.repository("locked")
        made.commit(FILES)
        return GitSource(made.url, branch="main")

    def test_a_repository_behind_all_of_them_is_cloned(self, yard: Yard, served: GitServer, source: GitSource) -> None:
        user, password = CREDENTIALS
        given = {"ca.crt": yard.own.pem, **shown(yard.ada), "username": user, "password": password}
        assert unpack(get(source, **given).archives).files == FILES
        assert {one.client for one in served.asked} == {"ada"}
        assert {one.method for one in served.asked} == {"GET", "POST"}

    def test_what_is_wrong_is_told(self, yard: Yard, served: GitServer, source: GitSource) -> None:
        assert "is not trusted" in str(refusal(source, **{"ca.crt": yard.other.pem}))
        trusted = {"ca.crt": yard.own.pem}
        assert "wants a client certificate" in str(refusal(source, **trusted))
        assert "does not accept the client certificate" in str(refusal(source, **trusted, **shown(yard.eve)))
        assert served.asked == []
        assert "the given credentials do not fit" in str(refusal(source, **trusted, **shown(yard.ada)))

    def test_S08_a_clone_that_is_redirected_shows_nothing_elsewhere(
        self, yard: Yard, source: GitSource, start: Start, tmp_path: Path
    ) -> None:
        other = GitServer(tmp_path, None, replace(yard.asking, insists=False))
        try:
            target = f"{other.url}/locked.git/info/refs?service=git-upload-pack"
            server, asked = start(yard.asking, Reply(status=301, headers={"Location": target}))
            moved = GitSource(f"{server.url}/locked.git", branch="main")
            given = {"ca.crt": yard.own.pem, **shown(yard.ada)}
            listed = replace(HERE, allowed_hosts=(urlsplit(other.url).netloc,))
            assert "is not trusted" in str(refusal(moved, listed, **given))
            assert other.asked == []
            assert get(moved, replace(listed, ca_pem=yard.own.pem), **given).archives
        finally:
            other.stop()
        assert {one.client for one in asked} == {"ada"}
        assert {(one.method, one.client) for one in other.asked} == {("GET", ""), ("POST", "")}


@pytest.fixture(scope="module")
def registry_over_tls(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("registry-tls")
    program = _program("docker-registry")
    served = Registry.start(program, folder, with_auth=True, tls=yard.server, clients=yard.own.pem)
    served.push("app:v1", FILES)
    yield served
    served.stop()


def docker_config(host: str) -> dict[str, str]:
    pair = base64.b64encode(":".join(CREDENTIALS).encode()).decode()
    return {".dockerconfigjson": json.dumps({"auths": {host: {"auth": pair}}})}


def test_an_image_behind_all_of_them_is_pulled(yard: Yard, registry_over_tls: Registry) -> None:
    source = ImageSource(f"{registry_over_tls.host}/app:v1")
    given = {"ca.crt": yard.own.pem, **shown(yard.ada), **docker_config(registry_over_tls.host)}
    assert unpack(get(source, **given).archives).files == FILES


def test_what_is_wrong_with_a_registry_is_told(yard: Yard, registry_over_tls: Registry) -> None:
    source = ImageSource(f"{registry_over_tls.host}/app:v1")
    trusted = {"ca.crt": yard.own.pem}
    assert "is not trusted" in str(refusal(source, **{"ca.crt": yard.other.pem}))
    assert "the server wants a client certificate" in str(refusal(source, **trusted))
    assert "does not accept the client certificate" in str(refusal(source, **trusted, **shown(yard.eve)))
    words = str(refusal(source, **trusted, **shown(yard.ada)))
    assert "the registry wants credentials; the owner of the client certificate may not read it" in words


def wanting_tokens(
    start: Start, yard: Yard, registry: Registry, realm: Callable[[], str]
) -> tuple[Listening, list[Asked]]:
    """A registry that wants a token, and sends whoever has one on to a registry without TLS of its own."""

    def answer(one: Asked) -> Reply:
        if one.path == "/token":
            return Reply(b'{"token": "letmein"}')
        if one.headers.get("authorization") != "Bearer letmein":
            challenge = f'Bearer realm="{realm()}/token",service="front",scope="x"'
            return Reply(b"{}", 401, {"WWW-Authenticate": challenge})
        return Reply(status=307, headers={"Location": f"{registry.url}{one.path}"})

    return start(replace(yard.asking, insists=False), answer)


def listing(registry: Registry, *more: str) -> EgressPolicy:
    return replace(HERE, allowed_hosts=(registry.host, *more), plain_http_hosts=(registry.host,))


def test_its_own_token_service_is_shown_the_certificate(yard: Yard, start: Start, registry: Registry) -> None:
    registry.push("app:v1", FILES)
    own: list[str] = []
    server, asked = wanting_tokens(start, yard, registry, lambda: own[0])
    own.append(server.url)
    given = {"ca.crt": yard.own.pem, **shown(yard.ada)}
    fetched = get(ImageSource(f"{server.host}/app:v1"), listing(registry), **given)
    assert unpack(fetched.archives).files == FILES
    assert {one.client for one in asked} == {"ada"}
    assert "/token" in {one.path for one in asked}


def test_S08_a_token_service_elsewhere_gets_neither(yard: Yard, start: Start, registry: Registry) -> None:
    registry.push("app:v1", FILES)
    tokens, heard = start(replace(yard.asking, insists=False), Reply(b'{"token": "letmein"}'))
    server, _ = wanting_tokens(start, yard, registry, lambda: tokens.url)
    given = {"ca.crt": yard.own.pem, **shown(yard.ada)}
    source, policy = ImageSource(f"{server.host}/app:v1"), listing(registry, tokens.host)
    assert f"{tokens.url}/token: its certificate is not trusted" in str(refusal(source, policy, **given))
    assert heard == []
    assert get(source, replace(policy, ca_pem=yard.own.pem), **given).archives
    assert [one.client for one in heard] == [""]
