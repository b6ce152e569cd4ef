"""What stands in one log line, whoever wrote it."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import uuid
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError
from django.test import Client, RequestFactory

from approvals import logs
from approvals.encryption.keys import new_key
from approvals.logs import setup, shape
from approvals.project import configuration
from provisioner.errors import BadSource, ClusterError

CANARY = "canary-0123456789"


class Output:
    """A logger of the form that is shipped, and what it wrote."""

    def __init__(self, style: str) -> None:
        self.style, self.text = style, io.StringIO()
        self.logger = logging.getLogger(f"test.{uuid.uuid4().hex}")
        self.logger.propagate = False
        self.handler = shape.Handler()
        self.handler.setStream(self.text)
        self.handler.setFormatter(shape.formatter(style))
        self.logger.addHandler(self.handler)

    @property
    def lines(self) -> list[str]:
        return self.text.getvalue().splitlines()

    def told(self) -> dict[str, Any]:
        """The one line, read as strict readers read it."""
        (line,) = self.lines
        found: dict[str, Any] = json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
        line.encode("utf-8")
        return found


@pytest.fixture
def output() -> Output:
    return Output(logs.JSON)


@pytest.fixture(params=[logs.JSON, logs.CONSOLE])
def either(request: pytest.FixtureRequest) -> Output:
    return Output(request.param)


@pytest.fixture
def hidden() -> Iterator[None]:
    before = list(shape._secrets)
    logs.hide([CANARY])
    yield
    shape._secrets[:] = before


HOSTILE = [
    pytest.param('x\n{"event": "forged", "level": "info"}', id="line feed"),
    pytest.param("x\r\nforged", id="carriage return"),
    pytest.param("x\x1b[2J\x1b[31mred", id="terminal escape"),
    pytest.param("safe\u202eevil", id="bidi"),
    pytest.param("a\u200bb\u2060c", id="zero width"),
    pytest.param("x\u2028y\u2029z\x85w", id="other line ends"),
    pytest.param("x\x00y\x07\x08", id="control"),
    pytest.param("x\udce4y", id="half a surrogate pair"),
    pytest.param("\U000e0041\U000e0042", id="tags"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_S24_nothing_in_a_line_ends_it_hides_or_forges(text: str, either: Output) -> None:
    either.logger.warning("told %s", text, extra={"path": text, "nested": {text: [text]}})
    (line,) = either.lines
    shown = line if either.style == logs.CONSOLE else flat(json.loads(line))
    assert not facts_hidden(shown), shown


@pytest.mark.parametrize("text", HOSTILE)
def test_S24_an_exception_hides_nothing_either(text: str, either: Output) -> None:
    try:
        raise ValueError(text)
    except ValueError:
        either.logger.exception("failed")
    shown = "".join(either.lines) if either.style == logs.CONSOLE else flat(either.told()).replace("\n", "")
    assert not facts_hidden(shown), shown


def flat(value: object) -> str:
    if isinstance(value, dict):
        return "".join(flat(one) for pair in value.items() for one in pair)
    return "".join(map(flat, value)) if isinstance(value, list) else str(value)


def facts_hidden(text: str) -> list[str]:
    return [hex(ord(one)) for one in text if not one.isprintable()]


@pytest.mark.parametrize("text", HOSTILE)
def test_S24_a_path_and_a_user_agent_forge_no_line(text: str, db: None, output: Output) -> None:
    log = logging.getLogger("approvals.project.middleware")
    log.addHandler(output.handler)
    try:
        Client().get("/" + text.encode("utf-8", "surrogateescape").hex("%").join(["%", ""]), HTTP_USER_AGENT=text)
    finally:
        log.removeHandler(output.handler)
    told = output.told()
    assert (told["event"], told["status"]) == ("request answered", 404)
    assert not facts_hidden(flat(told))


def test_objects_are_named_by_their_type_and_never_shown(output: Output) -> None:
    """Django's 403 hands the request itself to the logger; its text holds the query."""
    http = RequestFactory().get(f"/sign-in?code={CANARY}")
    output.logger.warning("Forbidden", extra={"request": http, "other": http, "status_code": 403, "n": float("nan")})
    told = output.told()
    assert told["other"] == "<WSGIRequest>"
    assert (told["status_code"], told["n"], "request" in told) == (403, "nan", False)
    assert CANARY not in str(told)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(f"https://user:{CANARY}@host/x", id="credentials of an address"),
        pytest.param(f"GET https://host/x?X-Amz-Signature={CANARY} failed", id="a signed address"),
        pytest.param(f"Authorization: Bearer {CANARY}", id="a header"),
        pytest.param(f"token prq_{CANARY}", id="our own token"),
        pytest.param(f"eyJhbGciOiJSUzI1NiI.{CANARY}.{CANARY}", id="a token of a ServiceAccount"),
    ],
)
def test_what_looks_like_a_credential_is_masked(words: str, either: Output) -> None:
    either.logger.warning(words, extra={"more": [words]})
    try:
        raise ValueError(words)
    except ValueError:
        either.logger.exception("failed with %s", words)
    assert CANARY not in either.text.getvalue()


