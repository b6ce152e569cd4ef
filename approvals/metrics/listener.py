"""Each process's own /metrics, and whether it lives, on an address of its own; the listener is that of the probes."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from functools import partial

from django.conf import settings
from django.db import connections

from approvals.health_endpoints import NOTHING, Listener, PlainResponse, healthz, open_socket
from approvals.metrics.exposition import exposition
from approvals.metrics.views import may_read

logger = logging.getLogger(__name__)
PATH = "/metrics"
# These tell of the records and the queue too.
OF_SERVICE = frozenset({"web", "beat"})


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
