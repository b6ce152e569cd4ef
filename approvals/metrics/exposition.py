"""The text of one scrape."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import socket
from collections.abc import Mapping
from functools import partial

from django.conf import settings
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from approvals import instruments
from approvals.health_endpoints import NOTHING, Listener, PlainResponse, healthz, open_socket
from approvals.metrics.collectors import ContentStoreCollector, Kept, QueueCollector, RecordsCollector

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SOURCES = (
    Kept("database", RecordsCollector()),
    Kept("queue", QueueCollector()),
    Kept("content_store", ContentStoreCollector()),
)


logger = logging.getLogger(__name__)
PATH = "/metrics"
# These tell of the records and the queue too.
OF_SERVICE = frozenset({"web", "beat"})


def exposition(*, of_service: bool = True) -> tuple[bytes, str]:
    """(body, content type) in Prometheus' text format.

    With `of_service` also what SOURCES say, read at most every KEPT_SECONDS by this process; one that does not answer
    is told by pratique_database_up and its like, and never fails the scrape.
    """
    parts = [generate_latest(_of_processes())]
    if of_service:
        together = CollectorRegistry()
        for source in SOURCES:
            together.register(source)
        parts.append(generate_latest(together))
    return b"".join(parts), CONTENT_TYPE_LATEST


def _of_processes() -> CollectorRegistry:
    """What this process counted; where several share a folder (gunicorn), what all of them did."""
    if os.environ.get(SHARED_FOLDER):
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]  # the library has no types for it
        return together
    return instruments.registry


# Memory, processor time and open files of this process; of several nobody could tell which.
if not os.environ.get(SHARED_FOLDER):
    ProcessCollector(registry=instruments.registry)


@csrf_exempt  # a refusal of its own would tell that there is such a page
def metrics(http: HttpRequest) -> HttpResponse:
    if http.method != "GET" or not may_read(http.headers.get("Authorization", "")):
        raise Http404
    body, content_type = exposition()
    return HttpResponse(body, content_type=content_type, headers={"Cache-Control": "no-store"})


def may_read(authorization: str) -> bool:
    """Whether an Authorization header holds PRATIQUE_METRICS_TOKEN; never where that is empty."""
    expected = str(settings.PRATIQUE["METRICS_TOKEN"])
    kind, _, given = authorization.partition(" ")
    if not expected or kind.lower() != "bearer":
        return False
    # Digests are of one length, so that the time tells nothing of the token's.
    is_right = hmac.compare_digest(_digest(given.strip()), _digest(expected))
    if not is_right:
        instruments.refused_sign_ins.labels("metrics_token").inc()
    return is_right


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def serve(process: str) -> Listener | None:
    """Serve /metrics of this process at PRATIQUE_METRICS_ADDRESS from now on; None where that is empty.

    A port that is taken is told in the log and stops nothing else.
    """
    address = settings.PRATIQUE["METRICS_ADDRESS"]
    if address is None:
        return None
    host, port = address
    try:
        sock = open_socket(host, port)
    except OSError as exc:
        logger.error("cannot serve metrics", extra={"host": host, "port": port, "error": type(exc).__name__})
        return None
    logger.info("serving metrics", extra={"host": host, "port": port})
    return answer_on(sock, process)


def answer_on(sock: socket.socket, process: str) -> Listener:
    """Serve /metrics of this process on `sock`, on which others may listen as well."""
    listener = Listener("metrics", {PATH: partial(_answer, process in OF_SERVICE), "/healthz": healthz}, sock)
    listener.start()
    return listener


def _answer(of_service: bool, headers: Mapping[str, str]) -> PlainResponse:
    """Without the token where there is one: nothing. Without any there is none to ask for (configuration)."""
    if settings.PRATIQUE["METRICS_TOKEN"] and not may_read(headers.get("authorization", "")):
        return NOTHING
    try:
        body, content_type = exposition(of_service=of_service)
    finally:
        connections.close_all()
    return PlainResponse(body, content_type=content_type)
