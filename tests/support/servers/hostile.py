"""Servers that say what no honest one would, and the policy under which tests may reach this machine."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable
from dataclasses import replace

from provisioner.source import EgressPolicy

HERE = EgressPolicy(
    allowed_networks=(ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")),
    plain_http_hosts=("*",),
    allow_mutable=True,
    timeout_seconds=60,
)
HASTY = replace(HERE, timeout_seconds=1)
MAX = 8 * 1024 * 1024


class Speaker:
    """A TCP server whose every connection is given to `talk`."""

    def __init__(self, talk: Callable[[socket.socket], None]):
        self._talk = talk
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._over = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self._talk(connection)
