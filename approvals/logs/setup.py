"""A process that serves prints nothing but log lines: warnings, uncaught exceptions and prints become some, too."""

from __future__ import annotations

import io
import logging
import logging.config
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from approvals import instruments
from approvals.logs import shape

STDOUT, STDERR = "stdout", "stderr"
LONGEST_LINE = 64_000
_COMMANDS = frozenset({"manage.py", "pratique-manage"})
_CELERY = frozenset({"worker", "beat"})
logger = logging.getLogger("approvals.logs")


def service_of(arguments: Sequence[str]) -> str:
    """Which service a process with these arguments is: "worker", "beat", "watch", or "" for a command of a person.

    The web process says so itself, in the configuration of gunicorn.
    """
    program = Path(arguments[0])
    is_celery = program.name == "celery" or program.parent.name == "celery"
    if is_celery:
        return next((word for word in arguments[1:] if word in _CELERY), "")
    return "watch" if program.name in _COMMANDS and list(arguments[1:2]) == ["watch"] else ""


def take_over(process: str, style: str) -> None:
    """Have everything that this process prints from now on be log lines of `style`, with `process` in each of them.

    To be called as early as can be, and a second time without harm.
    """
    shape.of_process(process)
    logging.config.dictConfig(shape.configuration(style))
    logging.captureWarnings(capture=True)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    sys.unraisablehook = _unraisable
    sys.stdout = Lines(STDOUT, logging.INFO)
    sys.stderr = Lines(STDERR, logging.WARNING)


def say(words: str) -> None:
    """Write one line past every lock: for handlers of signals, which may interrupt a line that is being written."""
    record = logging.LogRecord("approvals.logs", logging.INFO, "", 0, "%s", (words.strip(),), None)
    formatter = next((one.formatter for one in logging.root.handlers if one.formatter), None)
    line = formatter.format(record) if formatter else words
    os.write(2, f"{line}\n".encode(errors="backslashreplace"))


class Lines(io.TextIOBase):
    """A text stream whose every line is a log record: for what prints, instead of logging."""

    def __init__(self, name: str, level: int) -> None:
        super().__init__()
        self._name, self._level = name, level
        self._logger = logging.getLogger(name)
        # Each thread has its own half line.
        self._kept = threading.local()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base class has an attribute
        return "utf-8"

    def fileno(self) -> int:
        return 1 if self._name == STDOUT else 2

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, rest = (getattr(self._kept, "rest", "") + text).split("\n")
        if len(rest) > LONGEST_LINE:
            lines, rest = [*lines, rest], ""
        self._kept.rest = rest
        for line in lines:
            if line.strip():
                self._logger.log(self._level, line.rstrip())
        return len(text)

    def flush(self) -> None:
        """A half line waits for its end: who prints in parts flushes after each."""


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    instruments.crashes.labels("main").inc()
    logger.critical("uncaught exception", exc_info=(kind, error, trace))


def _uncaught_in_thread(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is None or issubclass(found.exc_type, SystemExit):
        return
    instruments.crashes.labels("thread").inc()
    # The name of a thread may be that of a tenant's object.
    logger.critical("uncaught exception in a thread", exc_info=(found.exc_type, found.exc_value, found.exc_traceback))


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    if found.exc_value is not None:
        logger.error("exception ignored", exc_info=(found.exc_type, found.exc_value, found.exc_traceback))
