"""What is drift and what is not, on the sandbox and on the real API server, as other people make it."""

from __future__ import annotations

import base64
import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioner.cluster.annotations import NO_TRACKING, NONCE, Tracking
from provisioner.cluster.apply.correction import Corrected, Look, look_at, put_back
from provisioner.cluster.client.answers import Applied, WatchType
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.drift import (
    LONGEST_PAUSE,
    PATIENCE,
    PEACE,
    DriftKind,
    FieldChangeKind,
    ObjectDrift,
    OwnObject,
    Strikes,
    compare,
    fingerprint,
    left_to_others,
    scaled_by,
    to_apply,
)
from provisioner.cluster.field_owners import field_value
from provisioner.cluster.plan.inputs import body_of
from provisioner.errors import AlreadyExists, FieldConflict, PratiqueError, PreconditionFailed, TryLater
from provisioner.values import Action, CollisionProtection, JsonObject, Manifest, ObjectRef, OutcomeState
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.live import wait_until
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, failures, states

OTHER = "kubectl-edit"


def held(scene: Scene, obj: dict[str, Any]) -> OwnObject:
    item = scene.inventory.items()[ObjectRef.of(obj).identity]
    return OwnObject(Manifest(obj), item.uid, Tracking.of(item.nonce))


def look(scene: Scene, obj: dict[str, Any]) -> Look:
    scaled = scaled_by(scene.cluster, [scene.namespace])
    (found,) = look_at(scene.cluster, [held(scene, obj)], manager=MANAGER, is_scaled=scaled)
    assert not found.problem
    return found


def restore(scene: Scene, seen: Look) -> Corrected:
    return put_back(scene.cluster, seen, manager=MANAGER, is_scaled=scaled_by(scene.cluster, [scene.namespace]))


def drift_of(scene: Scene, obj: dict[str, Any]) -> ObjectDrift:
    found = look(scene, obj).drift
    assert found is not None
    return found


def edit(scene: Scene, obj: dict[str, Any], change: Callable[[Any], object]) -> None:
    scene.edit(obj, change, manager=OTHER)


def deployed(scene: Scene, obj: dict[str, Any]) -> dict[str, Any]:
    outcomes = scene.deploy(obj)
    assert [one.message for one in outcomes] == [""]
    return obj


def fields(drift: ObjectDrift) -> list[tuple[str, str, str]]:
    return [(one.path, str(one.change), one.manager) for one in drift.fields]


def test_what_was_just_applied_has_not_drifted(scene: Scene) -> None:
    things = [scene.config_map(a="1"), scene.secret(a="1"), scene.deployment(), scene.service(), scene.job()]
    scene.deploy(*things)
    assert [look(scene, one).drift for one in things] == [None] * 5


def test_an_edit_names_the_field_both_values_who_and_when(scene: Scene) -> None:
    web = deployed(scene, scene.deployment())
    edit(scene, web, lambda it: it["spec"]["template"]["spec"]["containers"][0].update(image="example.com/evil:9"))
    found = drift_of(scene, web)
    assert found.kind == DriftKind.CHANGED
    (field,) = found.fields
    assert (field.path, field.change, field.manager) == (
        "spec.template.spec.containers[name=main].image",
        FieldChangeKind.CHANGED,
        OTHER,
    )
    assert (field.expected, field.found) == ("example.com/web:1", "example.com/evil:9")
    assert field.at.endswith("Z")


@pytest.mark.parametrize(
    ("live", "paths"),
    [
        ([("a", "1"), ("b", "2")], ["spec.containers[name=b].image"]),
        ([("new", "9"), ("a", "1"), ("b", "1")], ["spec.containers[name=new]"]),
        ([("a", "1")], ["spec.containers[name=b]"]),
        ([("b", "1"), ("a", "1")], ["spec.containers"]),
    ],
    ids=["changed", "come", "gone", "another order"],
)
def test_of_a_list_that_nobody_owns_the_items_that_differ_are_told(
    live: list[tuple[str, str]], paths: list[str]
) -> None:
    found, approved = (
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "shop", "uid": "u"},
            "spec": {"containers": [{"name": name, "image": image} for name, image in containers]},
        }
        for containers in (live, [("a", "1"), ("b", "1")])
    )
    own = OwnObject(Manifest(approved), "u", NO_TRACKING)
    drift = compare(own, found, approved, manager=MANAGER)
    assert drift is not None
    assert [one.path for one in drift.fields] == paths


