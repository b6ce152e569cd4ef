"""A worker that stood still goes on with revision 2 when revision 3 has written: neither what that one wrote is deleted,
nor is it let go."""

from __future__ import annotations

from typing import Any

from provisioner.cluster.annotations import KEEP, OWNER, PRUNE, RevisionOwner
from provisioner.values import Action, ObjectOutcome, OutcomeState, Plan
from tests.support.provisioner.cluster_scene import Scene, action_of, failures

FIRST, SECOND, THIRD = (RevisionOwner("harbour", number) for number in (1, 2, 3))
WORDS = "was written for revision 3 since this apply began"


def late(scene: Scene, planned: Plan, *objects: dict[str, Any]) -> ObjectOutcome:
    """What becomes of the plan of revision 2, when all is as it was in the database."""
    (outcome,) = [one for one in scene.apply(planned, *objects, owner=SECOND) if one.ref.name != "beside"]
    return outcome


def test_what_a_later_revision_wrote_is_not_deleted_by_an_older_one(scene: Scene) -> None:
    scene.deploy(beside := scene.config_map("beside"), scene.config_map(a="1"), owner=FIRST)
    planned = scene.plan(beside)
    scene.deploy(beside, kept := scene.config_map(a="3"), owner=THIRD)
    outcome = late(scene, planned, beside)
    assert (outcome.action, outcome.state) == (Action.DELETE, OutcomeState.FAILED)
    assert WORDS in outcome.message
    live: Any = scene.live(kept)
    assert (live["data"], outcome.ref.identity in scene.inventory.items()) == ({"a": "3"}, True)


def test_what_a_later_revision_wrote_is_not_replaced_by_an_older_one(scene: Scene) -> None:
    scene.deploy(scene.job(), owner=FIRST)
    planned = scene.plan(other := scene.job(image="example.com/migrate:2"))
    assert action_of(planned, other).action is Action.REPLACE
    (changed := scene.job())["metadata"]["labels"] = {"of": "three"}
    assert failures(scene.deploy(changed, owner=THIRD)) == []
    before: Any = scene.live(changed)
    outcome = late(scene, planned, other)
    assert (outcome.state, WORDS in outcome.message) == (OutcomeState.FAILED, True), outcome.message
    live: Any = scene.live(changed)
    assert live["metadata"]["uid"] == before["metadata"]["uid"]


def test_what_a_later_revision_wrote_is_not_let_go_by_an_older_one(scene: Scene) -> None:
    scene.deploy(beside := scene.config_map("beside"), scene.config_map(a="1"), owner=FIRST)
    kept = {PRUNE: KEEP}
    scene.edit(scene.config_map(), lambda it: it["metadata"]["annotations"].update(kept), manager="somebody")
    planned = scene.plan(beside)
    scene.deploy(beside, again := scene.config_map(a="3"), owner=THIRD)
    before = scene.live(again)
    outcome = late(scene, planned, beside)
    assert (outcome.action, outcome.state) == (Action.ORPHAN, OutcomeState.FAILED)
    assert WORDS in outcome.message
    assert (scene.live(again), outcome.ref.identity in scene.inventory.items()) == (before, True)


def test_what_somebody_touched_since_the_plan_is_deleted_all_the_same(scene: Scene) -> None:
    scene.deploy(beside := scene.config_map("beside"), gone := scene.config_map(a="1"), owner=FIRST)
    planned = scene.plan(beside)
    scene.edit(gone, lambda it: it["data"].update(b="theirs"), manager="somebody")
    assert late(scene, planned, beside).state is OutcomeState.DONE
    assert (scene.live(gone), len(scene.inventory.items())) == (None, 1)


def test_S39_what_is_to_be_kept_since_the_plan_is_not_deleted(scene: Scene) -> None:
    scene.deploy(beside := scene.config_map("beside"), gone := scene.config_map(a="1"), owner=FIRST)
    planned = scene.plan(beside)
    kept = {"helm.sh/resource-policy": "keep"}
    scene.edit(gone, lambda it: it["metadata"]["annotations"].update(kept), manager="somebody")
    outcome = late(scene, planned, beside)
    assert (outcome.state, "is to be kept since the plan was made" in outcome.message) == (OutcomeState.FAILED, True)
    assert (scene.live(gone) is None, len(scene.inventory.items())) == (False, 2)


def test_what_somebody_made_again_since_the_plan_stays(scene: Scene) -> None:
    scene.deploy(beside := scene.config_map("beside"), gone := scene.config_map(a="1"), owner=FIRST)
    planned = scene.plan(beside)
    (item,) = [one for one in scene.inventory.items().values() if one.ref.name != "beside"]
    scene.cluster.delete(item.ref)
    made = scene.cluster.create(scene.config_map(b="theirs"))
    assert late(scene, planned, beside).state is OutcomeState.UNCHANGED
    live: Any = scene.live(gone)
    assert live["metadata"]["uid"] == made["metadata"]["uid"]


def test_what_somebody_else_says_of_a_later_revision_stops_nothing(scene: Scene) -> None:
    scene.deploy(beside := scene.config_map("beside"), gone := scene.config_map(a="1"), job := scene.job(), owner=FIRST)
    planned = scene.plan(changed := scene.config_map("beside", a="2"))
    for one in (beside, gone, job):
        forged = {OWNER: str(RevisionOwner("harbour", 999_999))}
        scene.edit(one, lambda it, said=forged: it["metadata"]["annotations"].update(said), manager="somebody")
    assert failures(scene.apply(planned, changed, owner=SECOND)) == []
    live: Any = scene.live(changed)
    assert (live["data"], scene.live(gone), scene.live(job)) == ({"a": "2"}, None, None)
