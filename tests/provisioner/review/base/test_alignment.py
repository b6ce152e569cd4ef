from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.review.base.alignment import Aligner, Run

LINES = st.lists(st.sampled_from("abcdef"), max_size=30)


def put_together(runs: list[Run], old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """What the runs cover of both, in their order."""
    return [one for run in runs for one in old[run.first : run.last]], [
        one for run in runs for one in new[run.start : run.end]
    ]


@given(LINES, LINES)
def test_every_item_is_in_one_run_and_equal_runs_are_equal(old: list[str], new: list[str]) -> None:
    runs = list(Aligner().runs(old, new))
    assert put_together(runs, old, new) == (old, new)
    assert all(old[run.first : run.last] == new[run.start : run.end] for run in runs if run.is_equal)


@pytest.mark.parametrize("steps", [0, 1, 50])
@given(old=LINES, new=LINES)
def test_every_item_is_in_one_run_when_the_steps_are_used_up(steps: int, old: list[str], new: list[str]) -> None:
    runs = list(Aligner(steps).runs(old, new))
    assert put_together(runs, old, new) == (old, new)


def test_two_changes_far_apart_in_a_long_text_are_two_changes() -> None:
    old = [f"line {number}" for number in range(20_000)]
    new = [*old[:10], "one", *old[11:15_000], "other", *old[15_001:]]
    changed = [run for run in Aligner().runs(old, new) if not run.is_equal]
    assert [(run.first, run.last) for run in changed] == [(10, 11), (15_000, 15_001)]


def test_a_hundred_lists_that_nothing_aligns_take_no_more_than_a_moment() -> None:
    aligner, began = Aligner(), time.process_time()
    for _ in range(100):
        old, new = [f"x{n % 7}" for n in range(1_000)], [f"x{n % 5}" for n in range(1_000)]
        assert put_together(list(aligner.runs(old, new)), old, new) == (old, new)
    assert time.process_time() - began < 3.0
