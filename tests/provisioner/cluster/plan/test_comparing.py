"""When a plan that was reviewed still does no more than reviewers saw (security-rules.md S04)."""

from __future__ import annotations

import pytest

from provisioner.cluster.plan.comparing import differences, is_within
from provisioner.values import Action, ObjectRef, PlanDifference, PlannedAction

A, B, C = (ObjectRef("", "v1", "ConfigMap", "harbour", name) for name in "abc")


def does(action: Action, ref: ObjectRef = A, uid: str = "u") -> PlannedAction:
    return PlannedAction(ref, action, uid)


def test_S04_the_same_plan_is_within_itself_whatever_its_order() -> None:
    actions = [does(action, ObjectRef("", "v1", "ConfigMap", "harbour", action)) for action in Action]
    assert is_within(reversed(actions), actions)


def test_S04_an_update_of_which_nothing_is_left_to_do_is_within() -> None:
    reviewed = [does(Action.UPDATE), does(Action.UPDATE, B)]
    assert is_within([does(Action.NONE), does(Action.UPDATE, B)], reviewed)


@pytest.mark.parametrize("was", [one for one in Action if one is not Action.UPDATE])
def test_S04_nothing_else_may_become_nothing(was: Action) -> None:
    """A creation of what exists by now, or a deletion of what is to be kept by now, would do what nobody saw."""
    assert is_within([does(Action.NONE)], [does(was)]) is (was is Action.NONE)


@pytest.mark.parametrize("was", Action)
@pytest.mark.parametrize("now", [one for one in Action if one is not Action.NONE])
def test_S04_no_other_action_is_within(was: Action, now: Action) -> None:
    assert is_within([does(now)], [does(was)]) is (was is now)


@pytest.mark.parametrize("now", [Action.UPDATE, Action.NONE])
def test_S04_an_object_made_again_is_another_one(now: Action) -> None:
    assert not is_within([does(now, uid="other")], [does(Action.UPDATE)])


def test_S04_an_object_more_is_more() -> None:
    assert not is_within([does(Action.UPDATE), does(Action.NONE, B)], [does(Action.UPDATE)])


def test_S04_an_object_that_is_ours_no_longer_is_not_deleted_because_it_was_reviewed() -> None:
    assert not is_within([does(Action.UPDATE)], [does(Action.UPDATE), does(Action.DELETE, B)])


def test_what_is_planned_otherwise_is_named_with_what_was_reviewed() -> None:
    same = ObjectRef("", "v1", "ConfigMap", "harbour", "same")
    reviewed = [does(Action.UPDATE), does(Action.DELETE, B), does(Action.CREATE, same, "")]
    now = [does(Action.CREATE, same, ""), does(Action.UPDATE, uid="other"), does(Action.ADOPT, C)]
    assert differences(now, reviewed) == [
        PlanDifference("ConfigMap harbour/a", "update", "update, of an object that was made again"),
        PlanDifference("ConfigMap harbour/b", "delete", ""),
        PlanDifference("ConfigMap harbour/c", "", "adopt"),
    ]
    assert differences(reviewed, reviewed) == []
