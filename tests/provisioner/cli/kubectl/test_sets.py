"""`set`: what the service says of sets, and one decision on a group."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provisioner.cli.kubectl import login
from provisioner.cli.kubectl.commands import main
from tests.provisioner.cli.kubectl.scene import TOKEN, Recorder


def member(name: str, **more: Any) -> dict[str, Any]:
    known = {"request": f"uid-{name}", "deployment": name, "number": 1, "cluster": "prod", "state": "in_review"}
    return {**known, "worst": "notable", "subject_digest": f"sha256:{name}", "has_decided": False, **more}


def group(*names: str, **more: Any) -> dict[str, Any]:
    finding = {"severity": "notable", "rule": "OB-01", "message": "it changes \u202e", "count": 2}
    return {
        "shown": f"uid-{names[0]}",
        "worst": "notable",
        "findings": [finding],
        "other_findings": 3,
        "differences": None,
        "only_on_own_page": "",
        "members": list(map(member, names)),
        **more,
    }


DIFFERENCES = {
    "findings": [{"change": "new", "severity": "dangerous", "was": "", "message": "it stops"}],
    "objects": [{"object": "ConfigMap old", "was": "", "now": "delete", "position": 0}],
    "more_findings": 0,
    "more_objects": 1,
}
SET = {
    "name": "spring",
    "groups": [group("a", "b"), group("c", worst="dangerous", differences=DIFFERENCES)],
    "more_groups": 0,
    "alone": [{"member": member("d"), "why": "parts of it are hidden from you"}],
    "settled": [member("e", state="denied")],
}


@pytest.fixture
def sets(service: Recorder, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Recorder:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PRATIQUE_SERVICE", service.url)
    login.keep_login(login.Login(service.url, TOKEN))
    row = {"name": "spring", "worst": "dangerous", "members": 5, "open": 4, "decided": 1}
    service.answers["/api/v1/sets"] = (200, {"results": [row]})
    service.answers["/api/v1/sets/spring"] = (200, SET)
    return service


def test_sets_are_listed_and_shown_by_groups(sets: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["set"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["spring", "dangerous", "5", "4", "1"]
    assert main(["set", "spring"]) == 0
    told = capsys.readouterr().out
    for words in (
        *("group 1: 2 members", "it changes \\u202e (2 times)", "prod/a request 1", "only here: dangerous it stops"),
        *("ConfigMap old: delete, in group 1 not in the plan", "1 more difference", "hidden from you", "1 denied"),
    ):
        assert words in told


def test_a_decision_names_each_member_with_its_digest(sets: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    done = {"deployment": "a", "cluster": "prod", "recorded": True, "code": "", "detail": ""}
    refused = {**done, "deployment": "b", "recorded": False, "code": "not-allowed", "detail": "Kubernetes says no"}
    sets.answers["/api/v1/sets/spring/review"] = (200, {"results": [done, refused]})
    assert main(["set", "spring", "approve", "--yes", "--reason", "read"]) == 1
    assert "prod/b: refused: Kubernetes says no" in capsys.readouterr().out
    (sent,) = [json.loads(body) for method, _, _, body in sets.came if method == "POST"]
    assert (sent["decision"], sent["shown"], sent["reason"]) == ("Approve", "uid-a", "read")
    assert sent["members"] == [{"request": f"uid-{name}", "subject_digest": f"sha256:{name}"} for name in ("a", "b")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["spring", "approve", "--yes", "--group", "2"], "has a dangerous finding: approve it at"),
        (["spring", "approve", "--yes", "--group", "9"], "has 2 groups"),
        (["spring", "deny", "--yes"], "--reason is missing"),
        (["spring", "approve"], "no terminal to confirm on"),
    ],
    ids=["S32 serious", "no such group", "no reason", "nobody to ask"],
)
def test_what_is_not_sure_decides_nothing(
    sets: Recorder, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(["set", *words]) == 2
    assert told in capsys.readouterr().err
    assert not [path for path in sets.paths if path.startswith("POST")]


ORDER = {
    "made_by": "rita",
    "on_failure": "Stop",
    "rings": [
        {
            "name": "canary",
            "has_begun": True,
            "waits_for": ["its soak time ends at 2026-12-01 12:00 UTC"],
            "members": [{"cluster": "east", "deployment": "quay", "state": "healthy", "why": ""}],
            "version": "v-1",
            "hidden": 2,
        }
    ],
}


def test_an_order_comes_from_a_file_and_is_shown(
    sets: Recorder, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    file = tmp_path / "rings.yaml"
    file.write_text("rings: [{name: canary, soakMinutes: 60}]\nonFailure: PutBack\n")
    sets.answers["/api/v1/sets/spring/order"] = (201, ORDER)
    assert main(["set", "spring", "order", "-f", str(file)]) == 0
    told = capsys.readouterr().out
    for words in ("ring canary: in progress", "its soak time ends at", "east/quay healthy", "2 members on clusters"):
        assert words in told
    (sent,) = [json.loads(body) for method, _, _, body in sets.came if method == "POST"]
    assert sent == {"rings": [{"name": "canary", "soakMinutes": 60}], "on_failure": "PutBack"}
    sets.answers["/api/v1/sets/spring"] = (200, {**SET, "order": ORDER})
    assert main(["set", "spring"]) == 0
    assert "ring canary: in progress" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "address", "body"),
    [
        (["approve-ring", "--ring", "canary"], "approve", {"ring": "canary", "version": "v-1"}),
        (["take-out", "--member", "east/quay"], "take-out", {"cluster": "east", "deployment": "quay"}),
        (["end-order"], "end", {}),
    ],
)
def test_a_set_goes_on_when_a_person_says_so(
    sets: Recorder, words: list[str], address: str, body: dict[str, str]
) -> None:
    sets.answers["/api/v1/sets/spring"] = (200, {**SET, "order": ORDER})
    sets.answers[f"/api/v1/sets/spring/order/{address}"] = (204, None)
    assert main(["set", "spring", *words, "--yes", "--reason", "seen"]) == 0
    (sent,) = [json.loads(text) for method, _, _, text in sets.came if method == "POST"]
    assert sent == {"reason": "seen", **body}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["order"], "-f FILE is missing"),
        (["order", "-f", "FILE"], "expected rings, members and onFailure"),
        (["end-order", "--yes"], "--reason is missing"),
        (["approve-ring", "--yes", "--reason", "x"], "--ring is missing"),
        (["take-out", "--member", "quay", "--yes", "--reason", "x"], "is not CLUSTER/NAME"),
    ],
)
def test_what_is_no_order_is_not_sent(
    sets: Recorder, capsys: pytest.CaptureFixture[str], tmp_path: Any, words: list[str], told: str
) -> None:
    file = tmp_path / "rings.yaml"
    file.write_text("rings: []\nother: 1\n")
    assert main(["set", "spring", *(str(file) if word == "FILE" else word for word in words)]) == 2
    assert told in capsys.readouterr().err
    assert not [path for path in sets.paths if path.startswith("POST")]
