"""One HTTP exchange with an API server: bounded in time and bytes, never redirected, its errors translated.

The pool of connections is made by the official client (api.py); everything above it is ours, because the generated
classes cost most of a request's time.
"""

from __future__ import annotations

import copy
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson
import urllib3
from urllib3._collections import HTTPHeaderDict
from urllib3.exceptions import HTTPError, ReadTimeoutError, SSLError

from provisioner.cluster.client.failures import Doing, failure_of
from provisioner.errors import (
    AnswerTooLarge,
    ClusterError,
    Forbidden,
    InvalidObject,
    OutOfTime,
    PratiqueError,
    Unreachable,
)
from provisioner.values import Identity


@dataclass(frozen=True, slots=True)
class Exchange:
    """`verb` is one of ours (get, list, watch, create, replace, apply, patch, delete, read, ask).

    `status` is the HTTP status, 0 where none came, or the answer broke off. `seconds` go to the end of the answer; of a
    watch to its beginning.
    """

    verb: str
    status: int
    seconds: float


# Called in the thread of the call, after it. It must be quick, and raise nothing.
Observer = Callable[[Exchange], None]


def unobserved(exchange: Exchange) -> None:
    """For who measures nothing."""


MAX_RESPONSE_BYTES = 64 * 1024 * 1024
READS_RIGHTS_SECONDS = 10.0
# An answer that comes drop by drop ends after so many times the time that each of its pieces may take.
_MOST_TIMEOUTS = 10
_CHUNK_BYTES = 256 * 1024
_RECORD_BYTES = 16 * 1024
AUTHENTICATED = "system:authenticated"
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class TransportCall:
    """One request. `path` is already encoded; `query` values are encoded here.

    `before_send` is called when all but the body is sent, which without a body is nothing that a server acts on: what
    it raises ends the call, and the server never has it whole.
    """

    method: str
    path: str
    doing: Doing
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content_type: str = JSON
    accept: str = JSON
    before_send: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class TransportAnswer:
    status: int
    body: dict[str, Any]
    warnings: tuple[str, ...]


@dataclass
class _Presence:
    """When the server first answered after it did not; infinite as long as it does not."""

    back_at: float = -math.inf