def test_put_back_writes_the_approved_value_and_is_ours_again(scene: Scene) -> None:
    web = deployed(scene, scene.deployment())
    edit(scene, web, lambda it: it["spec"]["template"]["spec"]["containers"][0].update(image="example.com/evil:9"))
    seen = look(scene, web)
    corrected = restore(scene, seen)
    assert (corrected.uid, corrected.altered) == (held(scene, web).uid, ())
    assert look(scene, web).drift is None


def test_what_was_put_back_is_known_by_its_fingerprint(scene: Scene) -> None:
    settings = deployed(scene, scene.config_map(a="1"))
    edit(scene, settings, lambda it: it["data"].update(a="2"))
    corrected = restore(scene, look(scene, settings))
    again = look(scene, settings)
    assert (again.drift, again.fingerprint) == (None, corrected.fingerprint)


def test_a_field_that_somebody_removed_comes_back(scene: Scene) -> None:
    settings = deployed(scene, scene.config_map(a="1", b="2"))
    edit(scene, settings, lambda it: it["data"].pop("b"))
    assert [(one.path, one.change, one.expected, one.found) for one in drift_of(scene, settings).fields] == [
        ("data.b", FieldChangeKind.REMOVED, "2", "")
    ]
    restore(scene, look(scene, settings))
    assert (scene.live(settings) or {})["data"] == {"a": "1", "b": "2"}


def test_a_label_added_by_others_is_reported_with_its_manager_and_stays(scene: Scene) -> None:
    settings = deployed(scene, scene.config_map(a="1"))
    edit(scene, settings, lambda it: it["metadata"].setdefault("labels", {}).update({"team.example.com/x": "blue"}))
    found = drift_of(scene, settings)
    assert found.kind == DriftKind.ADDED
    assert [(one.change, one.manager) for one in found.fields] == [(FieldChangeKind.ADDED, OTHER)]
    assert found.fields[0].path.startswith("metadata.labels")
    assert not look(scene, settings).is_correctable


def test_S11_a_foreign_init_container_is_drift_of_the_kind_added(scene: Scene) -> None:
    web = deployed(scene, scene.deployment())
    foreign = {"name": "miner", "image": "example.com/miner:1"}
    edit(scene, web, lambda it: it["spec"]["template"]["spec"].update(initContainers=[foreign]))
    found = drift_of(scene, web)
    assert found.kind == DriftKind.ADDED
    assert [(one.manager, "initContainers" in one.path) for one in found.fields] == [(OTHER, True)]


