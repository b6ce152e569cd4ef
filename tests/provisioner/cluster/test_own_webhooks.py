"""A webhook that does not answer: the bundle's own is planned around, anybody else's is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from provisioner.cluster.order import phases
from provisioner.cluster.own_webhooks import names_of, untried_words
from provisioner.errors import Unreachable
from provisioner.values import Action, Manifest, ObjectRef
from tests.provisioner.cluster.scene import Scene, action_of, content
from tests.services.process import free_port

CALLING = 'apply ConfigMap a/b: Internal error occurred: failed calling webhook "own.example.com": connection refused'
IN_FORCE_TRIES = 200


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
    ],
)
def test_only_a_webhook_of_the_bundle_itself_leaves_an_object_untried(own: set[str], error: str, is_own: bool) -> None:
    words = untried_words(Unreachable(error), frozenset(own))
    assert bool(words) is is_own
    assert not words or error in words


def test_webhooks_are_known_by_name_and_nonsense_has_none() -> None:
    objects = [
        configuration("ValidatingWebhookConfiguration", "a", {"name": "one"}, {"name": "two"}, {}, "three", None),
        configuration("MutatingWebhookConfiguration", "b", {"name": "four"}),
        configuration("ValidatingAdmissionPolicy", "c", {"name": "five"}),
        {**configuration("MutatingWebhookConfiguration", "d"), "webhooks": 6},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e"}, "webhooks": [{"name": "seven"}]},
    ]
    assert names_of(Manifest(one) for one in objects) == {"one", "two", "four"}


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
        _wait_until_in_force(scene)
        yield made
    finally:
        scene.cluster.delete(ObjectRef.of(made))


def _wait_until_in_force(scene: Scene) -> None:
    for number in range(IN_FORCE_TRIES):
        try:
            scene.cluster.create(scene.config_map(f"probe-{number}"))
        except Unreachable:
            return
    raise AssertionError("the webhook is never in force")


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
    assert all("a webhook of the bundle itself does not answer" in one.warnings[0] for one in found)
    going = action_of(scene.plan(previous=content([dead])), changed)
    assert (going.action, going.is_proved, len(going.warnings)) == (Action.DELETE, False, 1)


def test_anybody_elses_webhook_that_does_not_answer_is_waited_for(real_scene: Scene, dead: dict[str, Any]) -> None:
    with pytest.raises(Unreachable, match="failed calling webhook"):
        real_scene.plan(real_scene.config_map("kept", a="2"))
    with pytest.raises(Unreachable, match="failed calling webhook"):
        real_scene.plan()
