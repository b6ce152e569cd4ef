"""From sources to content: pinned, joined, bounded, and the same every time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from provisioner import pipeline
from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch
from provisioner.source import LocalSource
from provisioner.unpack import Limits
from provisioner.values import SourceKind, Tree
from tests.provisioner.pipeline.staging import bundle, prepare


def test_a_folder_becomes_content_with_its_pin(tmp_path: Path) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))))
    assert [str(one.ref) for one in content.manifests] == ["ConfigMap shop/one"]
    assert [pin.kind for pin in content.pins] == [SourceKind.LOCAL]


def test_the_same_sources_give_the_same_digest(tmp_path: Path) -> None:
    source = LocalSource(str(bundle(tmp_path, one="x", two="y")))
    assert prepare(source).digest == prepare(source).digest


def test_several_sources_are_joined_at_their_destinations(tmp_path: Path) -> None:
    first = LocalSource(str(bundle(tmp_path / "a", one="x")))
    second = LocalSource(str(bundle(tmp_path / "b", two="y")), destination="extra")
    content = prepare(first, second, subfolders=True)
    assert sorted(one.ref.name for one in content.manifests) == ["one", "two"]
    assert [pin.destination for pin in content.pins] == ["", "extra"]


def test_a_source_that_is_no_longer_what_was_pinned_is_refused(tmp_path: Path) -> None:
    source = LocalSource(str(bundle(tmp_path, one="x")))
    pins = prepare(source).pins
    bundle(tmp_path, one="changed")
    with pytest.raises(DigestMismatch, match="pinned was"):
        prepare(source, pins=pins)


def test_a_source_that_still_is_what_was_pinned_is_taken(tmp_path: Path) -> None:
    source = LocalSource(str(bundle(tmp_path, one="x")))
    first = prepare(source)
    assert prepare(source, pins=first.pins) == first


def test_each_source_needs_its_pin(tmp_path: Path) -> None:
    source = LocalSource(str(bundle(tmp_path, one="x")))
    with pytest.raises(BadSource, match="one for each"):
        prepare(source, pins=(*prepare(source).pins, *prepare(source).pins))


def test_no_source_is_no_bundle() -> None:
    with pytest.raises(BadSource):
        prepare()


@pytest.mark.parametrize(
    ("trees", "words"),
    [
        pytest.param([("", {"a": b""}), ("", {"b": b""})], "two sources", id="the same destination"),
        pytest.param([("x", {"a": b""}), ("/x/", {"b": b""})], "two sources", id="the same, written differently"),
        pytest.param([("", {"x/a": b""}), ("x", {"b": b""})], "destination of another", id="a file inside another's"),
        pytest.param([("", {"x": b""}), ("x", {"b": b""})], "destination of another", id="a file where a folder goes"),
        pytest.param([("x", {"y/a": b""}), ("x/y", {"b": b""})], "destination of another", id="nested destinations"),
        pytest.param([("../x", {"a": b""})], "plain folder", id="climbing"),
        pytest.param([("x/../../y", {"a": b""})], "plain folder", id="climbing inside"),
        pytest.param([("x//y", {"a": b""})], "plain folder", id="empty part"),
        pytest.param([("x\\y", {"a": b""})], "plain folder", id="backslash"),
    ],
)
def test_destinations_must_not_overlap(trees: list[tuple[str, dict[str, bytes]]], words: str) -> None:
    with pytest.raises(BadSource, match=words):
        pipeline.join([(folder, Tree(files)) for folder, files in trees], Limits())


def test_destinations_beside_each_other_are_fine() -> None:
    trees = [("", {"a": b"1"}), ("x", {"a": b"2"}), ("xy", {"a": b"3"}), ("x/y", {"a": b"4"})]
    joined = pipeline.join([(folder, Tree(files)) for folder, files in trees], Limits())
    assert joined.files == {"a": b"1", "x/a": b"2", "xy/a": b"3", "x/y/a": b"4"}


def files(folder: Path, **named: str) -> LocalSource:
    """A source of files, each with a ConfigMap of its name; `__` in a name is a folder."""
    for path, name in named.items():
        file = folder / f"{path.replace('__', '/')}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
    return LocalSource(str(folder))


@pytest.mark.parametrize(
    ("first", "second", "destination", "words"),
    [
        ({"a": "one"}, {"b": "two"}, "manifests", r"a\.yaml would be left out: sources\[1\] .* brings manifests/"),
        ({"a": "one"}, {"b": "two"}, "manifests/deep", r"a\.yaml would be left out: sources\[1\] .* brings manifests/"),
        ({"manifests__a": "one"}, {"b": "two"}, "extra", r"extra/b\.yaml would be left out: sources\[0\] .* brings"),
        ({"a": "one"}, {"manifests__b": "two", "c": "three"}, "x", ""),
        ({"a": "one"}, {"b": "two"}, ".hidden", r"\.hidden/b\.yaml would be left out: folders whose name begins"),
    ],
    ids=["into manifests", "below manifests", "beside manifests", "in a folder of its own", "behind a dot"],
)
def test_no_source_vanishes_behind_another(
    tmp_path: Path, first: dict[str, str], second: dict[str, str], destination: str, words: str
) -> None:
    sources = (
        files(tmp_path / "first", **first),
        replace(files(tmp_path / "second", **second), destination=destination),
    )
    if not words:
        assert len(prepare(*sources, subfolders=True).manifests) == 3
        return
    with pytest.raises(BadSource, match=words):
        prepare(*sources, subfolders=True)


def test_what_a_source_leaves_out_by_itself_it_may_leave_out_beside_others(tmp_path: Path) -> None:
    """As the image of an operator does: its manifests in manifests/, its annotations beside them."""
    image = files(tmp_path / "image", manifests__a="one", metadata__annotations="two")
    more = replace(files(tmp_path / "more", b="three"), destination="manifests/more")
    content = prepare(image, more, subfolders=True)
    assert sorted(one.ref.name for one in content.manifests) == ["one", "three"]


def test_all_sources_together_stay_below_the_limit() -> None:
    trees = [("", Tree({"a": b"x" * 60})), ("b", Tree({"a": b"x" * 60}))]
    with pytest.raises(BundleTooLarge, match="max_bytes"):
        pipeline.join(trees, Limits(max_bytes=100))
