"""The moves of a request from state to state."""

from __future__ import annotations

import pytest

from approvals import lifecycle
from approvals.lifecycle import OPEN, SETTLED, Event, State


def test_promise_5_the_only_move_out_of_a_settled_state_puts_back_what_ran_before() -> None:
    out = {move: after for move, after in lifecycle.TRANSITIONS.items() if move[0] in SETTLED}
    assert out == {(State.APPLIED, Event.RESTORE): State.RESTORING}
    after = {state for (before, _), state in lifecycle.TRANSITIONS.items() if before == State.RESTORING}
    assert after == {State.FAILED, State.APPLIED}, "nothing is decided or applied again"


def test_every_open_state_has_a_way_out() -> None:
    assert {state for state, _ in lifecycle.TRANSITIONS} >= set(OPEN)


@pytest.mark.parametrize("state", sorted(State))
def test_only_a_request_in_review_can_be_approved(state: State) -> None:
    assert lifecycle.may(state, Event.APPROVE) == (state == State.IN_REVIEW)
