"""A whole service as one more who writes the objects: its worker is a process of its own, on PostgreSQL and a queue."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from approvals.encryption.keys import new_key
from tests.bench.rivals import Rival
from tests.support.folders import ROOT
from tests.support.servers.downloads import archive, served


def environment(folder: Path, *, database: str, queue: str) -> dict[str, str]:
    """Of a service that keeps its contents in `folder` and fetches from this machine."""
    return {
        **os.environ,
        "PRATIQUE_SECRET_KEY": "x" * 50,
        "PRATIQUE_LOCAL_ACCOUNTS": "true",
        "PRATIQUE_ENCRYPTION_KEYS": new_key(),
        "PRATIQUE_DATABASE_URL": database,
        "PRATIQUE_CONTENT_DIR": str(folder / "content"),
        "PRATIQUE_ALLOWED_NETWORKS": "127.0.0.0/8",
        "PRATIQUE_PLAIN_HTTP_HOSTS": "127.0.0.1",
        "PRATIQUE_MUTABLE_HTTP": "true",
        "PRATIQUE_CLUSTER_TIMEOUT_SECONDS": "60",
        "PRATIQUE_REDIS_URL": queue,
        "PRATIQUE_LOG_FORMAT": "console",
    }


def migrate(of: Mapping[str, str]) -> None:
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    done = subprocess.run(command, cwd=ROOT, env=of, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Service(Rival):
    """From "approved" to "applied": the gate, what is recorded ahead and after, the claim, and all that is asked again.

    `prepare` is what a reviewer waits for: from the wish to the report. `written` is the seconds that the last apply
    took from "approved" to "all written".
    """

    written: float

    def __init__(self, namespace: str, kubeconfig: Path, folder: Path, *, database: str, queue: str):
        super().__init__("applied", namespace)
        about = environment(folder, database=database, queue=queue)
        migrate(about)
        self._folder = folder
        self._ends = ExitStack()
        self._address = self._ends.enter_context(served(folder / "served"))
        command = [
            sys.executable,
            "-m",
            "tests.support.program",
            "tests.bench.workload",
            "stand",
            str(kubeconfig),
            namespace,
        ]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._errors = folder / "worker.log"
        log = self._ends.enter_context(self._errors.open("w"))
        self._worker = self._ends.enter_context(subprocess.Popen(command, cwd=ROOT, env=about, stderr=log, **pipes))
        self._ends.callback(self._worker.stdin.close)
        self._numbers = itertools.count(1)
        self._hears()

    def close(self) -> None:
        self._ends.close()

    def ready(self, objects: Sequence[Mapping[str, Any]]) -> None:
        name = f"{self.namespace}-{next(self._numbers)}"
        file = archive(objects, name, self._folder / "source", self._folder / "served")
        self._does("wish", f"{self._address}/{file}")

    def prepare(self) -> None:
        self._does("prepare")

    def apply(self) -> None:
        (seconds,) = self._does("apply")
        self.written = float(seconds)

    def _does(self, *words: str) -> list[str]:
        print(*words, file=self._worker.stdin, flush=True)
        return self._hears()

    def _hears(self) -> list[str]:
        """What comes after "done"."""
        said = self._worker.stdout.readline()
        word, *rest = said.split() or [""]
        assert word == "done", said + self._errors.read_text()[-4000:]
        return rest
