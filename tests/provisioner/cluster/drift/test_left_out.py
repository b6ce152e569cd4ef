"""Fields that another controller is there to write do not stand in the way of the next revision, and are not taken."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from provisioner.cluster.apply.correction import look_at
from provisioner.cluster.drift.detection import OwnObject
from provisioner.cluster.tracking import Tracking
from provisioner.errors import FieldConflict, PratiqueError
from provisioner.values import Action, CollisionProtection, Manifest, ObjectRef, OutcomeState
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, failures, states

CONTROLLER = "a-controller"


def edit(scene: Scene, obj: dict[str, Any], change: Callable[[Any], object]) -> None:
    scene.edit(obj, change, manager=CONTROLLER)


def scale(scene: Scene, obj: dict[str, Any], replicas: int) -> None:
    edit(scene, obj, lambda live: live["spec"].update(replicas=replicas))


def replicas_and_image(scene: Scene, obj: dict[str, Any]) -> tuple[int, str]:
    live: Any = scene.live(obj)
    return live["spec"]["replicas"], live["spec"]["template"]["spec"]["containers"][0]["image"]


def test_an_autoscalers_replicas_do_not_stand_in_the_way_of_an_upgrade(scene: Scene) -> None:
    web = scene.deployment(replicas=2)
    scene.deploy(web)
    scene.cluster.create(scene.autoscaler())
    scale(scene, web, 5)
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


def test_without_an_autoscaler_who_scaled_it_is_named(scene: Scene) -> None:
    web = scene.deployment(replicas=2)
    scene.deploy(web)
    scale(scene, web, 5)
    action = action_of(scene.plan(web), web)
    assert (action.problem_code, CONTROLLER in action.server_words) == (FieldConflict.code, True)
    assert "another manager owns spec.replicas" in action.problem


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


@pytest.fixture
def hook(scene: Scene) -> Iterator[dict[str, Any]]:
    """A webhook whose certificate the content leaves to an injector, with a line feed in its place as many bundles do."""
    client = {"service": {"name": "hook", "namespace": scene.namespace}, "caBundle": _encoded("\n")}
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}
    one = {"name": "check.example.com", "clientConfig": client, "sideEffects": "None", "failurePolicy": "Ignore"}
    one |= {"admissionReviewVersions": ["v1"], "rules": [rule]}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    made = {**kind, "metadata": {"name": scene.namespace}, "webhooks": [one]}
    yield made
    with contextlib.suppress(PratiqueError):
        scene.cluster.delete(ObjectRef.of(made))


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def inject(scene: Scene, hook: dict[str, Any]) -> str:
    found = _encoded("-----BEGIN CERTIFICATE-----\n")
    edit(scene, hook, lambda live: live["webhooks"][0]["clientConfig"].update(caBundle=found))
    return found


def test_an_injected_certificate_does_not_stand_in_the_way_of_an_upgrade(scene: Scene, hook: dict[str, Any]) -> None:
    scene.deploy(hook)
    certificate = inject(scene, hook)
    changed = {**hook, "webhooks": [{**hook["webhooks"][0], "timeoutSeconds": 7}]}
    planned = scene.plan(changed)
    assert action_of(planned, changed).problem == ""
    assert failures(scene.apply(planned, changed)) == []
    live: Any = scene.live(hook)
    assert live["webhooks"][0]["timeoutSeconds"] == 7
    assert live["webhooks"][0]["clientConfig"]["caBundle"] == certificate


def test_an_injected_certificate_in_the_place_of_another_is_not_drift(scene: Scene, hook: dict[str, Any]) -> None:
    scene.deploy(hook)
    inject(scene, hook)
    item = scene.inventory.items()[ObjectRef.of(hook).identity]
    held = OwnObject(Manifest(hook), item.uid, Tracking.of(item.nonce))
    (found,) = look_at(scene.cluster, [held], manager=MANAGER, is_scaled=lambda _: False)
    assert (found.drift, found.problem) == (None, "")


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
