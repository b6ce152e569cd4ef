"""Claims that a StatefulSet takes along, where its retention policy changed since the plan was made (S15), on a real
API server: nothing is deleted or scaled down that would take data which the plan left where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from provisioner.cluster.annotations import RevisionOwner, Tracking
from provisioner.cluster.apply.correction import look_at, put_back
from provisioner.cluster.drift import OwnObject
from provisioner.cluster.plan.content_plan import compare_plans, data_lost_since, is_within
from provisioner.errors import LosesData
from provisioner.retention import left_out, takes_more
from provisioner.values import Action, Manifest, ObjectRef, PlannedAction
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, failures

OWNER = RevisionOwner("harbour", 1)


def stateful_set(scene: Scene, *, replicas: int = 3, **policy: str) -> dict[str, Any]:
    labels = {"app": "db"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "example.com/db:1"}]}}
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    spec: dict[str, Any] = {
        "replicas": replicas,
        "serviceName": "db",
        "selector": {"matchLabels": labels},
        "template": pod,
        "volumeClaimTemplates": [claim],
    }
    spec |= {"persistentVolumeClaimRetentionPolicy": policy} if policy else {}
    return scene.namespaced("apps/v1", "StatefulSet", "db", spec=spec)


def retain(**policy: str) -> Callable[[Any], object]:
    """Somebody changes what becomes of the claims."""
    return lambda live: live["spec"].setdefault("persistentVolumeClaimRetentionPolicy", {}).update(policy)


@pytest.mark.parametrize("owner", [OWNER, None], ids=["of a deployment", "of the command line"])
def test_S15_a_stateful_set_that_takes_its_claims_along_by_now_is_not_deleted(
    scene: Scene, owner: RevisionOwner | None
) -> None:
    db = stateful_set(scene)
    scene.deploy(db)
    reviewed = scene.plan()
    scene.edit(db, retain(whenDeleted="Delete"), manager="kubectl-edit")
    again = scene.plan(reviewed=reviewed)
    assert not is_within(again.actions, reviewed.actions)
    assert "its PersistentVolumeClaims would be deleted" in data_lost_since(again.actions, reviewed.actions)[0]
    (difference,) = compare_plans(again.actions, reviewed.actions)
    assert difference.now == "delete, and its PersistentVolumeClaims go with it"
    (found,) = failures(scene.apply(reviewed, owner=owner))
    assert "its PersistentVolumeClaims would be deleted" in found
    assert scene.live(db)
    assert failures(scene.apply(again, owner=owner)) == [], "once that was shown"
    assert scene.live(db) is None


def test_S15_one_that_keeps_them_by_now_is_deleted(scene: Scene) -> None:
    db = stateful_set(scene, whenDeleted="Delete")
    scene.deploy(db)
    reviewed = scene.plan()
    scene.edit(db, retain(whenDeleted="Retain"), manager="kubectl-edit")
    assert is_within(scene.plan(reviewed=reviewed).actions, reviewed.actions)
    assert failures(scene.apply(reviewed, owner=OWNER)) == []


@pytest.mark.parametrize(
    ("change", "pods"),
    [
        pytest.param(retain(whenScaled="Delete"), "1 to 2", id="the policy"),
        pytest.param(
            lambda live: (retain(whenScaled="Delete")(live), live["spec"].update(replicas=5)), "1 to 4", id="and more"
        ),
    ],
)
def test_S15_one_that_takes_claims_along_when_scaled_is_not_scaled_down(
    scene: Scene, change: Callable[[Any], object], pods: str
) -> None:
    scene.deploy(stateful_set(scene))
    fewer = stateful_set(scene, replicas=1)
    reviewed = scene.plan(fewer)
    scene.edit(fewer, change, manager=MANAGER)
    again = scene.plan(fewer, reviewed=reviewed)
    assert action_of(again, fewer).action is Action.UPDATE
    assert f"of pods {pods} would be deleted" in data_lost_since(again.actions, reviewed.actions)[0]
    (found,) = failures(scene.apply(reviewed, fewer, owner=OWNER))
    # How many there are is a field that they own by then.
    assert f"of pods {pods} would be deleted" in found or "another manager owns spec.replicas" in found
    live = scene.live(fewer)
    assert live is not None
    assert live["spec"]["replicas"] > 1


def going(before: dict[str, Any], after: dict[str, Any]) -> PlannedAction:
    return PlannedAction(ObjectRef("apps", "v1", "StatefulSet", "shop", "db"), Action.UPDATE, "u", "", before, after)


def of(replicas: int | None, *, start: int | None = None, when: str | None = "Delete") -> dict[str, Any]:
    spec: dict[str, Any] = {"volumeClaimTemplates": [{}]}
    spec |= {"replicas": replicas} if replicas is not None else {}
    spec |= {"ordinals": {"start": start}} if start is not None else {}
    spec |= {"persistentVolumeClaimRetentionPolicy": {"whenScaled": when}} if when else {}
    return {"spec": spec}


@pytest.mark.parametrize(
    ("before", "after", "pods"),
    [
        pytest.param(of(3), of(3), [], id="as many"),
        pytest.param(of(3), of(5), [], id="more"),
        pytest.param(of(5), of(3), [range(3, 5)], id="fewer"),
        pytest.param(of(5), of(0), [range(5)], id="none"),
        pytest.param(of(5), of(3, when="Retain"), [], id="kept from now on"),
        pytest.param(of(5, when="Retain"), of(3), [range(3, 5)], id="no longer kept"),
        pytest.param(of(5, when=None), of(3, when=None), [], id="kept, as nobody says otherwise"),
        pytest.param(of(5), of(3, when=None), [range(3, 5)], id="as it is"),
        pytest.param(of(5), of(None), [], id="as many as there are"),
        pytest.param(of(None), of(0), [range(1)], id="of the one that there is by default"),
        pytest.param(of(3), of(3, start=2), [range(2)], id="the first ones"),
        pytest.param(of(5), of(1, start=2), [range(2), range(3, 5)], id="on both sides"),
        pytest.param(of(2), of(2, start=7), [range(2)], id="all of them"),
        pytest.param(of(2, start=7), of(2), [range(7, 9)], id="all of them, the other way"),
        pytest.param({"spec": {"replicas": 3}}, {"spec": {"replicas": 1}}, [], id="without claims"),
    ],
)
def test_scaling_down_takes_the_claims_of_the_pods_that_go(
    before: dict[str, Any], after: dict[str, Any], pods: list[range]
) -> None:
    assert list(left_out(before, after)) == pods


@pytest.mark.parametrize(
    ("now", "was", "words"),
    [
        pytest.param((5, 1), (5, 1), "", id="as it was shown"),
        pytest.param((3, 1), (5, 1), "", id="fewer"),
        pytest.param((6, 1), (5, 1), "of pods 1 to 5", id="more"),
        pytest.param((2, 1), (1, 1), "of pods 1 would", id="one"),
    ],
)
def test_S15_more_pods_than_were_shown_are_more(now: tuple[int, int], was: tuple[int, int], words: str) -> None:
    found = takes_more(going(*map(of, now)), going(*map(of, was)))
    assert (words in found) if words else not found


def test_S15_drift_is_not_corrected_by_deleting_claims(scene: Scene) -> None:
    db = stateful_set(scene, whenScaled="Delete")
    scene.deploy(db)
    item = scene.inventory.items()[ObjectRef.of(db).identity]
    held = OwnObject(Manifest(db), item.uid, Tracking.of(item.nonce))

    def correct() -> None:
        (look,) = look_at(scene.cluster, [held], manager=MANAGER, is_scaled=lambda _: False)
        assert look.drift is not None
        put_back(scene.cluster, look, manager=MANAGER, is_scaled=lambda _: False)

    scene.edit(db, lambda live: live["spec"].update(replicas=5), manager="kubectl-scale")
    with pytest.raises(LosesData, match="of pods 3 to 4 would be deleted"):
        correct()
    scene.edit(db, lambda live: live["spec"].update(replicas=1), manager="kubectl-scale")
    correct()
    live = scene.live(db)
    assert live is not None
    assert live["spec"]["replicas"] == 3
