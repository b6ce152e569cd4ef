"""`pratique-manage admission`: the webhook that records the author of a BundleDeployment."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from gunicorn.app.base import BaseApplication

from approvals.admission.webhook import application
from approvals.management.operator_command import OperatorCommand

# The API server waits for so long. Whoever sends nothing meanwhile frees the thread that reads.
READ_SECONDS = 5
IDLE_SECONDS = 30


class Command(OperatorCommand):
    help = (
        "Serve the admission webhook that records who wrote a BundleDeployment, for Kubernetes 1.30 to 1.35"
        " (deploy/admission/author-webhook.yaml). It needs no database, and no rights in a cluster."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--bind", default="0.0.0.0:9443", help="address to listen on; default: %(default)s")
        parser.add_argument("--cert", required=True, type=Path, help="file with the TLS certificate and its chain")
        parser.add_argument(
            "--key",
            required=True,
            type=Path,
            help="file with its private key; both files are reloaded when they change",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("cert", "key"):
            if not Path(options[name]).is_file():
                raise CommandError(
                    f"--{name} {options[name]}: no such file. Expected what a Secret of type kubernetes.io/tls holds"
                )
        _Server(str(options["bind"]), options["cert"], options["key"]).run()


class ImpatientSocket(ssl.SSLSocket):
    """A thread that waits for a client's next bytes waits for READ_SECONDS; gunicorn would wait for ever."""

    def setblocking(self, flag: bool) -> None:
        self.settimeout(READ_SECONDS if flag else 0)

    def do_handshake(self, block: bool = False) -> None:
        self.settimeout(READ_SECONDS)
        super().do_handshake(block)


def _context(_: Any, made: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    context = made()
    context.sslsocket_class = ImpatientSocket
    return context


class _Server(BaseApplication):
    """gunicorn reads the certificate for each connection, so a renewed one counts without a restart."""

    def __init__(self, bind: str, cert: Path, key: Path):
        self._given = {"bind": bind, "certfile": str(cert), "keyfile": str(key)}
        super().__init__()

    def load_config(self) -> None:
        fixed = {
            "worker_class": "gthread",
            "ssl_context": _context,
            "workers": 1,
            "threads": 16,
            "timeout": IDLE_SECONDS,
            "graceful_timeout": 10,
            "keepalive": IDLE_SECONDS,
            "accesslog": None,
            "control_socket_disable": True,
            "forwarded_allow_ips": "",
        }
        for name, value in {**fixed, **self._given}.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return application
