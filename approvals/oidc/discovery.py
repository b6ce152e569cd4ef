"""What an issuer says of itself: its addresses and its public keys, bounded, checked and kept for a while."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import jwt
import orjson
import urllib3

from approvals.oidc.issuers import Issuer, is_protected

logger = logging.getLogger(__name__)

PATH = "/.well-known/openid-configuration"
MAX_BYTES = 256 * 1024
MAX_KEYS = 50
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TIMEOUT = urllib3.Timeout(connect=3, read=5)
# For a whole answer, however slowly its bytes come.
ANSWER_SECONDS = 8.0
PIECE_BYTES = 64 * 1024
# What an issuer said is asked again after this; a key that it took back counts no longer than that.
FRESH_SECONDS = 600.0
# An unknown key may be a new one, and an issuer that was silent may answer again: whoever makes up names of keys, or
# tokens of a silent issuer, makes us ask this often at most.
ASK_AGAIN_SECONDS = 10.0
NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
OPTIONAL = ("end_session_endpoint", "userinfo_endpoint", "revocation_endpoint")


class IssuerSilent(Exception):
    """An issuer did not answer, or with something that is no answer. It counts as no."""


@dataclass(frozen=True, slots=True)
class Told:
    """An issuer's document of discovery, and its keys by their names."""

    document: Mapping[str, Any]
    keys: Mapping[str, jwt.PyJWK]
    at: float


@dataclass
class IssuerDiscovery:
    """One process's memory of what issuers said. `clock` counts seconds."""

    clock: Callable[[], float] = time.monotonic
    _told: dict[str, Told] = field(default_factory=dict)
    _silent: dict[str, tuple[float, str]] = field(default_factory=dict)
    _locks: dict[str, Lock] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def document(self, issuer: Issuer) -> Mapping[str, Any]:
        """The addresses of an issuer. Raises IssuerSilent."""
        return self._of(issuer, lambda told: self._age(told) < FRESH_SECONDS).document

    def key(self, issuer: Issuer, name: str) -> jwt.PyJWK | None:
        """The issuer's key of this name; None where it has none. Raises IssuerSilent."""
        told = self._of(issuer, lambda told: self._age(told) < FRESH_SECONDS)
        if name not in told.keys:
            told = self._of(issuer, lambda told: name in told.keys or self._age(told) < ASK_AGAIN_SECONDS)
        return told.keys.get(name)

    def note_silent(self, issuer: Issuer, words: str) -> None:
        """Another address of the issuer's, such as the one for tokens, did not answer."""
        self._silent[issuer.url] = (self.clock(), words)

    def is_silent(self, url: str) -> bool:
        """Whether the issuer did not answer a moment ago: what can wait does not ask it."""
        known = self._silent.get(url)
        return known is not None and self.clock() - known[0] < ASK_AGAIN_SECONDS

    def _age(self, told: Told) -> float:
        return self.clock() - told.at

    def _of(self, issuer: Issuer, is_enough: Callable[[Told], bool]) -> Told:
        with self._lock:
            lock = self._locks.setdefault(issuer.url, Lock())
        told = self._told.get(issuer.url)
        if told is not None and is_enough(told):
            return told
        silent = self._silent.get(issuer.url)
        # Of an issuer that was silent at the last time one thread waits for an answer: else strangers' tokens, which
        # only say that they are of it, would have them all wait.
        if not lock.acquire(blocking=silent is None):
            raise IssuerSilent(silent[1] if silent else "")
        try:
            # Another thread may have asked while this one waited.
            told = self._told.get(issuer.url)
            if told is not None and is_enough(told):
                return told
            if self.is_silent(issuer.url):
                raise IssuerSilent(self._silent[issuer.url][1])
            try:
                told = Told(*_read_discovery(issuer), self.clock())
            except IssuerSilent as exc:
                self.note_silent(issuer, str(exc))
                raise
            self._silent.pop(issuer.url, None)
            self._told[issuer.url] = told
            return told
        finally:
            lock.release()


def _read_discovery(issuer: Issuer) -> tuple[Mapping[str, Any], Mapping[str, jwt.PyJWK]]:
    document = get_json(issuer, issuer.url.removesuffix("/") + PATH)
    if document.get("issuer") != issuer.url:
        raise IssuerSilent(f"{issuer.url} identifies itself as another issuer: {str(document.get('issuer'))[:200]!r}")
    for name in (*NEEDED, *OPTIONAL):
        address = document.get(name)
        if address is None and name in OPTIONAL:
            continue
        if not isinstance(address, str) or not is_protected(address):
            raise IssuerSilent(f"{issuer.url} gives no https URL for {name}")
    found = get_json(issuer, document["jwks_uri"]).get("keys")
    if not isinstance(found, list) or len(found) > MAX_KEYS:
        raise IssuerSilent(f"{issuer.url} gives no list of at most {MAX_KEYS} keys")
    keys = {}
    for key in found:
        # Keys to encrypt with, and symmetric ones, sign nothing that we believe.
        if not isinstance(key, dict) or key.get("use", "sig") != "sig" or key.get("kty") not in ("RSA", "EC", "OKP"):
            continue
        try:
            keys[str(key.get("kid", ""))] = jwt.PyJWK(key)
        except jwt.PyJWTError as exc:
            logger.warning("an issuer's key cannot be read", extra={"issuer": issuer.name, "error": str(exc)})
    return document, keys


def get_json(issuer: Issuer, url: str) -> Mapping[str, Any]:
    """A JSON object from an address of the issuer's. Raises IssuerSilent."""
    code, body = _send(issuer, "GET", url, {"Accept": "application/json"}, None)
    return _json_object(issuer, code, body, {200})


def post_form(
    issuer: Issuer, url: str, fields: Mapping[str, str], headers: Mapping[str, str], *, is_empty: bool = False
) -> Mapping[str, Any]:
    """The answer to a form, an error's too (RFC 6749, section 5.2). Raises IssuerSilent.

    Where a success `is_empty`, as of a revocation, it is {}.
    """
    code, body = _send(issuer, "POST", url, {"Accept": "application/json", **FORM, **headers}, urlencode(fields))
    return {} if is_empty and code == 200 else _json_object(issuer, code, body, {200, 400, 401})


def _send(issuer: Issuer, method: str, url: str, headers: Mapping[str, str], form: str | None) -> tuple[int, bytes]:
    try:
        with urllib3.PoolManager(ca_certs=issuer.ca_file or None) as pool:
            answer = pool.request(
                method,
                url,
                body=form,
                headers=headers,
                timeout=TIMEOUT,
                redirect=False,
                retries=False,
                preload_content=False,
            )
            body, end = b"", time.monotonic() + ANSWER_SECONDS
            while piece := answer.read1(PIECE_BYTES):
                body += piece
                if len(body) > MAX_BYTES:
                    raise IssuerSilent(f"{issuer.url} returned more than {MAX_BYTES} bytes")
                if time.monotonic() > end:
                    raise IssuerSilent(f"{issuer.url} took more than {ANSWER_SECONDS:.0f} s to respond")
    except (urllib3.exceptions.HTTPError, OSError) as exc:
        raise IssuerSilent(f"{issuer.url} did not respond: {type(exc).__name__}") from exc
    return answer.status, body


def _json_object(issuer: Issuer, code: int, body: bytes, known: Collection[int]) -> Mapping[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise IssuerSilent(f"{issuer.url} returned status {code} without JSON") from exc
    if not isinstance(found, dict) or code not in known or (code != 200 and "error" not in found):
        raise IssuerSilent(f"{issuer.url} returned the unexpected status {code}")
    return found
