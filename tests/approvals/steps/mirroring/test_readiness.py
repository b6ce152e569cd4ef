"""The one table of what a deployment can be in, and what kstatus makes of each row."""

from __future__ import annotations

import pytest

from approvals.lifecycle import State
from approvals.steps.mirroring.conditions import ConditionStatus, Readiness, ReadinessFacts, readiness_of
from tests.approvals.steps.mirroring.rows import ROWS, T


def kstatus_of(readiness: Readiness) -> str:
    """What the library of Flux and others says, in its order, of an object whose newest generation was seen."""
    row = readiness.value
    if row.is_reconciling:
        return "InProgress"
    if row.is_stalled:
        return "Failed"
    return "Current" if row.ready is ConditionStatus.TRUE else "InProgress"


def test_the_table_is_whole() -> None:
    assert set(ROWS) == set(Readiness)


@pytest.mark.parametrize("readiness", ROWS, ids=lambda one: one.name)
def test_each_state_is_shown_as_the_table_says(readiness: Readiness) -> None:
    facts, ready, is_reconciling, is_stalled, reason, kstatus = ROWS[readiness]
    row = readiness_of(facts).value
    assert readiness_of(facts) is readiness
    assert (row.ready, row.is_reconciling, row.is_stalled, row.reason) == (ready, is_reconciling, is_stalled, reason)
    assert kstatus_of(readiness) == kstatus


@pytest.mark.parametrize("state", State)
def test_every_state_of_a_request_has_its_row(state: State) -> None:
    for is_deletion in (False, True):
        found = readiness_of(ReadinessFacts(state, is_deletion=is_deletion, is_leaving=is_deletion))
        assert found is not Readiness.READY, "nobody has said that it is healthy"


@pytest.mark.parametrize("state", [State.PREPARING, State.IN_REVIEW, State.DENIED, State.FAILED])
def test_a_deletion_says_where_it_stands_like_any_other_request(state: State) -> None:
    leaving = readiness_of(ReadinessFacts(state, is_deletion=True, is_leaving=True))
    assert leaving is readiness_of(ReadinessFacts(state))


def test_what_is_stalled_does_not_go_on_by_itself() -> None:
    assert not [one for one in Readiness if one.value.is_stalled and one.value.is_reconciling]
    assert not [one for one in Readiness if one.value.ready is T and (one.value.is_stalled or one.value.is_reconciling)]
