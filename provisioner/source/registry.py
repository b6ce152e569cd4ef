"""oras' registry with our client under it: bounded, without retries and cookies, and careful with passwords (S08)."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from oras.provider import Registry

from provisioner.errors import BadSource, SourceUnavailable
from provisioner.source.client import SourceClient, SourceReply
from provisioner.source.egress import Origin, check_place, place_of, shown
from provisioner.source.specs import Credentials

MAX_TOKEN_BYTES = 64 * 1024
TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")
BEARER = re.compile(r"(?:^|[\s,])bearer\s+(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
BASIC = re.compile(r"(?:^|[\s,])basic(?:\s|$)", re.IGNORECASE)
WORD = re.compile(r'(\w+)="([^"]*)"')
HUB_KEY = "index.docker.io"


class BoundedRegistry(Registry):  # type: ignore[misc]  # oras has no types
    """One registry. `pair` is user:password in base64 for it, "" for none.

    `token_host` may give tokens for it beside the registry itself and the hosts that the operator listed.
    """

    def __init__(self, client: SourceClient, place: Origin, *, pair: str, token_host: str = ""):
        super().__init__(hostname=str(place), insecure=place.scheme == "http")
        self._client = client
        self._place = place
        self._pair = pair
        self._token_host = token_host
        self._authorization = ""

    def fetch(self, url: str, scope: str, *, max_bytes: int, accept: str = "*/*") -> SourceReply:
        """GET `url` (without its scheme), answering one challenge; BadSource for what is not there or not ours."""
        return self._checked(f"{self.prefix}://{url}", scope, partial(self._client.get, max_bytes=max_bytes), accept)

    def head(self, url: str, scope: str, *, accept: str) -> Mapping[str, str]:
        """The headers of the answer to a HEAD of `url`, names in lower case; raises as `fetch`."""
        return self._checked(f"{self.prefix}://{url}", scope, self._client.head, accept).headers

    def _checked(self, address: str, scope: str, ask: Callable[..., SourceReply], accept: str) -> SourceReply:
        reply = ask(address, headers=self._headers(accept))
        if reply.status == 401:
            self._authorization = self._answer(reply.headers.get("www-authenticate", ""), scope, address)
            reply = ask(address, headers=self._headers(accept))
        if reply.status in (401, 403):
            raise SourceUnavailable(
                f"{shown(address)}: the registry answered {reply.status}: {self._known_as} may not read it"
            )
        if reply.status != 200:
            error = SourceUnavailable if reply.status == 404 else BadSource
            raise error(f"{shown(address)}: the registry answered {reply.status}; expected 200")
        return reply

    def _headers(self, accept: str) -> dict[str, str]:
        return {"Accept": accept} | ({"Authorization": self._authorization} if self._authorization else {})

    @property
    def _known_as(self) -> str:
        if self._pair:
            return "the user of the given credentials"
        if self._client.has_client_certificate:
            return "the owner of the client certificate"
        return f"nobody, as no credentials for {self._place} were given,"

    def _answer(self, challenge: str, scope: str, address: str) -> str:
        """The Authorization that a challenge asks for."""
        bearer = BEARER.search(challenge)
        words = dict(WORD.findall(bearer["rest"])) if bearer else {}
        if "realm" in words:
            return f"Bearer {self._token(words, scope)}"
        if BASIC.search(challenge) and self._pair:
            return f"Basic {self._pair}"
        raise SourceUnavailable(f"{shown(address)}: the registry wants credentials; {self._known_as} may not read it")

    def _token(self, words: Mapping[str, str], scope: str) -> str:
        """A token for reading this repository. The password goes to the registry's own place or an allowed one only."""
        realm = place_of(words["realm"])
        if not (realm.scheme == "https" and realm.host == self._token_host):
            check_place(words["realm"], self._place, self._client.policy)
        asked = {"scope": scope} | ({"service": words["service"]} if "service" in words else {})
        joint = "&" if "?" in words["realm"] else "?"
        headers = {"Authorization": f"Basic {self._pair}"} if self._pair else {}
        url = f"{words['realm']}{joint}{urlencode(asked)}"
        reply = self._client.get(url, max_bytes=MAX_TOKEN_BYTES, headers=headers)
        if reply.status in (400, 401, 403):
            raise SourceUnavailable(
                f"{shown(url)}: gives no token (status {reply.status}): {self._known_as} may not read it"
            )
        return _token_of(reply, url)


def pair_of(credentials: Credentials | None, place: Origin, repository: str) -> str:
    """user:password in base64 for exactly this place, the longest path of a dockerconfigjson first; "" if none."""
    if credentials is None:
        return ""
    basic = credentials.basic_for(place).get("Authorization", "").removeprefix("Basic ")
    if basic or not credentials.docker_config:
        return basic
    fitting = {
        path: entry
        for (host, path), entry in _entries(credentials.docker_config)
        if host in _names_of(place) and (not path or f"{repository}/".startswith(f"{path}/"))
    }
    return _pair(fitting[max(fitting, key=len)], place) if fitting else ""


def names_host(credentials: Credentials, place: Origin) -> bool:
    """Whether an entry of the dockerconfigjson is for exactly this host and port."""
    return any(host in _names_of(place) for (host, _), _ in _entries(credentials.docker_config))


def is_named(name: str, place: Origin) -> bool:
    """Whether `name` (`host` or `host:port`) is exactly this place; without a port it is that of its scheme."""
    return name.lower() in _names_of(place)


def _entries(docker_config: str) -> list[tuple[tuple[str, str], Any]]:
    """((host, path of repositories), entry) of a dockerconfigjson."""
    try:
        auths = json.loads(docker_config)["auths"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadSource("the credentials are no dockerconfigjson: expected an object with auths") from None
    found = []
    for name, entry in auths:
        host, _, path = re.sub(r"^https?://", "", name.strip()).partition("/")
        # Docker writes the address of its first API after the host; that is no repository.
        found.append(((host.lower(), re.sub(r"^v[12]/?$", "", path.strip("/"))), entry))
    return found


def _names_of(place: Origin) -> tuple[str, ...]:
    names = (str(place), f"{place.host}:{place.port}")
    return (*names, HUB_KEY, "docker.io") if place.host == "registry-1.docker.io" else names


def _pair(entry: Any, place: Origin) -> str:
    if not isinstance(entry, dict):
        raise BadSource(f"the dockerconfigjson's entry for {place} is no object")
    if entry.get("auth"):
        try:
            base64.b64decode(str(entry["auth"]), validate=True)
        except (binascii.Error, ValueError):
            raise BadSource(f"the dockerconfigjson's auth for {place} is no base64") from None
        return str(entry["auth"])
    if not entry.get("username"):
        raise BadSource(f"the dockerconfigjson's entry for {place} has neither auth nor username and password")
    return base64.b64encode(f"{entry['username']}:{entry.get('password', '')}".encode()).decode()


def _token_of(reply: SourceReply, url: str) -> str:
    try:
        body = json.loads(reply.body)
        token = str(body.get("token") or body["access_token"])
    except (ValueError, KeyError, AttributeError, TypeError) as exc:
        raise BadSource(f"{shown(url)}: gave no token (status {reply.status})") from exc
    if not TOKEN.fullmatch(token):
        raise BadSource(f"{shown(url)}: gave a token that no header can hold")
    return token
