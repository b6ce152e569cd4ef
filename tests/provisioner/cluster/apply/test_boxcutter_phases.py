"""boxcutter's phases and revisions, and OLM v1's sets of them, by the names of their tests.

What there is a phase's digest, recorded when it is first seen, is here the digest of the content and that of the plan,
recorded when they are reviewed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from provisioner.cluster.annotations import RevisionOwner, Tracking
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.errors import AlreadyExists, InvalidObject, PreconditionFailed
from provisioner.health_checks import health_checks
from provisioner.render import content_digest
from provisioner.values import Action, CollisionProtection, Manifest, ObjectRef, OutcomeState, PlannedAction
from tests.support.provisioner.cluster_scene import Scene, action_of, failures, states

DONE, FAILED, SKIPPED = OutcomeState.DONE, OutcomeState.FAILED, OutcomeState.SKIPPED
GATE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gate", "fieldValue": {"path": "data.open", "value": "yes"}}


def waits_on_incomplete_phase(scene: Scene) -> None:
    gate = scene.config_map("gate", open="no")
    checks = health_checks({"healthChecks": [GATE]})
    outcomes = scene.deploy(gate, scene.service(), checks=checks, wait_seconds=0.3)
    assert states(outcomes) == {"ConfigMap/gate": DONE, "Service/web": SKIPPED}
    assert scene.live(scene.service()) is None


def validation_failure(scene: Scene) -> None:
    """An object of a late phase that the API server refuses keeps everything before it from being written too."""
    broken = scene.service()
    broken["spec"]["type"] = "Harbour"
    planned = scene.plan(settings := scene.config_map(), broken)
    assert action_of(planned, broken).problem_code == InvalidObject.code
    with pytest.raises(PreconditionFailed, match="spec.type") as caught:
        scene.apply(planned, settings, broken)
    assert "Harbour" in caught.value.server_words
    assert (scene.live(settings), scene.inventory.items()) == (None, {})


def teardown_delayed(scene: Scene) -> None:
    """What came last goes first, and what came before it stays while a finalizer holds that."""
    scene.deploy(settings := scene.config_map(), web := scene.service())
    scene.edit(web, lambda it: it["metadata"].update(finalizers=["example.com/hold"]), manager="somebody")
    assert states(scene.deploy(wait_seconds=0.3)) == {"Service/web": FAILED, "ConfigMap/settings": SKIPPED}
    assert scene.live(settings) is not None
    scene.edit(web, lambda it: it["metadata"].update(finalizers=[]), manager="somebody")
    assert failures(scene.deploy()) == []
    assert (scene.live(settings), scene.inventory.items()) == (None, {})


ENGINE: dict[str, Callable[[Scene], None]] = {
    "WaitsOnIncompletePhase": waits_on_incomplete_phase,
    "ValidationFailure": validation_failure,
    "Teardown_delayed": teardown_delayed,
}


@pytest.mark.parametrize("row", ENGINE.values(), ids=ENGINE)
def test_boxcutter_phases_row(scene: Scene, row: Callable[[Scene], None]) -> None:
    row(scene)


def higher_revision(scene: Scene) -> None:
    """A later revision has no more right to somebody else's object than the first."""
    other = scene.config_map("other")
    scene.deploy(other, owner=RevisionOwner("harbour", 1))
    scene.cluster.create(before := scene.config_map(a="1"), field_manager="somebody")
    with pytest.raises(PreconditionFailed, match="does not belong to this deployment"):
        scene.deploy(other, scene.config_map(a="1"), owner=RevisionOwner("harbour", 2))
    live: Any = scene.live(before)
    assert "annotations" not in live["metadata"]


def foreign_revision(scene: Scene) -> None:
    """Another deployment's revision holds the object; whose it is, is named, also where adopting is allowed."""
    pier = Scene(scene.cluster, scene.namespace)
    pier.deploy(scene.config_map(a="1"), owner=RevisionOwner("pier", 1))
    (uid,) = (item.uid for item in pier.inventory.items().values())
    for protection in CollisionProtection:
        planned = scene.plan(obj := scene.config_map(a="1"), collision_protection=protection, others={uid: "pier"})
        found = action_of(planned, obj)
        assert (found.action, found.problem_code) == (Action.ADOPT, AlreadyExists.code)
        assert "does not belong to this deployment: the BundleDeployment pier holds it" in found.problem