class Transport:
    """The pool of one API server, shared by every identity that acts through it. Safe for threads."""

    def __init__(
        self,
        manager: urllib3.PoolManager,
        host: str,
        authorization: Callable[[], Mapping[str, str]],
        timeout_seconds: float,
        observe: Observer = unobserved,
    ):
        self._manager = manager
        self._host = host.rstrip("/")
        self._path = urlsplit(self._host).path
        self._pool: urllib3.HTTPConnectionPool | None = None
        self._authorization = authorization
        self._timeout_seconds = timeout_seconds
        self._observe = observe
        self._presence = _Presence()
        self._until = math.inf
        self._known: Mapping[str, bytes] = {}
        self._note: Callable[[str, bytes], None] | None = None

    @property
    def host(self) -> str:
        return self._host

    @property
    def timeout_seconds(self) -> float:
        return self._timeout_seconds

    def until(self, moment: float) -> Transport:
        """The same over the same pool, whose calls end at `moment` (time.monotonic): then OutOfTime is raised."""
        bounded = copy.copy(self)
        bounded._until = min(moment, self._until)
        return bounded

    def knowing(self, answers: Mapping[str, bytes]) -> Transport:
        """The same over the same pool, which asks nothing as we are that `answers` says already."""
        knowing = copy.copy(self)
        knowing._known = answers
        return knowing

    def noting(self, answers: dict[str, bytes], *, most_bytes: int) -> Transport:
        """The same over the same pool, which keeps in `answers` what succeeds; ClusterError is raised where that is
        more than `most_bytes` in all."""

        def note(question: str, body: bytes) -> None:
            answers[question] = body
            if sum(map(len, list(answers.values()))) > most_bytes:  # others note at the same time
                raise ClusterError(f"the answers are larger than {most_bytes} bytes in all")

        noting = copy.copy(self)
        noting._note = note
        return noting

    def close(self) -> None:
        self._manager.clear()
        self._pool = None

    def send(self, call: TransportCall, identity: Identity | None) -> TransportAnswer:
        """The JSON answer of a call that succeeded; else one of provisioner.errors."""
        question = ""
        if identity is None and (self._known or self._note):  # all that an answer depends on, but who asks
            asked = orjson.dumps(call.body).decode() if call.body is not None else ""
            question = " ".join((call.method, call.path, urlencode(call.query), call.accept, asked))
        if question in self._known:
            return TransportAnswer(200, orjson.loads(self._known[question]), ())
        response, body = self._exchange(call, identity)
        if response.status >= 400:
            raise self._failure(call.doing, response, body)
        if not 200 <= response.status < 300:
            raise ClusterError(f"{call.doing}: unexpected answer {response.status}", status=response.status)
        try:
            document = orjson.loads(body) if body else {}
        except orjson.JSONDecodeError as exc:
            raise ClusterError(f"{call.doing}: the answer is not JSON", status=response.status) from exc
        if not isinstance(document, dict):
            raise ClusterError(f"{call.doing}: the answer is no JSON object", status=response.status)
        if self._note and question:
            self._note(question, body)
        headers = response.headers.getlist("Warning")  # of RFC 7234's form, with the code 299
        warnings = [re.sub(r"\\(.)", r"\1", text) for header in headers for text in _WARNING.findall(header)]
        return TransportAnswer(response.status, document, tuple(dict.fromkeys(warnings)))

    def stream(self, call: TransportCall, identity: Identity | None, *, read_seconds: float) -> Stream:
        """The lines of an answer that goes on, as JSON objects. `read_seconds` bounds the silence between two lines."""
        began = time.perf_counter()
        try:
            response = self._open(call, identity, read_seconds=read_seconds)
        except Unreachable:
            self._tell(call, 0, began)
            raise
        self._tell(call, response.status, began)
        if response.status != 200:
            body = _read_body(response, call.doing, self._end_of_answer())
            raise self._failure(call.doing, response, body)
        return Stream(response, call.doing)

    def _exchange(self, call: TransportCall, identity: Identity | None) -> tuple[urllib3.BaseHTTPResponse, bytes]:
        """The answer and its whole body, whatever its status; the observer is told also where none came."""
        began, left = time.perf_counter(), self._until - time.monotonic()
        if left <= 0:
            raise OutOfTime(f"{call.doing}: not asked, because the time for all questions is used up")
        try:
            response = self._open(call, identity, read_seconds=min(self._timeout_seconds, left))
            body = _read_body(response, call.doing, self._end_of_answer())
        except Unreachable as exc:
            self._tell(call, 0, began)
            if time.monotonic() >= self._until:
                raise OutOfTime(f"{call.doing}: no answer within the time for all questions") from exc
            raise
        self._tell(call, response.status, began)
        return response, body

    def _end_of_answer(self) -> float:
        """When an answer that begins now has to be whole."""
        return min(self._until, time.monotonic() + _MOST_TIMEOUTS * self._timeout_seconds)

    def _tell(self, call: TransportCall, status: int, began: float) -> None:
        self._observe(Exchange(call.doing.verb, status, time.perf_counter() - began))

    def _open(self, call: TransportCall, identity: Identity | None, *, read_seconds: float) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": call.accept, "User-Agent": "pratique", **self._authorization()}
        body: bytes | Iterator[bytes] | None = None
        if call.body is not None:
            headers["Content-Type"] = call.content_type
            try:
                body = orjson.dumps(call.body)
            except (orjson.JSONEncodeError, TypeError) as exc:
                raise InvalidObject(f"{call.doing}: cannot be written as JSON") from exc.with_traceback(None)
            if call.before_send:
                headers["Content-Length"] = str(len(body))
                body = _guarded(body, call.before_send)
        query = f"?{urlencode(call.query)}" if call.query else ""
        try:
            # The pool's own `urlopen`: the manager would look for the pool by the parts of the address at each call,
            # and its `request` would copy everything several times. Through a proxy, too: the server speaks TLS, so it
            # is tunnelled, and the proxy is told nothing of the calls.
            self._pool = self._pool or self._manager.connection_from_url(self._host)
            response = self._pool.urlopen(
                call.method,
                f"{self._path}{call.path}{query}",
                body=body,
                headers=_impersonating(headers, identity) if identity else headers,
                timeout=urllib3.Timeout(connect=min(self._timeout_seconds, read_seconds, 10.0), read=read_seconds),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except HTTPError as exc:
            if not isinstance(exc, ReadTimeoutError):  # slow is not away
                self._presence.back_at = math.inf
            words = str(exc) if isinstance(exc, SSLError) else type(exc).__name__
            raise Unreachable(f"{call.doing}: {self._host} did not answer ({words})") from exc
        if self._presence.back_at == math.inf:
            self._presence.back_at = time.monotonic()
        return response

    def _failure(self, doing: Doing, response: urllib3.BaseHTTPResponse, body: bytes) -> PratiqueError:
        """What the answer says went wrong; a refusal right after the server was away is no answer yet.

        An API server that starts serves before it has read the roles and bindings, and refuses all until then.
        """
        failure = failure_of(doing, response.status, body, response.headers)
        if isinstance(failure, Forbidden) and time.monotonic() - self._presence.back_at < READS_RIGHTS_SECONDS:
            words = "(said moments after the API server was away: it may not know the rights yet)"
            return Unreachable(f"{failure} {words}", server_words=failure.server_words)
        return failure


class Stream(Iterator[dict[str, Any]]):
    """JSON objects, one a line. `close` may be called from another thread; iteration then ends."""

    def __init__(self, response: urllib3.BaseHTTPResponse, doing: Doing):
        self._response = response
        self._doing = doing
        self._is_closed = False
        self._lines = self._read_lines()

    def __next__(self) -> dict[str, Any]:
        return next(self._lines)

    def close(self) -> None:
        """End the stream now, also while another thread waits in it."""
        self._is_closed = True
        try:
            self._response.shutdown()
        except (RuntimeError, ValueError, OSError):
            return  # it has ended already, and with it its socket

    def _read_lines(self) -> Iterator[dict[str, Any]]:
        rest = b""
        try:
            while chunk := self._response.read1(_CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > MAX_RESPONSE_BYTES:
                    raise ClusterError(f"{self._doing}: an event of more than {MAX_RESPONSE_BYTES} bytes")
                for line in filter(bytes.strip, lines):
                    try:
                        document = orjson.loads(line)
                    except orjson.JSONDecodeError as exc:
                        raise Unreachable(f"{self._doing}: an event that is not JSON") from exc
                    yield document if isinstance(document, dict) else {}
        except (HTTPError, OSError) as exc:
            if not self._is_closed:
                raise Unreachable(f"{self._doing}: the stream broke off ({type(exc).__name__})") from exc
        finally:
            self._response.close()


def _guarded(body: bytes, before_send: Callable[[], None]) -> Iterator[bytes]:
    """`body` in records of TLS, asked about before each: a sender that is stopped in between has not sent the last."""
    for start in range(0, len(body), _RECORD_BYTES):
        before_send()
        yield body[start : start + _RECORD_BYTES]


def _read_body(response: urllib3.BaseHTTPResponse, doing: Doing, ends_at: float) -> bytes:
    """The whole body, at most MAX_RESPONSE_BYTES, by `ends_at` (time.monotonic); the connection goes back to the pool.

    What one call of the socket has is looked at: more would be waited for, and each byte may take the whole timeout.
    """
    parts: list[bytes] = []
    total = 0
    try:
        while chunk := response.read1(_CHUNK_BYTES):
            total += len(chunk)
            if time.monotonic() >= ends_at:
                response.close()
                raise Unreachable(f"{doing}: the answer took too long: {total} bytes of it had come")
            if total > MAX_RESPONSE_BYTES:
                response.close()
                raise AnswerTooLarge(f"{doing}: the answer is larger than {MAX_RESPONSE_BYTES} bytes")
            parts.append(chunk)
    except (HTTPError, OSError) as exc:
        raise Unreachable(f"{doing}: the answer broke off ({type(exc).__name__})") from exc
    finally:
        response.release_conn()
    return b"".join(parts)


def _impersonating(headers: Mapping[str, str], identity: Identity) -> Mapping[str, str]:
    """`headers` with those that impersonate, and only those that need a right of ours.

    Left out are the uid, which decides nothing, and the groups that the API server adds by itself:
    `system:authenticated` to everybody, and its own ones to a ServiceAccount without any.

    A header loses blanks at its ends and carries no line ends, so a name with these would arrive as another name.
    """
    for value in (identity.username, *identity.groups):
        if not value or value != value.strip() or not (value.isascii() and value.isprintable()):
            raise ClusterError(f"{value!r} cannot be impersonated: expected printable ASCII without blanks at the ends")
    named = {**headers, "Impersonate-User": identity.username}
    kind, _, account = identity.username.partition(":serviceaccount:")
    groups = tuple(group for group in identity.groups if group != AUTHENTICATED)
    if kind == "system":
        namespace, _, name = account.partition(":")
        is_plain = set(identity.groups) == set(Identity.of_service_account(namespace, name).groups)
        groups = () if is_plain else identity.groups
    if not groups:
        return named
    several = HTTPHeaderDict(named)
    for group in groups:
        several.add("Impersonate-Group", group)
    return several
