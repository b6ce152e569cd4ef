"""Fields that change, where items of lists are held against what they were."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.difference import ABSENT, changed_paths
from provisioner.review.checks.objects.immutable import never_changing
from provisioner.values import GroupKind

A, B, C = ({"key": key, "value": "1"} for key in "abc")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([A, B], [B], [(("l", 0), A, ABSENT)], id="the first goes"),
        pytest.param([B], [A, B], [(("l", 0), ABSENT, A)], id="one comes before it"),
        pytest.param(
            [A, B], [C, A, {**B, "value": "2"}], [(("l", 0), ABSENT, C), (("l", 2, "value"), "1", "2")], id="both"
        ),
        pytest.param([A, B], [B, A], [(("l",), ["a", "b"], ["b", "a"])], id="another order"),
        pytest.param(["x", "y"], ["y"], [(("l", 0), "x", ABSENT)], id="texts"),
        pytest.param([], [A], [(("l",), [], [A])], id="from none"),
    ],
)
def test_items_of_lists_are_compared_with_what_they_were(before: Any, after: Any, expected: list[Any]) -> None:
    assert [(one.path, one.before, one.after) for one in changed_paths({"l": before}, {"l": after})] == expected


def test_a_list_that_never_changes_gains_no_item() -> None:
    old, new = ({"spec": {"accessModes": modes}} for modes in (["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]))
    (found,) = never_changing(GroupKind("", "PersistentVolumeClaim"), changed_paths(old, new))
    assert found.path == ("spec", "accessModes", 1)