def test_secrets_of_the_settings_are_masked_wherever_they_stand(hidden: None, either: Output) -> None:
    either.logger.warning("x%sx", CANARY, extra={"deep": {CANARY: [CANARY]}})
    assert CANARY not in either.text.getvalue()


def test_a_secret_that_lies_across_the_end_of_a_line_is_masked_too(hidden: None) -> None:
    for before in range(shape.MAX_TEXT - len(CANARY), shape.MAX_TEXT):
        assert CANARY[:8] not in shape.line("x" * before + CANARY + "y" * 50)


def test_every_secret_of_the_settings_is_known() -> None:
    keys = f"{new_key()},{new_key()}"
    given = {
        "PRATIQUE_SECRET_KEY": "one-secret",
        "PRATIQUE_ENCRYPTION_KEYS": keys,
        "PRATIQUE_METRICS_TOKEN": "t" * 32,
        "PRATIQUE_DATABASE_URL": "postgres://name:data%2Fbase@host/x",
        "PRATIQUE_REDIS_URL": "redis://:queue-word@host/0",
        "PRATIQUE_SLACK_WEBHOOK_URL": "https://hooks.example/T/B/word",
        "PRATIQUE_SENTRY_DSN": "https://key@sentry.example/1",
    }
    found = set(configuration.secrets_of(configuration.read(given), given))
    assert set(keys.split(",")) <= found
    assert {"one-secret", "t" * 32, "data%2Fbase", "data/base", "queue-word"} <= found
    assert {"https://hooks.example/T/B/word", "https://key@sentry.example/1"} <= found


def test_S27_an_exception_is_shown_without_the_words_of_server_or_database(output: Output) -> None:
    try:
        try:
            try:
                raise IntegrityError(f"null value\nDETAIL:  Failing row contains ({CANARY}).")
            except IntegrityError as exc:
                raise ClusterError(f'admission webhook said "{CANARY}"', status=422) from exc
        except ClusterError as exc:
            raise BadSource(f"the bundle holds {CANARY}") from exc
    except BadSource:
        output.logger.exception("failed")
    told = output.told()["exception"]
    assert "BadSource: (code bad-source)" in told
    assert "ClusterError: (code cluster-error, status 422)" in told
    assert "IntegrityError: (the database's words quote rows)" in told
    assert "test_lines.py" in told
    assert CANARY not in told


def test_why_the_database_is_away_is_told(output: Output) -> None:
    try:
        raise OperationalError("connection refused\nmore")
    except OperationalError:
        output.logger.exception("failed")
    assert "OperationalError: connection refused" in output.told()["exception"]


