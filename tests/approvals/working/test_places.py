"""Who gets a place when there are not enough, and who is called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from approvals.working.places import FORGET_SECONDS, Places, RecentUse, Visitor, in_turn, most_of_one


class Hall:
    """Places, and the keys of those that were called to take one."""

    def __init__(self, most: int):
        self.places = Places(lambda: most)
        self.called: list[str] = []

    def visitor(self, key: str, group: str = "") -> Visitor:
        call: Callable[[], None] = partial(self.called.append, key)
        return Visitor(key, group, call)

    def take(self, key: str, group: str = "", at: float = 0.0) -> bool:
        return self.places.take(self.visitor(key, group), at)

    def leave(self, key: str) -> None:
        self.places.leave(self.visitor(key))


def test_there_are_so_many_places_and_no_more() -> None:
    hall = Hall(2)
    assert [hall.take(key) for key in "abc"] == [True, True, False]
    hall.leave("a")
    assert hall.called == ["c"]
    assert hall.take("c")


def test_S26_who_has_waited_for_longest_is_called_and_nobody_slips_in_before() -> None:
    hall = Hall(1)
    assert hall.take("a")
    assert not hall.take("b")
    assert not hall.take("c")
    hall.leave("a")
    assert not hall.take("d", at=1), "b was called"
    assert not hall.take("c", at=1)
    assert hall.take("b", at=1)
    hall.leave("b")
    assert hall.called == ["b", "c"]


def test_S26_groups_take_turns() -> None:
    hall = Hall(2)
    assert [hall.take(f"flood {number}", "flood") for number in range(8)] == [True, True] + [False] * 6
    assert not hall.take("one", "innocent")
    hall.leave("flood 0")
    assert hall.called == ["one"], "the last to come, and the first of its group"
    assert not hall.take("flood 2", "flood")
    assert hall.take("one", "innocent")


def test_who_was_called_and_does_not_come_is_forgotten() -> None:
    hall = Hall(1)
    assert hall.take("a")
    assert not hall.take("gone")
    hall.leave("a")
    assert not hall.take("b", at=1)
    assert hall.take("b", at=FORGET_SECONDS + 1)


@pytest.mark.parametrize(
    ("waiting", "taken", "expected"),
    [
        pytest.param({"a": ("x1", 2), "b": ("x1", 1)}, "", "ba", id="first come, first served"),
        pytest.param({"a": ("x1", 1), "b": ("y1", 2)}, ["x1"], "ba", id="who has none comes first"),
        pytest.param({"a": ("x1", 1), "b": ("x1", 2), "c": ("y1", 3)}, "", "acb", id="one each, before one has two"),
        pytest.param({"a": ("x1", 1), "b": ("y1", 2)}, ["x1", "x2"], "b", id="a group that has all it may have"),
        pytest.param({"a": ("x1", 1), "b": ("y2", 2)}, ["u1", "v1", "w1"], "b", id="a wider group that has all"),
    ],
)
def test_S40_the_order_of_those_who_wait(waiting: dict[str, tuple[str, int]], taken: list[str], expected: str) -> None:
    """Of each group its letter and, wider, its number; of a letter two at once, of a number three."""
    assert in_turn(waiting, taken, most=(2, 3)) == list(expected)


def test_S26_one_group_never_has_all_places() -> None:
    hall = Hall(12)
    taken = [hall.take(f"slow {number}", "slow") for number in range(50)]
    assert taken == [True] * 9 + [False] * 41
    assert hall.take("one", "innocent"), "it need not wait for any of them"
    hall.leave("one")
    assert hall.called == []
    hall.leave("slow 0")
    assert hall.called == ["slow 9"]


@pytest.mark.parametrize(("places", "most"), [(1, 1), (2, 2), (3, 3), (4, 3), (12, 9), (24, 18)])
def test_the_most_places_of_one_group(places: int, most: int) -> None:
    assert most_of_one(places) == most


def test_S26_what_a_group_used_is_forgotten_by_and_by() -> None:
    use = RecentUse()
    use.add("stream", 2.0, now=0.0)
    use.add("stream", 1.0, now=60.0)
    assert use.seconds("stream", now=60.0) == pytest.approx(2.0)
    assert use.seconds("stream", now=180.0) == pytest.approx(0.5)
    assert use.seconds("innocent", now=180.0) == 0.0
