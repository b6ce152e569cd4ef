"""`convert` as a program: files in, files out, and an exit status; a real cluster's schema takes what comes out."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner.cli.plugin import main
from provisioner.cluster.client.api import ClusterClient
from tests.provisioner.cli.plugin.old_objects import IMAGE, of_proposal, of_v1alpha1
from tests.provisioner.cli.plugin.scene import wish
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig

WHERE = ("--install-namespace", "shop", "--service-account", "installer")


def file_of(folder: Path, *documents: Any) -> str:
    path = folder / "old.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def test_what_comes_out_is_taken_by_the_schema_of_ours(
    own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git = {"type": "git", "git": {"repository": "https://git.example/a", "ref": {"branch": "main"}}}
    path = file_of(tmp_path, of_v1alpha1(IMAGE), {**of_v1alpha1(git), "metadata": {"name": "other"}})
    assert main(["convert", path, *WHERE]) == 0
    wish(own_sandbox, tmp_path / "k")
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path / "k").read_text(), trusted=True)
    made = [*yaml.safe_load_all(capsys.readouterr().out)]
    assert [one["metadata"]["name"] for one in made] == ["web", "other"]
    for one in made:
        assert api.apply(one, field_manager="test", force=True).object["spec"]["installNamespace"] == "shop"


def test_what_has_to_be_completed_has_an_exit_status_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = {"git": {"repository": "https://git.example/a", "ref": "abc1234", "depth": 1}}
    assert main(["convert", file_of(tmp_path, of_proposal(source)), *WHERE, "-o", "json"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["spec"]["sources"][0]["git"]["ref"] == {"commit": "abc1234"}
    assert shown.err.splitlines() == [
        "foo: not carried over: spec.sources[0].git.depth: Pratique has no such field",
        "foo: to complete: spec.sources[0].git.ref: abc1234 is no whole commit; write all 40 characters (git rev-parse)",
    ]


def test_one_object_that_is_not_known_keeps_everything_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path, of_v1alpha1(IMAGE), {"apiVersion": "v1", "kind": "Pod"})
    assert main(["convert", path, *WHERE]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{path}, object 2: Pod of v1: expected core.rukpak.io/v1alpha1" in shown.err


def test_lists_and_standard_input_are_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [of_v1alpha1(IMAGE)]})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["convert", "-", *WHERE]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["metadata"]["name"] == "web"


@pytest.mark.parametrize(
    ("text", "words"), [("", "no object in it"), ("a: [", "old.yaml"), ("a: 1\na: 2\n", "old.yaml")]
)
def test_a_file_that_holds_nothing_of_use_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / "old.yaml").write_text(text)
    assert main(["convert", str(tmp_path / "old.yaml"), *WHERE]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{kind: List, items: 5}", "old.yaml: items of the List: expected a list"),
        ("{kind: List, items: [5]}", "object 1: expected an object"),
        ("{apiVersion: [a], kind: {b: c}}", "expected core.rukpak.io/v1alpha1"),
    ],
)
def test_a_file_of_other_shapes_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / "old.yaml").write_text(text)
    assert main(["convert", str(tmp_path / "old.yaml"), *WHERE]) == 2
    shown = capsys.readouterr()
    assert (words in shown.err, shown.out) == (True, "")
