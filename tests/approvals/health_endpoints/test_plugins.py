"""Broken plug-ins in the notes of `/readyz`: the process that says so never loads them."""

from __future__ import annotations

import json
import os
import sys

import pytest

from approvals.health_endpoints import checks, startup_checks
from provisioner.plugins import PluginGroup
from tests.support.plugins import PluginPath


@pytest.fixture
def path_of_processes(plugin_path: PluginPath, monkeypatch: pytest.MonkeyPatch) -> PluginPath:
    """The same for what is started from here; nothing is known from other tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(plugin_path.folder), os.getcwd()]))
    monkeypatch.setattr(startup_checks, "_notes", {})
    return plugin_path


def test_without_plugins_no_process_is_started_and_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere")
    assert startup_checks.find_broken_plugins() == {}


def test_readyz_names_what_is_broken_and_is_ready_all_the_same(path_of_processes: PluginPath, db: None) -> None:
    points = {PluginGroup.FORMATS: {"tarot": "cards:read", "plain": "cards:read"}}
    path_of_processes.add("cards", points, "import os\nos._exit")
    startup_checks.tell_broken_plugins().join()
    told = json.loads(checks.readyz({}).body)["notes"]["plugins"]
    assert sorted(told) == ["pratique.formats plain of cards 1", "pratique.formats tarot of cards 1"]
    assert "AttributeError" in told["pratique.formats tarot of cards 1"]
    assert "cards" not in sys.modules


def test_a_plugin_that_ends_its_process_ends_none_of_ours(path_of_processes: PluginPath) -> None:
    path_of_processes.add("cards", {PluginGroup.FORMATS: {"tarot": "cards:read"}}, "import os\nos._exit(9)")
    assert "run `pratique plugins`" in startup_checks.find_broken_plugins()["all"]


def test_where_all_is_well_nothing_is_told(path_of_processes: PluginPath) -> None:
    path_of_processes.add("cards", {PluginGroup.FORMATS: {"tarot": "cards:read"}}, "def read(tree, rendering): ...")
    startup_checks.tell_broken_plugins().join()
    assert startup_checks.all_notes() == {}
