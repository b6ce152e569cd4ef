"""The thin REST over the official client's pool, on real API servers."""

from __future__ import annotations

import threading
import time

import pytest

from provisioner import errors
from provisioner.cluster.client.answers import WatchType
from provisioner.cluster.client.api import MUST_NOT_EXIST, ClusterClient
from provisioner.values import Identity, ObjectRef
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import MANAGER, Scene


def with_meta(obj, **meta):
    return {**obj, "metadata": {**obj["metadata"], **meta}}


def test_a_cluster_is_known_by_the_uid_of_kube_system(kubernetes_api):
    namespace = kubernetes_api.get(ObjectRef("", "v1", "Namespace", "", "kube-system"))
    assert namespace is not None
    assert kubernetes_api.uid() == namespace["metadata"]["uid"]
    assert kubernetes_api.version().startswith("v1.")


@pytest.mark.parametrize(
    ("asked", "plural", "is_namespaced"),
    [
        (("", "v1", "ConfigMap"), "configmaps", True),
        (("", "v1", "Namespace"), "namespaces", False),
        (("apps", "v1", "Deployment"), "deployments", True),
        (("apps", "", "Deployment"), "deployments", True),
        (("rbac.authorization.k8s.io", "v1", "ClusterRole"), "clusterroles", False),
    ],
)
def test_discovery_knows_the_built_in_kinds(kubernetes_api, asked, plural, is_namespaced):
    found = kubernetes_api.resource_of(*asked)
    assert (found.plural, found.is_namespaced, found.version) == (plural, is_namespaced, "v1")
    assert {"get", "list", "patch"} <= found.verbs


def test_discovery_knows_subresources(kubernetes_api):
    assert {"status", "scale"} <= kubernetes_api.resource_of("apps", "v1", "Deployment").subresources


def test_a_kind_that_is_not_served_is_none_and_its_objects_unknown(kubernetes_api):
    assert kubernetes_api.resource_of("example.com", "v1", "Nothing") is None
    with pytest.raises(errors.UnknownKind, match="Nothing"):
        kubernetes_api.get(ObjectRef("example.com", "v1", "Nothing", "", "x"))


def test_an_object_that_is_not_there_is_none(scene: Scene):
    assert scene.live(scene.config_map("absent")) is None


def test_an_apply_that_must_create_creates_once_and_then_refuses_even_the_same_object(scene: Scene):
    new = with_meta(scene.config_map(a="1"), resourceVersion=MUST_NOT_EXIST)
    assert scene.cluster.apply(new, field_manager=MANAGER).is_created
    with pytest.raises(errors.AlreadyExists, match="settings"):
        scene.cluster.apply(new, field_manager=MANAGER)


def test_an_apply_bound_to_a_uid_refuses_another_object(scene: Scene):
    obj = scene.config_map(a="1")
    uid = scene.cluster.apply(obj, field_manager=MANAGER).object["metadata"]["uid"]
    assert not scene.cluster.apply(with_meta(obj, uid=uid), field_manager=MANAGER).is_created
    with pytest.raises(errors.PreconditionFailed):
        scene.cluster.apply(with_meta(obj, uid="00000000-0000-0000-0000-000000000000"), field_manager=MANAGER)


