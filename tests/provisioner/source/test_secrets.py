"""Secrets of the cluster as credentials: the standard types and keys, and what is said of those that do not fit."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace

import pytest

from provisioner.errors import BadSource
from provisioner.source import (
    Credentials,
    Fetched,
    GitSource,
    HttpSource,
    ImageSource,
    RemoteSource,
    fetch,
    with_secret,
    with_secret_for,
)
from provisioner.unpack import unpack
from provisioner.values import JsonObject
from tests.provisioner.source.places import MIB, OPEN, secret, sha256
from tests.support.servers.http import Asked, FileServer, GitServer, Listening, Reply
from tests.support.servers.registry import CREDENTIALS, Registry

USER, PASSWORD = CREDENTIALS
PAIR = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
BODY = b"kind: A\n"
BASIC_AUTH = "kubernetes.io/basic-auth"
SSH_AUTH = "kubernetes.io/ssh-auth"
DOCKER_CONFIG = "kubernetes.io/dockerconfigjson"


def get(source: RemoteSource, given: JsonObject) -> Fetched:
    return fetch(with_secret(source, given), egress=OPEN, max_bytes=MIB)


IMAGES = {
    "dockerconfigjson": (DOCKER_CONFIG, ".dockerconfigjson", '{{"auths": {{"{}": {{"auth": "{}"}}}}}}'),
    "dockercfg": ("kubernetes.io/dockercfg", ".dockercfg", '{{"{}": {{"auth": "{}"}}}}'),
    "dockerconfigjson of no type": ("Opaque", ".dockerconfigjson", '{{"auths": {{"{}": {{"auth": "{}"}}}}}}'),
}


@pytest.mark.parametrize(("type_", "key", "text"), IMAGES.values(), ids=IMAGES)
def test_a_pull_secret_opens_a_registry(registry_with_auth: Registry, type_: str, key: str, text: str) -> None:
    registry_with_auth.push("pull/app:v1", {"a.yaml": BODY})
    source = ImageSource(f"{registry_with_auth.host}/pull/app:v1", insecure_http=True)
    assert get(source, secret(type_, **{key: text.format(registry_with_auth.host, PAIR)})).archives


def test_user_and_password_open_a_registry(registry_with_auth: Registry) -> None:
    registry_with_auth.push("pull/app:v1", {"a.yaml": BODY})
    source = ImageSource(f"{registry_with_auth.host}/pull/app:v1", insecure_http=True)
    assert get(source, secret(BASIC_AUTH, username=USER, password=PASSWORD)).archives


def test_user_and_password_are_given_for_a_token_and_for_nothing_else(registry: Registry) -> None:
    registry.push("pull/app:v1", {"a.yaml": BODY})
    asked: list[Asked] = []

    def answer(one: Asked) -> Reply:
        asked.append(one)
        if one.path == "/token":
            return Reply(b'{"token": "letmein"}', 200 if one.headers.get("authorization") == f"Basic {PAIR}" else 401)
        if one.headers.get("authorization") != "Bearer letmein":
            challenge = f'Bearer realm="{front.url}/token",service="front",scope="x"'
            return Reply(b"{}", 401, {"WWW-Authenticate": challenge})
        return Reply(status=307, headers={"Location": f"{registry.url}{one.path}"})

    front = Listening(answer)
    try:
        given = secret(BASIC_AUTH, username=USER, password=PASSWORD)
        source = with_secret(ImageSource(f"{front.host}/pull/app:v1", insecure_http=True), given)
        fetched = fetch(source, egress=replace(OPEN, allowed_hosts=(registry.host,)), max_bytes=MIB)
    finally:
        front.stop()
    assert unpack(fetched.archives).files == {"a.yaml": BODY}
    assert [one.headers.get("authorization") for one in asked if one.path == "/token"] == [f"Basic {PAIR}"]
    assert {one.headers.get("authorization") for one in asked if one.path != "/token"} == {None, "Bearer letmein"}


def test_user_and_password_open_a_git_server(git_server_with_auth: GitServer) -> None:
    made = git_server_with_auth.repository("by-secret")
    made.commit({"a.yaml": BODY})
    fetched = get(GitSource(made.url, branch="main"), secret(BASIC_AUTH, username=USER, password=PASSWORD))
    assert unpack(fetched.archives).files == {"a.yaml": BODY}


HEADERS = {
    "user and password": (secret(BASIC_AUTH, username=USER, password=PASSWORD), f"Basic {PAIR}"),
    "user and password of no type": (secret("Opaque", username=USER, password=PASSWORD), f"Basic {PAIR}"),
    "a token": (secret("Opaque", bearerToken="letmein"), "Bearer letmein"),
}


@pytest.mark.parametrize(("given", "header"), HEADERS.values(), ids=HEADERS)
def test_an_http_source_is_asked_with_what_the_secret_holds(web: FileServer, given: JsonObject, header: str) -> None:
    web.serve_reply("/a.yaml", lambda asked: Reply(BODY, 200 if asked.headers.get("authorization") == header else 401))
    source = HttpSource(f"{web.url}/a.yaml", checksum=sha256(BODY))
    assert get(source, given).archives[0].data == BODY
    with pytest.raises(BadSource, match="answered 401: no credentials for 127.0.0.1:"):
        fetch(source, egress=OPEN, max_bytes=MIB)


def test_a_token_opens_a_git_server_and_is_not_taken_along_by_a_redirect() -> None:
    asked: list[Asked] = []

    def refuse(one: Asked) -> Reply:
        asked.append(one)
        return Reply(b"", 401)

    server = Listening(refuse)
    try:
        with pytest.raises(BadSource, match="answered 401: the given credentials do not fit") as caught:
            get(GitSource(f"{server.url}/x.git", branch="main"), secret("Opaque", bearerToken="letmein"))
    finally:
        server.stop()
    assert asked[0].headers["authorization"] == "Bearer letmein"
    assert "letmein" not in str(caught.value)


@pytest.fixture
def elsewhere() -> Iterator[tuple[Listening, list[Asked]]]:
    heard: list[Asked] = []

    def answer(one: Asked) -> Reply:
        heard.append(one)
        return Reply(BODY)

    listening = Listening(answer)
    yield listening, heard
    listening.stop()


@pytest.mark.parametrize("given", [one for one, _ in HEADERS.values()], ids=HEADERS)
def test_s08_no_secret_follows_a_redirect_that_the_operator_allows(
    web: FileServer, elsewhere: tuple[Listening, list[Asked]], given: JsonObject
) -> None:
    other, heard = elsewhere
    web.serve("/a.yaml", status=302, headers={"Location": f"{other.url}/b.yaml"})
    source = with_secret(HttpSource(f"{web.url}/a.yaml", checksum=sha256(BODY)), given)
    assert fetch(source, egress=replace(OPEN, allowed_hosts=(other.host,)), max_bytes=MIB).archives
    assert ("authorization" in web.asked[0].headers, "authorization" in heard[0].headers) == (True, False)


def test_s08_the_secret_of_one_source_opens_no_other(web: FileServer) -> None:
    web.serve("/a.yaml", BODY)
    given = secret("Opaque", bearerToken="letmein")
    sources = [
        with_secret(HttpSource(f"{web.url}/a.yaml", sha256(BODY)), given),
        HttpSource(f"{web.url}/a.yaml", sha256(BODY)),
    ]
    for source in sources:
        fetch(source, egress=OPEN, max_bytes=MIB)
    assert ["authorization" in asked.headers for asked in web.asked] == [True, False]


SSH = {
    "ssh-auth": secret(SSH_AUTH, **{"ssh-privatekey": "key", "known_hosts": "hosts"}),
    "as Flux writes it": secret("Opaque", identity="key", known_hosts="hosts"),
}


@pytest.mark.parametrize("given", SSH.values(), ids=SSH)
@pytest.mark.parametrize("url", ["ssh://git@git.example/x.git", "git@git.example:x.git"], ids=["url", "scp-like"])
def test_an_ssh_key_is_for_the_host_of_its_source(url: str, given: JsonObject) -> None:
    made = with_secret(GitSource(url, branch="main"), given)
    assert made.credentials == Credentials("git.example:22", ssh_private_key="key", ssh_known_hosts="hosts")
    assert "key" not in repr(made)


IMAGE = ImageSource("registry.example/app:v1")
FILE = HttpSource("https://files.example/a.yaml")
OVER_SSH = GitSource("ssh://git@git.example/x.git", branch="main")
UNFIT: dict[str, tuple[RemoteSource, JsonObject, str]] = {
    "another type": (IMAGE, secret("example.com/tls", **{"ca.crt": "shh"}), "of type example.com/tls has ca.crt"),
    "a key of another type": (IMAGE, secret(SSH_AUTH, **{".dockerconfigjson": "{}"}), f"of type {SSH_AUTH} has"),
    "a service account's token": (FILE, secret("kubernetes.io/service-account-token", token="shh"), "bearerToken"),
    "a pull secret for a file": (FILE, secret(DOCKER_CONFIG, **{".dockerconfigjson": "{}"}), "username and password"),
    "a token for an image": (IMAGE, secret("Opaque", bearerToken="shh"), "expected for an image: .dockerconfigjson"),
    "a password over ssh": (
        OVER_SSH,
        secret(BASIC_AUTH, username="u", password="shh"),
        "ssh-privatekey and known_hosts",
    ),
    "no known hosts": (OVER_SSH, secret(SSH_AUTH, **{"ssh-privatekey": "shh"}), "ssh-privatekey and known_hosts"),
    "empty known hosts": (OVER_SSH, secret(SSH_AUTH, **{"ssh-privatekey": "shh", "known_hosts": ""}), "known_hosts"),
    "no password": (FILE, secret(BASIC_AUTH, username="shh"), "has username; expected"),
    "nothing": (FILE, secret("Opaque"), "has no keys with a value"),
    "no text": (FILE, secret(BASIC_AUTH, username=b"\xff\xfe", password="shh"), "its key username is no UTF-8 text"),
    "no base64": (FILE, {**secret("Opaque"), "data": {"bearerToken": "shh!"}}, "its key bearerToken is no UTF-8 text"),
    "a line break in a token": (FILE, secret("Opaque", bearerToken="shh\n"), "key bearerToken holds a blank or line"),
    "a header in a token": (FILE, secret("Opaque", bearerToken="shh\r\nHost: x"), "key bearerToken holds a blank"),
    "a colon in a user": (FILE, secret(BASIC_AUTH, username="shh:x", password="shh"), "its key username holds a colon"),
    "a config that is no JSON": (
        IMAGE,
        secret(DOCKER_CONFIG, **{".dockerconfigjson": "shh"}),
        "no JSON object of auths",
    ),
    "a config without auths": (IMAGE, secret(DOCKER_CONFIG, **{".dockerconfigjson": "{}"}), "no JSON object of auths"),
    "a deep config": (IMAGE, secret("kubernetes.io/dockercfg", **{".dockercfg": "[" * 99_999}), "no JSON object of"),
}


@pytest.mark.parametrize(("source", "given", "words"), UNFIT.values(), ids=UNFIT)
def test_a_secret_that_does_not_fit_is_told_by_its_keys(source: RemoteSource, given: JsonObject, words: str) -> None:
    with pytest.raises(BadSource) as caught:
        with_secret(source, given)
    assert str(caught.value).startswith("Secret harbour/pull")
    assert words in str(caught.value)
    assert "shh" not in str(caught.value)


@pytest.mark.parametrize("number", [0, 5000], ids=["few", "many"])
def test_many_keys_do_not_fill_the_message(number: int) -> None:
    with pytest.raises(BadSource) as caught:
        with_secret(FILE, secret("Opaque", **{f"key-{one}": "x" for one in range(number)}))
    assert len(str(caught.value)) < 400


NAMED = {
    "its name": ("registry.example.com", "registry.example.com/a:1", True),
    "its name in capitals": ("Registry.Example.com", "registry.example.com/a:1", True),
    "its name and the port of https": ("registry.example.com:443", "registry.example.com/a:1", True),
    "its name and port": ("registry.example.com:8443", "registry.example.com:8443/a:1", True),
    "Docker Hub": ("docker.io", "library/a:1", True),
    "another port": ("registry.example.com", "registry.example.com:8443/a:1", False),
    "a name that begins like it": ("registry.example.com", "registry.example.com.evil.example/a:1", False),
    "a name above it": ("example.com", "registry.example.com/a:1", False),
    "a name below it": ("a.registry.example.com", "registry.example.com/a:1", False),
}


@pytest.mark.parametrize("form", ["host", "docker configuration"])
@pytest.mark.parametrize(("name", "ref", "is_for_it"), NAMED.values(), ids=NAMED)
def test_S08_a_secret_is_for_exactly_the_host_that_is_named(form: str, name: str, ref: str, is_for_it: bool) -> None:
    text = f'{{"auths": {{"{name}": {{"auth": "{PAIR}"}}}}}}'
    given, host = (
        (secret(BASIC_AUTH, username=USER, password=PASSWORD), name)
        if form == "host"
        else (secret(DOCKER_CONFIG, **{".dockerconfigjson": text}), "")
    )
    made = with_secret_for(ImageSource(ref), given, host=host)
    assert bool(made.credentials) == is_for_it


def test_S08_user_and_password_that_are_for_no_named_host_are_refused() -> None:
    given = secret(BASIC_AUTH, username=USER, password=PASSWORD)
    with pytest.raises(
        BadSource, match=r"Secret harbour/pull names no host .* chose charts\.example\.com; expected auth\.host"
    ):
        with_secret_for(HttpSource("https://charts.example.com/a.tgz"), given, host="")
