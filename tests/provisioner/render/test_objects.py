"""What an object of a bundle may say, and where it ends up."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.errors import BundleTooLarge, InvalidManifest
from provisioner.render.limits import YamlLimits
from provisioner.render.objects import Found, admit
from provisioner.values import GroupKind, JsonObject, Manifest

OURS = "core.rukpak.io"


def obj(kind: str = "ConfigMap", version: str = "v1", name: Any = "a", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def crd(scope: Any, group: str = "example.com", kind: str = "Case") -> dict[str, Any]:
    spec = {"group": group, "names": {"kind": kind, "plural": "cases"}, "scope": scope}
    return obj("CustomResourceDefinition", "apiextensions.k8s.io/v1", f"cases.{group}", spec=spec)


def admitted(
    *bodies: Any, knows: dict[str, bool] | None = None, limits: YamlLimits | None = None
) -> tuple[Manifest, ...]:
    found = [Found(body, f"f{number}.yaml", 7) for number, body in enumerate(bodies)]

    def is_namespaced(kind: GroupKind) -> bool | None:
        return (knows or {}).get(str(kind))

    return admit(found, install_namespace="home", is_namespaced=is_namespaced, limits=limits or YamlLimits())


def namespace(manifest: Manifest) -> Any:
    return manifest.body["metadata"].get("namespace")


REFUSED: dict[str, tuple[Any, str]] = {
    "a list": ([1], "is no Kubernetes object"),
    "a text": ("x", "is no Kubernetes object"),
    "no apiVersion": ({"kind": "X", "metadata": {"name": "a"}}, "needs apiVersion"),
    "apiVersion that is a number": (obj(version=1), "needs apiVersion"),  # type: ignore[arg-type]  # that is the case
    "apiVersion of three parts": (obj(version="a/b/c"), "apiVersion must be"),
    "apiVersion without a group": (obj(version="/v1"), "apiVersion must be"),
    "apiVersion without a version": (obj(version="apps/"), "apiVersion must be"),
    "no kind": ({"apiVersion": "v1", "metadata": {"name": "a"}}, "needs kind"),
    "kind that is true": ({"apiVersion": "v1", "kind": True, "metadata": {"name": "a"}}, "needs kind"),
    "no metadata": ({"apiVersion": "v1", "kind": "X"}, "needs metadata"),
    "metadata that is a list": ({"apiVersion": "v1", "kind": "X", "metadata": []}, "needs metadata"),
    "no name": ({"apiVersion": "v1", "kind": "X", "metadata": {}}, "needs metadata.name"),
    "an empty name": (obj(name=""), "needs metadata.name"),
    "a name that is a number": (obj(name=1), "needs metadata.name"),
    "a name that climbs": (obj(name=".."), "metadata.name"),
    "a name that is a path": (obj(name="a/../b"), "metadata.name"),
    "a name that is escaped": (obj(name="a%2fb"), "metadata.name"),
    "generateName": (obj(metadata={"generateName": "a-"}), "metadata.generateName"),
    "generateName alone": (
        {"apiVersion": "v1", "kind": "X", "metadata": {"generateName": "a"}},
        "metadata.generateName",
    ),
    "a namespace that is a number": (obj(metadata={"namespace": 1}), "metadata.namespace"),
    "labels that are a list": (obj(metadata={"labels": ["a"]}), "metadata.labels"),
    "a label that is a number": (obj(metadata={"labels": {"a": 1}}), "metadata.labels: 'a' must be a text"),
    "an annotation that is true": (
        obj(metadata={"annotations": {"a": True}}),
        "metadata.annotations: 'a' must be a text",
    ),
}
SERVER_FIELDS: dict[str, Any] = {
    "uid": "3c2a0b1e-0000-4000-8000-000000000000",
    "resourceVersion": "1",
    "managedFields": [{"manager": "x"}],
    "ownerReferences": [{"kind": "Deployment", "name": "x", "uid": "y"}],
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "deletionTimestamp": "2026-01-02T03:04:05Z",
    "deletionGracePeriodSeconds": 30,
    "generation": 2,
    "selfLink": "/api/v1/x",
}


@pytest.mark.parametrize(("body", "words"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_naming_file_and_field(body: Any, words: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        admitted(body)
    assert str(caught.value).startswith("f0.yaml:7: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(("field", "value"), SERVER_FIELDS.items(), ids=SERVER_FIELDS)
def test_S20_content_carries_no_field_of_the_server(field: str, value: Any) -> None:
    with pytest.raises(InvalidManifest, match=rf"^f0\.yaml:7: ConfigMap a: metadata\.{field}: "):
        admitted(obj(metadata={field: value}))


@pytest.mark.parametrize("field", SERVER_FIELDS)
@pytest.mark.parametrize("nothing", [None, "", []], ids=repr)
def test_a_server_field_that_says_nothing_is_dropped(field: str, nothing: Any) -> None:
    (manifest,) = admitted(obj(metadata={field: nothing}))
    assert field not in manifest.body["metadata"]


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize("key", [f"{OURS}/revision", f"{OURS}/owner", f"x.{OURS}/y", OURS, f"{OURS}/", f"{OURS}/Prune"])
def test_S20_content_carries_no_names_of_ours(field: str, key: str) -> None:
    with pytest.raises(InvalidManifest, match=rf"^f0\.yaml:7: ConfigMap a: metadata\.{field}: .*Pratique's own"):
        admitted(obj(metadata={field: {"fine": "x", key: "x"}}))


def test_S20_the_documented_annotations_are_taken_but_not_as_labels() -> None:
    ours = {f"{OURS}/deletion-policy": "Orphan", f"{OURS}/prune": "false", f"{OURS}/optional": "true"}
    (manifest,) = admitted(obj(metadata={"annotations": ours}))
    assert manifest.body["metadata"]["annotations"] == ours
    with pytest.raises(InvalidManifest, match=r"metadata\.labels"):
        admitted(obj(metadata={"labels": ours}))


@pytest.mark.parametrize("word", ["orphan", "Keep", "Delete", ""])
def test_S39_a_deletion_policy_that_would_keep_nothing_is_refused(word: str) -> None:
    with pytest.raises(InvalidManifest, match="must be Orphan, or be left out"):
        admitted(obj(metadata={"annotations": {f"{OURS}/deletion-policy": word}}))


@pytest.mark.parametrize("kind", ["BundleDeploymentReview", "BundleDeploymentRequest", "Anything"])
@pytest.mark.parametrize("version", ["v1alpha2", "v9"])
def test_S22_reviews_and_requests_in_content_are_refused(kind: str, version: str) -> None:
    with pytest.raises(InvalidManifest, match="must not carry records"):
        admitted(obj(kind, f"{OURS}/{version}"))
    with pytest.raises(InvalidManifest, match="must not carry records"):
        admitted({"apiVersion": "v1", "kind": "List", "items": [obj(kind, f"{OURS}/{version}")]})


def test_a_bundle_may_hold_a_bundle_deployment() -> None:
    (manifest,) = admitted(obj("BundleDeployment", f"{OURS}/v1alpha2"))
    assert namespace(manifest) is None


def test_the_annotation_of_kubectl_is_dropped_since_it_may_hold_secrets() -> None:
    last = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"password":"x"}}'}
    only, beside = admitted(
        obj(metadata={"annotations": last}), obj(name="b", metadata={"annotations": {**last, "a": "b"}})
    )
    assert "annotations" not in only.body["metadata"]
    assert beside.body["metadata"]["annotations"] == {"a": "b"}


STATUS: dict[str, tuple[JsonObject, bool]] = {
    "an empty one": (obj("Case", "example.com/v1", status={}), False),
    "null": (obj("Case", "example.com/v1", status=None), False),
    "of a CRD": ({**crd("Cluster"), "status": {"storedVersions": [], "conditions": []}}, False),
    "of a Deployment": (obj("Deployment", "apps/v1", status={"replicas": 1}), False),
    "of a custom resource, where it may be an ordinary field": (obj("Case", "example.com/v1", status={"a": 1}), True),
}


@pytest.mark.parametrize(("body", "is_kept"), STATUS.values(), ids=STATUS)
def test_a_status_is_kept_only_where_applying_it_may_do_something(body: JsonObject, is_kept: bool) -> None:
    (manifest,) = admitted(body)
    assert ("status" in manifest.body) is is_kept


def test_finalizers_and_odd_names_are_kept() -> None:
    (manifest,) = admitted(
        obj("ClusterRole", "rbac.authorization.k8s.io/v1", "a:\u202eb", metadata={"finalizers": ["x/y"]})
    )
    assert (manifest.ref.name, manifest.body["metadata"]["finalizers"]) == ("a:\u202eb", ["x/y"])


def test_a_message_shows_hidden_characters_and_no_values() -> None:
    with pytest.raises(InvalidManifest) as caught:
        admitted(obj("Secret", name="a\u202eb\x1b", metadata={"labels": {"k": 12345}}))
    assert r"a\u202eb\x1b" in str(caught.value)
    assert "12345" not in str(caught.value)


CUSTOM = obj("Case", "example.com/v1")
PLACED: dict[str, tuple[tuple[JsonObject, ...], dict[str, bool], str | None]] = {
    "a built-in kind": ((obj(),), {}, "home"),
    "an empty namespace is none": ((obj(metadata={"namespace": ""}),), {}, "home"),
    "null is none": ((obj(metadata={"namespace": None}),), {}, "home"),
    "its own is kept": ((obj(metadata={"namespace": "own"}),), {}, "own"),
    "a cluster-scoped kind": ((obj("Namespace"),), {}, None),
    "a cluster-scoped kind with an empty one": ((obj("Namespace", metadata={"namespace": ""}),), {}, None),
    "a cluster-scoped kind with one": ((obj("Namespace", metadata={"namespace": "x"}),), {}, None),
    "a cluster-scoped kind of the bundle with one": (
        (obj("Case", "example.com/v1", metadata={"namespace": "x"}), crd("Cluster")),
        {},
        None,
    ),
    "Kubernetes' own scopes do not depend on the cluster": ((obj(),), {"ConfigMap": False}, "home"),
    "a kind that the cluster knows": ((CUSTOM,), {"Case.example.com": True}, "home"),
    "a cluster-scoped kind that the cluster knows": ((CUSTOM,), {"Case.example.com": False}, None),
    "a kind that nobody knows": ((CUSTOM,), {}, None),
    "a kind that nobody knows keeps its own": (
        (obj("Case", "example.com/v1", metadata={"namespace": "own"}),),
        {},
        "own",
    ),
    "a kind of the bundle": ((CUSTOM, crd("Namespaced")), {}, "home"),
    "a cluster-scoped kind of the bundle": ((CUSTOM, crd("Cluster")), {"Case.example.com": True}, None),
    "a kind of the bundle in another group": ((CUSTOM, crd("Namespaced", "other.com")), {}, None),
    "a CRD of unknown scope": ((CUSTOM, crd("Galaxy")), {}, None),
    "a CRD of no scope": ((CUSTOM, crd(["x"])), {}, None),
    "a CRD without a spec": ((CUSTOM, obj("CustomResourceDefinition", "apiextensions.k8s.io/v1", "x")), {}, None),
}


@pytest.mark.parametrize(("bodies", "knows", "expected"), PLACED.values(), ids=PLACED)
def test_an_object_is_placed_by_the_scope_of_its_kind(
    bodies: tuple[JsonObject, ...], knows: dict[str, bool], expected: str | None
) -> None:
    assert namespace(admitted(*bodies, knows=knows)[0]) == expected


LISTS: dict[str, tuple[Any, list[str]]] = {
    "a List": ({"apiVersion": "v1", "kind": "List", "items": [obj(name="x"), obj(name="y")]}, ["x", "y"]),
    "a List in a List": (
        {"kind": "List", "items": [obj(name="x"), {"kind": "List", "items": [obj(name="y")]}, obj(name="z")]},
        ["x", "y", "z"],
    ),
    "a typed list": (
        {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "x"}}, obj("Secret", name="y")]},
        ["x", "y"],
    ),
    "an empty List among others": ({"kind": "List", "items": [{"kind": "List", "items": []}, obj(name="x")]}, ["x"]),
    "a List of nothing": ({"kind": "List", "items": [{"kind": "List"}, obj(name="x")]}, ["x"]),
    "a kind that ends so": (obj("AllowList", "example.com/v1", "x", items="all"), ["x"]),
}


def test_a_list_whose_members_stand_under_another_name_does_not_vanish() -> None:
    with pytest.raises(InvalidManifest, match="holds more than items"):
        admitted({"apiVersion": "v1", "kind": "List", "item": [obj(name="x")]}, obj(name="y"))


@pytest.mark.parametrize(("body", "names"), LISTS.values(), ids=LISTS)
def test_lists_are_flattened_in_order(body: Any, names: list[str]) -> None:
    assert [manifest.ref.name for manifest in admitted(body)] == names


def test_members_of_a_typed_list_get_its_kind() -> None:
    (manifest,) = admitted({"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [{"metadata": {"name": "x"}}]})
    assert (manifest.ref.kind, manifest.ref.group, namespace(manifest)) == ("Deployment", "apps", "home")


@pytest.mark.parametrize("item", [1, "x", None, [], {"kind": "X"}], ids=repr)
def test_a_member_that_is_no_object_is_refused(item: Any) -> None:
    with pytest.raises(InvalidManifest, match=r"^f0\.yaml:7: "):
        admitted({"kind": "List", "items": [item]})


def test_too_many_objects_are_refused() -> None:
    with pytest.raises(BundleTooLarge, match="max_objects"):
        admitted({"kind": "List", "items": [obj(name=f"n{n}") for n in range(11)]}, limits=YamlLimits(max_objects=10))


def test_the_same_object_twice_is_refused_naming_both_files() -> None:
    deployment = obj("Deployment", "apps/v1")
    with pytest.raises(InvalidManifest, match=r"^f1\.yaml:7: Deployment a: is in f0\.yaml already"):
        admitted(deployment, obj("Deployment", "apps/v1beta1", metadata={"namespace": "home"}))


@pytest.mark.parametrize(
    "other",
    [obj(name="b"), obj(metadata={"namespace": "other"}), obj("Secret"), obj("ConfigMap", "example.com/v1")],
    ids=["name", "namespace", "kind", "group"],
)
def test_objects_that_differ_in_identity_are_two(other: JsonObject) -> None:
    assert len(admitted(obj(), other)) == 2


@pytest.mark.parametrize("bodies", [(), ({"kind": "List", "items": []},)], ids=["nothing", "an empty List"])
def test_no_objects_are_refused(bodies: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidManifest, match="no objects"):
        admitted(*bodies)


def test_the_foreign_object_is_left_as_it_was() -> None:
    body = obj(metadata={"creationTimestamp": None}, status={})
    admitted(body)
    assert body == obj(metadata={"creationTimestamp": None}, status={})


@pytest.mark.parametrize(
    "more", [{"metadata": {"name": "x"}}, {"spec": {"a": 1}}], ids=["with a name", "with other fields"]
)
@pytest.mark.parametrize("items", [[], [{"metadata": {"name": "y"}}]], ids=["empty", "with items"])
def test_an_object_whose_kind_ends_like_a_list_does_not_vanish(more: dict[str, Any], items: list[Any]) -> None:
    with pytest.raises(InvalidManifest, match="holds more than items"):
        admitted({"apiVersion": "example.com/v1", "kind": "AllowList", **more, "items": items}, obj())