def test_what_somebody_puts_into_an_empty_struct_of_ours_is_added(scene: Scene) -> None:
    web = scene.deployment()
    web["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {}
    deployed(scene, web)
    edit(
        scene,
        web,
        lambda it: it["spec"]["template"]["spec"]["containers"][0].update(securityContext={"privileged": True}),
    )
    assert fields(drift_of(scene, web)) == [
        ("spec.template.spec.containers[name=main].securityContext.privileged", "added", OTHER)
    ]


def test_defaults_of_the_server_are_not_drift_whoever_writes_around_them(scene: Scene) -> None:
    service = deployed(scene, scene.service())
    edit(scene, service, lambda it: it["spec"].update(sessionAffinity="ClientIP"))
    assert {path.split(".")[1] for path, _, _ in fields(drift_of(scene, service))} <= {
        "sessionAffinity",
        "sessionAffinityConfig",
    }


def test_a_deleted_object_is_gone_and_is_created_again_only_if_it_is_still_absent(scene: Scene) -> None:
    settings = deployed(scene, scene.config_map(a="1"))
    scene.cluster.delete(ObjectRef.of(settings))
    seen = look(scene, settings)
    assert seen.drift is not None
    assert (seen.drift.kind, seen.is_correctable) == (DriftKind.GONE, True)
    foreign = scene.config_map(a="somebody else's")
    scene.cluster.create(foreign, field_manager=OTHER)
    with pytest.raises((AlreadyExists, FieldConflict)):
        restore(scene, seen)
    assert (scene.live(settings) or {})["data"] == {"a": "somebody else's"}


def test_S20_an_object_made_again_by_somebody_else_is_reported_and_never_adopted(scene: Scene) -> None:
    settings = deployed(scene, scene.config_map(a="1"))
    copied = body_of(Manifest(settings), tracking=Tracking.of("guessed"))
    scene.cluster.delete(ObjectRef.of(settings))
    scene.cluster.apply(copied, field_manager=MANAGER)
    seen = look(scene, settings)
    assert seen.drift is not None
    assert (seen.drift.kind, seen.drift.fields, seen.is_correctable) == (DriftKind.REMADE, (), False)


def test_a_change_between_look_and_write_is_never_written_over(scene: Scene) -> None:
    settings = deployed(scene, scene.config_map(a="1"))
    edit(scene, settings, lambda it: it["data"].update(a="2"))
    seen = look(scene, settings)
    edit(scene, settings, lambda it: it["data"].update(b="seen by nobody"))
    with pytest.raises(PreconditionFailed):
        restore(scene, seen)


def test_of_secrets_no_value_is_told_only_that_and_where(scene: Scene) -> None:
    token = deployed(scene, scene.secret(password="hunter2"))
    edit(scene, token, lambda it: it["data"].update(password="c3dvcmRmaXNo", more="c3dvcmRmaXNo"))
    found = drift_of(scene, token)
    assert {one.path for one in found.fields} >= {"data.password", "data.more"}
    for value in ("hunter2", "aHVudGVyMg==", "swordfish", "c3dvcmRmaXNo"):
        assert value not in repr(found)
    restore(scene, look(scene, token))
    assert (scene.live(token) or {})["data"]["password"] == "aHVudGVyMg=="
    assert {one.path for one in drift_of(scene, token).fields} == {"data.more"}


@pytest.mark.parametrize("value", ["c3dvcmRmaXNo", "aHVudGVyMg=="], ids=["another value", "the same value"])
def test_S38_a_secret_that_others_made_immutable_is_compared_whatever_it_holds(scene: Scene, value: str) -> None:
    token = deployed(scene, scene.secret(password="hunter2"))
    edit(scene, token, lambda it: it["data"].update(password=value))
    edit(scene, token, lambda it: it.update(immutable=True))
    assert drift_of(scene, token).fields  # and no problem, which everybody would read


def test_replicas_belong_to_an_autoscaler_only_if_there_is_one(scene: Scene) -> None:
    web = deployed(scene, scene.deployment(replicas=2))
    edit(scene, web, lambda it: it["spec"].update(replicas=5))
    assert fields(drift_of(scene, web)) == [("spec.replicas", "changed", OTHER)]
    scene.cluster.create(scene.autoscaler())
    assert look(scene, web).drift is None


def test_putting_another_field_back_leaves_the_autoscalers_replicas(scene: Scene) -> None:
    web = deployed(scene, scene.deployment(replicas=2))
    scene.cluster.create(scene.autoscaler())

    def scale_and_edit(live: Any) -> None:
        live["spec"]["replicas"] = 5
        live["spec"]["template"]["spec"]["containers"][0]["image"] = "example.com/evil:9"

    edit(scene, web, scale_and_edit)
    restore(scene, look(scene, web))
    live: Any = scene.live(web)
    assert (live["spec"]["replicas"], live["spec"]["template"]["spec"]["containers"][0]["image"]) == (
        5,
        "example.com/web:1",
    )


def test_what_the_token_controller_fills_in_is_not_drift_and_what_others_add_beside_it_is(real_scene: Scene) -> None:
    bot = real_scene.namespaced("v1", "ServiceAccount", "bot")
    token = real_scene.namespaced("v1", "Secret", "token", type="kubernetes.io/service-account-token")
    token["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "bot"}
    real_scene.deploy(bot, token)
    wait_until(lambda: "token" in ((real_scene.live(token) or {}).get("data") or {}))
    assert look(real_scene, token).drift is None
    edit(real_scene, token, lambda live: live["data"].update(more="bW9yZQ=="))
    found = drift_of(real_scene, token)
    assert (found.kind, found.managers) == (DriftKind.ADDED, (OTHER,))


def test_a_finished_job_that_its_time_to_live_took_is_not_drift(scene: Scene) -> None:
    job = scene.job()
    job["spec"]["ttlSecondsAfterFinished"] = 0
    seen = look_at(scene.cluster, [OwnObject(Manifest(job), "gone")], manager=MANAGER, is_scaled=lambda _: False)
    assert seen[0].drift is None


def test_the_watch_sees_in_metadata_alone_all_that_a_look_would(scene: Scene) -> None:
    web = deployed(scene, scene.deployment())
    resource = scene.cluster.resource_of("apps", "v1", "Deployment")
    assert resource is not None
    for _ in range(10):  # a controller annotates a new Deployment at some moment
        ((objects, version), *_) = scene.cluster.pages(resource, namespace=scene.namespace, metadata_only=True)
        if [fingerprint(one) for one in objects] == [fingerprint(scene.live(web) or {})]:
            break
    else:
        raise AssertionError("metadata alone never has the fingerprint of the whole object")
    assert "spec" not in objects[0]
    watch = scene.cluster.watch(
        resource, namespace=scene.namespace, resource_version=version, timeout_seconds=60, metadata_only=True
    )
    before = fingerprint(scene.live(web) or {})
    edit(scene, web, lambda it: it["spec"].update(replicas=3))
    event = next(one for one in watch if one.type is WatchType.MODIFIED and fingerprint(one.object) != before)
    watch.close()
    assert "spec" not in event.object


def test_a_kind_whose_generation_never_moves_is_known_by_its_version(real_scene: Scene) -> None:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7, "description": "approved"}
    priority = deployed(real_scene, {**kind, "metadata": {"name": real_scene.namespace}})
    before = fingerprint(real_scene.live(priority) or {})
    edit(real_scene, priority, lambda it: it.update(description="other"))
    assert fingerprint(real_scene.live(priority) or {}) != before


names = st.text("abcxyz", min_size=1, max_size=3)
leaves = st.one_of(st.integers(0, 3), st.sampled_from(["x", "y"]), st.booleans())
trees = st.recursive(leaves, lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8)
objects = st.dictionaries(st.sampled_from(["spec", "webhooks", "rules", "secrets"]), trees, max_size=3)
kinds = st.sampled_from(
    [
        ("apps/v1", "Deployment"),
        ("v1", "ServiceAccount"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ]
)


def owned(paths: list[str]) -> dict[str, Any]:
    return {f"f:{path}": {".": {}} for path in paths}


@given(
    kinds, objects, st.lists(names, max_size=3), st.lists(st.sampled_from(["spec", "rules", "secrets"])), st.booleans()
)
def test_only_approved_content_is_ever_sent(
    kind: tuple[str, str], approved: dict[str, Any], ours: list[str], theirs: list[str], is_scaled: bool
) -> None:
    """Whatever stands in the cluster: each value that is sent is the approved one at its very place."""
    manifest = Manifest({"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "x"}, **approved})
    entries = [
        {"manager": MANAGER, "operation": "Apply", "fieldsV1": owned(ours)},
        {"manager": OTHER, "operation": "Update", "fieldsV1": owned(theirs) | {"f:spec": {"f:replicas": {}}}},
    ]
    live: JsonObject = {**manifest.body, "metadata": {"name": "x", "managedFields": entries}, "spec": {"replicas": 99}}
    sent = to_apply(manifest, live, manager=MANAGER, left=left_to_others(manifest, is_scaled=is_scaled)).body
    assert is_part(sent, manifest.body)
    assert is_part(body_of(replace(manifest, body=sent))["metadata"], manifest.body["metadata"])


class Recording(ClusterClient):
    """A cluster whose real writes are remembered as they were sent."""

    sent: list[tuple[dict[str, Any], bool]]

    def apply(self, obj: JsonObject, *, dry_run: bool = False, **options: Any) -> Applied:
        if not dry_run:
            self.sent.append((dict(obj), bool(options.get("force"))))
        return super().apply(obj, dry_run=dry_run, **options)


values = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["1", "2"]))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(approved=values, found=values, labels=values, is_deleted=st.booleans())
def test_whatever_others_do_only_approved_content_is_written(
    sandbox: Endpoint, approved: dict[str, str], found: dict[str, str], labels: dict[str, str], is_deleted: bool
) -> None:
    api = Recording.connect(sandbox.kubeconfig("admin"))
    api.sent = []
    scene = Scene(api, "default")
    settings_map = deployed(scene, scene.config_map(f"c{uuid.uuid4().hex[:8]}", **approved))
    if is_deleted:
        api.delete(ObjectRef.of(settings_map))
    else:
        edit(scene, settings_map, lambda it: it.update(data=found, metadata={**it["metadata"], "labels": labels}))
    api.sent.clear()
    seen = look(scene, settings_map)
    if seen.is_correctable:
        restore(scene, seen)
        assert all((scene.live(settings_map) or {})["data"][key] == value for key, value in approved.items())
    for body, is_forced in api.sent:
        meta = body.pop("metadata")
        assert is_part(body, {key: value for key, value in settings_map.items() if key != "metadata"})
        assert {key: meta[key] for key in ("name", "namespace")} == settings_map["metadata"]
        assert set(meta) - {"name", "namespace"} <= {"uid", "resourceVersion", "annotations"}
        assert set(meta.get("annotations") or ()) <= {NONCE}
        assert is_forced == bool(meta.get("uid")), "forced is only what is bound to the uid that was compared"
        assert meta["resourceVersion"]


def is_part(sent: Any, approved: Any) -> bool:
    if isinstance(sent, dict) and isinstance(approved, dict):
        return all(key in approved and is_part(value, approved[key]) for key, value in sent.items())
    if isinstance(sent, list) and isinstance(approved, list):
        return len(sent) == len(approved) and all(map(is_part, sent, approved))
    return type(sent) is type(approved) and bool(sent == approved)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "ports", "[containerPort=80,protocol=TCP]", "name"), "web"),
        (("spec", "ports", "[containerPort=81,protocol=TCP]", "name"), None),
        (("spec", "finalizers", '["a/b"]'), "a/b"),
        (("spec", "ports", "[0]", "name"), "web"),
        (("spec", "absent", "deeper"), None),
    ],
    ids=["item by keys, one defaulted", "no such item", "item by value", "item by place", "nothing there"],
)
def test_a_managers_path_finds_its_value(path: tuple[str, ...], value: object) -> None:
    spec = {"ports": [{"containerPort": 80, "name": "web"}], "finalizers": ["a/b"]}
    assert field_value({"spec": spec}, path) == value


