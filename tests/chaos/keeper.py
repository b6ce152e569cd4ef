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
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from provisioner.sandbox import Sandbox, SandboxUser
from tests.support.kubernetes.controlplane import ControlPlane
from tests.support.kubernetes.endpoint import USERS
from tests.support.patience import scaled
from tests.support.servers.process import die_with_parent, free_port

AWAY_SECONDS = 0.3
ANSWER_SECONDS = 180.0
SOCKET = "keeper.sock"
KUBECONFIG = "kubeconfig"


@dataclass(frozen=True, slots=True)
class Word:
    """What is done before the answer, and what after it, when whoever asked goes on."""

    at_once: Callable[[], None]
    afterwards: Callable[[], None] | None = None


class Kept(Protocol):
    """A cluster with the words that it understands; whatever happens to it, it comes back on its state and port."""

    def start(self) -> None: ...

    def words(self) -> dict[str, Word]: ...

    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Keeper:
    """The other side: what a run and its workers tell the process that keeps their cluster."""

    folder: Path

    def ask(self, word: str) -> None:
        """Have it done: "restart", "crash", what else the cluster knows, "end", or only "ready?" once it is back."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(scaled(ANSWER_SECONDS))
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

    def words(self) -> dict[str, Word]:
        return {
            "restart": Word(self._restart),
            "crash": Word(self.end, self.start),
            "save": Word(self._save),
            "load": Word(self._load),
        }

    def end(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.join()

    def _restart(self) -> None:
        self._stop()
        self.start()

    def _stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.join()

    def _save(self) -> None:
        self._stop()
        shutil.copytree(self._state, self._saved)
        self.start()

    def _load(self) -> None:
        self.end()
        shutil.rmtree(self._state)
        shutil.copytree(self._saved, self._state)
        self.start()


class RealCluster:
    """etcd, API server and controllers of tests/controlplane."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self._folder = folder
        self._plane = ControlPlane(binaries, state=folder / "controlplane", logs=folder / "logs")

    def start(self) -> None:
        self._plane.start()
        self._plane.endpoint.write(self._folder / KUBECONFIG)

    def words(self) -> dict[str, Word]:
        plane = self._plane
        return {
            "restart": Word(self._restart),
            "crash": Word(lambda: plane.stop_apiserver(hard=True), plane.start_apiserver),
            "crash store": Word(plane.stop_store, plane.start_store),
        }

    def end(self) -> None:
        self._plane.stop()

    def _restart(self) -> None:
        self._plane.stop_apiserver(hard=False)
        self._plane.start_apiserver()


def _be_a_sandbox(state: Path, port: int, told: Connection) -> None:
    die_with_parent()
    # Before there are threads, which inherit it. A handler that sets an Event is run too late for a thread that is just
    # about to wait for it: then the sandbox would never stop.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    users = [SandboxUser(user.name, f"token-{user.name}", user.groups, user.uid) for user in USERS]
    sandbox = Sandbox(state, port, users)
    sandbox.start()
    told.send(sandbox.kubeconfig())
    signal.sigwait({signal.SIGTERM})
    sandbox.stop()


def serve(cluster: Kept, folder: Path) -> None:
    """Start the cluster, listen once it is there, and do what is asked until "end"."""
    words = {**cluster.words(), "ready?": Word(lambda: None), "end": Word(cluster.end)}
    with socket.socket(socket.AF_UNIX) as listener:
        cluster.start()
        listener.bind(str(folder / SOCKET))
        listener.listen()
        asked = ""
        while asked != "end":
            line, _ = listener.accept()
            with line:
                asked = line.recv(100).decode()
                words[asked].at_once()
                line.sendall(b"done")
            if (afterwards := words[asked].afterwards) is not None:
                time.sleep(AWAY_SECONDS)
                afterwards()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--binaries", type=Path, help="those of a real Kubernetes; without them it is the sandbox")
    options = parser.parse_args()
    folder = options.folder.resolve()
    serve(RealCluster(folder, options.binaries) if options.binaries else SandboxCluster(folder), folder)


if __name__ == "__main__":
    main()
