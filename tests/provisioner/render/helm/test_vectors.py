"""Small charts that others brought, a folder each under vectors/formats, and what each gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from provisioner.errors import InvalidManifest
from provisioner.values import Content, RepeatEffect
from tests.provisioner.render.helm.charts import rendered
from tests.support.folders import VECTORS


def content_of(name: str, *, kept: Mapping[str, str] | None = None, **replaced: tuple[bytes, bytes]) -> Content:
    """The chart of a folder, with the text of some of its templates replaced, and what its deployment kept."""
    folder = VECTORS / "formats" / name
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for template, (old, new) in replaced.items():
        path = f"templates/{template}.yaml"
        assert old in files[path]
        files[path] = files[path].replace(old, new)
    return rendered(files, kept=kept)


@pytest.fixture(autouse=True)
def vectors() -> Path:
    if not VECTORS.is_dir():
        pytest.skip("the vectors are not there")
    return VECTORS


def test_a_key_that_is_there_twice_is_noted_or_refused_by_both_places() -> None:
    same = content_of("01-dupkey-chart", a=(b"name: b", b"name: a"))
    assert [(one.path, one.effect) for one in same.repeated] == [("metadata.name", RepeatEffect.EQUAL)]
    with pytest.raises(InvalidManifest, match=r"templates/a\.yaml:5: .* on line 4 with another value"):
        content_of("01-dupkey-chart")


def test_what_a_chart_makes_up_is_the_same_once_it_is_kept() -> None:
    first = content_of("03-random", kept={})
    (made,) = first.made_up.values
    kept = {made.place.key: made.value}
    again = [content_of("03-random", kept=kept) for _ in range(2)]
    assert {content.digest for content in again} == {first.digest}
    assert content_of("03-random", kept={}).digest != first.digest


def test_a_hook_of_no_moment_is_not_installed() -> None:
    content = content_of("05-empty-hook/new")
    assert [manifest.ref.name for manifest in content.manifests] == ["a"]
    assert {hook.ref.name for hook in content.hooks} == {"h0", "h1", "h6"}


def test_null_for_the_default_of_a_subchart_is_what_helm_4_2_makes_of_it() -> None:
    (sub,) = [one.body["data"] for one in content_of("04-null-subchart-default").manifests if one.ref.name == "sub-sub"]
    assert json.loads(sub["d"]) == {"a": 1, "b": 2}
