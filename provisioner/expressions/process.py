"""The child process: reads messages, answers their questions one at a time, and leaves when its parent is gone.

Nothing here is trusted by the parent. Timers of its own end the process even where the parent can no longer.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import time
from base64 import b64encode
from functools import lru_cache
from typing import Any

from provisioner import confinement
from provisioner.expressions import runtime
from provisioner.expressions.limits import CPU_SECONDS, MAX_KEPT_BYTES, MAX_WORDS, MEMORY_BYTES, WALL_SECONDS
from provisioner.expressions.questions import HEAD, NO_DATA, ExpressionAnswer, ExpressionOutcome, Language, Message

STATM = "/proc/self/statm"
TOO_LARGE = f"it needs more memory than {MEMORY_BYTES // 2**20} MiB"
QUESTIONS, ANSWERS = 0, 1  # standard input and output
LOOK_SECONDS = 0.001  # a process looks at its own size when so much time has passed, not after each expression


def main() -> None:
    confinement.limit_use({resource.RLIMIT_AS: MEMORY_BYTES})
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    _write_answer(_framed([]))  # ready
    while (head := _read_bytes(HEAD.size)) is not None:
        message = _read_bytes(*HEAD.unpack(head))
        if message is None:
            return
        if _answered(pickle.loads(message)):  # noqa: S301 -- the parent wrote it, nobody else
            return


def _answered(message: Message) -> bool:
    """Answer each question as soon as it is evaluated; whether this process must leave now."""
    began, looked = time.process_time(), time.perf_counter()
    about, values = NO_DATA, None
    for place, (language, text, data) in enumerate(message.questions, 1):
        if data != about:
            about, values = data, None  # the former must be free before the next are read
        found, values = _evaluated(message, (message.languages[language], text, data), values)
        is_last, is_leaving = place == len(message.questions), found.outcome is ExpressionOutcome.ENDED
        if is_last or time.perf_counter() - looked > LOOK_SECONDS:
            if _has_grown():
                values = None  # what CEL made of them, and all that expressions made since, is kept with them
                is_leaving = is_leaving or _has_grown()
            looked = time.perf_counter()
        if is_last or is_leaving:
            _write_answer(_framed([*_listed(found), is_leaving, time.process_time() - began]))
        else:
            _write_answer(_packed(found) if found.outcome is ExpressionOutcome.VALUE else _framed(_listed(found)))
        if is_leaving:
            return True
    return False


def _evaluated(
    message: Message, question: tuple[Language, str, int], values: runtime.Values | None
) -> tuple[ExpressionAnswer, runtime.Values | None]:
    """The answer, and the values that it was evaluated on: `values`, or those that had to be read first."""
    language, text, about = question
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS + 1)
    try:
        if values is None and about != NO_DATA:
            values = runtime.Values(pickle.loads(message.data[about]))  # noqa: S301 -- the parent wrote it
        return runtime.answer(language, text, values, wants_program=message.wants_program), values
    except (MemoryError, RecursionError):
        return ExpressionAnswer(ExpressionOutcome.ENDED, words=TOO_LARGE), None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _listed(found: ExpressionAnswer) -> list[Any]:
    return [found.outcome, found.value, found.type, found.words[:MAX_WORDS], b64encode(found.program).decode()]


@lru_cache(maxsize=64)
def _packed(found: ExpressionAnswer) -> bytes:
    """Most answers are one of two."""
    return _framed(_listed(found))


def _framed(found: list[Any]) -> bytes:
    body = json.dumps(found).encode()
    return HEAD.pack(len(body)) + body


def _write_answer(answer: bytes) -> None:
    left = memoryview(answer)
    while left:
        left = left[os.write(ANSWERS, left) :]


def _read_bytes(size: int) -> bytes | None:
    """`size` bytes, None where the parent closed the pipe."""
    found = bytearray()
    while len(found) < size:
        read = os.read(QUESTIONS, size - len(found))
        if not read:
            return None
        found += read
    return bytes(found)


def _has_grown() -> bool:
    return _resident_bytes() > MAX_KEPT_BYTES


def _resident_bytes() -> int:
    try:
        with open(STATM) as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:  # no Linux: the most that it ever held
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