COLLISIONS: dict[str, Callable[[Scene], None]] = {
    "HigherRevisionDoesNotAdoptForeignObject": higher_revision,
    "ForeignRevisionCollision": foreign_revision,
}


@pytest.mark.parametrize("row", COLLISIONS.values(), ids=COLLISIONS)
def test_boxcutter_collision_protection_row(scene: Scene, row: Callable[[Scene], None]) -> None:
    row(scene)


def written_for(text: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {"core.rukpak.io/owner": text}}}


@pytest.mark.parametrize(
    ("obj", "newer"),
    [
        pytest.param({"metadata": Tracking.of("n", RevisionOwner("harbour", 1)).put_on({})}, 0, id="older sibling"),
        pytest.param({"metadata": Tracking.of("n", RevisionOwner("harbour", 2)).put_on({})}, 0, id="itself"),
        pytest.param({"metadata": Tracking.of("n", RevisionOwner("harbour", 3)).put_on({})}, 0, id="newer, and known"),
        pytest.param({"metadata": Tracking.of("n", RevisionOwner("harbour", 4)).put_on({})}, 4, id="newer sibling"),
        pytest.param({"metadata": Tracking.of("n", RevisionOwner("pier", 9)).put_on({})}, 0, id="no sibling"),
        pytest.param({"metadata": Tracking.of("n", RevisionOwner("harbour2", 9)).put_on({})}, 0, id="a longer name"),
        pytest.param({}, 0, id="nobody's"),
        pytest.param(written_for("mine"), 0, id="other words"),
        pytest.param(written_for("BundleDeployment harbour, revision -4"), 0, id="no number"),
        pytest.param(written_for(f"BundleDeployment harbour, revision {'9' * 5000}"), 0, id="too long a number"),
    ],
)
def test_sibling_owner_classifier(obj: dict[str, Any], newer: int) -> None:
    """boxcutter's TestSiblingOwnerClassifier, asked by revision 2 at a time when there were three."""
    assert RevisionOwner("harbour", 2, newest=3).newer_on(obj) == newer


def config(name: str = "a", value: str = "1") -> Manifest:
    meta = {"name": name, "namespace": "n"}
    return Manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": value}})


def digest(*manifests: Manifest, namespace: str = "n", account: str = "s") -> str:
    return content_digest(manifests, install_namespace=namespace, service_account=account)


MANY = [config(f"part-{number}") for number in range(50)]


def test_compute_phase_digest_is_deterministic() -> None:
    keys = {"kind": "ConfigMap", "data": {"a": "1"}, "metadata": {"namespace": "n", "name": "a"}, "apiVersion": "v1"}
    assert digest(config()) == digest(config()) == digest(Manifest(keys))


def test_compute_phase_digest_many_objects() -> None:
    assert len({digest(*MANY[:count]) for count in range(len(MANY) + 1)}) == len(MANY) + 1


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(digest(config("a", "2"), config("b")), id="content change"),
        pytest.param(digest(config("a"), config("c")), id="name change"),
        pytest.param(digest(config("b"), config("a")), id="order change"),
        pytest.param(digest(config("a"), config("b"), namespace="ns", account=""), id="another place"),
        pytest.param(digest(), id="empty"),
    ],
)
def test_compute_phase_digest_tells(other: str) -> None:
    """Manifests come sorted out of rendering (tests/provisioner/render), so that another order is another apply."""
    assert digest(config("a"), config("b")) != other


def test_compute_phase_digest_prefix() -> None:
    """It names its algorithm, and no field runs into the next."""
    assert digest().startswith("sha256:")
    assert digest(namespace="ab", account="c") != digest(namespace="a", account="bc")
    refs = [ObjectRef("", "v1", "ConfigMap", *place) for place in (("ab", "c"), ("a", "bc"))]
    digests = {plan_digest([PlannedAction(ref, Action.CREATE)]) for ref in refs}
    assert len(digests) == 2
    assert all(one.startswith("sha256:") for one in digests)
