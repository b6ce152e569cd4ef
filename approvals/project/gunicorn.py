"""Gunicorn's settings: `gunicorn --config python:approvals.project.gunicorn approvals.project.wsgi:application`.

The pages stand behind a proxy that takes whole requests and whole answers in, as deploy/nginx.conf does: a thread that
waits for a client serves nobody else (decision 0078).

What is given on its command line, or in GUNICORN_CMD_ARGS, counts before these; what is FIXED may not be given there.
Its processes share a folder in which each keeps its counts, so that whichever is asked for metrics tells those of all.
"""

from __future__ import annotations

import gc
import os
import socket
import stat
import struct
import sys
from pathlib import Path
from typing import Any

from approvals.project import metrics_folder

metrics_folder.provide()

from approvals import logs, proxies  # noqa: E402 - after the folder of metrics is named
from approvals.health_endpoints import (  # noqa: E402 - after the folder of metrics is named
    PROBES,
    Listener,
    open_socket,
    tell_broken_plugins,
    tell_content_store,
)
from approvals.logs.gunicorn import Logger  # noqa: E402 - after the folder of metrics is named
from approvals.networks import holds_loopback  # noqa: E402 - after the folder of metrics is named
from approvals.project import configuration  # noqa: E402 - after the folder of metrics is named

logs.take_over("web", os.environ.get("PRATIQUE_LOG_FORMAT", logs.JSON))
_settings = configuration.read()

logger_class = Logger
bind = "127.0.0.1:8000"
# A Unix socket that is made is for its owner and group alone: whoever connects may be believed about people.
umask = 0o007
worker_class = "gthread"
workers = 2
threads = 8
# Open connections of one worker. With 1,024 file descriptors, which many systems allow, some are left for the database,
# Redis, clusters and files: a worker that cannot accept ends.
worker_connections = 800
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
# Where no proxy stands before it, a thread waits so long for a client's next bytes, or until the client takes ours.
CLIENT_SECONDS = 10
# Whom to believe about others is asked in one place, approvals.rate_limits.clients: gunicorn believes nobody.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
# A header with underscores is another one's twin once it has reached Python.
header_map = "drop"
permit_obsolete_folding = False
strip_header_spaces = False
accesslog = None
# It would be one more door.
control_socket_disable = True

# What GUNICORN_CMD_ARGS and the command line may not change. On a Unix socket gunicorn takes every client for a proxy,
# as none has an address. Another worker, or another protocol, may not call pre_request with what came.
FIXED: dict[str, object] = {
    "forwarded_allow_ips": [],
    "forwarder_headers": [],
    "header_map": header_map,
    "http2_cleartext": "off",
    "permit_obsolete_folding": permit_obsolete_folding,
    "protocol": "http",
    "proxy_protocol": "off",
    "secure_scheme_headers": secure_scheme_headers,
    "strip_header_spaces": strip_header_spaces,
    "worker_class_str": worker_class,
}
STRICTER = {"header_map": "refuse"}

_probes: list[socket.socket] = []
_metrics: list[socket.socket] = []


def pre_request(worker: Any, req: Any) -> None:
    """Called with the headers one by one, before those of one name become one: two groups are not one with a comma."""
    req.headers = proxies.joined(req.headers, _settings["IDENTITY_PROXIES_FILE"])


