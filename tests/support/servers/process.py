"""Servers that a test run starts: begun, waited for, shown when they fail, and never left behind.

Only the standard library: `tests/controlplane/run` uses it too, outside any test run.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.patience import NotInTime, wait_for

PR_SET_PDEATHSIG = 1
SIGKILL = int(signal.SIGKILL)
STOP_SECONDS = 10.0
LOG_TAIL_LINES = 30
PORTS = range(10_000, 65_536)
# As Linux has them where nobody changed it (Documentation/networking/ip-sysctl.rst, ip_local_port_range).
EPHEMERAL_PORTS = (32_768, 60_999)
MOST_TRIES = 1_000
_MARKS: list[socket.socket] = []
_RUNNING: list[Server] = []
# Loaded here and not in the child: between fork and exec nothing may be imported.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class ServiceFailed(Exception):
    """A server did not start, died, or did not answer in time; the message ends with the tail of its log."""


def free_ports(count: int) -> list[int]:
    """Different TCP ports of the loopback address that nobody listens on, and that this process alone is given.

    None is of those that the kernel gives to outgoing connections: it could give one away before the server listens.
    No other process that asks here gets the same one before this one has ended.
    """
    found: list[int] = []
    # Not from `random` itself, which tests seed.
    for port in random.SystemRandom().sample(_not_given_to_clients(), k=MOST_TRIES):
        if len(found) == count:
            break
        if is_free(port) and _reserve(port):
            found.append(port)
    if len(found) < count:
        raise ServiceFailed(f"{count} free ports: {len(found)} found in {MOST_TRIES} tries")
    return found


def _not_given_to_clients() -> Sequence[int]:
    """The ports that the kernel does not give to outgoing connections; all, where it leaves hardly any."""
    try:
        least, most = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except OSError:
        least, most = EPHEMERAL_PORTS
    left = [port for port in PORTS if not least <= port <= most]
    return left if len(left) > MOST_TRIES else PORTS


def _reserve(port: int) -> bool:
    """Whether the port is this process's now, among all that ask here; the kernel lets go of it when the process ends."""
    if sys.platform != "linux":
        return True
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0pratique-tests-port-{port}")
    except OSError:
        mark.close()
        return False
    _MARKS.append(mark)
    return True


def free_port() -> int:
    return free_ports(1)[0]


def is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1:`port` (as servers do, with SO_REUSEADDR)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def private_folder(name: str) -> Path:
    """A new folder outside pytest's own (which only its owner may enter, and PostgreSQL does not run as root)."""
    return Path(tempfile.mkdtemp(prefix=f"pratique-{name}-"))


def unprivileged() -> str | None:
    """The user to give a server that refuses to run as root, or None where this process is not root."""
    return "nobody" if os.geteuid() == 0 else None


def answers_on(port: int) -> bool:
    """Whether something accepts connections on 127.0.0.1:`port`."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_until(is_so: Callable[[], bool], what: str, seconds: float) -> None:
    """Return once `is_so()`; raises ServiceFailed naming `what` after `seconds` of a quiet machine."""
    try:
        wait_for(is_so, what, seconds)
    except NotInTime as exc:
        raise ServiceFailed(str(exc)) from exc


@dataclass(frozen=True, slots=True)
class Options:
    """`user` runs the server as somebody else (root only); `stop_signal` is what it understands as "stop now"."""

    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    stop_signal: signal.Signals = signal.SIGTERM


def running_logs() -> list[tuple[str, str]]:
    """Name and end of the log of each server that this process has started and not stopped."""
    return [(server.name, server.log_tail()) for server in _RUNNING]


def die_with_parent() -> None:
    """Have the kernel kill this process (Linux) when the thread that started it dies."""
    # Not politely: an API server whose etcd is dying as well would wait for it, for minutes.
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)


class Server:
    """One server process in its own session, its output in `log`.

    It is stopped by `stop()`, at interpreter exit, and (Linux) by the kernel when the thread that started it dies,
    so start it from a thread that lives as long as it is needed.
    """

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, options: Options | None = None) -> None:
        self.name = name
        self.log = log
        self._options = options or Options()
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._options.env},
                user=self._options.user,
                group="nogroup" if self._options.user else None,
                extra_groups=[] if self._options.user else None,
                cwd=log.parent,
                start_new_session=True,
                # After the change of user, which would clear the setting again.
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of libc, loaded before; no lock is taken
            )
        atexit.register(self.stop)
        _RUNNING.append(self)

    @property
    def pid(self) -> int:
        return self._popen.pid

    def is_running(self) -> bool:
        return self._popen.poll() is None

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """The last lines of what the server wrote."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait(self, answers: Callable[[], bool], seconds: float = 30.0) -> None:
        """Return once `answers()`; raises ServiceFailed with the tail of the log if it died or took too long."""

        def ready_or_dead() -> bool:
            return not self.is_running() or answers()

        try:
            wait_until(ready_or_dead, self.name, seconds)
        except ServiceFailed as exc:
            raise ServiceFailed(f"{exc}; its log ends:\n{self.log_tail()}") from exc
        if not self.is_running():
            raise ServiceFailed(f"{self.name} exited with {self._popen.returncode}; its log ends:\n{self.log_tail()}")

    def stop(self, *, hard: bool = False) -> None:
        """Stop the server and everything in its process group; does nothing the second time."""
        atexit.unregister(self.stop)
        if self in _RUNNING:
            _RUNNING.remove(self)
        if self.is_running():
            self._signal(signal.SIGKILL if hard else self._options.stop_signal)
            try:
                self._popen.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._popen.wait()
            self._signal(signal.SIGKILL)  # what it left behind in its group

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)
