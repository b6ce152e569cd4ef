"""`pratique crd-diff`: one verdict of each CRD, by itself and by the objects that are stored (`--objects`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

import provisioner.review
from provisioner.cli import inputs, main
from tests.support.provisioner.cases import FOLDER
from tests.support.provisioner.cases import FOLDER as CASES

CRD_SCHEMA = json.loads((Path(provisioner.review.__file__).parent / "crd-diff.schema.json").read_text())


def crd_diff(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["crd-diff", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def files(name: str) -> tuple[str, str]:
    return str(CASES / name / "old" / "all.yaml"), str(CASES / name / "new" / "all.yaml")


def test_crd_diff_says_one_verdict_per_crd(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = crd_diff(capsys, *files("crd-field-removed"), "-o", "json")
    (found,) = json.loads(out)
    assert status == 1
    assert (found["crd"], found["verdict"]) == ("orders.shop.example.com", "breaking")
    keys = {"rule", "severity", "certainty", "verdicts", "version", "path", "message", "evidence", "fingerprint"}
    assert [set(one) for one in found["findings"]] == [keys]


def test_crd_diff_of_the_same_file_is_safe(capsys: pytest.CaptureFixture[str]) -> None:
    old, _ = files("crd-field-removed")
    status, out, _ = crd_diff(capsys, old, old)
    assert status == 0
    assert out == "○ safe  orders.shop.example.com\n"


def test_crd_diff_tells_several_crds_apart_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    old, new = (Path(one).read_text() for one in files("crd-version-dropped"))
    other = old.replace("orders.shop", "others.shop").replace("plural: orders", "plural: others")
    (tmp_path / "old.yaml").write_text(f"{other}---\n{old}")
    (tmp_path / "new.yaml").write_text(f"{new}---\n{other}")
    _, out, _ = crd_diff(capsys, str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml"), "-o", "json")
    assert [(one["crd"], one["verdict"]) for one in json.loads(out)] == [
        ("orders.shop.example.com", "breaking"),
        ("others.shop.example.com", "safe"),
    ]


def test_crd_diff_says_what_a_crd_that_goes_takes_with_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    old, _ = files("crd-field-removed")
    other = Path(old).read_text().replace("orders.shop", "others.shop")
    (tmp_path / "new.yaml").write_text(other)
    _, out, _ = crd_diff(capsys, old, str(tmp_path / "new.yaml"), "-o", "json")
    gone = next(one for one in json.loads(out) if one["crd"] == "orders.shop.example.com")
    assert [one["rule"] for one in gone["findings"]] == ["CRD-08"]


@pytest.mark.parametrize("name", ["crd-field-removed", "crd-version-dropped"])
def test_the_json_of_crd_diff_is_as_published(capsys: pytest.CaptureFixture[str], name: str) -> None:
    _, out, _ = crd_diff(capsys, *files(name), "-o", "json")
    jsonschema.validate(json.loads(out), CRD_SCHEMA)


@pytest.mark.parametrize(
    ("spec", "verdict", "rules"),
    [
        pytest.param({"size": 1}, "dangerous", {"SCH-01", "LIV-01", "LIV-06", "LIV-07"}, id="clean"),
        pytest.param(
            {"size": 1, "colour": "red"}, "breaking", {"SCH-01", "LIV-01", "LIV-02", "LIV-06", "LIV-07"}, id="in use"
        ),
    ],
)
def test_crd_diff_is_settled_by_the_stored_objects(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spec: dict[str, object], verdict: str, rules: set[str]
) -> None:
    stored = {"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "one"}, "spec": spec}
    (tmp_path / "objects.yaml").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [stored]}))
    words = (*files("crd-field-removed"), "--objects", str(tmp_path / "objects.yaml"), "-o", "json")
    status, out, _ = crd_diff(capsys, *words)
    (found,) = json.loads(out)
    jsonschema.validate([found], CRD_SCHEMA)
    assert (status, found["verdict"], {one["rule"] for one in found["findings"]}) == (1, verdict, rules)


QUESTIONS = {"api", "stored", "writers", "readers", "rollback"}


def stored(folder: Path, *specs: dict[str, object], **more: object) -> tuple[str, str]:
    """Orders of these specs in a List, as `kubectl get -o json` writes them."""
    names = {"apiVersion": "shop.example.com/v1", "kind": "Order"}
    found = [{**names, "metadata": {"name": f"o{at}"}, "spec": spec} for at, spec in enumerate(specs)]
    (folder / "objects.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": found, **more}))
    return "--objects", str(folder / "objects.json")


def tightened(folder: Path) -> tuple[str, str]:
    """Files with a CRD whose spec.size, and one whose spec.size up to 5, is accepted."""
    old = Path(files("crd-field-removed")[1]).read_text()
    new = old.replace("size: {type: integer}", "size: {type: integer, maximum: 5}")
    assert new != old
    (folder / "a.yaml").write_text(old)
    (folder / "b.yaml").write_text(new)
    return str(folder / "a.yaml"), str(folder / "b.yaml")


@pytest.mark.parametrize(
    ("rule", "spec", "verdicts"),
    [
        pytest.param("LIV-01", {"size": 9}, {"stored": "breaking", "writers": "breaking"}, id="refused"),
        pytest.param("LIV-01", {"size": 1}, {}, id="valid"),
        pytest.param("LIV-06", {"size": 1}, {}, id="the way back is open"),
        pytest.param("LIV-07", {"size": 1}, {}, id="all were checked"),
    ],
)
def test_what_objects_tell_has_all_five_verdicts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, rule: str, spec: dict[str, object], verdicts: dict[str, str]
) -> None:
    _, out, _ = crd_diff(capsys, *tightened(tmp_path), *stored(tmp_path, spec), "-o", "json")
    (found,) = json.loads(out)
    jsonschema.validate([found], CRD_SCHEMA)
    assert [one["verdicts"] for one in found["findings"] if one["rule"] == rule] == [
        dict.fromkeys(QUESTIONS, "safe") | verdicts
    ]


def test_going_back_is_breaking_where_the_server_would_refuse_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    old = Path(files("crd-field-removed")[1]).read_text()
    assert old.count("name: v1") == 1
    (tmp_path / "a.yaml").write_text(old)
    (tmp_path / "b.yaml").write_text(old.replace("name: v1", "name: v2"))
    words = (str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"))
    _, out, _ = crd_diff(capsys, *words, *stored(tmp_path, {"size": 1}), "-o", "json")
    (back,) = [one for one in json.loads(out)[0]["findings"] if one["rule"] == "LIV-06"]
    assert (back["severity"], back["verdicts"]["rollback"]) == ("safe", "breaking")


def test_the_published_schema_misses_a_verdict_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = crd_diff(capsys, *files("crd-field-removed"), "-o", "json")
    for verdicts in ({}, {"api": "safe"}):
        found = json.loads(out)
        found[0]["findings"][0]["verdicts"] = verdicts
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(found, CRD_SCHEMA)


@pytest.mark.parametrize(
    ("sizes", "verdict", "answers"),
    [
        pytest.param(None, "breaking", ("breaking", "breaking"), id="nobody looked"),
        pytest.param([], "dangerous", ("safe", "dangerous"), id="none is stored"),
        pytest.param([1, 5], "dangerous", ("safe", "dangerous"), id="all are valid"),
        pytest.param([1, 6], "breaking", ("breaking", "breaking"), id="one is not"),
    ],
)
def test_objects_that_are_all_valid_leave_the_writers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, sizes: list[int] | None, verdict: str, answers: tuple[str, str]
) -> None:
    objects = () if sizes is None else stored(tmp_path, *({"size": one} for one in sizes))
    _, out, _ = crd_diff(capsys, *tightened(tmp_path), *objects, "-o", "json")
    (found,) = json.loads(out)
    (bound,) = [one["verdicts"] for one in found["findings"] if one["rule"] == "SCH-25"]
    assert (found["verdict"], (bound["stored"], bound["writers"])) == (verdict, answers)


OTHER = "kind: Other\napiVersion: other.example.com/v1\nmetadata: {name: one}\n"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        pytest.param("", "breaking", id="an empty file"),
        pytest.param(OTHER, "breaking", id="another kind"),
        pytest.param("{kind: OtherList, apiVersion: other.example.com/v1, items: []}", "breaking", id="a list of it"),
        pytest.param("{kind: OrderList, apiVersion: shop.example.com/v1, items: []}", "dangerous", id="an empty list"),
        pytest.param(f"{OTHER}---\nkind: List\napiVersion: v1\nitems: []\n", "dangerous", id="as kubectl says none"),
    ],
)
def test_a_file_that_says_nothing_of_a_kind_settles_nothing_of_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, verdict: str
) -> None:
    (tmp_path / "objects.yaml").write_text(text)
    words = (*tightened(tmp_path), "--objects", str(tmp_path / "objects.yaml"), "-o", "json")
    _, out, _ = crd_diff(capsys, *words)
    (found,) = json.loads(out)
    jsonschema.validate([found], CRD_SCHEMA)
    (quality,) = [one["message"] for one in found["findings"] if one["rule"] == "LIV-07"]
    assert (found["verdict"], "settle nothing" in quality) == (verdict, verdict == "breaking")


@pytest.mark.parametrize(
    ("specs", "verdict", "words"),
    [
        pytest.param([{"size": 1}, {"size": 2}], "breaking", "2 Order objects", id="some are stored"),
        pytest.param([], "dangerous", "none is stored", id="none is stored"),
    ],
)
def test_a_crd_that_goes_counts_what_it_takes_along(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, specs: list[dict[str, object]], verdict: str, words: str
) -> None:
    old, _ = files("crd-field-removed")
    (tmp_path / "new.yaml").write_text(Path(old).read_text().replace("orders.shop", "others.shop"))
    _, out, _ = crd_diff(capsys, old, str(tmp_path / "new.yaml"), *stored(tmp_path, *specs), "-o", "json")
    found = next(one for one in json.loads(out) if one["crd"] == "orders.shop.example.com")
    jsonschema.validate([found], CRD_SCHEMA)
    assert found["verdict"] == verdict
    assert words in found["findings"][0]["message"]


def test_crd_diff_says_which_objects_are_of_no_crd(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    stored = {"apiVersion": "other.example.com/v1", "kind": "Or\x1bder", "metadata": {"name": "one"}, "spec": {}}
    (tmp_path / "objects.yaml").write_text(json.dumps(stored))
    status, _, err = crd_diff(capsys, *files("crd-field-removed"), "--objects", str(tmp_path / "objects.yaml"))
    assert status == 1
    assert "1 Or" in err
    assert "der.other.example.com passed over" in err
    assert "\x1b" not in err


def test_crd_diff_of_what_holds_no_crd_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = crd_diff(capsys, *files("image-latest"))
    assert (status, out) == (2, "")
    assert "CustomResourceDefinition" in err


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
