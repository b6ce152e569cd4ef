"""`--objects FILE|DIR`: what is stored, read whole or refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from provisioner.cli import inputs, main
from tests.support.provisioner.cases import FOLDER

CASE = FOLDER / "crd-limit-that-depends-on-objects"
LONG = "x" * 300


def order(name: str, note: str) -> str:
    return (
        "---\napiVersion: shop.example.com/v1\nkind: Order\n"
        f"metadata: {{name: {name}, namespace: shop}}\nspec: {{note: {note}}}\n"
    )


def review(capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    status = main(["review", str(CASE / "new"), "--old", str(CASE / "old"), *more])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def certainty(out: str) -> tuple[str, str]:
    (found,) = [one for one in json.loads(out)["findings"] if one["rule"] == "SCH-25"]
    return found["severity"], found["certainty"]


def test_without_objects_the_finding_depends_on_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert certainty(review(capsys, "-o", "json")[1]) == ("breaking", "depends-on-objects")


@pytest.mark.parametrize(
    ("note", "found"), [("short", ("dangerous", "proved")), (LONG, ("breaking", "proved"))], ids=["short", "long"]
)
@pytest.mark.parametrize("is_folder", [False, True], ids=["a file", "a folder"])
def test_objects_settle_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, note: str, found: tuple[str, str], is_folder: bool
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one.yaml").write_text(order("one", note))
    (tmp_path / "two.json").write_text('{"kind": "List", "apiVersion": "v1", "items": []}')
    (tmp_path / "notes.txt").write_text("no object")
    place = tmp_path if is_folder else tmp_path / "deep" / "one.yaml"
    assert certainty(review(capsys, "--objects", str(place), "-o", "json")[1]) == found


def test_objects_of_no_crd_here_are_said_to_be_passed_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "o.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    _, out, err = review(capsys, "--objects", str(tmp_path / "o.yaml"), "-o", "json")
    assert "1 ConfigMap passed over" in err
    assert certainty(out) == ("breaking", "depends-on-objects")
    assert "they settle nothing here" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a: [", "o.yaml", id="no YAML"),
        pytest.param("- a\n- b\n", "without apiVersion and kind", id="a list of words"),
        pytest.param("kind: Order\n", "without apiVersion and kind", id="no version"),
        pytest.param("apiVersion: shop.example.com/v1\nkind: Order\n", "a Order has no metadata.name", id="no name"),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems: [5]\n", "without apiVersion and kind", id="a number in a list"
        ),
        pytest.param("apiVersion: v1\nkind: List\nitems: 5\n", "without apiVersion and kind", id="a list of a number"),
    ],
)
def test_what_is_no_object_is_refused_with_its_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "o.yaml").write_text(text)
    status, _, err = review(capsys, "--objects", str(tmp_path / "o.yaml"))
    assert status == 2
    assert "o.yaml" in err
    assert words in err


def test_a_file_that_is_no_text_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "o.yaml").write_bytes(b"\xff\xfe\x00")
    assert (review(capsys, "--objects", str(tmp_path / "o.yaml"))[0]) == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param(lambda at: ("--objects", str(at / "none")), "no such file or folder", id="nothing there"),
        pytest.param(lambda at: ("--objects", str(at)), "no file in this folder ends with", id="an empty folder"),
        pytest.param(lambda at: ("--objects", str(at), "--kubeconfig", "k"), "goes without --kubeconfig", id="both"),
    ],
)
def test_a_place_without_objects_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, more: Callable[[Path], tuple[str, ...]], words: str
) -> None:
    status, _, err = review(capsys, *more(tmp_path))
    assert (status, words in err) == (2, True)


def test_objects_without_an_old_bundle_are_wrong_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["review", str(CASE / "new"), "--objects", str(tmp_path)]) == 2
    assert "--objects goes with --old" in capsys.readouterr().err


def test_what_is_read_is_bounded_in_bytes_files_and_objects(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.yaml").write_text(order(f"o{number}", "x"))
    monkeypatch.setattr(inputs, "MAX_FILES", 2)
    assert "more than 2 files" in review(capsys, "--objects", str(tmp_path))[2]
    monkeypatch.setattr(inputs, "MAX_FILES", 5)
    monkeypatch.setattr(inputs, "MAX_BYTES", 250)
    status, _, err = review(capsys, "--objects", str(tmp_path))
    assert (status, "of objects in all" in err) == (2, True)
