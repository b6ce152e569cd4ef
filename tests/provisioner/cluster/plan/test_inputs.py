"""A webhook that does not answer: the bundle's own is planned around, anybody else's is waited for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from provisioner.cluster.annotations import Tracking
from provisioner.cluster.apply.correction import look_at
from provisioner.cluster.drift import OwnObject
from provisioner.cluster.health.observation import observe
from provisioner.cluster.order import phases
from provisioner.cluster.plan.inputs import names_of_own_webhooks, untried_words
from provisioner.errors import Unreachable
from provisioner.values import Action, HealthState, Manifest, ObjectRef, OutcomeState
from tests.support.kubernetes.live import is_unreachable, wait_until
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, content, failures
from tests.support.servers.process import free_port

CALLING = 'apply ConfigMap a/b: Internal error occurred: failed calling webhook "own.example.com": connection refused'
CONVERTING = "get Widget.example.com a/b: conversion webhook for example.com/v2, Kind=Widget failed: connection refused"
SERVING = "the API example.com/v1 is registered but does not answer"


def configuration(kind: str, name: str, *hooks: object) -> dict[str, Any]:
    api_version = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "webhooks": [*hooks]}


@pytest.mark.parametrize(
    ("own", "error", "is_own"),
    [
        pytest.param({"own.example.com"}, CALLING, True, id="own"),
        pytest.param({"other.example.com"}, CALLING, False, id="somebody-elses"),
        pytest.param(set(), CALLING, False, id="none-comes-along"),
        pytest.param({"own.example.com"}, "apply ConfigMap a/b: the server answered 503", False, id="the-server"),
        pytest.param({""}, 'failed calling webhook ""', False, id="without-a-name"),
        pytest.param({"Widget.example.com"}, CONVERTING, True, id="own-conversion"),
        pytest.param({"v1.example.com"}, SERVING, True, id="own-api-server"),
        pytest.param({"v2.example.com"}, SERVING, False, id="another-api-server"),
        pytest.param({"Gadget.example.com"}, CONVERTING, False, id="somebody-elses-conversion"),
    ],
)
def test_only_a_webhook_of_the_bundle_itself_leaves_an_object_untried(own: set[str], error: str, is_own: bool) -> None:
    words = untried_words(Unreachable("", server_words=error), frozenset(own))
    assert bool(words) is is_own
    assert error not in words


def test_webhooks_are_known_by_name_and_nonsense_has_none() -> None:
    objects = [
        configuration("ValidatingWebhookConfiguration", "a", {"name": "one"}, {"name": "two"}, {}, "three", None),
        configuration("MutatingWebhookConfiguration", "b", {"name": "four"}),
        configuration("ValidatingAdmissionPolicy", "c", {"name": "five"}),
        {**configuration("MutatingWebhookConfiguration", "d"), "webhooks": 6},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e"}, "webhooks": [{"name": "seven"}]},
    ]
    assert names_of_own_webhooks(Manifest(one) for one in objects) == {"one", "two", "four"}


def test_workloads_are_written_before_the_custom_resources_of_their_step(scene: Scene) -> None:
    files = [f"{number:02}.yaml" for number in range(20)]
    custom = [Manifest(scene.widget(f"w-{file}"), file) for file in files]
    (phase,) = phases([*custom, Manifest(scene.deployment(), "99.yaml")])
    assert phase.steps[0].manifests[0].ref.kind == "Deployment"


@pytest.fixture
def dead(real_scene: Scene) -> Iterator[dict[str, Any]]:
    """A webhook for all ConfigMaps of the scene, in force, behind which nobody listens."""
    scene = real_scene
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["configmaps"],
    }
    hook = {
        "name": f"{scene.namespace}.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{free_port()}/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    made = configuration("ValidatingWebhookConfiguration", scene.namespace, hook)
    kept = scene.config_map("kept", a="1")
    scene.deploy(kept)
    scene.cluster.create(made)
    try:
        wait_until(lambda: is_unreachable(lambda: scene.cluster.create(scene.config_map("probe"), dry_run=True)))
        yield made
    finally:
        scene.cluster.delete(ObjectRef.of(made))


def test_what_the_bundles_own_webhook_keeps_from_being_tried_is_planned_and_says_so(
    real_scene: Scene, dead: dict[str, Any]
) -> None:
    scene = real_scene
    changed, new = scene.config_map("kept", a="2"), scene.config_map("new")
    planned = scene.plan(changed, new, previous=content([dead]))
    found = [action_of(planned, one) for one in (changed, new)]
    assert [(one.action, one.is_proved, one.problem) for one in found] == [
        (Action.UPDATE, False, ""),
        (Action.CREATE, False, ""),
    ]
    said = re.compile(r"^a webhook of the bundle itself \([a-z0-9.-]+\) does not answer, ")
    assert all(said.search(one.notes[0]) for one in found)
    going = action_of(scene.plan(previous=content([dead])), changed)
    assert (going.action, going.is_proved, len(going.notes)) == (Action.DELETE, False, 1)


def test_anybody_elses_webhook_that_does_not_answer_is_waited_for(real_scene: Scene, dead: dict[str, Any]) -> None:
    for wished in ([real_scene.config_map("kept", a="2")], []):
        with pytest.raises(Unreachable) as caught:
            real_scene.plan(*wished)
        assert "failed calling webhook" in caught.value.server_words


def test_what_another_webhook_keeps_from_being_tried_is_compared_by_its_values(
    real_scene: Scene, dead: dict[str, Any]
) -> None:
    """And nothing keeps the other objects from being compared and put back."""
    scene = real_scene
    kept, web = scene.config_map("kept", a="1"), scene.deployment()
    other = Scene(scene.cluster, scene.namespace)
    other.deploy(web)
    items = scene.inventory.items() | other.inventory.items()
    known = [(one, items[ObjectRef.of(one).identity]) for one in (kept, web)]
    held = [OwnObject(Manifest(one), item.uid, Tracking.of(item.nonce)) for one, item in known]
    found = look_at(scene.cluster, held, manager=MANAGER, is_scaled=lambda _: False)
    assert [(look.drift, look.problem) for look in found] == [(None, ""), (None, "")]


@pytest.fixture
def unconverted(real_scene: Scene) -> dict[str, Any]:
    """A definition whose Widget is stored in v1, and can be read in no other version: nobody converts it."""
    made: dict[str, Any] = real_scene.definition()
    (one,) = made["spec"]["versions"]
    made["spec"]["versions"] = [{**one, "name": name, "storage": name == "v1"} for name in ("v1", "v2")]
    client = {"url": f"https://127.0.0.1:{free_port()}/"}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    assert failures(real_scene.deploy(made, real_scene.widget())) == []
    return made


def widget(scene: Scene) -> dict[str, Any]:
    return {**scene.widget(), "apiVersion": f"{scene.group}/v2"}


def test_a_dead_conversion_of_the_bundle_itself_can_be_mended(real_scene: Scene, unconverted: dict[str, Any]) -> None:
    mended = {**unconverted, "spec": {**unconverted["spec"], "conversion": {"strategy": "None"}}}
    changed = widget(real_scene)
    planned = real_scene.plan(mended, changed, previous=content([unconverted]))
    action = action_of(planned, changed)
    assert (action.action, action.problem, len(action.notes)) == (Action.UPDATE, "", 1)
    assert failures(real_scene.apply(planned, mended, changed)) == []
    assert real_scene.live(changed)


def test_the_health_of_all_else_is_known_where_a_conversion_is_dead(
    real_scene: Scene, unconverted: dict[str, Any]
) -> None:
    refs = [ObjectRef.of(widget(real_scene)), ObjectRef.of(unconverted)]
    found = observe(real_scene.cluster, refs, now=datetime.now(UTC))
    assert [found[ref].state for ref in refs] == [HealthState.UNKNOWN, HealthState.CURRENT]
    assert "conversion webhook" in found[refs[0]].server_words


@pytest.fixture
def unserved(real_scene: Scene) -> Iterator[dict[str, Any]]:
    """An APIService that nobody stands behind."""
    service = {"name": "nobody", "namespace": real_scene.namespace}
    served = {"group": real_scene.group, "version": "v1", "service": service, "insecureSkipTLSVerify": True}
    spec = {**served, "groupPriorityMinimum": 10, "versionPriority": 10}
    meta = {"name": f"v1.{real_scene.group}"}
    made = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": meta, "spec": spec}
    yield made
    real_scene.cluster.delete(ObjectRef.of(made))


def test_objects_of_an_api_server_that_comes_along_wait_for_it(real_scene: Scene, unserved: dict[str, Any]) -> None:
    thing = real_scene.widget()
    planned = real_scene.plan(unserved, thing)
    action = action_of(planned, thing)
    assert (action.action, action.problem, action.is_proved) == (Action.CREATE, "", False)
    found = {one.ref.kind: one for one in real_scene.apply(planned, unserved, thing, wait_seconds=0.5)}
    assert found["APIService"].state is OutcomeState.DONE
    assert (found["Widget"].state, "APIService" in found["Widget"].message) == (OutcomeState.SKIPPED, True)


def is_unanswered(scene: Scene) -> bool:
    scene.cluster.forget_discovery()
    return scene.cluster.served().is_unknown(scene.group, "v1")


def test_an_api_server_of_the_bundle_itself_that_is_dead_can_be_mended(
    real_scene: Scene, unserved: dict[str, Any]
) -> None:
    real_scene.deploy(unserved, wait_seconds=0.5)
    wait_until(lambda: is_unanswered(real_scene))
    thing = real_scene.widget()
    action = action_of(real_scene.plan(unserved, thing, previous=content([unserved])), thing)
    assert (action.problem, "an API server of the bundle itself" in action.notes[0]) == ("", True)
    with pytest.raises(Unreachable):
        real_scene.plan(thing)