def test_an_apply_bound_to_a_uid_never_creates(scene: Scene):
    obj = with_meta(scene.config_map(a="1"), uid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(errors.PreconditionFailed):
        scene.cluster.apply(obj, field_manager=MANAGER)
    assert scene.live(obj) is None


def test_an_apply_bound_to_a_resource_version_refuses_another_state(scene: Scene):
    obj = scene.config_map(a="1")
    version = scene.cluster.apply(obj, field_manager=MANAGER).object["metadata"]["resourceVersion"]
    scene.cluster.apply(scene.config_map(a="2"), field_manager=MANAGER)
    with pytest.raises(errors.PreconditionFailed):
        scene.cluster.apply(with_meta(obj, resourceVersion=version), field_manager=MANAGER)


def test_a_field_conflict_names_the_other_manager_and_the_field(scene: Scene):
    scene.cluster.apply(scene.config_map(a="1"), field_manager="somebody")
    with pytest.raises(errors.FieldConflict, match=r"another manager owns data\.a$") as caught:
        scene.cluster.apply(scene.config_map(a="2"), field_manager=MANAGER)
    assert caught.value.server_words == "somebody owns .data.a"


def test_an_undeclared_field_makes_the_object_invalid(scene: Scene):
    with pytest.raises(errors.InvalidObject) as caught:
        scene.cluster.apply(scene.config_map() | {"nonsense": 1}, field_manager=MANAGER)
    assert "nonsense" in caught.value.server_words


def test_a_namespace_that_is_not_there_is_an_error_of_its_own(scene: Scene):
    obj = with_meta(scene.config_map(), namespace=f"{scene.namespace}-absent")
    with pytest.raises(errors.ClusterError, match="absent"):
        scene.cluster.apply(obj, field_manager=MANAGER)


def test_a_namespaced_object_without_a_namespace_is_refused_before_anything_is_sent(scene: Scene):
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    with pytest.raises(errors.InvalidObject, match="namespaced"):
        scene.cluster.apply(obj, field_manager=MANAGER)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a%2fb", "a\nb", ""])
def test_a_name_that_would_be_another_path_is_refused(scene: Scene, name):
    with pytest.raises(errors.InvalidObject):
        scene.cluster.get(ObjectRef("", "v1", "ConfigMap", scene.namespace, name))


def test_names_with_colons_are_met_where_they_are(kubernetes_api):
    role = ObjectRef("rbac.authorization.k8s.io", "v1", "ClusterRole", "", "system:basic-user")
    found = kubernetes_api.get(role)
    assert found is None or ObjectRef.of(found) == role


def test_a_dry_run_changes_nothing(scene: Scene):
    obj = scene.config_map(a="1")
    assert scene.cluster.apply(obj, field_manager=MANAGER, dry_run=True).object["data"] == {"a": "1"}
    assert scene.live(obj) is None
    scene.cluster.apply(obj, field_manager=MANAGER)
    assert scene.cluster.delete(ObjectRef.of(obj), dry_run=True)
    assert scene.live(obj) is not None


def test_a_deletion_is_bound_to_the_uid(scene: Scene):
    obj = scene.config_map()
    uid = scene.cluster.apply(obj, field_manager=MANAGER).object["metadata"]["uid"]
    with pytest.raises(errors.PreconditionFailed):
        scene.cluster.delete(ObjectRef.of(obj), uid="00000000-0000-0000-0000-000000000000")
    assert scene.cluster.delete(ObjectRef.of(obj), uid=uid)
    assert not scene.cluster.delete(ObjectRef.of(obj), uid=uid)


def test_an_invalid_secret_does_not_leak_its_values_through_the_error(scene: Scene):
    bad = scene.secret(**{"tls.crt": "hunter2"}) | {"type": "kubernetes.io/tls"}
    unreadable = scene.secret() | {"data": {"a": "hunter2!!"}}
    for obj in (bad, unreadable):
        with pytest.raises(errors.PratiqueError) as caught:
            scene.cluster.apply(obj, field_manager=MANAGER)
        assert "hunter2" not in repr(caught.value.__dict__) + str(caught.value)


def test_a_list_gives_every_object_once_over_many_pages(scene: Scene):
    for index in range(7):
        scene.cluster.create(scene.config_map(f"many-{index}"))
    maps = scene.cluster.resource_of("", "v1", "ConfigMap")
    found = list(scene.cluster.list(maps, scene.namespace, page=2))
    assert {f"many-{index}" for index in range(7)} <= {obj["metadata"]["name"] for obj in found}
    assert len({obj["metadata"]["uid"] for obj in found}) == len(found)
    assert {(obj["apiVersion"], obj["kind"]) for obj in found} == {("v1", "ConfigMap")}


def test_a_list_is_narrowed_by_labels_and_to_metadata(scene: Scene):
    scene.cluster.create(with_meta(scene.config_map("one", a="1"), labels={"app": "one"}))
    scene.cluster.create(with_meta(scene.config_map("two", a="1"), labels={"app": "two"}))
    maps = scene.cluster.resource_of("", "v1", "ConfigMap")
    found = list(scene.cluster.list(maps, scene.namespace, "app=one", metadata_only=True))
    assert [(obj["metadata"]["name"], obj["kind"], obj.get("data")) for obj in found] == [("one", "ConfigMap", None)]


def test_a_watch_carries_on_from_a_snapshot(scene: Scene):
    maps = scene.cluster.resource_of("", "v1", "ConfigMap")
    snapshot = scene.cluster.snapshot(maps, namespace=scene.namespace)
    obj = scene.config_map("watched", a="1")
    scene.cluster.create(obj)
    scene.cluster.delete(ObjectRef.of(obj))
    watch = scene.cluster.watch(
        maps, namespace=scene.namespace, resource_version=snapshot.resource_version, timeout_seconds=60
    )
    seen = []
    for event in watch:
        if ObjectRef.of(event.object) == ObjectRef.of(obj):  # controllers put ConfigMaps of their own into namespaces
            seen.append(event)
        if len(seen) == 2:
            watch.close()
    assert [event.type for event in seen] == [WatchType.ADDED, WatchType.DELETED]
    assert int(seen[0].resource_version) > int(snapshot.resource_version)


def test_a_watch_ends_at_once_when_another_thread_closes_it(scene: Scene):
    maps = scene.cluster.resource_of("", "v1", "ConfigMap")
    version = scene.cluster.snapshot(maps, namespace=scene.namespace).resource_version
    watch = scene.cluster.watch(maps, namespace=scene.namespace, resource_version=version, timeout_seconds=1200)
    threading.Timer(0.2, watch.close).start()
    began = time.monotonic()
    list(watch)
    assert time.monotonic() - began < scaled(60)


def test_a_kind_defined_a_moment_ago_is_served(scene: Scene):
    definition, widget = scene.definition(), scene.widget()
    assert scene.cluster.resource_of(scene.group, "v1", "Widget") is None
    assert not [one for one in scene.deploy(definition, widget) if one.state != "done"]
    assert scene.cluster.resource_of(scene.group, "v1", "Widget").plural == "widgets"
    assert scene.live(widget)["spec"] == {"size": 1, "colour": "red"}


def test_acting_as_somebody_means_their_rights(scene: Scene):
    mallory = scene.cluster.acting_as(Identity("mallory", ("nobody-in-particular",)))
    with pytest.raises(errors.Forbidden, match="mallory"):
        mallory.get(ObjectRef.of(scene.secret()))
    admin = scene.cluster.acting_as(Identity("somebody", ("nobody-in-particular", "system:masters")))
    assert admin.get(ObjectRef.of(scene.secret())) is None


@pytest.mark.parametrize(
    "name", ["", " admin", "admin ", "a\r\nImpersonate-Group: system:masters", "ädmin", "a\x00b", "a\tb"]
)
def test_a_name_that_would_arrive_as_another_is_never_impersonated(kubernetes_api: ClusterClient, name):
    for identity in (Identity(name), Identity("alice", (name,))):
        with pytest.raises(errors.ClusterError, match="cannot be impersonated"):
            kubernetes_api.acting_as(identity).uid()


def test_nobody_listening_is_unreachable_not_a_hang(nobody_there: ClusterClient):
    with pytest.raises(errors.Unreachable) as caught:
        nobody_there.version()
    assert "s3cret" not in str(caught.value)
