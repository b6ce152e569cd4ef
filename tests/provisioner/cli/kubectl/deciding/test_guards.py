"""`guard`: what the service lists, and what is sent to switch one."""

from __future__ import annotations

import json

import pytest

from provisioner.cli.kubectl import main
from tests.provisioner.cli.kubectl.scene import Recorder

GUARD = {"name": "hold-unknown", "cluster": "prod", "is_active": True, "is_built_in": True, "message": "two\x1b[31m"}
ADDRESS = "/api/v1/clusters/prod/built-in-guards/hold-unknown"


def guard(service: Recorder, *words: str) -> int:
    return main(["guard", *words, "--service", service.url])


def test_those_of_all_pages_are_listed(signed_in: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    other = {**GUARD, "is_built_in": False, "name": "mine"}
    signed_in.answers["/api/v1/policies"] = (200, {"results": [other], "next": "https://x/?cursor=b"})
    signed_in.answers["/api/v1/policies?cursor=b"] = (200, {"results": [GUARD], "next": None})
    assert guard(signed_in) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.splitlines()[1].split()[:3] == ["hold-unknown", "prod", "on"]
    assert "mine" not in shown


def test_one_is_switched_off_for_one_cluster(signed_in: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    signed_in.answers[ADDRESS] = (200, {**GUARD, "is_active": False})
    assert guard(signed_in, "hold-unknown", "off", "--cluster", "prod") == 2, "nobody said yes"
    assert guard(signed_in, "hold-unknown", "off", "--cluster", "prod", "--yes", "-o", "json") == 0
    method, path, _, body = signed_in.came[-1]
    assert (method, path, json.loads(body)) == ("PUT", ADDRESS, {"is_active": False})
    assert json.loads(capsys.readouterr().out)[0]["is_active"] is False


@pytest.mark.parametrize("words", [["hold-unknown"], ["hold-unknown", "off"], ["x", "--cluster", "prod"]])
def test_what_is_typed_in_half_sends_nothing(signed_in: Recorder, words: list[str]) -> None:
    before = len(signed_in.came)
    assert guard(signed_in, *words, "--yes") == 2
    assert len(signed_in.came) == before