def test_a_cluster_that_nobody_reaches_is_no_drift(nobody_there: ClusterClient) -> None:
    with pytest.raises(TryLater):
        look_at(
            nobody_there,
            [
                OwnObject(
                    Manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}}),
                    "u",
                )
            ],
            manager=MANAGER,
            is_scaled=lambda _: False,
        )


NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def after(count: int, *, every: timedelta = timedelta(seconds=1)) -> Strikes:
    strikes, now = Strikes(), NOON
    for _ in range(count):
        now = strikes.may_correct_at(now + every)
        strikes = strikes.after_correction(now)
    return strikes


@pytest.mark.parametrize(
    ("count", "seconds", "is_contested"),
    [(0, 0, False), (1, 0, False), (2, 0, False), (3, 10, True), (4, 20, True), (6, 80, True), (40, 3600, True)],
)
def test_the_pause_doubles_from_the_third_correction_in_a_row(count: int, seconds: int, is_contested: bool) -> None:
    strikes = after(count)
    assert (strikes.count, strikes.pause.total_seconds(), strikes.is_contested) == (count, seconds, is_contested)


def test_an_hour_of_fighting_every_second_is_answered_less_than_twelve_times() -> None:
    strikes, now, corrections = Strikes(), NOON, 0
    while now < NOON + timedelta(hours=1):
        if strikes.may_correct_at(now) <= now:
            strikes, corrections = strikes.after_correction(now), corrections + 1
        now += timedelta(seconds=1)
    assert PATIENCE < corrections < 12


