"""`pratique catalog`: lists packages, shows channels and edges, and says what may follow what is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provisioner.cli import main
from tests.support.provisioner.catalogs import bundle, channel, package


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    folder = tmp_path / "configs"
    folder.mkdir()
    documents = [
        package(defaultChannel="stable", description="Berths for \u202eships"),
        bundle("1.0.0"),
        bundle("1.1.0"),
        bundle("1.2.0"),
        channel(
            "stable",
            {"name": "harbour.v1.0.0"},
            {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.0"},
            {"name": "harbour.v1.2.0", "replaces": "harbour.v1.1.0"},
        ),
    ]
    (folder / "catalog.json").write_text("".join(map(json.dumps, documents)))
    return str(folder)


def test_packages_are_listed(catalog: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", catalog]) == 0
    assert capsys.readouterr().out == "harbour  newest 1.2.0, 1 channel, 3 bundles\n"


def test_a_package_shows_its_edges_and_what_may_follow(catalog: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", catalog, "harbour", "--from", "1.0.0"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "harbour",
        r"  Berths for \u202eships",
        "",
        "channel stable (default), head harbour.v1.2.0",
        "  harbour.v1.2.0; replaces harbour.v1.1.0",
        "  harbour.v1.1.0; replaces harbour.v1.0.0",
        "  harbour.v1.0.0",
        "",
        "harbour.v1.1.0 may be taken, from channel stable.",
        "  image example.com/harbour:1.1.0",
        "  to the head of channel stable: harbour.v1.1.0 → harbour.v1.2.0",
    ]


def test_where_nothing_may_follow_the_status_says_so(catalog: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", catalog, "harbour", "--from", "1.0.0", "--version", "1.2.0", "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["choice"]["code"], found["routes"]) == ("no-bundle", {"stable": ["harbour.v1.1.0", "harbour.v1.2.0"]})
    assert main(["catalog", catalog, "harbour", "--from", "1.0.0", "--version", "1.2.0", "--any-edge"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["port"], "port: no such package; the catalog has harbour"),
        (["harbour", "--from", "3.0.0"], "0 bundles of harbour have this name or version; it has harbour.v1.2.0"),
        (["harbour", "--version", "new"], "'new' is no constraint"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(
    catalog: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", catalog, *words]) == 2
    assert message in capsys.readouterr().err


def test_a_place_that_is_missing_or_empty_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", str(tmp_path / "gone")]) == 2
    assert main(["catalog", str(tmp_path)]) == 2
    assert main(["catalog", str(tmp_path), "--channel", "stable"]) == 2
    said = capsys.readouterr().err
    assert "no such file or folder" in said
    assert "0 files with .yaml, .yml, .json" in said
    assert "need a PACKAGE" in said


def test_problems_are_told_and_change_the_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("schema: olm.package\nname: harbour\ndefaultChannel: gone\n")
    said = "package harbour: its default channel gone does not exist"
    assert main(["catalog", str(file)]) == 2
    assert f"1 problem in the catalog:\n  {said}" in capsys.readouterr().out
    assert main(["catalog", str(file), "harbour"]) == 2
    assert f"1 problem in the catalog:\n  {said}" in capsys.readouterr().out
    assert main(["catalog", str(file), "harbour", "--channel", "stable", "-o", "json"]) == 2
    record = json.loads(capsys.readouterr().out)
    assert [f"{one['where']}: {one['message']}" for one in record["problems"]] == [said]
    assert record["choice"]["bundle"] is None
