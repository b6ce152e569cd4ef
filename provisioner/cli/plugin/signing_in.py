"""`login` and `logout`: a token for reading reports at the service, by a browser or pasted."""

from __future__ import annotations

import argparse
import base64
import getpass
import hashlib
import http.server
import platform
import re
import secrets
import sys
import time
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from provisioner.cli.plugin import logins
from provisioner.cli.plugin.logins import Login
from provisioner.cli.plugin.service import ENVIRONMENT, LOOPBACK, Service, ServiceSilent, service_url, told_by
from provisioner.cli.plugin.terminal import is_conversation
from provisioner.cli.usage import Usage
from provisioner.escaping import visible

# What the account page shows; a credential of a cluster looks otherwise, and is not sent.
TOKEN = re.compile(r"prq_[A-Za-z0-9_-]{20,200}", re.ASCII)
READ = "read"
BACK_SECONDS = 300.0
ONE_CALL_SECONDS = 1.0
_BACK = b"You are signed in. Close this window and go back to the terminal.\n"
_NOT_BACK = b"This is not the answer that the terminal waits for.\n"


def login(options: argparse.Namespace) -> int:
    service = Service(_needed_url(options))
    token = _pasted(service, options) if options.token else _by_browser(service, options)
    about = _checked(Service(service.url, token))
    path = logins.keep(Login(service.url, token, about.ends_at))
    people = ", ".join(about.people)
    print(visible(f"signed in at {service.url}{f' as {people}' if people else ''}"))
    print(visible(f"the token ends at {about.ends_at or 'an unknown time'}; it is kept in {path}"))
    return 0


def logout(options: argparse.Namespace) -> int:
    """The token is revoked at the service, too; where that fails the file is gone all the same."""
    url = service_url(options) or _only_one()
    found = logins.kept(url)
    if found is None:
        raise Usage(f"there is no login for {url}")
    try:
        Service(url, found.token).delete("tokens/current")
    except ServiceSilent as exc:
        said = "" if exc.status == 401 else f"; the token may still count until you revoke it on {url}/me: {exc}"
        print(visible(f"kubectl pratique: the service did not revoke the token{said}"), file=sys.stderr)
    logins.forget(url)
    print(visible(f"signed out of {url}"))
    return 0


def login_for(url: str) -> Login | None:
    """The login for this service, if one is kept."""
    return logins.kept(url) if url else None


def _needed_url(options: argparse.Namespace) -> str:
    url = service_url(options)
    if not url:
        raise Usage(f"which service? Name it: kubectl pratique login --service https://HOST (or set {ENVIRONMENT})")
    return url


def _only_one() -> str:
    known = logins.every()
    if len(known) == 1:
        return known[0]
    if not known:
        raise Usage("there is no login to end")
    raise Usage(f"which of them? Add --service: {', '.join(known)}")


def _pasted(service: Service, options: argparse.Namespace) -> str:
    if options.token != "-":  # noqa: S105 - the word for standard input
        raise Usage("--token takes only - : what stands on a command line is seen by other users. Paste it when asked")
    if is_conversation():
        text = getpass.getpass(f"A token with the scope read from {service.url}/me: ")
    else:
        text = sys.stdin.readline()
    text = text.strip()
    try:
        return _token_in(text)
    except ValueError as exc:
        raise Usage(f"{exc}; nothing was sent") from exc


def _token_in(text: str) -> str:
    """Raises ValueError where it is none."""
    if not TOKEN.fullmatch(text):
        raise ValueError("this is no API token of Pratique, which begins with prq_")
    return text


@dataclass(frozen=True, slots=True)
class _TokenFacts:
    """What the service says of a token; `people` are in words, one for each cluster."""

    scopes: frozenset[str]
    people: tuple[str, ...]
    ends_at: str


def _checked(service: Service) -> _TokenFacts:
    """What the token may do, as the service says. Raises Usage where that is not enough."""
    about = service.get("tokens/current")
    with told_by(service):
        facts = _TokenFacts(
            frozenset(str(one) for one in about["scopes"]),
            tuple(f"{one['username']} on cluster {one['cluster']}" for one in about.get("proofs") or []),
            str(about.get("expires_at") or ""),
        )
    if READ not in facts.scopes:
        raise Usage("this token lacks the scope read: create one with it on the account page")
    more = sorted(facts.scopes - {READ})
    if more:
        print(
            visible(f"kubectl pratique: the token may also {' and '.join(more)}; the scope read is enough here"),
            file=sys.stderr,
        )
    return facts


