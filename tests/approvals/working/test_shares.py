"""What each process of its own may have of the processor and of the memory."""

from __future__ import annotations

import pytest

from approvals.working.shares import Weight, goes_first, is_near, niceness, remembered, to_end


@pytest.mark.parametrize(
    ("cpu_seconds", "newer", "expected"),
    [
        pytest.param(0.0, 0, 0, id="just begun"),
        pytest.param(0.19, 0, 0, id="a small bundle, all the way"),
        pytest.param(0.2, 0, 4, id="a larger one"),
        pytest.param(0.6, 0, 8, id="long"),
        pytest.param(60.0, 0, 12, id="very long, and alone"),
        pytest.param(0.0, 1, 6, id="another one has begun since"),
        pytest.param(0.2, 1, 10, id="both"),
        pytest.param(0.0, 9, 19, id="never past what Linux knows"),
    ],
)
def test_S26_who_has_used_more_or_came_before_others_gives_way(cpu_seconds: float, newer: int, expected: int) -> None:
    assert niceness(cpu_seconds, newer) == expected


def test_S26_nobody_gains_by_waiting() -> None:
    for newer in range(12):
        steps = [niceness(used / 100, newer) for used in range(300)]
        assert steps == sorted(steps)
        assert steps[0] <= niceness(0, newer + 1)


@pytest.mark.parametrize(
    ("is_later", "used", "other", "expected"),
    [
        pytest.param(True, 0.0, 0.0, True, id="the later one"),
        pytest.param(False, 0.0, 0.0, False, id="not the earlier one"),
        pytest.param(True, 3.0, 2.0, True, id="about as much"),
        pytest.param(True, 5.1, 2.0, False, id="the later one of a heavier group"),
        pytest.param(False, 2.0, 5.1, True, id="the earlier one of a lighter group"),
    ],
)
def test_S26_the_lighter_group_goes_first(is_later: bool, used: float, other: float, expected: bool) -> None:
    assert goes_first(is_later, used, other) is expected


def test_S26_what_was_used_is_forgotten_by_and_by() -> None:
    assert remembered(8.0, 0.0) == 8.0
    assert remembered(8.0, 120.0) == pytest.approx(2.0)


FRESH, LARGE = Weight("fresh", 100), Weight("large", 700)


@pytest.mark.parametrize(
    ("weights", "own", "most", "room", "ended"),
    [
        pytest.param([FRESH, LARGE], 200, 2048, 1024, None, id="room for all"),
        pytest.param([FRESH, LARGE], 200, 1024, 1024, "large", id="the largest"),
        pytest.param([], 2000, 1024, 1024, None, id="nobody to end: it is the worker itself"),
        pytest.param(
            [FRESH, LARGE, Weight("suspect", 700, is_suspect=True)], 200, 1800, 1024, "large", id="in its room"
        ),
        pytest.param([FRESH, Weight("suspect", 900, is_suspect=True)], 100, 1200, 1024, "suspect", id="past its room"),
        pytest.param([Weight("suspect", 900, is_suspect=True)], 950, 2000, 1024, "suspect", id="past half of the rest"),
        pytest.param([Weight("suspect", 300, is_suspect=True)], 700, 1000, 1024, "suspect", id="nobody else"),
    ],
)
def test_S26_the_largest_ends_before_the_memory_is_used_up(
    weights: list[Weight], own: float, most: float, room: float, ended: str | None
) -> None:
    assert to_end(weights, own, most, room) == ended


def test_S26_the_limit_is_near_before_it_is_reached() -> None:
    assert not is_near(1840, 2048)
    assert is_near(1850, 2048)
