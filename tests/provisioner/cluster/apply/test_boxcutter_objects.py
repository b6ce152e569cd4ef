"""boxcutter's engine row by row, by the names of its objects_test.

There an object belongs to a revision, and revisions that live side by side are siblings. Here the revisions of one
deployment share one inventory and follow each other, so that a sibling is an apply of the same deployment that another
one has overtaken, and a foreign revision is another deployment. Where a row has no counterpart, its docstring says what
the nearest behaviour is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from provisioner.cluster.annotations import NONCE, OWNER, RevisionOwner
from provisioner.cluster.inventory import MemoryInventory
from provisioner.errors import AlreadyExists, FieldConflict, PreconditionFailed
from provisioner.values import Action, CollisionProtection, InventoryItem, ObjectRef, OutcomeState
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, failures, states

DONE, FAILED, UNCHANGED = OutcomeState.DONE, OutcomeState.FAILED, OutcomeState.UNCHANGED
PREVENT, IF_NO_CONTROLLER = CollisionProtection.PREVENT, CollisionProtection.IF_NO_CONTROLLER
FIRST, SECOND, THIRD = (RevisionOwner("harbour", number) for number in (1, 2, 3))
SETTINGS = "ConfigMap/settings"


def data_of(scene: Scene) -> Any:
    live = scene.live(scene.config_map())
    return live and live["data"]


def theirs(scene: Scene, **meta: Any) -> dict[str, Any]:
    """The same object, made by somebody else before us."""
    obj = scene.config_map(a="theirs")
    obj["metadata"] |= meta
    return scene.cluster.create(obj, field_manager="somebody")


def controlled(scene: Scene) -> dict[str, Any]:
    made = scene.cluster.create(scene.service("shop"))
    about = {"apiVersion": "v1", "kind": "Service", "name": "shop", "uid": made["metadata"]["uid"]}
    return theirs(scene, ownerReferences=[{**about, "controller": True}])


def refuses(scene: Scene, protection: CollisionProtection, words: str, **more: Any) -> None:
    """The plan holds the collision, and nothing is written."""
    before = scene.live(scene.config_map())
    planned = scene.plan(obj := scene.config_map(a="1"), collision_protection=protection, **more)
    found = action_of(planned, obj)
    assert (found.action, found.problem_code) == (Action.ADOPT, AlreadyExists.code)
    assert "does not belong to this deployment" in found.problem
    assert words in found.server_words
    with pytest.raises(PreconditionFailed):
        scene.apply(planned, obj)
    assert scene.live(obj) == before


def created(scene: Scene) -> None:
    planned = scene.plan(obj := scene.config_map(a="1"))
    assert action_of(planned, obj).action is Action.CREATE
    assert states(scene.apply(planned, obj)) == {SETTINGS: DONE}
    assert data_of(scene) == {"a": "1"}


def idle(scene: Scene) -> None:
    scene.deploy(obj := scene.config_map(a="1"))
    before = scene.live(obj)
    assert states(scene.deploy(obj)) == {SETTINGS: UNCHANGED}
    assert scene.live(obj) == before


def updated_modified(scene: Scene) -> None:
    scene.deploy(scene.config_map(a="1"))
    assert states(scene.deploy(scene.config_map(a="2"))) == {SETTINGS: DONE}
    assert data_of(scene) == {"a": "2"}


def recovered(scene: Scene) -> None:
    """boxcutter takes the field by force. An apply here never does: the plan names who has it, and nothing is written.

    Drift is put back apart from applying (test_drift.py).
    """
    scene.deploy(scene.config_map(a="1"))
    scene.cluster.apply(scene.config_map(a="theirs"), field_manager="somebody", force=True)
    found = action_of(scene.plan(obj := scene.config_map(a="2")), obj)
    assert found.problem_code == FieldConflict.code
    assert "another manager owns data.a" in found.problem
    assert found.server_words == "somebody owns .data.a"
    assert data_of(scene) == {"a": "theirs"}


def recovered_revision_annotation_drift(scene: Scene) -> None:
    """What somebody wrote over our note of owner and revision stops nothing and stays; the inventory knows whose it is."""
    scene.deploy(scene.config_map(a="1"), owner=FIRST)
    scene.edit(scene.config_map(), lambda it: it["metadata"]["annotations"].update({OWNER: "mine"}), manager="somebody")
    changed = scene.config_map(a="2")
    assert states(scene.deploy(changed, owner=SECOND)) == {SETTINGS: DONE}
    live: Any = scene.live(changed)
    assert (live["data"], live["metadata"]["annotations"][OWNER]) == ({"a": "2"}, "mine")


def progressed(scene: Scene) -> None:
    """A worker that stood still goes on with revision 2 when revision 3 has written: it leaves what that one wrote."""
    scene.deploy(scene.config_map(a="1"), owner=FIRST)
    late = scene.plan(older := scene.config_map(a="2"))
    assert failures(scene.deploy(scene.config_map(a="3"), owner=THIRD)) == []
    (outcome,) = scene.apply(late, older, owner=SECOND)
    assert (outcome.state, data_of(scene)) == (FAILED, {"a": "3"})
    assert "written for revision 3 since this apply began" in outcome.message


def progressed_and_back(scene: Scene) -> None:
    """The same where revision 3 wrote what was there before: no value tells, only who wrote."""
    scene.deploy(scene.config_map(a="1"), owner=FIRST)
    late = scene.plan(older := scene.config_map(a="2"))
    assert failures(scene.deploy(scene.config_map(a="0"), owner=THIRD)) == []
    assert failures(scene.deploy(scene.config_map(a="1"), owner=THIRD)) == []
    (outcome,) = scene.apply(late, older, owner=SECOND)
    assert (outcome.state, data_of(scene)) == (FAILED, {"a": "1"})


def put_back_over_a_newer_one(scene: Scene) -> None:
    """Who puts revision 1 back in full knowledge of revision 2 is not late."""
    scene.deploy(scene.config_map(a="1"), owner=FIRST)
    scene.deploy(scene.config_map(a="2"), owner=SECOND)
    planned = scene.plan(older := scene.config_map(a="1"))
    scene.cluster.apply(scene.config_map(b="theirs"), field_manager="somebody")
    assert failures(scene.apply(planned, older, owner=RevisionOwner("harbour", 1, newest=2))) == []
    assert data_of(scene) == {"a": "1", "b": "theirs"}


def another_deployments_number(scene: Scene) -> None:
    """Numbers of another deployment say nothing about ours."""
    scene.deploy(scene.config_map(a="1"), owner=FIRST)
    planned = scene.plan(changed := scene.config_map(a="2"))
    pier = {OWNER: str(RevisionOwner("pier", 9))}
    scene.edit(scene.config_map(), lambda it: it["metadata"]["annotations"].update(pier), manager="somebody")
    assert failures(scene.apply(planned, changed, owner=SECOND)) == []
    assert data_of(scene) == {"a": "2"}


def collision_unknown_controller(scene: Scene) -> None:
    controlled(scene)
    refuses(scene, IF_NO_CONTROLLER, "its controller Service shop")


def collision_no_controller(scene: Scene) -> None:
    theirs(scene)
    refuses(scene, PREVENT, "written by somebody")


def collision_boxcutter_managed(scene: Scene) -> None:
    theirs(scene, annotations={NONCE: "n" * 32})
    refuses(scene, IF_NO_CONTROLLER, "another deployment of Pratique")


def collision_sibling_same_revision(scene: Scene) -> None:
    """Two workers with one revision: the object of the one is met by its nonce, and not made twice."""
    planned = scene.plan(obj := scene.config_map(a="1"))
    scene.inventory = MemoryInventory([InventoryItem(ObjectRef.of(obj), "n1")])
    meta = {**obj["metadata"], "annotations": {NONCE: "n1"}}
    made = scene.cluster.apply({**obj, "metadata": meta}, field_manager=MANAGER).object
    assert failures(scene.apply(planned, obj, owner=FIRST)) == []
    assert scene.inventory.items()[ObjectRef.of(obj).identity].uid == made["metadata"]["uid"]


def updated_no_controller(scene: Scene) -> None:
    obj = scene.config_map(a="theirs", b="2")
    theirs(scene)
    planned = scene.plan(obj, collision_protection=IF_NO_CONTROLLER)
    assert action_of(planned, obj).action is Action.ADOPT
    assert states(scene.apply(planned, obj)) == {SETTINGS: DONE}
    assert data_of(scene) == {"a": "theirs", "b": "2"}


def updated_takeover(scene: Scene) -> None:
    """The next revision writes what the one before it wrote, and says so on the object."""
    scene.deploy(scene.config_map(a="1"), owner=FIRST)
    assert states(scene.deploy(scene.config_map(a="2"), owner=SECOND)) == {SETTINGS: DONE}
    live: Any = scene.live(scene.config_map())
    assert (live["data"], live["metadata"]["annotations"][OWNER]) == ({"a": "2"}, str(SECOND))


def protection_none(scene: Scene) -> None:
    """boxcutter's None takes from anybody. There is none here: nobody's approval can name it."""
    assert {str(one) for one in CollisionProtection} == {"Prevent", "IfNoController"}
    controlled(scene)
    for protection in CollisionProtection:
        refuses(scene, protection, "its controller Service shop")


def protection_none_absent(scene: Scene) -> None:
    """Where nothing is in the way every protection creates."""
    for name, protection in (("one", PREVENT), ("two", IF_NO_CONTROLLER)):
        planned = scene.plan(scene.config_map("one"), obj := scene.config_map(name), collision_protection=protection)
        assert action_of(planned, obj).action is Action.CREATE


def paused(prepare: Callable[[Scene], object]) -> Callable[[Scene], None]:
    """boxcutter's paused is a dry-run. Here the plan is that; an apply that meets a pause ends before its next phase."""

    def row(scene: Scene) -> None:
        prepare(scene)
        before = scene.live(obj := scene.config_map(a="2"))

        def gate(_: str) -> None:
            raise PreconditionFailed("it is paused")

        with pytest.raises(PreconditionFailed, match="it is paused"):
            scene.apply(scene.plan(obj), obj, before_phase=gate, owner=SECOND)
        assert scene.live(obj) == before

    row.__doc__ = paused.__doc__
    return row


