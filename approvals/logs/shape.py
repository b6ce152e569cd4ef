"""How a log record becomes a line: the processors, the formatter and the handler, as Django's LOGGING."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from datetime import date
from types import TracebackType
from typing import Any, TextIO
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError

from provisioner.errors import ClusterError, PratiqueError
from provisioner.escaping import visible

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]
MAX_CHAIN = 20
_OURS = "psycopg"


def text_of(failure: ExcInfo) -> str:
    """The traceback, with all that led to it."""
    found = traceback.TracebackException(*failure, capture_locals=False)
    for shown, error in _chain(found, failure[1]):
        words = words_of(error)
        if words is not None:
            # There is no public way to give an exception other words in its own traceback.
            shown._str = words  # type: ignore[attr-defined]  # private to the library
    return "".join(found.format()).rstrip("\n")


def words_of(error: BaseException) -> str | None:
    """What may be said of an error in place of its own words; None where these may stand."""
    if isinstance(error, ClusterError):
        return f"(code {error.code}, status {error.status})"
    if isinstance(error, PratiqueError):
        return f"(code {error.code})"
    is_of_database = isinstance(error, DatabaseError | InterfaceError) or type(error).__module__.startswith(_OURS)
    if not is_of_database:
        return None
    # Whether the database is there, and why not, is told in its first line and quotes no row.
    return str(error).partition("\n")[0] if isinstance(error, OperationalError) else "(the database's words quote rows)"


def _chain(
    shown: traceback.TracebackException, error: BaseException
) -> Iterator[tuple[traceback.TracebackException, BaseException]]:
    """Each exception of the chain beside what is shown of it; at most MAX_CHAIN."""
    waiting: list[tuple[traceback.TracebackException | None, BaseException | None]] = [(shown, error)]
    for _ in range(MAX_CHAIN):
        if not waiting:
            return
        one, real = waiting.pop()
        if one is None or real is None:
            continue
        yield one, real
        waiting += [(one.__cause__, real.__cause__), (one.__context__, real.__context__)]
        if isinstance(real, BaseExceptionGroup) and one.exceptions:
            waiting += zip(one.exceptions, real.exceptions, strict=False)


MAX_TEXT = 4_000
MAX_SECRET = 4_000
MAX_TRACE = 64_000
MAX_ITEMS = 50
MAX_DEPTH = 4
# A value shorter than this is no secret, and would blank out innocent words.
SHORTEST_SECRET = 8
# Texts that are read in lines.
IN_LINES = frozenset({"exception", "stack"})
MASK = "***"
_PATTERNS = (
    # Credentials and queries of addresses: a signed address is a key.
    (re.compile(r"(?<=://)[^\s/@'\"]+@"), f"{MASK}@"),
    (re.compile(r"(?<=[\w/])\?[^\s'\"<>()=]{1,100}=[^\s'\"<>()]*"), f"?{MASK}"),
    # Our API tokens, tokens of ServiceAccounts, and what stands in an Authorization header.
    (re.compile(r"\bprq_[\w-]{8,}"), f"prq_{MASK}"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"), MASK),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), rf"\1 {MASK}"),
)
_secrets: list[str] = []


JSON, CONSOLE = "json", "console"
__all__ = ["CONSOLE", "JSON", "Handler", "configuration", "formatter", "hide"]
Event = MutableMapping[str, Any]
# What every logging.LogRecord has; the rest came as `extra`.
_OF_EVERY_RECORD = frozenset(logging.LogRecord("", 0, "", 0, "", None, None).__dict__) | {
    "message",
    "asctime",
    "taskName",
}
# Said once, in fields of our own.
_LEFT_OUT = frozenset({"request", "data"})
# What a stranger's request can bring about as often as they like: one line is enough.
_OF_STRANGERS = "django.security."
_TASK_LOGGER = "celery.app.trace"
# The first line of what Celery says tells what happened; those after it quote the message from the queue.
_CELERY = "celery."
_process = [""]


def hide(secrets: Iterable[str]) -> None:
    """Have these texts masked in every line from now on; those of fewer than SHORTEST_SECRET characters stay."""
    known = {*_secrets, *(one for one in secrets if len(one) >= SHORTEST_SECRET)}
    # The longest first: one may be a part of another.
    _secrets[:] = sorted(known, key=lambda one: (-len(one), one))


def masked(text: str) -> str:
    """`text` without what looks like a credential, and without the secrets of this process."""
    for secret in _secrets:
        text = text.replace(secret, MASK)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def line(text: str, *, at_most: int = MAX_TEXT, keep_newlines: bool = False) -> str:
    """`text` as a log line may hold it: masked, everything that hides shown as an escape, not endless."""
    rest = len(text) - at_most
    # Masked with what follows: a secret that lies across the cut would not be known by its first half.
    shown = visible(masked(text[: at_most + MAX_SECRET])[:at_most], keep_newlines=keep_newlines)
    return f"{shown}… ({rest} more characters)" if rest > 0 else shown


def plain(value: object, depth: int = 0) -> object:
    """`value` as JSON can hold it; what is no plain value is named by its type, what is too deep or too much is cut."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return line(value)
    if isinstance(value, date | UUID):
        return str(value)
    if depth < MAX_DEPTH and isinstance(value, Mapping):
        return {line(str(key)): plain(one, depth + 1) for key, one in list(value.items())[:MAX_ITEMS]}
    if depth < MAX_DEPTH and isinstance(value, list | tuple | set | frozenset):
        return [plain(one, depth + 1) for one in list(value)[:MAX_ITEMS]]
    return f"<{type(value).__name__}>"


