"""`pratique plugins`: what is installed, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provisioner.cli import main
from provisioner.plugins import PluginGroup
from tests.support.plugins import PluginPath


def test_all_that_work_are_listed(tides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "the format tide-table of the package pratique-tides 1.0.0",
        "the source tide-gauge of the package pratique-tides 1.0.0",
        "the check high-water of the package pratique-tides 1.0.0",
    ]


def test_a_broken_one_beside_good_ones_is_told_with_its_cause(
    tides: Path, plugin_path: PluginPath, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin_path.add("cards", {PluginGroup.CHECKS: {"tarot": "cards:CHECK"}}, "CHECK = 7")
    assert main(["plugins", "-o", "json"]) == 1
    found = {one["name"]: one["problem"] for one in json.loads(capsys.readouterr().out)}
    assert (found["tide-table"], found["tide-gauge"], found["high-water"]) == ("", "", "")
    assert found["tarot"].startswith("cards:CHECK is of the type int; expected a Check")


def test_without_any_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out == "no plug-in is installed\n"


def test_a_bundle_in_the_format_of_a_plugin_is_reviewed_with_its_check(
    tides: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "tides.json").write_text('{"ports": [{"name": "east", "metres": 7}]}')
    assert main(["review", str(bundle), "--format", "tide-table"]) == 1
    assert "High water at east is 7.0 m, and its quay has 5.0 m" in capsys.readouterr().out