def test_exceptions_of_a_group_are_without_foreign_words(output: Output) -> None:
    try:
        raise ExceptionGroup("several", [ClusterError(CANARY), ValueError("ours")])
    except ExceptionGroup:
        output.logger.exception("failed")
    told = output.told()["exception"]
    assert ("ours" in told, CANARY in told) == (True, False)


def test_a_line_ends_somewhere(output: Output) -> None:
    output.logger.warning("x" * 100_000, extra={"deep": [[[[[["x"]]]]]], "many": list(range(1000))})
    assert len(output.lines[0]) < 10_000
    assert output.told()["event"].endswith("more characters)")


def test_a_record_that_cannot_be_written_is_told_of(output: Output) -> None:
    record = logging.LogRecord(output.logger.name, logging.WARNING, __file__, 1, "%d of %d", ("x",), None)
    output.handler.handle(record)
    told = output.told()
    assert (told["event"], told["logger"]) == ("a log line could not be written", output.logger.name)


def test_a_tasks_line_is_without_celerys_sentence(output: Output) -> None:
    output.logger.name = "celery.app.trace"
    data = {"id": "1", "name": "approvals.sweep", "exc": CANARY, "traceback": CANARY, "args": [CANARY]}
    output.logger.error("Task %(name)s raised: %(exc)s %(traceback)s", data, extra={"data": data})
    told = output.told()
    assert (told["event"], told["name"]) == ("task failed", "approvals.sweep")
    assert CANARY not in str(told)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[logging.LogRecord]]:
    """What reaches the loggers while a process is taken over; undone afterwards."""
    found: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = found.append
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    for name in ("excepthook", "unraisablehook"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(logging.config, "dictConfig", lambda _: None)
    logging.root.addHandler(handler)
    setup.take_over("test", logs.JSON)
    yield found
    logging.root.removeHandler(handler)
    logging.captureWarnings(capture=False)
    shape.of_process("")


def test_what_is_printed_becomes_lines(taken: list[logging.LogRecord]) -> None:
    setup.take_over("test", logs.JSON)  # pytest has put its own streams in place since
    sys.stdout.write("half ")
    sys.stdout.write("a line\n\nand another\n")
    sys.stdout.flush()
    sys.stderr.write("no end yet")
    sys.stderr.write(" and here\n")
    told = [(one.name, one.levelname, one.getMessage()) for one in taken]
    assert told == [
        ("stdout", "INFO", "half a line"),
        ("stdout", "INFO", "and another"),
        ("stderr", "WARNING", "no end yet and here"),
    ]


def test_an_exception_in_a_thread_becomes_a_line(taken: list[logging.LogRecord]) -> None:
    thread = threading.Thread(target=lambda: 1 // 0)
    thread.start()
    thread.join()
    (told,) = taken
    assert told.getMessage() == "uncaught exception in a thread"
    assert told.exc_info and told.exc_info[0] is ZeroDivisionError


def test_a_warning_becomes_a_line(taken: list[logging.LogRecord]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("old\nways", stacklevel=1)
    assert [one.name for one in taken] == ["py.warnings"]


@pytest.mark.parametrize(
    ("arguments", "service"),
    [
        (["/x/bin/celery", "--app", "approvals.project.celery", "worker", "--pool", "threads"], "worker"),
        (["/x/celery/__main__.py", "--app", "x", "beat"], "beat"),
        (["/x/bin/celery", "inspect", "ping"], ""),
        (["manage.py", "watch"], "watch"),
        (["/app/manage.py", "watch", "--verbosity", "0"], "watch"),
        (["/venv/bin/pratique-manage", "watch"], "watch"),
        (["manage.py", "migrate", "watch"], ""),
        (["/x/bin/pytest", "worker"], ""),
    ],
)
def test_a_service_is_told_from_a_command_of_a_person(arguments: list[str], service: str) -> None:
    assert logs.service_of(arguments) == service
