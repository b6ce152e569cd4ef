"""How votes are counted."""

from __future__ import annotations

import pytest

from approvals import policy
from approvals.policy import Ballot, Decision


def ballot(decision: str = "Approve", **changes: bool) -> Ballot:
    return Ballot(decision, **{"is_grant": False, "counts": True, "may_use_account": False, **changes})


@pytest.mark.parametrize(
    ("ballots", "needed", "held_by", "is_known", "expected"),
    [
        pytest.param([], 1, [], True, Decision.UNDECIDED, id="nobody has voted"),
        pytest.param([ballot()], 1, [], True, Decision.APPROVED, id="one of one"),
        pytest.param([ballot()], 2, [], True, Decision.UNDECIDED, id="one of two"),
        pytest.param([ballot(), ballot("Deny")], 1, [], True, Decision.DENIED, id="deny wins"),
        pytest.param([ballot(counts=False)], 1, [], True, Decision.UNDECIDED, id="who may no longer does not count"),
        pytest.param([ballot()], 1, ["freeze"], True, Decision.UNDECIDED, id="a guard holds back"),
        pytest.param([ballot(is_grant=True)], 3, [], True, Decision.APPROVED, id="a grant is enough"),
        pytest.param([ballot(is_grant=True)], 1, ["freeze"], True, Decision.UNDECIDED, id="a guard holds a grant back"),
        pytest.param([ballot()], 1, [], False, Decision.UNDECIDED, id="unknown requester, account not usable"),
        pytest.param([ballot(may_use_account=True)], 1, [], False, Decision.APPROVED, id="unknown, but usable"),
    ],
)
def test_counting(ballots: list[Ballot], needed: int, held_by: list[str], is_known: bool, expected: Decision) -> None:
    tally = policy.decide(ballots, needed=needed, held_by=held_by, is_requester_known=is_known)
    assert tally.decision == expected
