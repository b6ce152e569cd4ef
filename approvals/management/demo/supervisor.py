"""Starts the demo's processes in order and stops every one of them; each logs to a file of its own."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from approvals.encryption.keys import new_key

PR_SET_PDEATHSIG = 1
STOP_SECONDS = 8.0


class DemoFailed(Exception):
    """A process did not come up; the message ends with the last lines of its log."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def answers(url: str) -> bool:
    """Whether a GET of `url` is answered with a success."""
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own loopback addresses
            return True
    except (urllib.error.URLError, OSError):
        return False


@dataclass
class Supervisor:
    """Processes by name, in starting order. `logs` is the folder of their output."""

    logs: Path
    environment: Mapping[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *command: str | Path, also: Mapping[str, str] | None = None) -> None:
        """Start a child in a session of its own (Ctrl-C reaches only us); it dies with us in any case.

        `also` is added to its environment.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        with (self.logs / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603 - our own commands
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment, **(also or {})},
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - no threads run here yet
            )

    def run(self, name: str, *command: str | Path) -> None:
        """Run to the end; raises DemoFailed."""
        self.start(name, *command)
        code = self.processes.pop(name).wait()
        if code:
            raise DemoFailed(f"{name} failed with exit code {code}:\n{self.tail(name)}")

    def wait_for(self, name: str, is_ready: Callable[[], bool], *, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not is_ready():
            if self.processes[name].poll() is not None:
                raise DemoFailed(f"{name} stopped:\n{self.tail(name)}")
            if time.monotonic() > deadline:
                raise DemoFailed(f"{name} was not ready within {seconds:.0f} s:\n{self.tail(name)}")
            time.sleep(0.1)

    def tail(self, name: str) -> str:
        path = self.logs / f"{name}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-15:]) if path.exists() else "(no log)"

    def first_dead(self) -> str:
        return next((name for name, process in self.processes.items() if process.poll() is not None), "")

    def stop(self) -> None:
        """The last started first, each with its whole session; who does not go is killed."""
        for process in reversed(self.processes.values()):
            _signal_session(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            _signal_session(process, signal.SIGKILL)
            process.wait()


def remembered(path: Path) -> dict[str, str]:
    """What a second `make demo` must find again: the secret, keys, passwords and ports."""
    kept: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    made = {
        "secret": secrets.token_urlsafe(50),
        "password": secrets.token_urlsafe(9),
        "bundles_port": str(free_port()),
        "cluster_port": str(free_port()),
        "issuer_port": str(free_port()),
        "token": secrets.token_urlsafe(24),
        "encryption_key": new_key(),
        **kept,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(json.dumps(made))
    return made


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _signal_session(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
