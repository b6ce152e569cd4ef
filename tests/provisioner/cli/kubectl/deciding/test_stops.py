"""`stop` and `start`: a ChangeWindow that denies without an end, written and deleted as the caller."""

from __future__ import annotations

from pathlib import Path

import pytest

from approvals.deciding.change_windows import ChangeWindow, WindowType
from provisioner.cli.kubectl.cluster import list_kind
from provisioner.cluster.client.api import ClusterClient
from tests.provisioner.cli.kubectl.conftest import Run
from tests.provisioner.cli.kubectl.scene import GROUP
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig


@pytest.fixture
def api(run: Run, own_sandbox: Endpoint, tmp_path: Path) -> ClusterClient:
    return ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)


def windows(api: ClusterClient) -> list[str]:
    return [window["metadata"]["name"] for window in list_kind(api, "ChangeWindow")]


def test_a_stop_holds_everything_and_start_ends_it(
    run: Run, api: ClusterClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("stop", "  payments are down ") == 0
    (window,) = list_kind(api, "ChangeWindow")
    parsed = ChangeWindow.parse(window["spec"])
    assert (parsed.type, parsed.schedule, parsed.description) == (WindowType.DENY, None, "payments are down")
    assert len(parsed.applies_to) == 3
    name = window["metadata"]["name"]
    assert f"kubectl pratique start {name}" in capsys.readouterr().out
    assert run("start") == 2, "without a terminal somebody has to say yes"
    assert "--yes" in capsys.readouterr().err
    assert run("start", "--yes") == 0
    assert windows(api) == []
    assert run("start", "--yes") == 2
    assert "nothing is stopped" in capsys.readouterr().err


def test_of_several_stops_one_is_named_and_other_windows_stay(
    run: Run, api: ClusterClient, capsys: pytest.CaptureFixture[str]
) -> None:
    about = {"apiVersion": GROUP, "kind": "ChangeWindow"}
    night = {"type": "Deny", "dtstart": "2026-12-04T18:00:00", "timeZone": "UTC", "duration": "12h"}
    for name, spec in (("a", {"type": "Deny"}), ("b", {"type": "Deny"}), ("night", night)):
        api.create({**about, "metadata": {"name": name}, "spec": spec})
    assert run("start", "--yes") == 2
    assert "name one of a, b" in capsys.readouterr().err
    assert run("start", "night", "--yes") == 2
    assert "there is no stop night" in capsys.readouterr().err
    assert run("start", "b", "--yes") == 0
    assert "1 other stop left" in capsys.readouterr().out
    assert windows(api) == ["a", "night"]


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501], ids=["empty", "blank", "long"])
def test_a_stop_says_why(run: Run, api: ClusterClient, reason: str) -> None:
    assert run("stop", reason) == 2
    assert windows(api) == []


def test_who_may_not_write_windows_is_told_what_kubernetes_says(
    run: Run, api: ClusterClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("stop", "no", "--as", "nobody") == 2
    told = capsys.readouterr().err
    assert "nothing was stopped" in told
    assert 'User "nobody"' in told
    assert windows(api) == []
