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