def test_peace_begins_only_after_the_pause_has_passed_as_well() -> None:
    strikes = after(40)
    assert strikes.last is not None
    assert not strikes.is_peace(strikes.last + LONGEST_PAUSE)
    later = strikes.last + LONGEST_PAUSE + PEACE + timedelta(seconds=1)
    assert strikes.may_correct_at(later) == later
    assert strikes.after_correction(later) == Strikes(1, later)


def test_corrections_that_are_far_apart_are_no_fight() -> None:
    assert after(20, every=PEACE + timedelta(seconds=1)).count == 1


def scale(scene: Scene, obj: dict[str, Any], replicas: int) -> None:
    edit(scene, obj, lambda live: live["spec"].update(replicas=replicas))


def replicas_and_image(scene: Scene, obj: dict[str, Any]) -> tuple[int, str]:
    live: Any = scene.live(obj)
    return live["spec"]["replicas"], live["spec"]["template"]["spec"]["containers"][0]["image"]


def test_an_autoscalers_replicas_do_not_stand_in_the_way_of_an_upgrade(scene: Scene) -> None:
    web = deployed(scene, scene.deployment(replicas=2))
    scale(scene, web, 5)
    alone = action_of(scene.plan(web), web)
    assert (alone.problem_code, OTHER in alone.server_words) == (FieldConflict.code, True)
    assert "another manager owns spec.replicas" in alone.problem
    scene.cluster.create(scene.autoscaler())
    changed = scene.deployment(replicas=2, image="example.com/web:2")
    planned = scene.plan(changed)
    action = action_of(planned, changed)
    assert (action.action, action.problem, action.is_proved) == (Action.UPDATE, "", True)
    assert action.notes == ("spec.replicas stays as it is: another controller writes it",)
    assert states(scene.apply(planned, changed)) == {"Deployment/web": OutcomeState.DONE}
    assert replicas_and_image(scene, web) == (5, "example.com/web:2")
    assert action_of(scene.plan(changed), changed).action is Action.NONE


