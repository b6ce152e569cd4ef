"""`policy test`: what is sent to the service, what is printed of its answer, and how it ends."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from provisioner.cli.kubectl import main
from provisioner.cli.kubectl.policies import replay_lines
from tests.provisioner.cli.kubectl.scene import TOKEN, Recorder

POLICY = "apiVersion: core.rukpak.io/v1alpha2\nkind: ApprovalPolicy\nmetadata: {name: draft}\n"
TERM = {"text": 'worst == "safe"', "value": False, "words": "", "facts": {"worst": '"notable"'}}
ROW = {
    "uid": "u",
    "cluster": "prod",
    "deployment": "strimzi",
    "number": 3,
    "created_at": "2026-11-01T00:00:00Z",
    "state": "in_review",
    "verdict": "Approved",
    "result": "held",
    "words": "",
    "terms": [TERM, {**TERM, "text": "is_first", "value": True}],
}
COUNTS = {"held": 1, "passed": 0, "approved": 0, "silent": 0, "not-selected": 0, "unknown": 0}
FOUND: dict[str, Any] = {
    "policy": "draft",
    "effect": "Guard",
    "days": 90,
    "counts": COUNTS,
    "left_out": 0,
    "why_left_out": "",
    "could_not_ask": [],
    "requests": [ROW],
}


@pytest.fixture
def logged_in(service: Recorder, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    assert main(["login", "--service", service.url, "--token", "-"]) == 0
    return service


def try_policy(service: Recorder, file: Path, *words: str, found: object = FOUND) -> int:
    service.answers["/api/v1/policy-tests"] = (200, found)
    return main(["policy", "test", "-f", str(file), "--service", service.url, *words])


def test_a_draft_is_sent_and_what_it_would_have_done_is_printed(
    logged_in: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.yaml").write_text(POLICY)
    assert try_policy(logged_in, tmp_path / "p.yaml", "--requests", "30d") == 1
    method, path, headers, body = logged_in.came[-1]
    assert (method, path, headers["Authorization"]) == ("POST", "/api/v1/policy-tests", f"Bearer {TOKEN}")
    sent = json.loads(body)
    assert (sent["days"], sent["policy"]["metadata"]) == (30, {"name": "draft"})
    told = capsys.readouterr().out
    assert "draft (Guard) on 1 request of 90 days:" in told
    assert "1  would have been held, of which 1 was really approved" in told
    assert "prod/strimzi-3" in told
    assert 'worst == "safe" is false (worst: "notable")' in told
    assert "is_first is true" not in told, "what is true holds nothing"


def test_json_is_the_answer_itself_and_nothing_held_ends_well(
    logged_in: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.yaml").write_text(POLICY)
    found = {**FOUND, "counts": {**COUNTS, "held": 0}, "requests": []}
    assert try_policy(logged_in, tmp_path / "p.yaml", "-o", "json", found=found) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed[printed.index("{") :]) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected one ApprovalPolicy"),
        (f"{POLICY}---\n{POLICY}", "expected one ApprovalPolicy"),
        ("[1]", "expected one ApprovalPolicy"),
        ("a: &a [x, x]\nb: &b [*a, *a, *a]\n" + "c: [" + "*b, " * 900 + "]", "max_nodes"),
        ("a: " * 3, "mapping values are not allowed"),
        ("x: " + "y" * 300_000, "max_file_bytes"),
    ],
    ids=["empty", "two", "a list", "aliases", "no YAML", "large"],
)
def test_a_file_that_is_no_policy_is_not_sent(
    logged_in: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / "p.yaml").write_text(text)
    before = len(logged_in.came)
    assert try_policy(logged_in, tmp_path / "p.yaml") == 2
    assert words in capsys.readouterr().err
    assert len(logged_in.came) == before


def test_without_a_login_nothing_is_sent(service: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.yaml").write_text(POLICY)
    assert try_policy(service, tmp_path / "p.yaml") == 2
    assert f"log in to {service.url} first" in capsys.readouterr().err
    assert service.came == []


def test_S24_what_the_service_says_cannot_command_a_terminal() -> None:
    text = "\n".join(replay_lines({**FOUND, "policy": "\x1b[2J", "requests": [{**ROW, "deployment": "\x1b[31m"}]}))
    assert "\x1b" not in text


def test_an_answer_of_another_shape_is_said_to_be_one(
    logged_in: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.yaml").write_text(POLICY)
    assert try_policy(logged_in, tmp_path / "p.yaml", found={"counts": {}}) == 2
    assert "cannot read" in capsys.readouterr().err
