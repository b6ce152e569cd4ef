"""Credentials of registries and git servers: who gets them, and what is said where they do not fit (S08)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from provisioner.errors import BadSource, ForbiddenAddress, Unreachable
from provisioner.source import Credentials, EgressPolicy, Fetched, GitSource, ImageSource, fetch
from provisioner.unpack import unpack
from tests.provisioner.source.places import MIB, OPEN
from tests.support.servers.http import Asked, GitServer, Listening, Reply
from tests.support.servers.registry import CREDENTIALS, Registry

USER, PASSWORD = CREDENTIALS
FILES = {"a.yaml": "kind: A\n"}
WORDS = (PASSWORD, base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode())


def config(host: str, *, user: str = USER, password: str = PASSWORD, **more: object) -> Credentials:
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    return Credentials(docker_config=json.dumps({"auths": {host: {"auth": auth, **more}}}))


def get(ref: str, credentials: Credentials | None, policy: EgressPolicy = OPEN) -> Fetched:
    return fetch(ImageSource(ref, insecure_http=True), egress=policy, credentials=credentials, max_bytes=MIB)


def refusal(ref: str, credentials: Credentials | None, policy: EgressPolicy = OPEN) -> str:
    with pytest.raises(BadSource) as caught:
        get(ref, credentials, policy)
    assert not any(word in str(caught.value) for word in WORDS)
    return str(caught.value)


@pytest.fixture(scope="module")
def private(registry_with_auth: Registry) -> str:
    registry_with_auth.push("private/app:v1", FILES)
    return f"{registry_with_auth.host}/private/app:v1"


def test_basic_credentials_open_a_registry(registry_with_auth: Registry, private: str) -> None:
    for host in (registry_with_auth.host, registry_with_auth.host.partition(":")[0]):
        assert get(private, Credentials(host=host, username=USER, password=PASSWORD)).archives


FORMS = {
    "host": "{}",
    "host with scheme": "https://{}",
    "host with a slash": "{}/",
    "the first API's address": "https://{}/v1/",
    "folder of repositories": "{}/private",
    "repository": "{}/private/app",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_dockerconfigjson_opens_it_in_every_way_to_name_it(
    registry_with_auth: Registry, private: str, form: str
) -> None:
    assert get(private, config(form.format(registry_with_auth.host))).archives


def test_a_dockerconfigjson_with_user_and_password_apart(registry_with_auth: Registry, private: str) -> None:
    entry = {"username": USER, "password": PASSWORD}
    text = json.dumps({"auths": {registry_with_auth.host: entry}, "credsStore": "desktop"})
    assert get(private, Credentials(docker_config=text)).archives


def test_the_longest_path_of_a_dockerconfigjson_counts(registry_with_auth: Registry, private: str) -> None:
    host = registry_with_auth.host
    right = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    wrong = base64.b64encode(b"other:other").decode()
    auths = {host: {"auth": wrong}, f"{host}/private": {"auth": wrong}, f"{host}/private/app": {"auth": right}}
    assert get(private, Credentials(docker_config=json.dumps({"auths": auths}))).archives


def test_wrong_credentials_are_named_as_such(registry_with_auth: Registry, private: str) -> None:
    words = refusal(private, config(registry_with_auth.host, password="wrong"))
    assert "answered 401: the user of the given credentials may not read it" in words


OTHERS = {
    "none": None,
    "another host": config("registry.example"),
    "another port": config("127.0.0.1:1"),
    "the host without its port": config("127.0.0.1"),
    "another repository": config("127.0.0.1/private/other"),
    "no auths": Credentials(docker_config='{"auths": {}}'),
}


@pytest.mark.parametrize("credentials", OTHERS.values(), ids=OTHERS)
def test_s08_credentials_for_another_place_open_nothing(private: str, credentials: Credentials | None) -> None:
    assert "no credentials for 127.0.0.1:" in refusal(private, credentials)


BROKEN = {
    "no JSON": "{",
    "a list": "[]",
    "no auths": "{}",
    "auths is a list": '{"auths": []}',
    "auths is null": '{"auths": null}',
    "deep": '{"auths":' * 100_000,
    "an entry that is text": '{"auths": {"HOST": "x"}}',
    "an auth that is no base64": '{"auths": {"HOST": {"auth": "open sesame!"}}}',
    "an empty entry": '{"auths": {"HOST": {}}}',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_dockerconfigjson_is_refused_without_its_words(private: str, text: str) -> None:
    host = private.partition("/")[0]
    assert "dockerconfigjson" in refusal(private, Credentials(docker_config=text.replace("HOST", host)))


class TokenServer:
    """A front of the open registry that wants a Bearer token for the repository, and the service that gives it."""

    def __init__(self, registry: Registry, start: Callable[[Callable[[Asked], Reply]], Listening]):
        self._registry = registry
        self.realm_asked: list[Asked] = []
        self.front_asked: list[Asked] = []
        self.tokens = start(self._give)
        self.front = start(self._answer)
        self.realm = f"{self.tokens.url}/token"
        self.challenge = 'Bearer realm="{realm}",service="front",scope="repository:everything:push,pull"'
        self.token_reply: Mapping[str, object] | bytes = {"token": "letmein"}
        self.status = 200

    def _give(self, asked: Asked) -> Reply:
        self.realm_asked.append(asked)
        body = self.token_reply
        return Reply(body if isinstance(body, bytes) else json.dumps(body).encode(), self.status)

    def _answer(self, asked: Asked) -> Reply:
        if asked.path == "/token":
            return self._give(asked)
        self.front_asked.append(asked)
        if asked.headers.get("authorization") != "Bearer letmein":
            return Reply(b"{}", 401, {"WWW-Authenticate": self.challenge.format(realm=self.realm)})
        return Reply(status=307, headers={"Location": f"{self._registry.url}{asked.path}"})


@pytest.fixture
def tokens(registry: Registry) -> Iterator[TokenServer]:
    registry.push("token/app:v1", FILES)
    started: list[Listening] = []

    def start(answer: Callable[[Asked], Reply]) -> Listening:
        started.append(Listening(answer))
        return started[-1]

    yield TokenServer(registry, start)
    for one in started:
        one.stop()


def listing(tokens: TokenServer, registry: Registry, *, realm: bool = True) -> EgressPolicy:
    return replace(OPEN, allowed_hosts=(registry.host, tokens.tokens.host) if realm else (registry.host,))


def test_a_token_is_asked_for_reading_this_repository_only(tokens: TokenServer, registry: Registry) -> None:
    host = tokens.front.host
    fetched = get(f"{host}/token/app:v1", config(host), listing(tokens, registry))
    assert unpack(fetched.archives).files == {"a.yaml": b"kind: A\n"}
    assert [one.query for one in tokens.realm_asked] == ["scope=repository%3Atoken%2Fapp%3Apull&service=front"]
    assert tokens.realm_asked[0].headers["authorization"] == f"Basic {WORDS[1]}"
    assert all("Basic" not in one.headers.get("authorization", "") for one in tokens.front_asked)


def test_a_token_may_come_from_the_registry_itself(tokens: TokenServer, registry: Registry) -> None:
    tokens.realm = f"{tokens.front.url}/token"
    tokens.token_reply = {"access_token": "letmein"}
    assert get(f"{tokens.front.host}/token/app:v1", None, listing(tokens, registry, realm=False)).archives
    assert "authorization" not in tokens.realm_asked[0].headers


def test_s08_a_realm_elsewhere_gets_neither_password_nor_question(tokens: TokenServer, registry: Registry) -> None:
    host = tokens.front.host
    words = refusal(f"{host}/token/app:v1", config(host), listing(tokens, registry, realm=False))
    assert f"{host} leads to {tokens.tokens.host}, another host; PRATIQUE_ALLOWED_SOURCE_HOSTS" in words
    assert tokens.realm_asked == []


REALMS = {
    "metadata": ("http://169.254.169.254/token", ()),
    "metadata, listed as host": ("http://169.254.169.254/token", ("169.254.169.254",)),
    "a file": ("file:///etc/passwd", ()),
    "credentials": ("http://u:p@127.0.0.1/token", ()),
    "two hosts": ("http://127.0.0.1\\@evil.example/", ()),
    "the Hub's for another registry": ("https://auth.docker.io/token", ()),
    "nothing": ("", ()),
}


@pytest.mark.parametrize(("realm", "listed"), REALMS.values(), ids=REALMS)
def test_s18_a_realm_is_checked_like_every_address(tokens: TokenServer, registry: Registry, realm: str, listed) -> None:
    tokens.realm = realm
    policy = replace(OPEN, allowed_hosts=(registry.host, *listed))
    with pytest.raises(BadSource) as caught:
        get(f"{tokens.front.host}/token/app:v1", config(tokens.front.host), policy)
    assert not listed or isinstance(caught.value, ForbiddenAddress)


TOKENS = {
    "no JSON": b"<html>",
    "a list": b"[]",
    "null": {"token": None},
    "empty": {"token": ""},
    "a header in it": {"token": "x\r\nHost: evil.example"},
    "not ASCII": {"token": "é"},
    "too long": {"token": "x" * 20_000},
}


@pytest.mark.parametrize("reply", TOKENS.values(), ids=TOKENS)
def test_a_token_that_is_none_is_refused(tokens: TokenServer, registry: Registry, reply) -> None:
    tokens.token_reply = reply
    assert "token" in refusal(f"{tokens.front.host}/token/app:v1", None, listing(tokens, registry))


def test_a_refused_password_is_said_and_a_busy_service_tried_later(tokens: TokenServer, registry: Registry) -> None:
    ref, policy = f"{tokens.front.host}/token/app:v1", listing(tokens, registry)
    tokens.status = 401
    assert "gives no token (status 401): the user of the given" in refusal(ref, config(tokens.front.host), policy)
    tokens.status = 503
    with pytest.raises(Unreachable, match="answered 503"):
        get(ref, None, policy)


def test_a_token_that_opens_nothing_is_not_asked_for_again(tokens: TokenServer, registry: Registry) -> None:
    tokens.token_reply = {"token": "wrong"}
    assert "answered 401" in refusal(f"{tokens.front.host}/token/app:v1", None, listing(tokens, registry))
    assert (len(tokens.realm_asked), len(tokens.front_asked)) == (1, 2)


def test_s08_a_token_is_not_sent_to_where_blobs_are_redirected(tokens: TokenServer, registry: Registry) -> None:
    heard: list[Asked] = []

    def blobs(asked: Asked) -> Reply:
        heard.append(asked)
        return Reply(b"{}", 404)

    elsewhere = Listening(blobs)
    try:
        tokens._registry = type("Elsewhere", (), {"url": elsewhere.url})()
        policy = replace(OPEN, allowed_hosts=(elsewhere.host, tokens.tokens.host))
        refusal(f"{tokens.front.host}/token/app:v1", config(tokens.front.host), policy)
    finally:
        elsewhere.stop()
    assert len(heard) == 1
    assert "authorization" not in heard[0].headers


@pytest.fixture(scope="module")
def repository(git_server_with_auth: GitServer) -> str:
    made = git_server_with_auth.repository("locked")
    made.commit(FILES)
    return made.url


class TestGit:
    def ask(self, url: str, credentials: Credentials | None) -> Fetched:
        return fetch(GitSource(url, branch="main"), egress=OPEN, credentials=credentials, max_bytes=MIB)

    def test_a_password_opens_it(self, repository: str) -> None:
        fetched = self.ask(repository, Credentials("127.0.0.1", USER, PASSWORD))
        assert unpack(fetched.archives).files == {"a.yaml": b"kind: A\n"}

    REFUSED = {
        "none": (None, "no credentials for 127.0.0.1:"),
        "another host": (Credentials("git.example", USER, PASSWORD), "no credentials for 127.0.0.1:"),
        "another port": (Credentials("127.0.0.1:1", USER, PASSWORD), "no credentials for 127.0.0.1:"),
        "wrong": (Credentials("127.0.0.1", USER, "wrong"), "the given credentials do not fit"),
    }

    @pytest.mark.parametrize(("credentials", "words"), REFUSED.values(), ids=REFUSED)
    def test_s08_others_do_not(self, repository: str, credentials: Credentials | None, words: str) -> None:
        with pytest.raises(BadSource, match=f"answered 401: {words}") as caught:
            self.ask(repository, credentials)
        assert not any(word in str(caught.value) for word in WORDS)

    def test_s08_a_password_is_not_taken_along_by_a_redirect(self, repository: str) -> None:
        heard: list[Asked] = []

        def listen(asked: Asked) -> Reply:
            heard.append(asked)
            return Reply(b"", 404)

        elsewhere = Listening(listen)
        front = Listening(lambda asked: Reply(status=301, headers={"Location": f"{elsewhere.url}{asked.path}"}))
        try:
            source = GitSource(f"{front.url}/locked.git", branch="main")
            given = Credentials(front.host, USER, PASSWORD)
            with pytest.raises(BadSource, match="another host"):
                fetch(source, egress=OPEN, credentials=given, max_bytes=MIB)
            assert heard == []
            listed = replace(OPEN, allowed_hosts=(elsewhere.host,))
            with pytest.raises(BadSource):
                fetch(source, egress=listed, credentials=given, max_bytes=MIB)
        finally:
            front.stop()
            elsewhere.stop()
        assert heard
        assert all("authorization" not in one.headers for one in heard)
