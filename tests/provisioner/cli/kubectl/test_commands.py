"""What `kubectl pratique` prints, pages and completes, without a cluster."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from provisioner.cli.kubectl import commands, complete, main
from provisioner.cli.kubectl.commands import COMMANDS, parser
from provisioner.cli.kubectl.tables import age_of, history_table, request_text, requests_table
from tests.provisioner.cli.kubectl.scene import wish
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig

DIGEST = "sha256:" + "a" * 64
NOW = datetime(2026, 11, 24, 3, 5, tzinfo=UTC)


def request(name: str = "web-2", **status: Any) -> dict[str, Any]:
    spec = {
        "bundleDeploymentRef": {"name": "web"},
        "purpose": "deploy",
        "requester": {"username": "rita", "via": "browser"},
    }
    told = {
        "state": "in_review",
        "round": 1,
        "subjectDigest": DIGEST,
        "reportSummary": {"worst": "critical", "headline": ["creates 3 objects"]},
        "conditions": [{"type": "Prepared", "status": "True", "reason": "InReview", "message": ""}],
        **status,
    }
    return {"metadata": {"name": name, "creationTimestamp": "2026-11-24T00:00:00Z"}, "spec": spec, "status": told}


def review(*conditions: dict[str, Any], name: str = "web-2") -> dict[str, Any]:
    spec = {"requestRef": {"name": name}, "decision": "Approve", "round": 1, "reviewer": {"username": "alice"}}
    return {"spec": spec, "status": {"conditions": [*conditions]}}


def test_what_is_decided_is_shown_with_its_whole_digest() -> None:
    shown = request_text(request(), [], is_coloured=False)
    assert f"Digest:      {DIGEST}\n" in shown
    for words in ("web-2", "rita (by browser)", "in review", "critical", "creates 3 objects", "Prepared=True InReview"):
        assert words in shown
    assert "\x1b" not in shown


def test_colours_come_only_where_they_are_wanted() -> None:
    assert "\x1b[31mcritical\x1b[0m" in request_text(request(), [], is_coloured=True)


@pytest.mark.parametrize("hidden", ["\x1b[2J", "\u202e", "\u200b", "a\rb"])
def test_nothing_that_strangers_wrote_hides_or_moves_the_cursor(hidden: str) -> None:
    there = request(reportSummary={"worst": hidden, "headline": [hidden]}, state=hidden)
    there["spec"]["requester"]["username"] = hidden
    there["status"]["conditions"][0]["message"] = hidden
    denied = {"type": "Counted", "status": "False", "reason": "DigestMoved", "message": hidden}
    for shown in (
        request_text(there, [review(denied)], is_coloured=False),
        requests_table([there], now=NOW),
        history_table([there]),
    ):
        assert hidden not in shown


def test_reviews_say_whether_they_counted_and_why_not() -> None:
    counted = {"type": "Counted", "status": "True", "reason": "Counted", "message": ""}
    refused = {"type": "Counted", "status": "False", "reason": "OldRound", "message": "review it again"}
    reviews = [review(counted), review(refused), review(), review(counted, name="web-1")]
    lines = request_text(request(), reviews, is_coloured=False).splitlines()
    assert [line for line in lines if "by alice" in line] == [
        "  Approve by alice in round 1: counted",
        "  Approve by alice in round 1: not counted, review it again",
        "  Approve by alice in round 1: not counted yet",
    ]


def test_who_may_not_list_reviews_is_told_so() -> None:
    assert "you may not list them" in request_text(request(), None, is_coloured=False)


def test_the_history_begins_with_the_latest() -> None:
    applied = {"type": "Applied", "status": "True", "reason": "Applied", "message": "revision 7"}
    shown = history_table([request("web-9"), request("web-10", state="applied", conditions=[applied])])
    lines = shown.splitlines()
    assert lines[0].split() == ["REQUEST", "PURPOSE", "STATE", "REQUESTER", "APPLIED", "CREATED"]
    assert lines[1].split() == ["web-10", "deploy", "applied", "rita", "revision", "7", "2026-11-24T00:00:00Z"]
    assert lines[2].startswith("web-9 ")


def test_an_empty_list_says_so() -> None:
    assert requests_table([], now=NOW) == "No requests.\n"


def test_a_list_says_how_old_requests_are_and_where_it_is_asked_why_they_wait() -> None:
    assert requests_table([request()], now=NOW).splitlines()[1].split()[-2:] == ["rita", "3h5m"]
    shown = requests_table([request()], now=NOW, standings={"web-2": "waits for approval by platform"})
    assert shown.splitlines()[0].split()[-1] == "WHY"
    assert shown.splitlines()[1].endswith("3h5m   waits for approval by platform")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (660, "11m"),
        (11_000, "3h3m"),
        (100_000, "27h"),
        (180_000, "2d2h"),
        (864_000, "10d"),
        (86_400 * 900, "900d"),
    ],
)
def test_ages_are_as_kubectl_prints_them(seconds: int, shown: str) -> None:
    assert age_of(timedelta(seconds=seconds)) == shown


def test_what_is_decided_says_why_it_waits_until_when_and_where_its_page_is() -> None:
    there = request(expiresAt="2026-11-27T00:00:00Z")
    there["metadata"]["annotations"] = {"core.rukpak.io/url": "https://pratique.example.com/requests/1"}
    lines = request_text(there, [], standing="waits for approval by platform", is_coloured=False).splitlines()
    assert lines[5:9] == [
        "Why:         waits for approval by platform",
        "Created:     2026-11-24T00:00:00Z",
        "Expires:     2026-11-27T00:00:00Z",
        "Page:        https://pratique.example.com/requests/1",
    ]
    offered = "2.0.0 of harbour is available: upgradePolicy is Manual"
    assert f"Catalogs:    {offered}" in request_text(there, [], upgrades=offered, is_coloured=False).splitlines()
    settled = request_text(request(state="applied", expiresAt="2026-11-27T00:00:00Z"), [], is_coloured=False)
    assert "Expires:" not in settled
    assert "Why:" not in settled


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("lst", "there is no command lst: did you mean list or set?"),
        ("xyzzy", "no command xyzzy; `kubectl pratique --help`"),
    ],
)
def test_a_command_that_does_not_exist_gets_near_ones(
    typed: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([typed])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_without_a_command_it_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "request-changes" in capsys.readouterr().out


def test_rules_that_are_longer_than_the_terminal_go_through_the_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    paged: list[str] = []
    monkeypatch.setattr(commands, "page", paged.append)
    assert main(["explain"]) == 0
    assert paged[0].startswith("API-01: ")


@pytest.mark.parametrize("command", [one.name for one in COMMANDS])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([command, "--help"])
    assert ended.value.code == 0
    assert f"kubectl pratique {command}" in capsys.readouterr().out


def test_rules_are_explained_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "RB-11"]) == 0
    assert "RB-11" in capsys.readouterr().out


def test_a_kubeconfig_that_cannot_be_read_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["list", "--kubeconfig", "/nowhere/config"]) == 2
    assert capsys.readouterr().err == "kubectl pratique: /nowhere/config: there is no such kubeconfig (--kubeconfig)\n"


@pytest.mark.parametrize(
    ("typed", "proposed"),
    [
        (["req"], ["request-changes"]),
        (["re"], ["request-changes", "resume"]),
        (["explain", "RB-11"], ["RB-11"]),
        (["--context", "prod", "hist"], ["history"]),
        (["--con"], ["--context"]),
        (["--color", "never", "list", "--output", "w"], ["wide"]),
        (["grant", "web", "--to", "se"], ["serviceaccount:"]),
        (["grant", "web", "--role", ""], ["view", "edit", "admin"]),
        (["nothing", ""], []),
    ],
)
def test_the_shell_is_told_what_may_follow(
    typed: list[str], proposed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert complete(typed) == 0
    *found, directive = capsys.readouterr().out.splitlines()
    assert directive == ":4"
    assert set(found) <= set(proposed)
    assert bool(found) == bool(proposed)


LINES, COLUMNS = 6, 100
PAGED = "tides: "


def at_a_terminal(*words: str, home: Path) -> str:
    """What a terminal of a few lines shows of this command; a pager marks each line that went through it."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environment = {"PATH": os.defpath, "HOME": str(home), "TERM": "xterm", "PAGER": f"sed 's/^/{PAGED}/'"}
    program = [
        sys.executable,
        "-c",
        "import sys; from provisioner.cli.kubectl import main; sys.exit(main(sys.argv[1:]))",
    ]
    process = subprocess.Popen([*program, *words], stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    shown = b""
    # Linux says that nobody has the terminal open any more by an error.
    with contextlib.suppress(OSError):
        while part := os.read(master, 65_536):
            shown += part
    os.close(master)
    process.wait()
    return shown.decode()


@pytest.mark.parametrize("command", ["show", "preview"])
def test_what_is_longer_than_the_terminal_goes_through_the_pager(
    own_sandbox: Endpoint, tmp_path: Path, command: str
) -> None:
    wish(own_sandbox, tmp_path)
    bundle = tmp_path / "bundle.yaml"
    bundle.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n")
    words = {"show": ("show", "web-2"), "preview": ("preview", str(bundle), "--all", "--explain")}[command]
    path = str(kubeconfig(own_sandbox, tmp_path))
    shown = at_a_terminal(*words, "--kubeconfig", path, home=tmp_path).splitlines()
    assert len(shown) > LINES
    assert all(line.startswith(PAGED) for line in shown), "\n".join(shown)


def test_what_fits_is_printed(own_sandbox: Endpoint, tmp_path: Path) -> None:
    wish(own_sandbox, tmp_path)
    path = str(kubeconfig(own_sandbox, tmp_path))
    shown = at_a_terminal("list", "-o", "name", "--kubeconfig", path, home=tmp_path)
    assert shown.splitlines() == ["bundledeploymentrequest.core.rukpak.io/web-2"]