def drifted(scene: Scene) -> None:
    scene.deploy(scene.config_map(a="1"))
    scene.edit(scene.config_map(), lambda it: it.update(data={}), manager="somebody")


ROWS: dict[str, Callable[[Scene], None]] = {
    "Created": created,
    "Idle": idle,
    "Updated-modified": updated_modified,
    "Recovered": recovered,
    "Recovered-revision-annotation-drift": recovered_revision_annotation_drift,
    "Progressed (sibling higher)": progressed,
    "Progressed (sibling higher), same value": progressed_and_back,
    "Progressed (sibling higher), but known": put_back_over_a_newer_one,
    "Progressed (sibling higher), of another": another_deployments_number,
    "Collision unknown controller": collision_unknown_controller,
    "Collision no controller": collision_no_controller,
    "Collision boxcutter-managed": collision_boxcutter_managed,
    "Collision sibling same revision": collision_sibling_same_revision,
    "Updated noController IfNoController": updated_no_controller,
    "Updated takeover from sibling": updated_takeover,
    "CollisionProtectionNone +": protection_none,
    "CollisionProtectionNone -": protection_none_absent,
    "Paused create": paused(lambda scene: None),
    "Paused apply skipped": paused(lambda scene: scene.deploy(scene.config_map(a="1"))),
    "Paused recovered": paused(drifted),
    "Paused takeover": paused(lambda scene: scene.deploy(scene.config_map(a="1"), owner=FIRST)),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_boxcutter_row(scene: Scene, row: Callable[[Scene], None]) -> None:
    row(scene)


def orphan(scene: Scene) -> None:
    scene.deploy(obj := scene.config_map(a="1"), owner=FIRST)
    assert states(scene.apply(scene.plan(is_orphaning=True))) == {SETTINGS: UNCHANGED}
    live: Any = scene.live(obj)
    assert (live["data"], {NONCE, OWNER} & live["metadata"].get("annotations", {}).keys()) == ({"a": "1"}, set())


def not_found(scene: Scene) -> None:
    scene.deploy(obj := scene.config_map())
    scene.cluster.delete(ObjectRef.of(obj))
    assert states(scene.apply(scene.plan())) == {SETTINGS: DONE}


def no_match_error(scene: Scene) -> None:
    """The kind is gone before the plan or since."""
    other = Scene(scene.cluster, scene.namespace)
    for is_planned in (False, True):
        other.deploy(scene.definition(), scene.service())  # what comes after the kind waits until that is served
        assert failures(scene.deploy(scene.widget())) == []
        planned = scene.plan()
        other.deploy()
        scene.cluster.forget_discovery()
        assert failures(scene.apply(planned if is_planned else scene.plan())) == []


def deletes(scene: Scene) -> None:
    scene.deploy(scene.config_map())
    assert states(scene.deploy()) == {SETTINGS: DONE}
    assert data_of(scene) is None


def delete_not_found(scene: Scene) -> None:
    scene.deploy(obj := scene.config_map())
    planned = scene.plan()
    scene.cluster.delete(ObjectRef.of(obj))
    assert states(scene.apply(planned)) == {SETTINGS: DONE}


def revision_mismatch(scene: Scene) -> None:
    """What another made under the name is left; a deletion is bound to the uid, whatever the object says of itself."""
    scene.deploy(obj := scene.config_map(), owner=FIRST)
    planned = scene.plan()
    scene.cluster.delete(ObjectRef.of(obj))
    theirs(scene, annotations={OWNER: str(SECOND)})
    assert states(scene.apply(planned)) == {SETTINGS: UNCHANGED}
    assert data_of(scene) == {"a": "theirs"}


def not_controller(scene: Scene) -> None:
    """boxcutter takes its owner reference off what is another's. What the inventory does not hold is not even looked at."""
    before = theirs(scene, annotations={OWNER: str(FIRST), NONCE: "n" * 32})
    assert scene.deploy() == []
    assert scene.live(scene.config_map()) == before


TEARDOWN: dict[str, Callable[[Scene], None]] = {
    "Orphan": orphan,
    "NotFound": not_found,
    "NoMatchError": no_match_error,
    "Deletes": deletes,
    "Delete NotFound": delete_not_found,
    "Revision mismatch": revision_mismatch,
    "not controller removes owner ref": not_controller,
}


@pytest.mark.parametrize("row", TEARDOWN.values(), ids=TEARDOWN)
def test_boxcutter_teardown_row(scene: Scene, row: Callable[[Scene], None]) -> None:
    row(scene)
    assert scene.inventory.items() == {}
