"""Patches of rendered objects: whom they hit, what they may do, what is recorded, and what hostile ones cost."""

from __future__ import annotations

import time
from typing import Any

import pytest

from provisioner.errors import BadConfig, BundleTooLarge
from provisioner.render import YamlLimits
from provisioner.render.patches import changes
from provisioner.values import PatchResult
from tests.provisioner.render.patches.bundles import (
    CUSTOM,
    SECRET,
    WEB,
    bodies,
    content_of,
    merge_into_web,
    operations,
)

ALL = f"{WEB}---{CUSTOM}---\n{SECRET}"
REPLICAS = "spec: {replicas: 3}"


def hit(text: str, **target: str) -> list[str]:
    """The names of the objects that a target selects."""
    step = {"op": "add", "path": "/metadata/annotations", "value": {"hit": "yes"}}
    found = bodies(text, **operations(step, **target))
    return [body["metadata"]["name"] for body in found if "annotations" in body["metadata"]]


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ({"kind": "Deployment"}, ["web"]),
        ({"group": "apps", "version": "v1"}, ["web"]),
        ({"name": "w.*"}, ["web"]),
        ({"name": "we"}, []),
        ({"name": "we|f"}, ["f"]),
        ({"namespace": "default"}, ["web", "f", "sec"]),
        ({"namespace": "def"}, []),
        ({"labelSelector": "app=web"}, ["web"]),
        ({"labelSelector": "app in (web, x),!old"}, ["web"]),
        ({"labelSelector": "app notin (web)"}, ["f", "sec"]),
        ({"labelSelector": "app!=web"}, ["f", "sec"]),
        ({"labelSelector": "app"}, ["web"]),
        ({"annotationSelector": "app"}, []),
    ],
    ids=str,
)
def test_a_target_selects_as_in_kustomize(target: dict[str, str], names: list[str]) -> None:
    assert hit(ALL, **target) == names


def test_what_changed_is_recorded_and_what_hit_nothing_too() -> None:
    config = merge_into_web(REPLICAS)
    config["patches"] += merge_into_web("$patch: delete", kind="Foo")["patches"]
    config["patches"] += merge_into_web(REPLICAS, kind="DaemonSet")["patches"]
    images = [{"name": "nginx", "newTag": "2"}]
    content = content_of(ALL, **config, images=images, commonLabels={"a": "b"}, namespace="prod")
    recorded = [
        (result.entry, result.count, [(str(one.ref), one.paths, one.is_deleted) for one in result.objects])
        for result in content.patches
    ]
    assert recorded[:3] == [
        ("patches[0]", 1, [("Deployment.apps prod/web", ("spec.replicas",), False)]),
        ("patches[1]", 1, [("Foo.x.io default/f", (), True)]),
        ("patches[2]", 0, []),
    ]
    moved, labels, image = content.patches[3:]
    assert (moved.entry, moved.count) == ("namespace", 2)
    assert (labels.entry, labels.count, image.count) == ("commonLabels", 2, 1)
    assert image.objects[0].paths == ("spec.template.spec.containers[0].image",)
    assert content_of(ALL).patches == ()


