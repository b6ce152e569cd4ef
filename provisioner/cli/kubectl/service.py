"""Pratique's own service by its REST API, with a token that was made for it.

What the kubeconfig holds never comes here (security-rules.md S35): this module gets an address and a token of `logins`,
follows no redirect, and speaks TLS with everything but this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import urllib3

from provisioner.api_groups import PAGE_ANNOTATION
from provisioner.cli.arguments import Usage
from provisioner.escaping import visible

ENVIRONMENT = "PRATIQUE_SERVICE"
CA_ENVIRONMENT = "PRATIQUE_SERVICE_CA"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
TIMEOUT = urllib3.Timeout(connect=10, read=60)
MAX_BYTES = 20_000_000
MOST_WAIT_SECONDS = 60.0
MAX_WORDS = 500


class ServiceSilent(Usage):
    """The service did not answer, or refused; `status` is that of HTTP, 0 without an answer."""

    def __init__(self, words: str, status: int = 0):
        super().__init__(words)
        self.status = status


@dataclass(frozen=True, slots=True)
class Service:
    """`url` has no slash at its end; without a `token` only what everybody may ask is answered."""

    url: str
    token: str = ""

    def __repr__(self) -> str:
        return f"Service({self.url!r})"

    def get(self, path: str, **query: object) -> Any:
        asked = {key: value for key, value in query.items() if value not in (None, "")}
        return self._send("GET", f"{path}?{urlencode(asked)}" if asked else path, None)

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        return self._send("POST", path, body)

    def put(self, path: str, body: Mapping[str, object]) -> Any:
        return self._send("PUT", path, body)

    def delete(self, path: str) -> None:
        self._send("DELETE", path, None)

    def _send(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        """Once more where the service says when it has time again."""
        status, found, wait = self._ask(method, path, body)
        if status == HTTPStatus.TOO_MANY_REQUESTS and method == "GET" and wait <= MOST_WAIT_SECONDS:
            time.sleep(wait)
            status, found, wait = self._ask(method, path, body)
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise ServiceSilent(f"{self.url} refuses: {_problem_words(status, found)}", status)
        return found

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None) -> tuple[int, Any, float]:
        headers = {"Accept": "application/json", "User-Agent": "kubectl-pratique"}
        headers |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        sent = json.dumps(body).encode() if body is not None else None
        try:
            with urllib3.PoolManager(ca_certs=os.environ.get(CA_ENVIRONMENT) or None) as pool:
                answer = pool.request(
                    method,
                    f"{self.url}/api/v1/{path}",
                    body=sent,
                    headers=headers,
                    timeout=TIMEOUT,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                )
                text = answer.read(MAX_BYTES + 1, decode_content=True)
        except (urllib3.exceptions.HTTPError, OSError) as exc:
            reason = getattr(exc, "reason", None)
            cause = reason if isinstance(reason, Exception) else exc
            raise ServiceSilent(
                f"{self.url} does not answer ({type(cause).__name__}): check the address and the network"
            ) from exc
        if len(text) > MAX_BYTES:
            raise ServiceSilent(f"{self.url} answers with more than {MAX_BYTES:,} bytes")
        try:
            found = json.loads(text) if text else None
        except (ValueError, RecursionError) as exc:
            if answer.status < HTTPStatus.MULTIPLE_CHOICES:
                raise ServiceSilent(f"{self.url} answers, but not as Pratique does: is this its address?") from exc
            found = None
        wait = answer.headers.get("Retry-After", "")
        return answer.status, found, float(wait) if wait.isascii() and wait.isdigit() else 1.0


@contextmanager
def told_by(service: Service) -> Iterator[None]:
    """Read within this what the service answered. Raises ServiceSilent where it is not of the expected shape."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as exc:
        words = f"{service.url} answers what this program cannot read ({type(exc).__name__})"
        raise ServiceSilent(f"{words}: is it Pratique's address, and of a version like this program's?") from exc


def add_service(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--service", metavar="URL", default="", help=f"address of Pratique; default: ${ENVIRONMENT}")


def service_url(options: argparse.Namespace, request: Mapping[str, Any] | None = None) -> str:
    """The service that is meant: by --service, the environment, or the page that the request names; "" for none.

    What a request names is a word of the cluster: a token goes there only if somebody has signed in at this address.
    """
    told = options.service or os.environ.get(ENVIRONMENT, "")
    if told:
        return checked_url(told)
    named = str((((request or {}).get("metadata") or {}).get("annotations") or {}).get(PAGE_ANNOTATION) or "")
    try:
        return checked_url(named.partition("/requests/")[0]) if named else ""
    except Usage:
        return ""


def checked_url(text: str) -> str:
    """The address without a slash at its end. Raises Usage where a token could be read on its way there."""
    wanted = "expected https://HOST, as you open it in a browser"
    try:
        parts = urlsplit(text)
        host = parts.hostname
        _ = parts.port
    except ValueError as exc:
        raise Usage(f"{text}: no address; {wanted}") from exc
    if parts.scheme not in ("https", "http") or not host or not text.isprintable() or " " in text:
        raise Usage(f"{text}: no address of a service; {wanted}")
    if parts.scheme == "http" and host not in LOOPBACK:
        raise Usage(f"{text}: http:// would send the token in plain text; {wanted}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Usage(f"{text}: a name, password, query or fragment does not belong there; {wanted}")
    return urlunsplit((parts.scheme, parts.netloc.lower(), quote(parts.path.rstrip("/"), safe="/%"), "", ""))


def _problem_words(status: int, found: object) -> str:
    said = found.get("detail") if isinstance(found, dict) else None
    if isinstance(said, str) and said:
        return visible(said[:MAX_WORDS])
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return (
            f"it sends elsewhere (status {status}), and a token follows no redirect: use the address that it leads to"
        )
    return f"status {status}"
