"""`login` and `logout`: get a token to read reports, keep it in a file that only its owner may read, and delete it."""

from __future__ import annotations

import argparse
import base64
import getpass
import hashlib
import http.server
import json
import os
import platform
import re
import secrets
import stat
import sys
import time
import webbrowser
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlencode, urlsplit

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.service import ENVIRONMENT, LOOPBACK, Service, ServiceSilent, service_url, told_by
from provisioner.cli.kubectl.terminal import is_conversation
from provisioner.escaping import visible

OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Login:
    """A token for one service; `ends_at` is the service's word, such as 2026-11-25T21:00:00Z."""

    url: str
    token: str
    ends_at: str = ""

    def __repr__(self) -> str:
        return f"Login({self.url!r})"


def logins_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kubectl-pratique"


def keep_login(login: Login) -> Path:
    """Write it whole or not at all, for its owner from the first moment."""
    place = logins_folder()
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = _login_path(login.url)
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"url": login.url, "token": login.token, "endsAt": login.ends_at}, file)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    return path


def read_login(url: str) -> Login | None:
    """The login for exactly this service. Raises Usage where others may read its file, or it is no such file."""
    path = _login_path(url)
    try:
        mode = path.stat().st_mode
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as exc:
        raise Usage(f"{path}: not a login that was kept by this program; remove it and log in again") from exc
    if os.name == "posix" and mode & OTHERS:
        raise Usage(f"{path}: other users may read this token: revoke it, remove the file and log in again")
    is_whole = isinstance(found, dict) and found.get("url") == url and isinstance(found.get("token"), str)
    if not is_whole:
        raise Usage(f"{path}: not a login for {url}; remove it and log in again")
    return Login(url, found["token"], str(found.get("endsAt") or ""))


def forget_login(url: str) -> bool:
    """Whether there was one."""
    path = _login_path(url)
    is_there = path.exists()
    path.unlink(missing_ok=True)
    return is_there


def known_services() -> list[str]:
    """The services for which a login is kept."""
    found = []
    for path in sorted(logins_folder().glob("*.json")):
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(about, dict) and path == _login_path(str(about.get("url") or "")):
            found.append(str(about["url"]))
    return found


def _login_path(url: str) -> Path:
    return logins_folder() / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"


# What the account page shows; a credential of a cluster looks otherwise, and is not sent.
TOKEN = re.compile(r"prq_[A-Za-z0-9_-]{20,200}", re.ASCII)
READ = "read"
BACK_SECONDS = 300.0
ONE_CALL_SECONDS = 1.0
_BACK = b"You are signed in. Close this window and go back to the terminal.\n"
_NOT_BACK = b"This is not the answer that the terminal waits for.\n"


def login(options: argparse.Namespace) -> int:
    url = service_url(options)
    if not url:
        raise Usage(f"which service? Name it: kubectl pratique login --service https://HOST (or set {ENVIRONMENT})")
    service = Service(url)
    token = _ask_for_token(service, options) if options.token else _by_browser(service, options)
    about = _check_token(Service(service.url, token))
    path = keep_login(Login(service.url, token, about.ends_at))
    people = ", ".join(about.people)
    print(visible(f"signed in at {service.url}{f' as {people}' if people else ''}"))
    print(visible(f"the token ends at {about.ends_at or 'an unknown time'}; it is kept in {path}"))
    return 0


def logout(options: argparse.Namespace) -> int:
    """The token is revoked at the service, too; where that fails the file is gone all the same."""
    url = service_url(options)
    if not url:
        known = known_services()
        if not known:
            raise Usage("there is no login to end")
        if len(known) > 1:
            raise Usage(f"which of them? Add --service: {', '.join(known)}")
        url = known[0]
    found = read_login(url)
    if found is None:
        raise Usage(f"there is no login for {url}")
    try:
        Service(url, found.token).delete("tokens/current")
    except ServiceSilent as exc:
        said = "" if exc.status == 401 else f"; the token may still count until you revoke it on {url}/me: {exc}"
        print(visible(f"kubectl pratique: the service did not revoke the token{said}"), file=sys.stderr)
    forget_login(url)
    print(visible(f"signed out of {url}"))
    return 0


def login_for(url: str) -> Login | None:
    """The login for this service, if one is kept."""
    return read_login(url) if url else None


def open_service(options: argparse.Namespace, purpose: str) -> Service:
    """The service that is meant, with the login that is kept for it; `purpose` says to who has none what needs one."""
    url = service_url(options)
    login = login_for(url)
    if login is None:
        where = f"log in to {url} first: `kubectl pratique login`" if url else f"set --service or ${ENVIRONMENT}"
        raise Usage(f"{purpose}: {where}")
    return Service(url, login.token)


def _ask_for_token(service: Service, options: argparse.Namespace) -> str:
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


def _check_token(service: Service) -> _TokenFacts:
    """What the token may do, as the service says. Raises Usage where that is not enough."""
    about = service.get("tokens/current")
    with told_by(service):
        facts = _TokenFacts(
            frozenset(str(scope) for scope in about["scopes"]),
            tuple(f"{proof['username']} on cluster {proof['cluster']}" for proof in about.get("proofs") or []),
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
    issuer = _choose_issuer(service, options.issuer)
    verifier, state = (secrets.token_urlsafe(48) for _ in range(2))
    with _Answers(state) as waiting:
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
        address = f"{issuer.authorization_url}{joint}{urlencode(wish)}"
        is_open = not options.no_browser and webbrowser.open(address)
        words = "Sign in in the browser that has opened, or open" if is_open else "Open in a browser on this machine"
        print(f"{words}:\n\n  {visible(address)}\n", file=sys.stderr, flush=True)
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


def _choose_issuer(service: Service, name: str) -> _Issuer:
    """The one that is meant. Raises Usage where there is none, or the browser must not be sent there."""
    answer = service.get("sign-in/issuers") or []
    with told_by(service):
        issuers = [
            _Issuer(
                str(record["name"]),
                str(record["authorization_url"]),
                str(record["client_id"]),
                tuple(str(scope) for scope in record["scopes"]),
            )
            for record in answer
        ]
        unsafe = [known.name for known in issuers if not known.is_safe]
    found = {known.name: known for known in issuers}
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