def on_starting(server: Any) -> None:
    """Open the sockets of probes and metrics before there are workers: each of them answers on both."""
    # Clients on a Unix socket have no address: without a header of the proxy, limits would count them all as one.
    sockets = [where for where in server.address if isinstance(where, str)]
    if sockets and not _settings["TRUSTED_PROXIES"].is_unix:
        _refuse(
            server,
            f"listening on the Unix socket {sockets[0]}, whose clients have no address: rate limits would count "
            "everyone as one client. Configure the proxy to send X-Forwarded-For, and add unix to "
            "PRATIQUE_TRUSTED_PROXIES",
        )
    near = [str(network) for network in _settings["TRUSTED_PROXIES"].networks if holds_loopback(network)]
    if near and len(sockets) < len(server.address):
        server.log.warning(
            "PRATIQUE_TRUSTED_PROXIES contains the loopback address (%s): every program on this host or in "
            "this pod, and everyone who can run kubectl port-forward, can forge client addresses and claim "
            "TLS. Listen on a Unix socket, and add unix instead (docs/operating/limits.md)",
            ", ".join(near),
        )
    # With other values, clients could send the headers that only proxies may send.
    found = {name: getattr(server.cfg, name) for name in FIXED}
    allowed = {name: (value, STRICTER.get(name, value)) for name, value in FIXED.items()}
    changed = [name.removesuffix("_str") for name, value in found.items() if value not in allowed[name]]
    if changed:
        _refuse(
            server,
            f"{', '.join(changed)}: with another value than the shipped one, clients could forge the headers or "
            "addresses of proxies. Remove it from GUNICORN_CMD_ARGS and the command line; set "
            "PRATIQUE_TRUSTED_PROXIES and PRATIQUE_IDENTITY_PROXIES_FILE to trust proxies",
        )
    if (address := _settings["PROBE_ADDRESS"]) is not None:
        try:
            _probes.append(open_socket(*address))
        except OSError as exc:
            _refuse(server, f"cannot listen on PRATIQUE_PROBE_ADDRESS {_host_and_port(address)}: {exc}")
    if (address := _settings["METRICS_ADDRESS"]) is not None:
        try:
            _metrics.append(open_socket(*address))
        except OSError as exc:
            server.log.error("cannot listen on PRATIQUE_METRICS_ADDRESS %s: %s", _host_and_port(address), exc)


def when_ready(server: Any) -> None:
    """The sockets are there, and no worker yet.

    Connections take the time limits of the socket that accepts them; gunicorn itself would wait for ever.
    """
    for listener in server.LISTENERS:
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            listener.sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", CLIENT_SECONDS, 0))
    paths = [where for where in (each.getsockname() for each in server.LISTENERS) if isinstance(where, str) and where]
    for path in paths:
        if Path(path).stat().st_mode & stat.S_IWOTH:
            _refuse(
                server,
                f"everyone on this machine can open the Unix socket {path} and would be trusted as its proxy: "
                "remove --umask from GUNICORN_CMD_ARGS and the command line, or restrict the socket to a group "
                "(SocketMode in systemd)",
            )


def freeze_pages() -> None:
    """Load every page and what connects to clusters, and freeze what is loaded so that the garbage collector skips it.

    Looking through all of it takes a seventh of a second, of whichever request runs into it.
    """
    from django.urls import get_resolver  # noqa: PLC0415 - needs Django, which only the worker has loaded

    import provisioner.cluster.client.connection  # noqa: F401, PLC0415 - else the first page that asks a cluster loads it

    _ = get_resolver().url_patterns
    gc.collect()
    gc.freeze()


def post_worker_init(worker: Any) -> None:
    """Each worker answers probes, and serves the metrics of all, on sockets that they share.

    It is ready once it has loaded every page: what answers probes starts after that.
    """
    # These need Django, which only the worker has loaded.
    from approvals import metrics  # noqa: PLC0415 - needs the apps, which are loaded now
    from approvals.rights.missing_rights import tell_what_is_missing  # noqa: PLC0415 - needs the apps, which are loaded now
    from approvals.rights.needs import Process  # noqa: PLC0415 - needs the apps, which are loaded now

    freeze_pages()
    for sock in _probes:
        Listener("probes", PROBES, sock).start()
    for sock in _metrics:
        metrics.answer_on(sock, "web")
    tell_what_is_missing(Process.WEB)
    tell_broken_plugins()
    tell_content_store()


def _refuse(server: Any, words: str) -> None:
    server.log.error(words)
    sys.exit(1)


def _host_and_port(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
