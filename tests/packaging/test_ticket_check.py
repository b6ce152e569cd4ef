"""The example of an external check answers what Pratique sends, and nobody else."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3
from standardwebhooks import Webhook

from tests.support.folders import ROOT
from tests.support.servers.http import Asked, Listening, Reply

SECRET = "whsec_c2VjcmV0IG9mIGF0IGxlYXN0IDI0IGJ5dGVzLi4="
OTHER = "whsec_YW5vdGhlciBzZWNyZXQgb2YgMjQgYnl0ZXMuLi4="
TICKETS = {"CHG-7": "approved", "CHG-8": "open"}
Send = Callable[..., int]


@pytest.fixture
def answered() -> list[Asked]:
    """What arrives at Pratique."""
    return []


@pytest.fixture
def away() -> threading.Event:
    """Set while Pratique cannot take answers."""
    return threading.Event()


@pytest.fixture
def send(tmp_path: Path, answered: list[Asked], away: threading.Event) -> Iterator[Send]:
    """`send(ticket)`: an event about a change with this ticket, signed; the status of the check's server."""

    def take(asked: Asked) -> Reply:
        answered.append(asked)
        return Reply(b"{}", status=503 if away.is_set() else 200)

    pratique = Listening(take)
    spec = importlib.util.spec_from_file_location("ticket_check", ROOT / "deploy/examples/ticket_check.py")
    assert spec and spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    (tmp_path / "tickets.json").write_text(json.dumps(TICKETS))
    handler = type("Handler", (example.Handler,), {"log_message": lambda *_: None})
    handler.secret, handler.pratique, handler.tickets = SECRET, pratique.url, tmp_path / "tickets.json"  # type: ignore[attr-defined]  # the example's
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a refused address is part of a test
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def post(
        ticket: str,
        *,
        secrets: tuple[str, ...] = (SECRET,),
        age: timedelta = timedelta(),
        url: str = "",
        **changed: str | bytes,
    ) -> int:
        now = datetime.now(UTC) - age
        data: dict[str, Any] = {"change": {"ticket": ticket}, "request": {"uid": "r"}, "subjectDigest": "sha256:1"}
        data["answer"] = {"url": f"{url or pratique.url}/api/v1/checks/run", "token": "prc_1"}
        body = json.dumps({"data": data})
        headers: dict[str, str | bytes] = {
            "webhook-id": "run",
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(Webhook(secret).sign("run", now, body) for secret in secrets),
            "content-length": str(len(body)),
        }
        where = f"http://127.0.0.1:{server.server_port}"
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        return urllib3.request("POST", where, body=body, headers=headers, retries=False, timeout=5).status

    yield post
    server.shutdown()
    server.server_close()
    pratique.stop()


@pytest.mark.parametrize(
    ("ticket", "outcome", "message"),
    [
        ("CHG-7", "passed", "CHG-7 is approved"),
        ("CHG-8", "pending", "CHG-8 is not approved yet: approve it and run the check again"),
        ("CHG-9", "failed", "CHG-9 does not exist"),
        ("", "failed", "the change names no ticket"),
    ],
)
def test_it_answers_by_the_state_of_the_ticket(
    send: Send, answered: list[Asked], ticket: str, outcome: str, message: str
) -> None:
    assert send(ticket, secrets=(OTHER, SECRET)) == 202
    (asked,) = answered
    assert (asked.path, asked.headers["authorization"]) == ("/api/v1/checks/run", "Bearer prc_1")
    assert json.loads(asked.body) == {"outcome": outcome, "message": message, "subject_digest": "sha256:1"}


def test_what_pratique_did_not_sign_just_now_is_refused(send: Send, answered: list[Asked]) -> None:
    assert send("CHG-7", secrets=(OTHER,)) == 401
    assert send("CHG-7", age=timedelta(minutes=6)) == 401
    assert send("CHG-7", age=-timedelta(minutes=6)) == 401
    assert send("CHG-7", webhook_timestamp="9" * 5000) == 401
    assert send("CHG-7", webhook_signature="v1,\u00e9".encode("latin-1")) == 401
    # It would be read to its end, before anybody asks who sent it.
    assert [send("CHG-7", content_length=length) for length in ("-1", "x", "9" * 5000, "70000")] == [413] * 4
    assert answered == []


def test_what_pratique_could_not_take_counts_as_not_received_so_that_it_is_sent_again(
    send: Send, answered: list[Asked], away: threading.Event
) -> None:
    away.set()
    assert send("CHG-7") == 500
    away.clear()
    assert send("CHG-7") == 202
    assert len(answered) == 2
