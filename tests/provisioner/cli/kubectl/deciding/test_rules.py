"""`rules` and `window next`: what the service answers, beside what the cluster has, in words and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.provisioner.cli.kubectl.conftest import Run
from tests.provisioner.cli.kubectl.scene import GROUP, UID, Recorder, wish
from tests.support.kubernetes.endpoint import Endpoint

PART = {"name": "platform", "count": 2, "groups": ["platform"]}
SPEC = {"selector": {"names": ["web*"], "matchLabels": {"team": "shop"}}, "when": "is_first", "require": [PART]}
STANDINGS = [
    {"name": "four-eyes", "needed": ["1 of group platform"], "problem": "", "note": "\x1b[31m", "escalated": []},
    {"name": "gone", "needed": [], "problem": "", "note": ""},
    {"name": "odd", "needed": [], "problem": "it cannot be read", "note": ""},
]


@pytest.fixture
def with_rule(own_sandbox: Endpoint, signed_in: Recorder, tmp_path: Path) -> Recorder:
    api = wish(own_sandbox, tmp_path, page=f"{signed_in.url}/requests/some-uid")
    rule = {"apiVersion": GROUP, "kind": "ApprovalRule", "metadata": {"name": "four-eyes"}}
    api.apply({**rule, "spec": SPEC}, field_manager="test", force=True)
    told = {"summary": "2 of group platform"}
    api.apply({**rule, "status": told}, field_manager="test", subresource="status", force=True)
    signed_in.answers[f"/api/v1/requests/{UID}"] = (200, {"state": "in_review", "approval_rules": STANDINGS})
    return signed_in


def test_who_is_still_needed_stands_beside_what_each_rule_selects(
    run: Run, with_rule: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("rules", "web") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    lines = {line.split()[0]: line for line in shown.splitlines()}
    assert "waiting" in lines["four-eyes"]
    assert "1 of group platform" in lines["four-eyes"]
    assert "2 of group platform" in lines["four-eyes"]
    assert "names: web*; matchLabels: team=shop; when: is_first" in lines["four-eyes"]
    assert "satisfied" in lines["gone"]
    assert "unreadable" in lines["odd"]
    assert "it cannot be read" in lines["odd"]


def test_programs_get_the_same_as_values(run: Run, with_rule: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rules", "web-2", "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["request"], found["state"]) == ("web-2", "in_review")
    assert found["approvalRules"][0]["needed"] == ["1 of group platform"]
    assert "selects" not in found["approvalRules"][1], "the cluster has no such rule any more"


def test_a_request_that_no_rule_selects_says_so(
    run: Run, with_rule: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    with_rule.answers[f"/api/v1/requests/{UID}"] = (200, {"state": "in_review", "approval_rules": []})
    assert run("rules", "web") == 0
    assert capsys.readouterr().out == "No approval rule selects web-2.\n"


def test_an_answer_of_another_shape_is_said_to_be_one(
    run: Run, with_rule: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    with_rule.answers[f"/api/v1/requests/{UID}"] = (200, {"approval_rules": [7]})
    assert run("rules", "web") == 2
    assert "is it Pratique's address" in capsys.readouterr().err


OPENING = {"begins_at": "2026-12-04T18:00:00+01:00", "ends_at": "2026-12-07T06:00:00Z"}


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        ({"is_open": True, "why": "", "openings": []}, ["web can be applied now"]),
        (
            {"is_open": False, "why": "change window freeze holds it\x1b[2J", "openings": [OPENING]},
            [
                "web cannot be applied now: change window freeze holds it",
                "  from 2026-12-04 17:00 UTC until 2026-12-07 06:00 UTC",
            ],
        ),
        (
            {"is_open": True, "why": "", "openings": [{**OPENING, "ends_at": None}]},
            ["web can be applied now", "  from 2026-12-04 17:00 UTC without an end within a year"],
        ),
        (
            {"is_open": False, "why": "stopped", "openings": []},
            ["web cannot be applied within a year: stopped"],
        ),
    ],
    ids=["no window", "later", "without an end", "never"],
)
def test_when_it_may_be_applied_next(
    run: Run, signed_in: Recorder, capsys: pytest.CaptureFixture[str], found: dict[str, Any], lines: list[str]
) -> None:
    assert run("show", "web", "-o", "yaml") == 0
    uid = yaml.safe_load(capsys.readouterr().out)["spec"]["bundleDeploymentRef"]["uid"]
    signed_in.answers[f"/api/v1/deployments/{uid}/windows"] = (200, {"request": 2, **found})
    assert run("window", "next", "web") == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    for said, expected in zip(shown.splitlines(), lines, strict=True):
        assert said.startswith(expected)