def test_what_a_patch_may_be_meant_for_is_named() -> None:
    config = merge_into_web(REPLICAS, kind="Deploymant", name="web")
    config["patches"] += merge_into_web(REPLICAS, kind="Job")["patches"]
    assert [result.near for result in content_of(ALL, **config).patches] == [("Deployment web",), ()]
    with pytest.raises(BadConfig, match=r"is for; did you mean Deployment web\?"):
        content_of(ALL, patches=[{"patch": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: wep}"}])


def test_an_image_that_no_container_has_is_recorded_as_such() -> None:
    (result,) = content_of(ALL, images=[{"name": "redis", "newTag": "2"}]).patches
    assert result == PatchResult("images[0]", 0, ())


def test_members_of_a_list_are_patched_too() -> None:
    items = "apiVersion: v1\nkind: List\nitems:\n- " + WEB.strip().replace("\n", "\n  ")
    assert bodies(items, **merge_into_web(REPLICAS))[0]["spec"]["replicas"] == 3


def test_what_names_an_object_stays_with_a_merge_and_moves_with_operations() -> None:
    renamed = merge_into_web(REPLICAS, name="web")
    renamed["patches"][0]["patch"] = renamed["patches"][0]["patch"].replace("{name: web}", "{name: x, namespace: y}")
    (web,) = bodies(WEB, **renamed)
    assert (web["metadata"]["name"], web["metadata"]["namespace"], web["spec"]["replicas"]) == ("web", "default", 3)
    (web,) = bodies(WEB, **operations({"op": "replace", "path": "/metadata/name", "value": "new"}))
    assert web["metadata"]["name"] == "new"


@pytest.mark.parametrize(
    ("config", "words", "quoted"),
    [
        (merge_into_web(REPLICAS.replace("spec", "metadata: {name: gone}\nspec")), "cannot be read", "twice"),
        ({"patches": [{"patch": "kind: Deployment\nmetadata: {name: gone}"}]}, "has no object", "Deployment gone"),
        (merge_into_web("spec: {replicas: {S3cret: 1}}"), "is a single value in the object, and a mapping", "spec."),
        (merge_into_web("spec: {strategy: {$retainKeys: [type]}}"), "$retainKeys is not supported", ""),
        (merge_into_web("spec: {template: {spec: {containers: [{image: x}]}}}"), "lacks name", "containers[0]"),
        (merge_into_web("spec: {strategy: {$patch: S3cret}}"), "not merge, replace or delete", "spec.strategy"),
        (merge_into_web("spec: {template: {spec: {containers: [{name: a, args: [{$patch: delete}]}]}}}"), "whole", ""),
        ({"patches": [{"patch": "- {op: remove, path: /spec}"}]}, "needs a target", ""),
        ({"patches": [{"patch": "S3cret", "target": {"kind": "Foo"}}]}, "expected an object to merge in", ""),
        ({"patches": [{"patch": "a: [", "target": {"kind": "Foo"}}]}, "cannot be read", ""),
        ({"patches": [{"path": "x.yaml"}]}, "it takes patch, target", ""),
        ({"patches": [{"patch": REPLICAS, "target": {"name": "("}}]}, "no regular expression", "missing"),
        ({"patches": [{"patch": REPLICAS, "target": {"labelSelector": "a in ("}}]}, "expected terms", ""),
        ({"patches": {"patch": "x"}}, "expected a list of at most 100", ""),
        (operations({"op": "test", "path": "/spec/replicas", "value": 7}), "another value", "/spec/replicas"),
        (operations({"op": "remove", "path": "/spec/none"}), "is not there", "/spec/none"),
        (operations({"op": "add", "path": "/spec/template/spec/containers/9", "value": 1}), "has 2 items", "/9"),
        (operations({"op": "add", "path": "/spec/template/spec/containers/01", "value": 1}), "number of an item", ""),
        (operations({"op": "add", "path": "/spec/replicas/x", "value": 1}), "lies in a single value", ""),
        (operations({"op": "move", "from": "/spec", "path": "/spec/x"}), "moved into itself", ""),
        (operations({"op": "replace", "path": "/kind", "value": "Pod"}), "does not change apiVersion or kind", ""),
        (operations({"op": "add", "path": "", "value": {}}), "expected a path", ""),
        (operations({"op": "S3cret", "path": "/spec"}), "op must be add, replace", ""),
        (operations({"op": "add", "path": "/spec"}), "add needs value", ""),
        ({"namespace": "No"}, "expected the name of a namespace", ""),
        ({"namePrefix": "../"}, "such as `prod-`", ""),
        ({"commonLabels": {"a": 1}}, "texts", ""),
        ({"images": [{"name": "nginx"}]}, "newName, newTag or digest", ""),
    ],
)
def test_what_cannot_be_done_is_refused_in_words_that_quote_nothing(
    config: dict[str, Any], words: str, quoted: str
) -> None:
    """The message is for everybody; what quotes the spec is for who may get the BundleDeployment."""
    with pytest.raises(BadConfig) as caught:
        content_of(WEB, **config)
    assert words in str(caught.value)
    assert "S3cret" not in str(caught.value)
    assert quoted in caught.value.server_words


@pytest.mark.parametrize(
    "step",
    [
        {"op": "copy", "from": "/data/k", "path": "/metadata/annotations"},
        {"op": "move", "from": "/data", "path": "/metadata/labels"},
        {"op": "copy", "from": "/stringData/k", "path": "/type"},
        {"op": "test", "path": "/data/k", "value": "djRsdWU="},
        {"op": "replace", "path": "/kind", "value": "ConfigMap"},
    ],
    ids=lambda step: f"{step['op']} {step['path']}",
)
def test_S38_a_patch_neither_moves_nor_tries_what_a_secret_holds(step: dict[str, Any]) -> None:
    with pytest.raises(BadConfig) as caught:
        content_of(SECRET, **operations(step, kind="Secret"))
    assert "djRsdWU" not in caught.value.in_full


@pytest.mark.parametrize("value", ["djRsdWU=", "b3RoZXI="], ids=["the same", "another"])
@pytest.mark.parametrize("is_merge", [True, False])
def test_S38_the_record_tells_not_whether_a_value_of_a_secret_changed(value: str, is_merge: bool) -> None:
    step = {"op": "replace", "path": "/data/k", "value": value}
    config = operations(step, kind="Secret")
    if is_merge:
        config = {"patches": [{"patch": {"data": {"k": value}}, "target": {"kind": "Secret"}}]}
    (result,) = content_of(SECRET, **config).patches
    assert result.objects[0].paths == ("data",)
    assert "djRs" not in repr(result)


DOUBLING = [{"op": "copy", "from": "/spec", "path": f"/spec/{number}"} for number in range(40)]
SMALL = YamlLimits(max_nodes=20_000, max_characters=1_000_000)


@pytest.mark.parametrize(
    "config",
    [
        operations(*DOUBLING),
        operations(*({"op": "add", "path": f"/spec/{n}", "value": ["x" * 9_000]} for n in range(900))),
        {"patches": [{"patch": {"spec": {"a": "x" * 20_000}}, "target": {}}] * 90},
        {"patches": [{"patch": {"metadata": {"finalizers": [str(n) for n in range(30_000)]}}, "target": {}}]},
    ],
    ids=["copies that double", "many values", "one patch often", "a long list"],
)
def test_what_patches_add_is_bounded(config: dict[str, Any]) -> None:
    started = time.monotonic()
    with pytest.raises(BundleTooLarge):
        content_of(WEB, SMALL, **config)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "config",
    [
        {"patches": [{"patch": WEB, "target": {}}] * 101},
        operations(*[{"op": "remove", "path": "/x"}] * 1_001),
        {"commonLabels": {str(number): "x" for number in range(51)}},
        {"patches": [{"patch": {"a": 1}, "target": {"name": "x" * 1_001}}]},
        {"patches": [{"patch": {"a": 1}, "target": {"name": "(((a{1,100}){1,100}){1,100})"}}]},
    ],
    ids=["patches", "operations", "labels", "a pattern's length", "a pattern's size"],
)
def test_there_is_a_most_of_each(config: dict[str, Any]) -> None:
    with pytest.raises(BadConfig):
        content_of(WEB, **config)


def test_a_patch_is_as_deep_as_content_may_be() -> None:
    deep: Any = {}
    for _ in range(250):
        deep = {"a": deep}
    with pytest.raises(BundleTooLarge):
        content_of(WEB, patches=[{"patch": {"spec": deep}, "target": {"kind": "Deployment"}}])


def test_many_copies_of_large_objects_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_COPIED", 400)
    merge = "---\n".join(["{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2}}\n"] * 20)
    operation = operations({"op": "add", "path": "/metadata/x", "value": 1})["patches"]
    for patches in (operation * 20, [{"patch": merge}]):
        with pytest.raises(BundleTooLarge, match="patches change objects of more than 400 values"):
            content_of(WEB, patches=patches)


def test_what_one_patch_puts_into_two_objects_is_not_shared_by_them() -> None:
    both = f"{WEB}---{WEB.replace('name: web, labels', 'name: web2, labels')}"
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "redis:1"}]}}}}
    config: dict[str, Any] = {"patches": [{"patch": patch, "target": {"kind": "Deployment"}}]}
    content = content_of(both, **config, images=[{"name": "redis", "newTag": "2"}])
    found = [manifest.body["spec"]["template"]["spec"]["containers"][0]["image"] for manifest in content.manifests]
    assert (found, content.patches[1].count) == (["redis:2", "redis:2"], 2)


def test_patterns_that_would_backtrack_take_no_time() -> None:
    started = time.monotonic()
    name = "a" * 200
    many = "---\n".join(f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}{n}}}}}\n" for n in range(200))
    assert hit(many, name="(a+)+b") == []
    assert time.monotonic() - started < 5
