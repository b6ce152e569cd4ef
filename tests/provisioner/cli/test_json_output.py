"""Reports as JSON, which people read line by line, and the list of plug-ins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import provisioner.review
from provisioner.cli import main
from provisioner.cli.json_output import as_json
from provisioner.plugins import PluginGroup
from tests.support.plugins import PluginPath
from tests.support.provisioner.large_crds import crd


@pytest.mark.parametrize(
    "record", [{}, [], {"b": [], "a": {}}, {"a": {"b": {"c": [1, {"d": "ü\n"}]}}, "e": None}, [{"a": 1}, [2]], "a"]
)
def test_what_is_written_is_read_again(record: Any) -> None:
    text = as_json(record)
    assert json.loads(text) == record
    assert text.endswith("\n")


def test_each_entry_of_a_list_has_a_line() -> None:
    record = {"plan": {"actions": [{"b": [1, 2], "a": 1}], "digest": "x"}, "findings": []}
    assert as_json(record).splitlines() == [
        "{",
        '  "findings": [],',
        '  "plan": {',
        '    "actions": [',
        '      {"a": 1, "b": [1, 2]}',
        "    ],",
        '    "digest": "x"',
        "  }",
        "}",
    ]


def test_a_deep_schema_is_no_larger_than_it_is() -> None:
    action = {"before": crd("ship", width=3), "after": crd("ship", width=3)}
    record = {"plan": {"actions": [action]}}
    assert len(as_json(record)) < len(json.dumps(record)) + 100


SCHEMAS = Path(provisioner.review.__file__).parent
COMMANDS = {
    "review": ("report.schema.json", ()),
    "rbac": ("permissions.schema.json", ()),
    "preflight": ("preflight.schema.json", ("--service-account", "shop/robot")),
    "crd-diff": ("crd-diff.schema.json", ()),
}


def words_of(command: str, file: str) -> list[str]:
    files = [file, file] if command == "crd-diff" else [file]
    return [command, *files, *COMMANDS[command][1]]


def asked(capsys: pytest.CaptureFixture[str], command: str, file: str) -> tuple[int, Any, str]:
    status = main([*words_of(command, file), "-o", "json"])
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    schema = json.loads((SCHEMAS / COMMANDS[command][0]).read_text())
    jsonschema.Draft202012Validator(schema).validate(found)
    return status, found, captured.err


def verdict(found: Any) -> str:
    if isinstance(found, list):
        (one,) = found
        return str(one["verdict"])
    return str(found.get("verdict") or found["worst"])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(None, "nowhere", id="no such file"),
        pytest.param(b"a: [", "bad.yaml", id="broken YAML"),
        pytest.param(b"\xff\xfe\x00", "bad.yaml", id="no text"),
    ],
)
def test_what_could_not_be_read_is_unknown_in_the_published_shape(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "nowhere"
    if content is not None:
        file = tmp_path / "bad.yaml"
        file.write_bytes(content)
    status, found, err = asked(capsys, command, str(file))
    assert (status, verdict(found)) == (2, "unknown")
    assert reason in err
    assert reason in json.dumps(found)
    assert ('"code": "invalid-manifest"' in json.dumps(found)) == (content is not None and command != "rbac")


@pytest.mark.parametrize("command", COMMANDS)
def test_text_says_it_on_standard_error_only(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main(words_of(command, "nowhere")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "nowhere" in captured.err


def test_of_what_was_not_compared_every_verdict_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    _, (one,), _ = asked(capsys, "crd-diff", "nowhere")
    (finding,) = one["findings"]
    assert (one["crd"], finding["rule"]) == ("", "CRD-00")
    assert set(finding["verdicts"].values()) == {"unknown"}


def test_a_preflight_names_the_account_as_far_as_it_was_understood(capsys: pytest.CaptureFixture[str]) -> None:
    _, found, _ = asked(capsys, "preflight", "nowhere")
    assert found["account"] == {"namespace": "shop", "name": "robot"}
    main(["preflight", ".", "--service-account", "robot", "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert found["account"] == {"namespace": "", "name": ""}
    assert "NAMESPACE/NAME" in found["findings"][0]["message"]


def test_nothing_is_added_to_an_answer_that_nobody_reads(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "all.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    written: list[str] = []

    def write(text: str) -> int:
        written.append(text)
        raise BrokenPipeError

    monkeypatch.setattr("sys.stdout.write", write)
    assert main(["rbac", str(tmp_path), "-o", "json"]) == 2
    assert len(written) == 1
    assert "standard output is gone" in capsys.readouterr().err


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
