"""One child process, as its parent sees it: started with nothing of ours, asked, and ended when it passes a limit."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time

from provisioner.child_process import started
from provisioner.expressions.limits import CPU_SECONDS, MAX_ANSWER_BYTES, MEMORY_BYTES, START_SECONDS, WALL_SECONDS
from provisioner.expressions.questions import HEAD

MODULE = "provisioner.expressions.process"
TOO_SLOW = f"it took longer than {WALL_SECONDS:g} s"
TOO_LARGE = f"it needs more memory than {MEMORY_BYTES // 2**20} MiB"
_CHUNK = 65_536
_WORDS_OF_SIGNALS = {
    signal.SIGABRT: TOO_LARGE,
    signal.SIGKILL: TOO_LARGE,
    signal.SIGPROF: f"it took longer than {CPU_SECONDS:g} s of processor time",
    signal.SIGALRM: TOO_SLOW,
    signal.SIGSEGV: "it crashed its evaluator, which happens to expressions that are nested too deeply",
}


# The limits that an expression passes by itself, whatever else the machine has to do.
_OWN_LIMITS = frozenset({signal.SIGABRT, signal.SIGPROF, signal.SIGSEGV})


class Lost(Exception):
    """The child is gone, or was ended; the message says why. It may not be asked again.

    `exceeds` is set where what it was asked passed a limit by itself.
    """

    def __init__(self, words: str, *, exceeds: bool = False):
        super().__init__(words)
        self.exceeds = exceeds


class Child:
    """A process that evaluates one expression after the other. One thread uses it at a time. All methods raise Lost."""

    def __init__(self) -> None:
        self._process = _started()
        self.is_leaving = False
        self._unread = bytearray()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        self._to, self._from = stdin.fileno(), stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self.receive(time.monotonic() + START_SECONDS)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: bytes, deadline: float) -> None:
        """Hand over one message; `deadline` is of time.monotonic()."""
        if self._unread:
            self.end()
            raise Lost("its evaluator sent an answer that was not asked for")
        left = memoryview(HEAD.pack(len(message)) + message)
        while left:
            self._wait(self._to, select.POLLOUT, deadline)
            try:
                left = left[os.write(self._to, left[:_CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError as exc:
                raise self._lost() from exc

    def receive(self, deadline: float, pause: float = 0.0) -> bytes:
        """The next answer as it was written. Where it is not there yet, let answers gather for `pause` seconds first:
        to be woken for each takes both processes longer than to evaluate it.
        """
        (size,) = HEAD.unpack(self._read_bytes(HEAD.size, deadline, pause))
        if size > MAX_ANSWER_BYTES:
            self.end()
            raise Lost(f"its answer has more than {MAX_ANSWER_BYTES} bytes", exceeds=True)
        return self._read_bytes(size, deadline, pause)

    def end(self) -> int:
        """Kill the process if it still runs; its exit status. Never raises."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self.let_go()
        return self._process.wait()

    def let_go(self) -> None:
        """Close our ends of its pipes, on which it leaves; for a copy of ours that a fork made, all there is to do."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()

    def _read_bytes(self, size: int, deadline: float, pause: float = 0.0) -> bytes:
        while len(self._unread) < size:
            if pause:
                time.sleep(pause)
            self._wait(self._from, select.POLLIN, deadline)
            try:
                read = os.read(self._from, _CHUNK)
            except BlockingIOError:
                continue
            except OSError as exc:
                raise self._lost() from exc
            if not read:
                raise self._lost()
            self._unread += read
        found = bytes(self._unread[:size])
        del self._unread[:size]
        return found

    def _wait(self, pipe: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(pipe, event)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            self.end()
            raise Lost(TOO_SLOW)

    def _lost(self) -> Lost:
        """Why a child closed its pipes: it has ended, or is about to."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        status = self.end()
        known = next((words for number, words in _WORDS_OF_SIGNALS.items() if status == -number), None)
        return Lost(known or f"its evaluator ended early (status {status})", exceeds=-status in _OWN_LIMITS)


def _started() -> subprocess.Popen[bytes]:
    try:
        return started(MODULE)
    except OSError as exc:
        raise Lost(f"its evaluator could not be started ({type(exc).__name__})") from exc
