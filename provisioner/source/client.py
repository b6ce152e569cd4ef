"""The one way out to the network for sources: bounded in bytes, redirects and time as a whole, to checked addresses."""

from __future__ import annotations

import hashlib
import io
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from types import TracebackType
from typing import Any
from urllib.parse import urljoin

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, NewConnectionError

from provisioner.errors import BadSource, BundleTooLarge, PratiqueError, SourceTooSlow, SourceUnavailable, Unreachable
from provisioner.source.egress import EgressPolicy, Origin, check_place, place_of, resolve, shown
from provisioner.source.source_type import Credentials
from provisioner.source.tls import SourceCertificates, context_of, distrust_of, refusal_of

REDIRECTS = frozenset({301, 302, 303, 307, 308})
READING = frozenset({"GET", "HEAD"})
TRY_LATER = frozenset({408, 425, 429})
SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
CHUNK_BYTES = 64 * 1024
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
# Whoever sends less than this for longer than our patience lasts would only hold the place of others (S40).
LEAST_BYTES_PER_SECOND = 4 * 1024
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SourceReply:
    """A whole answer: `body` has at most the bytes that were asked for, `digest` is its `sha256:<hex>`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    digest: str


class Deadline:
    """The end of one fetch. What was handed to `at_end` is ended then, however slowly the other side drips.

    It comes sooner where patience is used up: by waiting for the other side, second by second. Whatever it sends gives
    patience back, as much as LEAST_BYTES_PER_SECOND would have taken.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._patience = PATIENCE_SECONDS
        # When a wait that lasts will have used it up.
        self._slow_at = math.inf
        self._is_too_slow = False
        self._lock = threading.Lock()
        self._endings: list[Callable[[], object]] = []
        self._is_closed = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def left(self) -> float:
        return 0.0 if self._is_too_slow else max(0.0, self._end - time.monotonic())

    def check(self, what: str) -> None:
        """Raise Unreachable if the time is over."""
        if not self.left:
            raise self.problem(what)

    def problem(self, what: str) -> SourceTooSlow:
        """Why the time is over, in words."""
        if not self._is_too_slow:
            return SourceTooSlow(f"{what}: not finished within {self.seconds:.0f} s")
        return SourceTooSlow(
            f"{what}: ended, because the server sends too slowly: less than {LEAST_BYTES_PER_SECOND // 1024} KiB a "
            f"second, for {PATIENCE_SECONDS:.0f} s in all. Name a faster server, or ask whoever runs this one"
        )

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While the other side is waited for."""
        began = time.monotonic()
        self._slow_at = began + self._patience
        try:
            yield
        finally:
            self._slow_at = math.inf
            self._patience -= time.monotonic() - began

    def note(self, size: int) -> None:
        """The other side has sent so many bytes."""
        self._patience = min(PATIENCE_SECONDS, self._patience + size / LEAST_BYTES_PER_SECOND)

    def paced(self, read: Callable[[int], bytes]) -> Callable[[int], bytes]:
        """The same `read`, which waits for the other side."""

        def read_in_time(size: int = -1) -> bytes:
            with self.waiting():
                data = read(size)
            self.note(len(data))
            return data

        return read_in_time

    def at_end(self, ending: Callable[[], object]) -> None:
        with self._lock:
            self._endings.append(ending)
        if not self.left:
            self._finish()

    def close(self) -> None:
        self._is_closed.set()

    def _watch(self) -> None:
        while True:
            now, slow_at = time.monotonic(), self._slow_at
            self._is_too_slow = now >= slow_at
            left = min(self._end, slow_at) - now
            if left <= 0:
                break
            if self._is_closed.wait(min(left, LOOK_SECONDS)):
                return
        self._finish()

    def _finish(self) -> None:
        with self._lock:
            endings, self._endings = self._endings, []
        for ending in endings:
            with suppress(OSError):
                ending()


class SourceClient:
    """HTTP for one source: made for it, closed after it.

    Certificates among `credentials` count for `own`, the source's place, and for no other that it leads to (S08).
    Nothing of TLS is shared with the client of another source.
    """

    def __init__(self, policy: EgressPolicy, own: Origin | None = None, credentials: Credentials | None = None):
        certificates = credentials.certificates_for(own) if credentials and own else None
        self.policy = policy
        self._own = own
        self._certificates = certificates
        self._kept: list[socket.socket] = []
        self._pool = _pool(self, context_of(None, ca_pem=policy.ca_pem))
        self._own_pool = _pool(self, context_of(certificates, ca_pem=policy.ca_pem)) if certificates else self._pool
        self.deadline = Deadline(policy.timeout_seconds)

    def __enter__(self) -> SourceClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.deadline.close()
        self._pool.clear()
        self._own_pool.clear()
        for kept in self._kept:
            kept.close()

    @property
    def has_client_certificate(self) -> bool:
        """Whether the source's own place is shown a certificate."""
        return self._certificates is not None and bool(self._certificates.client)

    def get(self, url: str, *, max_bytes: int, headers: Mapping[str, str] | None = None) -> SourceReply:
        """The whole answer to a GET; `headers` with secrets go to the place of `url` only.

        Raises ForbiddenAddress, BadSource, BundleTooLarge (max_bytes) and Unreachable.
        """
        response, final = self.open("GET", url, own=place_of(url), headers=headers)
        whole, digest = io.BytesIO(), hashlib.sha256()
        try:
            for chunk in self._chunks(response, final, max_bytes):
                whole.write(chunk)
                digest.update(chunk)
        except HTTPError as exc:
            raise self.problem(exc, final) from exc
        finally:
            response.close()
        headers_told = _lowered(response.headers)
        return SourceReply(response.status, headers_told, whole.getvalue(), f"sha256:{digest.hexdigest()}")

    def head(self, url: str, *, headers: Mapping[str, str] | None = None) -> SourceReply:
        """What a GET would say of itself, without its body. Raises as `get`."""
        response, _ = self.open("HEAD", url, own=place_of(url), headers=headers)
        response.close()
        return SourceReply(response.status, _lowered(response.headers), b"", "")

    def get_digest(
        self, url: str, *, max_bytes: int, headers: Mapping[str, str], is_known: Callable[[Mapping[str, str]], bool]
    ) -> SourceReply:
        """As `get`, but only the digest of the body is kept; nothing of it is read where its headers tell `is_known`.

        The digest is "" then, and for every status but 200.
        """
        response, final = self.open("GET", url, own=place_of(url), headers=headers)
        found = _lowered(response.headers)
        try:
            if response.status != 200 or is_known(found):
                return SourceReply(response.status, found, b"", "")
            digest = hashlib.sha256()
            for chunk in self._chunks(response, final, max_bytes):
                digest.update(chunk)
            return SourceReply(response.status, found, b"", f"sha256:{digest.hexdigest()}")
        except HTTPError as exc:
            raise self.problem(exc, final) from exc
        finally:
            response.close()

    def open(
        self, method: str, url: str, *, own: Origin, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> tuple[urllib3.BaseHTTPResponse, str]:
        """Send a request and follow its redirects (of a GET or HEAD); returns the unread answer and its URL.

        `own` is where the source is; secrets among `headers` are sent nowhere else. 429 and 5xx raise Unreachable.
        """
        for _ in range(self.policy.max_redirects + 1):
            place = check_place(url, own, self.policy)
            sent = {
                name: value
                for name, value in (headers or {}).items()
                if place == own or (name.lower() not in SECRET_HEADERS)
            }
            response = self._send(method, url, place, sent, body)
            if response.status not in REDIRECTS or method not in READING:
                if response.status in TRY_LATER or response.status >= 500:
                    response.close()
                    raise Unreachable(
                        f"{shown(url)}: the server answered {response.status}",
                        retry_after_seconds=_seconds_of(response.headers.get("retry-after", "")),
                        status=response.status,
                    )
                return response, url
            response.close()
            try:  # one without a location leads to itself
                url = urljoin(url, response.headers.get("location", ""))
            except ValueError:
                raise BadSource(f"{shown(url)}: redirects to what is no URL") from None
        raise BadSource(f"{shown(url)}: more than {self.policy.max_redirects} redirects")

    def problem(self, exc: Exception, url: str) -> PratiqueError:
        """What a failed connection means, in our words: those of urllib3 may hold the whole URL."""
        if not self.deadline.left:
            return self.deadline.problem(shown(url))
        cause = exc.args[0] if exc.args and isinstance(exc.args[0], ssl.SSLError) else exc
        if isinstance(cause, ssl.SSLCertVerificationError):
            return BadSource(f"{shown(url)}: {distrust_of(cause, self._certificates_for(place_of(url)))}")
        if isinstance(cause, ssl.SSLError) and (words := refusal_of(cause, self._certificates_for(place_of(url)))):
            return SourceUnavailable(f"{shown(url)}: {words}")
        if isinstance(exc, NewConnectionError):
            return Unreachable(f"{shown(url)}: cannot be connected to: {exc.__cause__ or 'refused'}")
        if isinstance(exc, urllib3.exceptions.TimeoutError):
            return Unreachable(f"{shown(url)}: does not answer in time")
        return Unreachable(f"{shown(url)}: the connection broke off ({type(exc).__name__})")

    def connect(self, connection: HTTPConnection) -> socket.socket:
        """A socket to one of the host's addresses, each of them checked; ended at the deadline."""
        port = connection.port or connection.default_port
        last: OSError | None = None
        for address in resolve(connection.host.strip("[]"), port, self.policy, self.deadline.left):
            try:
                made = socket.create_connection((address, port), min(self.deadline.left or 0.1, CONNECT_SECONDS))
            except OSError as exc:
                last = exc
                continue
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # TLS takes the socket over, so its end is kept by a second handle of the same connection.
            handle = made.dup()
            self._kept.append(handle)
            self.deadline.at_end(partial(handle.shutdown, socket.SHUT_RDWR))
            return made
        raise NewConnectionError(connection, "cannot connect") from last

    def _certificates_for(self, place: Origin) -> SourceCertificates | None:
        return self._certificates if place == self._own else None

    def _send(
        self, method: str, url: str, place: Origin, headers: Mapping[str, str], body: bytes | None
    ) -> urllib3.BaseHTTPResponse:
        self.deadline.check(shown(url))
        left = self.deadline.left or 0.1
        pool = self._own_pool if self._certificates_for(place) else self._pool
        try:
            with self.deadline.waiting():
                answer = pool.request(
                    method,
                    url,
                    body=body,
                    headers={"Accept-Encoding": "identity", **headers},
                    redirect=False,
                    retries=False,
                    preload_content=False,
                    timeout=urllib3.Timeout(connect=min(left, CONNECT_SECONDS), read=min(left, SILENCE_SECONDS)),
                )
            # Many small answers are no standstill: each counts as what has to come within a second.
            self.deadline.note(LEAST_BYTES_PER_SECOND)
            return answer
        except HTTPError as exc:
            raise self.problem(exc, url) from exc
        except ValueError as exc:
            raise BadSource(f"{shown(url)}: cannot be asked for ({type(exc).__name__})") from exc

    def _chunks(self, response: urllib3.BaseHTTPResponse, url: str, max_bytes: int) -> Iterator[bytes]:
        told = response.headers.get("content-length", "")
        if told.isascii() and told.isdigit() and len(told) < 20 and int(told) > max_bytes:
            raise _too_large(url, max_bytes)
        seen, chunks = 0, response.stream(CHUNK_BYTES, decode_content=False)
        while chunk := self.deadline.paced(lambda _: next(chunks, b""))(CHUNK_BYTES):
            seen += len(chunk)
            if seen > max_bytes:
                raise _too_large(url, max_bytes)
            yield chunk
        # A connection that we ended ourselves looks like the end of the answer.
        self.deadline.check(shown(url))


def _pool(client: SourceClient, trust: ssl.SSLContext) -> urllib3.PoolManager:
    """Connections that go to the very address that was checked; certificates are checked against the name, as ever."""

    class CheckedHTTP(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return client.connect(self)

    class CheckedHTTPS(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return client.connect(self)

        def send(self, data: Any) -> None:
            try:
                super().send(data)
            except (ssl.SSLError, ConnectionResetError):
                # With TLS 1.3 a server refuses our certificate after the handshake and hangs up, maybe before we have
                # sent anything. What it said is still to be read, and is raised in place of this.
                if isinstance(self.sock, ssl.SSLSocket):
                    self.sock.recv(1)
                raise

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = CheckedHTTP

    class TLSPool(HTTPSConnectionPool):
        ConnectionCls = CheckedHTTPS

    manager = urllib3.PoolManager(retries=False, ssl_context=trust)
    manager.pool_classes_by_scheme = {"http": PlainPool, "https": TLSPool}
    return manager


def _lowered(headers: Mapping[str, Any]) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in headers.items()}


def _too_large(url: str, max_bytes: int) -> BundleTooLarge:
    return BundleTooLarge(f"{shown(url)}: has more than {max_bytes} bytes (max_bytes, PRATIQUE_MAX_BUNDLE_MIB)")


def _seconds_of(retry_after: str) -> float:
    """Retry-After is a number of seconds or a date; 0.0 for what is neither."""
    if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 9:
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0
