"""`confirm`: exactly what was shown, of exactly this cluster, is confirmed at the service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.provisioner.cli.kubectl.conftest import Run
from tests.provisioner.cli.kubectl.scene import GROUP, Recorder, wish
from tests.support.kubernetes.endpoint import Endpoint

SPEC = {"reason": "known\x1b[31m", "rule": "RB-01", "subject": "ClusterRole*", "expires": "2027-01-01T00:00:00Z"}
ADDRESS = "/api/v1/clusters/prod/finding-exceptions/web"
READY = {"status": True, "reason": "Confirmed", "message": "it counts until 2027-01-01"}


@pytest.fixture
def exception(own_sandbox: Endpoint, signed_in: Recorder, tmp_path: Path) -> dict[str, Any]:
    api = wish(own_sandbox, tmp_path)
    obj = {"apiVersion": GROUP, "kind": "FindingException", "metadata": {"name": "web"}, "spec": SPEC}
    made = api.create(obj)
    about = {"scopes": ["read", "decide"], "proofs": [{"cluster": "far"}, {"cluster": "prod"}]}
    signed_in.answers["/api/v1/tokens/current"] = (200, about)
    signed_in.answers["/api/v1/clusters/far/finding-exceptions/web"] = (200, {"uid": "another"})
    signed_in.answers[ADDRESS] = (200, {"uid": made["metadata"]["uid"]})
    signed_in.answers[f"{ADDRESS}/confirm"] = (200, {"name": "web", "ready": READY})
    return made


def test_what_was_shown_is_confirmed(
    run: Run, exception: dict[str, Any], signed_in: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("confirm", "web", "--yes", "--service", signed_in.url) == 0
    told = capsys.readouterr()
    assert told.out == "web is confirmed: it counts until 2027-01-01\n"
    assert "rule: RB-01" in told.err
    assert "\x1b" not in told.err
    method, path, _, body = signed_in.came[-1]
    assert (method, path) == ("POST", f"{ADDRESS}/confirm")
    assert json.loads(body) == {"version": f"{exception['metadata']['uid']}.1"}


def test_one_that_does_not_count_yet_ends_with_1(run: Run, exception: dict[str, Any], signed_in: Recorder) -> None:
    not_yet = {**READY, "status": False, "message": "somebody else has to confirm it"}
    signed_in.answers[f"{ADDRESS}/confirm"] = (200, {"name": "web", "ready": not_yet})
    assert run("confirm", "web", "--yes", "--service", signed_in.url, "-o", "json") == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({ADDRESS: (200, {"uid": "another"})}, "no FindingException web of this cluster"),
        ({ADDRESS: (404, {"detail": "none"})}, "no FindingException web of this cluster"),
        ({ADDRESS: (503, {"detail": "silent"})}, "silent"),
        ({"/api/v1/tokens/current": (200, {"proofs": 7})}, "is it Pratique's address"),
        ({f"{ADDRESS}/confirm": (412, {"detail": "it is at generation 2"})}, "it is at generation 2"),
    ],
    ids=["of another cluster", "not there", "silent", "other shape", "changed"],
)
def test_nothing_else_is_confirmed(
    run: Run,
    exception: dict[str, Any],
    signed_in: Recorder,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, tuple[int, Any]],
    words: str,
) -> None:
    signed_in.answers |= change
    assert run("confirm", "web", "--yes", "--service", signed_in.url) == 2
    assert words in capsys.readouterr().err


def test_without_a_yes_nothing_is_sent(run: Run, exception: dict[str, Any], signed_in: Recorder) -> None:
    assert run("confirm", "web", "--service", signed_in.url) == 2
    assert not [path for path in signed_in.paths if path.startswith("POST")]
