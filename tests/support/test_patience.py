"""The one wait of the tests."""

from __future__ import annotations

import itertools

import pytest

from tests.support import patience
from tests.support.patience import NotInTime, wait_for


def test_what_is_seen_is_returned_once_it_is_so() -> None:
    numbers = itertools.count()
    assert wait_for(lambda: next(numbers), "three", is_so=lambda number: number == 3, every=0) == 3


def test_a_wait_in_vain_says_what_was_seen_last_and_the_log() -> None:
    with pytest.raises(NotInTime, match=r"(?s)four: not within .* s; seen last: 3.*the log"):
        wait_for(lambda: 3, "four", 0, is_so=lambda number: number == 4, log=lambda: "the log")


@pytest.mark.parametrize(("said", "factor"), [("0.2", 1), ("3.5", 3.5), ("40", 8)])
def test_bounds_grow_with_the_slowness_of_the_machine_and_not_without_end(
    monkeypatch: pytest.MonkeyPatch, said: str, factor: float
) -> None:
    monkeypatch.setenv(patience.VARIABLE, said)
    assert patience.factor.__wrapped__() == factor


def test_a_machine_is_measured_once_and_its_processes_wait_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(patience.VARIABLE, raising=False)
    monkeypatch.setattr(patience, "measure", lambda: 2.5)
    assert patience.factor.__wrapped__() == 2.5
    monkeypatch.setattr(patience, "measure", lambda: 7.0)
    assert patience.factor.__wrapped__() == 2.5
