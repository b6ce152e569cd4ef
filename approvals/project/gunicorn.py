"""Gunicorn's settings: `gunicorn --config python:approvals.project.gunicorn approvals.project.wsgi:application`.

What is given on its command line, or in GUNICORN_CMD_ARGS, counts before these. Its processes share a folder in which
each keeps its counts, so that whichever is asked for metrics tells those of all.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from typing import Any

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
_is_our_folder = MULTIPROCESS not in os.environ
if _is_our_folder:
    # Before prometheus_client is imported: it looks once.
    os.environ[MULTIPROCESS] = tempfile.mkdtemp(prefix="pratique-metrics-")

from approvals import logs  # noqa: E402 - see above
from approvals.logs.gunicorn import Logger  # noqa: E402
from approvals.probes import PROBES, Listener, open_socket  # noqa: E402
from approvals.project import configuration  # noqa: E402

logs.take_over("web", os.environ.get("PRATIQUE_LOG_FORMAT", logs.JSON))
_settings = configuration.read()

logger_class = Logger
bind = "127.0.0.1:8000"
worker_class = "approvals.project.web_worker.BufferingWorker"
workers = 2
threads = 8
# Open connections of one worker; those that wait cost no thread.
worker_connections = 1000
backlog = 512
# A worker whose main loop stands still for so long is killed.
timeout = 60
graceful_timeout = 30
keepalive = 15
max_requests = 20_000
max_requests_jitter = 4_000
limit_request_line = 4094
limit_request_fields = 60
limit_request_field_size = 8190
# Files go out as everything else does, so that the time of a slow reader is counted.
sendfile = False
forwarded_allow_ips = ",".join(str(network) for network in _settings["TRUSTED_PROXIES"])
accesslog = None

_probes: list[socket.socket] = []


def on_starting(server: Any) -> None:
    """Open the probes' socket before there are workers: each of them answers on it."""
    address = _settings["PROBE_ADDRESS"]
    if not address:
        return
    try:
        _probes.append(open_socket(address))
    except (OSError, ValueError) as exc:
        server.log.error("PRATIQUE_PROBE_ADDRESS is %s, and that cannot be listened on: %s", address, exc)
        sys.exit(1)


def post_worker_init(worker: Any) -> None:
    """Each worker answers probes, and serves the metrics of all, on sockets that they share."""
    from approvals import metrics, rights  # noqa: PLC0415 - needs Django, which only the worker has loaded

    for sock in _probes:
        Listener(PROBES, sock).start()
    metrics.serve("web")
    rights.tell_what_is_missing(rights.Process.WEB)


def on_exit(server: Any) -> None:
    if _is_our_folder:
        shutil.rmtree(os.environ[MULTIPROCESS], ignore_errors=True)