def of_process(name: str) -> None:
    """Name this process in every line."""
    _process[0] = name


def process_name() -> str:
    """web, worker, beat or watch; "" for a command of a person."""
    return _process[0]


def configuration(style: str) -> dict[str, Any]:
    """Django's LOGGING. `style` is "json" (one object a line, on standard error) or "console"."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"()": formatter, "style": style}},
        "handlers": {"console": {"()": Handler, "formatter": "plain"}},
        "root": {"handlers": ["console"], "level": "INFO"},
        "loggers": {
            "urllib3": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            # Each process would say where it found its credentials, and there is one for each bundle that is prepared.
            "botocore": {"level": "WARNING"},
            # Handlers of their own would print the same again, in another form.
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            "django.server": {"handlers": [], "level": "INFO", "propagate": True},
            # One line a request says what was answered; here is only what failed, with its traceback.
            "django.request": {"level": "ERROR"},
        },
    }


def formatter(style: str = JSON) -> logging.Formatter:
    """The formatter for both kinds of records: those of `logging`, and those of structlog."""
    renderer: Any = structlog.processors.JSONRenderer(serializer=_as_json)
    if style != JSON:
        renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    return structlog.stdlib.ProcessorFormatter(
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _with_trace, _plain, renderer],
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            _with_facts,
            structlog.processors.TimeStamper(fmt="iso"),
        ],
    )


class Handler(logging.StreamHandler[TextIO]):
    """Writes to the standard error that the process was started with, whatever `sys.stderr` is now."""

    def __init__(self) -> None:
        super().__init__(sys.__stderr__)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """A record that cannot be written is told of as a line as well; what broke it is a bug of the caller."""
        said = {"logger": record.name, "place": f"{record.module}:{record.lineno}", "level": "error"}
        # Nothing is left to do where standard error itself is gone.
        if self.stream and not isinstance(sys.exception(), OSError):
            self.stream.write(_as_json({"event": "a log line could not be written", **said}) + self.terminator)


def _with_facts(logger: object, name: str, event: Event) -> Event:
    """What came as `extra`; a task's line says in fields what its message says in words of Celery's."""
    record: logging.LogRecord = event["_record"]
    extra = {key: value for key, value in record.__dict__.items() if key not in _OF_EVERY_RECORD}
    task = extra.get("data")
    if record.name == _TASK_LOGGER and isinstance(task, dict):
        # Celery's sentence quotes the exception and the traceback, with the words of others in them.
        event["event"] = "task failed" if record.levelno >= logging.WARNING else "task done"
        event.update({key: task[key] for key in ("id", "name", "runtime") if key in task})
    elif record.name.startswith(_CELERY):
        event["event"] = str(event["event"]).strip().partition("\n")[0]
    event.update({key: value for key, value in extra.items() if key not in _LEFT_OUT and not key.startswith("_")})
    return event


def _with_trace(logger: object, name: str, event: Event) -> Event:
    failure = event.pop("exc_info", None)
    if str(event.get("logger", "")).startswith(_OF_STRANGERS):
        return event
    if failure is True:
        failure = sys.exc_info()
    elif isinstance(failure, BaseException):
        failure = (type(failure), failure, failure.__traceback__)
    if isinstance(failure, tuple) and failure[1] is not None:
        event["exception"] = text_of((type(failure[1]), failure[1], failure[2]))
    return event


def _plain(logger: object, name: str, event: Event) -> Event:
    if _process[0]:
        event.setdefault("process", _process[0])
    found: Event = {}
    for key, value in event.items():
        if key in IN_LINES:
            found[key] = line(str(value), at_most=MAX_TRACE, keep_newlines=True)
        else:
            found[line(str(key))] = plain(value)
    return found


def _as_json(event: object, **_: object) -> str:
    return json.dumps(event, default=lambda one: f"<{type(one).__name__}>", allow_nan=False)
