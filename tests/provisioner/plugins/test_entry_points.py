"""Which plug-ins are found, and which names they may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from provisioner.plugins import MAX_NAME, Plugin, PluginGroup, installed
from tests.support.plugins import PluginPath

FORMATS, SOURCES, CHECKS = PluginGroup.FORMATS, PluginGroup.SOURCES, PluginGroup.CHECKS


def names(group: PluginGroup, *ours: str) -> dict[str, str]:
    return {one.name: one.problem for one in installed(group, ours)}


def test_plugins_are_found_by_their_entry_points_without_being_loaded(plugin_path: PluginPath) -> None:
    points = {FORMATS: {"tarot": "cards:read"}, SOURCES: {"deck": "cards:deal"}}
    plugin_path.add("cards", points, "raise SystemExit('nobody loads me')", version="2.1")
    assert installed(FORMATS, ()) == [Plugin(FORMATS, "tarot", "cards 2.1", "cards:read")]
    assert names(SOURCES) == {"deck": ""}
    assert names(CHECKS) == {}


def test_what_pip_installs_is_found(tides: Path) -> None:
    found = {str(one) for group in PluginGroup for one in installed(group, ())}
    assert found == {
        "the format tide-table of the package pratique-tides 1.0.0",
        "the source tide-gauge of the package pratique-tides 1.0.0",
        "the check high-water of the package pratique-tides 1.0.0",
    }


def test_a_name_of_ours_disables_the_plugin_and_not_ours(plugin_path: PluginPath) -> None:
    plugin_path.add("cards", {FORMATS: {"plain": "cards:read", "tarot": "cards:read"}}, "")
    found = names(FORMATS, "plain", "helm")
    assert "Pratique has a format of this name itself" in found["plain"]
    assert found["tarot"] == ""


def test_two_plugins_of_one_name_are_both_disabled_and_both_named(plugin_path: PluginPath) -> None:
    plugin_path.add("cards", {FORMATS: {"tarot": "cards:read", "rummy": "cards:read"}}, "")
    plugin_path.add("fortunes", {FORMATS: {"tarot": "fortunes:tell"}}, "", version="3")
    found = installed(FORMATS, ())
    assert [(one.name, bool(one.problem)) for one in found] == [("rummy", False), ("tarot", True), ("tarot", True)]
    assert "cards 1, fortunes 3 bring a format of this name" in found[1].problem


def test_the_same_name_in_two_groups_is_no_conflict(plugin_path: PluginPath) -> None:
    plugin_path.add("cards", {FORMATS: {"tarot": "cards:read"}, CHECKS: {"tarot": "cards:CHECK"}}, "")
    assert (names(FORMATS), names(CHECKS)) == ({"tarot": ""}, {"tarot": ""})


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a b", id="a space"),
        pytest.param("my_format", id="an underscore"),
        pytest.param("-x", id="a hyphen first"),
        pytest.param("1x", id="a digit first"),
        pytest.param("ä", id="a letter that is not ASCII"),
        pytest.param("x" * (MAX_NAME + 1), id="too long"),
        pytest.param("x" * 5000, id="much too long"),
    ],
)
def test_a_name_that_no_spec_can_hold_disables_the_plugin(name: str, plugin_path: PluginPath) -> None:
    plugin_path.add("cards", {SOURCES: {name: "cards:deal"}}, "")
    (found,) = installed(SOURCES, ())
    assert "no BundleDeployment can name it" in found.problem
    assert len(found.name) < 200


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[pratique.checks]\nno equals sign\n", id="a line without a target"),
        pytest.param("[pratique.checks\nx = y:z\n", id="a heading that does not end"),
        pytest.param("x = y:z\n[pratique.checks]\n", id="a line before any heading"),
    ],
)
def test_entry_points_that_cannot_be_read_hide_no_other_package(text: str, plugin_path: PluginPath) -> None:
    plugin_path.add_written("damaged", text, "")
    plugin_path.add("cards", {CHECKS: {"tarot": "cards:CHECK"}}, "")
    assert names(CHECKS)["tarot"] == ""


def test_a_damaged_package_is_named_where_it_would_have_brought_something(plugin_path: PluginPath) -> None:
    plugin_path.add_written("damaged", "[pratique.checks]\nno equals sign\n", "")
    (found,) = installed(CHECKS, ())
    assert found.package == "damaged 1"
    assert "entry_points.txt cannot be read" in found.problem
    assert installed(FORMATS, ()) == []


def test_entry_points_that_are_no_text_count_for_every_group(plugin_path: PluginPath) -> None:
    plugin_path.add_written("damaged", "", "")
    (plugin_path.folder / "damaged-1.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe[pratique")
    assert [installed(group, ())[0].package for group in PluginGroup] == ["damaged 1"] * 3


def test_a_package_without_a_name_is_found_all_the_same(plugin_path: PluginPath) -> None:
    plugin_path.add("cards", {FORMATS: {"tarot": "cards:read"}}, "")
    (plugin_path.folder / "cards-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\n")
    assert [one.package for one in installed(FORMATS, ())] == ["without a name (no version)"]


def test_of_two_copies_of_a_package_the_first_on_the_path_counts(
    plugin_path: PluginPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin_path.add("cards", {FORMATS: {"tarot": "cards:read"}}, "")
    newer = PluginPath(tmp_path / "newer")
    newer.folder.mkdir()
    newer.add("Cards", {FORMATS: {"tarot": "cards:read"}}, "", version="2")
    monkeypatch.syspath_prepend(str(newer.folder))
    assert [one.package for one in installed(FORMATS, ())] == ["Cards 2"]
