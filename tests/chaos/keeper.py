"""`python -m tests.chaos.keeper`: owns the cluster of a run, so that anybody may have it stopped and started again.

A worker that is killed cannot be the parent of the API server that it had restarted. So a process of its own does what
it is told over a socket, one word at a time; who tells it "crash" goes on before the cluster is back.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from provisioner.sandbox import Sandbox, SandboxUser
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.endpoint import USERS
from tests.services.process import die_with_parent, free_port

AWAY_SECONDS = 0.5
ANSWER_SECONDS = 180.0
SOCKET = "keeper.sock"
KUBECONFIG = "kubeconfig"


class Restartable(Protocol):
    """A cluster whose API server is stopped (`hard`: without warning) and started on the same state and port."""

    def start(self) -> None: ...

    def stop(self, *, hard: bool) -> None: ...

    def stop_store(self) -> None: ...

    def start_store(self) -> None: ...

    def save(self) -> None: ...

    def load(self) -> None: ...

    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Keeper:
    """The other side: what a run and its workers tell the process that keeps their cluster."""

    folder: Path

    def ask(self, word: str) -> None:
        """Have it done; words are those of WORDS and AFTERWARDS, and "end"."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(ANSWER_SECONDS)
            line.connect(str(self.folder / SOCKET))
            line.sendall(word.encode())
            answer = line.recv(1000)
        if answer != b"done":
            raise RuntimeError(f"the keeper of the cluster did not do {word!r}: {answer.decode()}")


class SandboxCluster:
    """A sandbox in a fork of the keeper: started in moments, because everything is imported."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state, self._saved = folder / "state", folder / "saved"
        self._port = free_port()
        self._process: BaseProcess | None = None

    def start(self) -> None:
        forks = multiprocessing.get_context("fork")
        ours, theirs = forks.Pipe()
        self._process = forks.Process(target=_be_a_sandbox, args=(self._state, self._port, theirs))
        self._process.start()
        theirs.close()
        (self._folder / KUBECONFIG).write_text(ours.recv())

    def stop(self, *, hard: bool) -> None:
        assert self._process is not None
        if hard:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.join()

    def stop_store(self) -> None:
        raise NotImplementedError("the sandbox is its own store")

    start_store = stop_store

    def save(self) -> None:
        self.stop(hard=False)
        shutil.copytree(self._state, self._saved)
        self.start()

    def load(self) -> None:
        self.stop(hard=True)
        shutil.rmtree(self._state)
        shutil.copytree(self._saved, self._state)
        self.start()

    def end(self) -> None:
        self.stop(hard=True)


class RealCluster:
    """etcd, API server and controllers of tests/controlplane."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self._folder = folder
        self._plane = ControlPlane(binaries, state=folder / "controlplane", logs=folder / "logs")

    def start(self) -> None:
        if not self._plane.is_running():
            self._plane.start()
            self._plane.endpoint.write(self._folder / KUBECONFIG)
            return
        self._plane.start_apiserver()

    def stop(self, *, hard: bool) -> None:
        self._plane.stop_apiserver(hard=hard)

    def stop_store(self) -> None:
        self._plane.stop_store()

    def start_store(self) -> None:
        self._plane.start_store()

    def save(self) -> None:
        raise NotImplementedError("every run on a real cluster is prepared anew")

    load = save

    def end(self) -> None:
        self._plane.stop()


def _be_a_sandbox(state: Path, port: int, told: Connection) -> None:
    die_with_parent()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    users = [SandboxUser(user.name, f"token-{user.name}", user.groups, user.uid) for user in USERS]
    sandbox = Sandbox(state, port, users)
    sandbox.start()
    told.send(sandbox.kubeconfig())
    stop.wait()
    sandbox.stop()


def _restart(cluster: Restartable) -> None:
    cluster.stop(hard=False)
    cluster.start()


WORDS: dict[str, Callable[[Restartable], None]] = {
    "ready?": lambda _: None,
    "restart": _restart,
    "crash": lambda cluster: cluster.stop(hard=True),
    "crash store": lambda cluster: cluster.stop_store(),
    "save": lambda cluster: cluster.save(),
    "load": lambda cluster: cluster.load(),
    "end": lambda cluster: cluster.end(),
}
# What happens by itself after the answer.
AFTERWARDS: dict[str, Callable[[Restartable], None]] = {
    "crash": lambda cluster: cluster.start(),
    "crash store": lambda cluster: cluster.start_store(),
}


def serve(cluster: Restartable, folder: Path) -> None:
    """Start the cluster, listen once it is there, and do what is asked until "end"."""
    with socket.socket(socket.AF_UNIX) as listener:
        cluster.start()
        listener.bind(str(folder / SOCKET))
        listener.listen()
        word = ""
        while word != "end":
            line, _ = listener.accept()
            with line:
                word = line.recv(100).decode()
                WORDS[word](cluster)
                line.sendall(b"done")
            if word in AFTERWARDS:
                time.sleep(AWAY_SECONDS)
                AFTERWARDS[word](cluster)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--binaries", type=Path, help="those of a real Kubernetes; without them it is the sandbox")
    options = parser.parse_args()
    folder = options.folder.resolve()
    serve(RealCluster(folder, options.binaries) if options.binaries else SandboxCluster(folder), folder)


if __name__ == "__main__":
    main()