@dataclass(frozen=True, slots=True)
class _Issuer:
    """Where people sign in, as the service says."""

    name: str
    authorization_url: str
    client_id: str
    scopes: tuple[str, ...]

    @property
    def is_safe(self) -> bool:
        """Whether nobody reads on the way what is said there. Raises ValueError where it is no address."""
        parts = urlsplit(self.authorization_url)
        return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def _by_browser(service: Service, options: argparse.Namespace) -> str:
    """OAuth 2.0 for native apps (RFC 8252) with PKCE (RFC 7636): the code is of no use to whoever sees it pass.

    The nonce names this service, and the issuer signs it: a service that was named to somebody by deceit cannot take
    their sign-in to another service, which expects its own address there (security-rules.md S35).
    """
    issuer = _issuer(service, options.issuer)
    verifier, state = (secrets.token_urlsafe(48) for _ in range(2))
    with _waiting(state) as waiting:
        wish = {
            "response_type": "code",
            "client_id": issuer.client_id,
            "redirect_uri": waiting.address,
            "scope": " ".join(issuer.scopes),
            "state": state,
            "nonce": _digest(f"{service.url}\n{verifier}"),
            "code_challenge": _digest(verifier),
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in issuer.authorization_url else "?"
        _open(f"{issuer.authorization_url}{joint}{urlencode(wish)}", options)
        code = waiting.code(options.timeout)
    body = {
        "issuer": issuer.name,
        "code": code,
        "redirect_uri": waiting.address,
        "verifier": verifier,
        "service": service.url,
        "name": f"kubectl pratique on {platform.node() or 'a computer'}"[:100],
    }
    answer = service.post("sign-in/exchange", body)
    with told_by(service):
        return _token_in(str(answer["token"]))


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def _issuer(service: Service, name: str) -> _Issuer:
    """The one that is meant. Raises Usage where there is none, or the browser must not be sent there."""
    answer = service.get("sign-in/issuers") or []
    with told_by(service):
        issuers = [_issuer_in(one) for one in answer]
        unsafe = [one.name for one in issuers if not one.is_safe]
    found = {one.name: one for one in issuers}
    if not found:
        raise Usage(
            f"{service.url} has no issuer for the command line. Create a token with the scope read on "
            f"{service.url}/me, and run: kubectl pratique login --service {service.url} --token -"
        )
    if (name and name not in found) or (not name and len(found) > 1):
        raise Usage(f"choose one with --issuer: {', '.join(found)}")
    issuer = found[name] if name else next(iter(found.values()))
    if issuer.name in unsafe:
        raise Usage(f"{service.url} names an issuer without https: nothing was opened")
    return issuer


def _issuer_in(record: Mapping[str, Any]) -> _Issuer:
    scopes = tuple(str(one) for one in record["scopes"])
    return _Issuer(str(record["name"]), str(record["authorization_url"]), str(record["client_id"]), scopes)


def _open(address: str, options: argparse.Namespace) -> None:
    is_open = not options.no_browser and webbrowser.open(address)
    words = "Sign in in the browser that has opened, or open" if is_open else "Open in a browser on this machine"
    print(f"{words}:\n\n  {visible(address)}\n", file=sys.stderr, flush=True)


class _Answers(http.server.HTTPServer):
    """One address of this machine, for as long as one sign-in takes; `found` is what the browser brought."""

    timeout = ONE_CALL_SECONDS

    def __init__(self, state: str):
        super().__init__(("127.0.0.1", 0), _Answer)
        self.state = state
        self.found: dict[str, str] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def code(self, seconds: float) -> str:
        """Raises Usage where the issuer refused, or nobody came in time."""
        end = time.monotonic() + seconds
        while self.found is None:
            if time.monotonic() > end:
                raise Usage(f"nobody signed in within {seconds:.0f} s; run the command again (--timeout waits longer)")
            self.handle_request()
        if "code" not in self.found:
            said = self.found.get("error_description") or self.found.get("error") or "it says no why"
            raise Usage(f"the issuer refused the sign-in: {said[:300]}")
        return self.found["code"]

    def take(self, query: str) -> bool:
        """Whether this is the answer to our own question: others may call this address, too."""
        given = {name: texts[0] for name, texts in parse_qs(query).items()}
        if not compare_digest(given.get("state", "").encode(), self.state.encode()):
            return False
        self.found = self.found or given
        return True

    def __enter__(self) -> Self:
        return self


class _Answer(http.server.BaseHTTPRequestHandler):
    server: _Answers
    timeout = 5.0

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        is_ours = parts.path == "/" and self.server.take(parts.query)
        body = _BACK if is_ours else _NOT_BACK
        self.send_response(200 if is_ours else 404)
        for name, text in (
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
        ):
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """The address holds the code."""


@contextmanager
def _waiting(state: str) -> Iterator[_Answers]:
    with _Answers(state) as server:
        yield server