def test_an_autoscaler_that_comes_after_the_plan_is_left_its_replicas_too(scene: Scene) -> None:
    web = scene.deployment(replicas=2)
    scene.deploy(web)
    changed = scene.deployment(replicas=2, image="example.com/web:2")
    planned = scene.plan(changed)
    scene.cluster.create(scene.autoscaler())
    scale(scene, web, 5)
    assert failures(scene.apply(planned, changed)) == []
    assert replicas_and_image(scene, web) == (5, "example.com/web:2")


def test_what_an_autoscaler_scales_can_be_adopted_with_its_replicas(scene: Scene) -> None:
    web = scene.deployment(replicas=2)
    scene.cluster.apply(web, field_manager="somebody")
    scene.cluster.create(scene.autoscaler())
    scale(scene, web, 5)
    planned = scene.plan(web, collision_protection=CollisionProtection.IF_NO_CONTROLLER)
    assert (action_of(planned, web).action, action_of(planned, web).problem) == (Action.ADOPT, "")
    assert failures(scene.apply(planned, web)) == []
    assert replicas_and_image(scene, web)[0] == 5
    assert action_of(scene.plan(web), web).action is Action.NONE


def test_of_a_conflict_beside_it_nothing_is_taken_either(scene: Scene) -> None:
    web = scene.deployment(replicas=2)
    scene.deploy(web)
    scene.cluster.create(scene.autoscaler())
    scale(scene, web, 5)
    edit(scene, web, lambda live: live["spec"]["template"]["spec"]["containers"][0].update(image="example.com/evil:9"))
    action = action_of(scene.plan(web), web)
    assert action.problem_code == FieldConflict.code
    assert "image" in action.problem
    assert "replicas" not in action.problem


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture(params=[{}, {"caBundle": _encoded("\n")}], ids=["nothing", "a line feed"])
def hook(scene: Scene, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """A webhook whose certificate the content leaves to an injector; many bundles have a line feed in its place."""
    client = {"service": {"name": "hook", "namespace": scene.namespace}, **request.param}
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}
    one = {"name": "check.example.com", "clientConfig": client, "sideEffects": "None", "failurePolicy": "Ignore"}
    one |= {"admissionReviewVersions": ["v1"], "rules": [rule]}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    made = {**kind, "metadata": {"name": scene.namespace}, "webhooks": [one]}
    yield made
    with contextlib.suppress(PratiqueError):
        scene.cluster.delete(ObjectRef.of(made))


def test_an_injected_certificate_is_not_drift_stays_and_stands_in_no_upgrades_way(
    scene: Scene, hook: dict[str, Any]
) -> None:
    deployed(scene, hook)
    certificate = _encoded("-----BEGIN CERTIFICATE-----\n")
    edit(scene, hook, lambda live: live["webhooks"][0]["clientConfig"].update(caBundle=certificate))
    assert look(scene, hook).drift is None
    edit(scene, hook, lambda live: live["webhooks"][0].update(failurePolicy="Fail"))
    restore(scene, look(scene, hook))
    live: Any = scene.live(hook)
    client = live["webhooks"][0]["clientConfig"]
    assert (live["webhooks"][0]["failurePolicy"], client["caBundle"]) == ("Ignore", certificate)
    changed = {**hook, "webhooks": [{**hook["webhooks"][0], "timeoutSeconds": 7}]}
    planned = scene.plan(changed)
    assert action_of(planned, changed).problem == ""
    assert failures(scene.apply(planned, changed)) == []
    live = scene.live(hook)
    assert live["webhooks"][0]["timeoutSeconds"] == 7
    assert live["webhooks"][0]["clientConfig"]["caBundle"] == certificate


def test_the_rules_of_an_aggregated_role_do_not_stand_in_the_way(scene: Scene) -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {scene.namespace: "yes"}}]}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    role = {**kind, "metadata": {"name": scene.namespace}, "aggregationRule": selector, "rules": []}
    scene.deploy(role)
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    edit(scene, role, lambda live: live.update(rules=rules))
    labelled = {**role, "metadata": {"name": scene.namespace, "labels": {"a": "b"}}}
    planned = scene.plan(labelled)
    assert action_of(planned, labelled).problem == ""
    assert failures(scene.apply(planned, labelled)) == []
