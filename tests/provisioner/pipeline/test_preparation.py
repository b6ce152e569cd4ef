"""From sources to content: pinned, joined, bounded, and the same every time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from provisioner import pipeline
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.inventory import MemoryInventory, uids
from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch, InvalidManifest
from provisioner.source import LocalSource
from provisioner.unpack import UnpackLimits
from provisioner.values import Action, Content, HealthState, OutcomeState, Plan, Severity, Tree, UnusedFiles
from tests.provisioner.pipeline.staging import bundle, prepare
from tests.support.patience import scaled


def test_a_folder_becomes_content_with_its_pin(tmp_path: Path) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))))
    assert [str(one.ref) for one in content.manifests] == ["ConfigMap shop/one"]
    assert [pin.kind for pin in content.pins] == ["local"]


def test_the_same_sources_give_the_same_digest(tmp_path: Path) -> None:
    source = LocalSource(str(bundle(tmp_path, one="x", two="y")))
    assert prepare(source).digest == prepare(source).digest


def test_several_sources_are_joined_at_their_destinations(tmp_path: Path) -> None:
    first = LocalSource(str(bundle(tmp_path / "a", one="x")))
    second = LocalSource(str(bundle(tmp_path / "b", two="y")), destination="extra")
    content = prepare(first, second)
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
        pipeline.join([(folder, Tree(files)) for folder, files in trees], UnpackLimits())


def test_destinations_beside_each_other_are_fine() -> None:
    trees = [("", {"a": b"1"}), ("x", {"a": b"2"}), ("xy", {"a": b"3"}), ("x/y", {"a": b"4"})]
    joined = pipeline.join([(folder, Tree(files)) for folder, files in trees], UnpackLimits())
    assert joined.files == {"a": b"1", "x/a": b"2", "xy/a": b"3", "x/y/a": b"4"}


def files(folder: Path, **named: str) -> LocalSource:
    """A source of files, each with a ConfigMap of its name; `__` in a name is a folder."""
    for path, name in named.items():
        file = folder / f"{path.replace('__', '/')}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
    return LocalSource(str(folder))


def names(content: Content) -> list[str]:
    return sorted(one.ref.name for one in content.manifests)


@pytest.mark.parametrize(
    ("first", "second", "destinations"),
    [
        ({"a": "one"}, {"b": "two"}, ("a", "b")),
        ({"a": "one"}, {"b": "two"}, ("foo/bar", "foo/moo")),
        ({"a": "one"}, {"b": "two"}, ("manifests/a", "manifests")),
        ({"a": "one"}, {"b": "two"}, ("", "manifests")),
        ({"a": "one"}, {"b": "two"}, ("", "manifests/deep")),
        ({"manifests__a": "one"}, {"b": "two"}, ("", "extra")),
        ({"manifests__a": "one"}, {"manifests__b": "two"}, ("x", "y")),
        ({"manifests__a": "one"}, {"deep__er__b": "two"}, ("x", "y")),
        ({"a": "one"}, {"b": "two"}, ("", ".hidden")),
    ],
    ids=lambda value: " + ".join(one or "the root" for one in value) if isinstance(value, tuple) else "",
)
def test_the_manifests_of_every_source_count(
    tmp_path: Path, first: dict[str, str], second: dict[str, str], destinations: tuple[str, str]
) -> None:
    made = (files(tmp_path / "first", **first), files(tmp_path / "second", **second))
    sources = [replace(one, destination=folder) for one, folder in zip(made, destinations, strict=True)]
    content = prepare(*sources)
    assert (names(content), content.unused.count) == (["one", "two"], 0)
    assert names(prepare(*reversed(sources))) == ["one", "two"]


def test_one_source_with_a_destination_is_read_as_it_is(tmp_path: Path) -> None:
    assert names(prepare(replace(files(tmp_path, a="one"), destination="extra"))) == ["one"]


def test_a_source_without_manifests_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "README.md").write_text("nothing")
    sources = (files(tmp_path / "first", a="one"), LocalSource(str(tmp_path / "second"), destination="extra"))
    with pytest.raises(InvalidManifest, match=r"no manifests in the source at extra: "):
        prepare(*sources)


def test_several_sources_keep_to_one_folder_each_where_the_config_says_so(tmp_path: Path) -> None:
    sources = (
        replace(files(tmp_path / "first", a="one"), destination="x"),
        replace(files(tmp_path / "second", b="two", deep__c="three"), destination="y"),
    )
    assert names(prepare(*sources)) == ["one", "three", "two"]
    with pytest.raises(InvalidManifest, match=r"^y/deep/c\.yaml: subfolders are not read"):
        prepare(*sources, config={"recursive": False})


def test_the_same_object_in_two_sources_is_refused_naming_both_files(tmp_path: Path) -> None:
    sources = [replace(files(tmp_path / folder, a="one"), destination=folder) for folder in ("x", "y")]
    with pytest.raises(InvalidManifest, match=r"y/a\.yaml:1: ConfigMap one: is in x/a\.yaml already"):
        prepare(*sources)


def test_a_source_that_fails_leaves_nothing_half_made(tmp_path: Path) -> None:
    sources = (files(tmp_path / "first", a="one"), LocalSource(str(tmp_path / "gone"), destination="y"))
    with pytest.raises(BadSource):
        prepare(*sources)


def test_what_a_source_leaves_out_by_itself_is_left_out_beside_others_and_said(tmp_path: Path) -> None:
    """As the image of an operator does: its manifests in manifests/, its annotations beside them."""
    image = files(tmp_path / "image", manifests__a="one", metadata__annotations="two")
    (tmp_path / "image" / "Dockerfile").write_text("FROM scratch")
    more = replace(files(tmp_path / "more", b="three"), destination="manifests/more")
    content = prepare(image, more)
    assert names(content) == ["one", "three"]
    assert content.unused == UnusedFiles(2, 1, ("metadata/annotations.yaml", "Dockerfile"))


def test_all_sources_together_stay_below_the_limit() -> None:
    trees = [("", Tree({"a": b"x" * 60})), ("b", Tree({"a": b"x" * 60}))]
    with pytest.raises(BundleTooLarge, match="max_bytes"):
        pipeline.join(trees, UnpackLimits(max_bytes=100))


def test_promise_1_other_bytes_than_the_reviewed_ones_are_refused_before_anything_is_touched(tmp_path: Path) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))))
    forged = replace(content, manifests=prepare(LocalSource(str(bundle(tmp_path / "b", one="y")))).manifests)
    nobody = ClusterClient.connect(_kubeconfig_to_nowhere(), timeout_seconds=1.0)
    with pytest.raises(DigestMismatch, match="reviewed was"):
        pipeline.deploy(nobody, forged, Plan((), ""), inventory=MemoryInventory())


def _kubeconfig_to_nowhere() -> dict[str, object]:
    return {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
    }


def test_a_bundle_is_looked_at_deployed_observed_and_removed(
    api: ClusterClient, namespace: str, tmp_path: Path
) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, one="x", two="y"))), namespace=namespace)
    inventory = MemoryInventory()
    first = pipeline.look(api, content, previous=None, inventory={})
    assert {one.action for one in first.plan.actions} == {Action.CREATE}
    assert first.worst is Severity.SAFE
    assert pipeline.plan_again(api, content, previous=None, inventory={}).digest == first.plan.digest

    done = list(pipeline.deploy(api, content, first.plan, inventory=inventory, deadline_seconds=scaled(60)))
    assert {one.state for one in done} == {OutcomeState.DONE}
    refs = [one.ref for one in content.manifests]
    assert {one.state for one in pipeline.observe(api, refs).values()} == {HealthState.CURRENT}

    owned = uids(inventory.items().values())
    again = pipeline.look(api, content, previous=content, inventory=owned)
    assert {one.action for one in again.plan.actions} == {Action.NONE}

    gone = list(pipeline.remove(api, inventory, deadline_seconds=scaled(60)))
    assert {one.state for one in gone} == {OutcomeState.DONE}
    assert {one.state for one in pipeline.observe(api, refs).values()} == {HealthState.NOT_FOUND}
    assert inventory.items() == {}
