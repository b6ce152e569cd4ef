"""The states of a request and the one table of moves between them. PURE."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    PREPARING = "preparing"
    IN_REVIEW = "in_review"
    APPROVED = "approved"
    DENIED = "denied"
    APPLYING = "applying"
    APPLIED = "applied"
    RESTORING = "restoring"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    STALE = "stale"


class Event(StrEnum):
    """What may happen to a request."""

    PREPARED = "prepared"
    COULD_NOT_PREPARE = "could_not_prepare"
    APPROVE = "approve"
    DENY = "deny"
    EXPIRE = "expire"
    WITHDRAW = "withdraw"
    SUPERSEDE = "supersede"
    START = "start"
    FINISH = "finish"
    FAIL = "fail"
    RESTORE = "restore"
    FIND_STALE = "find_stale"
    REPORT_AGAIN = "report_again"
    GIVE_UP = "give_up"


# One request is reported again so often without anybody's asking, whatever for; then somebody has to look why.
MAX_ROUNDS = 5


class IllegalMove(Exception):
    """No such move: the row changed under the caller, or the caller is wrong."""


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.PREPARING, Event.PREPARED): State.IN_REVIEW,
    (State.PREPARING, Event.COULD_NOT_PREPARE): State.FAILED,
    (State.PREPARING, Event.WITHDRAW): State.WITHDRAWN,
    (State.PREPARING, Event.SUPERSEDE): State.SUPERSEDED,
    (State.PREPARING, Event.EXPIRE): State.EXPIRED,
    (State.IN_REVIEW, Event.APPROVE): State.APPROVED,
    (State.IN_REVIEW, Event.DENY): State.DENIED,
    (State.IN_REVIEW, Event.EXPIRE): State.EXPIRED,
    (State.IN_REVIEW, Event.WITHDRAW): State.WITHDRAWN,
    (State.IN_REVIEW, Event.SUPERSEDE): State.SUPERSEDED,
    (State.IN_REVIEW, Event.FIND_STALE): State.STALE,
    # Its workers died, and nothing was written: to be asked for again.
    (State.IN_REVIEW, Event.GIVE_UP): State.FAILED,
    (State.APPROVED, Event.GIVE_UP): State.FAILED,
    (State.APPROVED, Event.START): State.APPLYING,
    (State.APPROVED, Event.SUPERSEDE): State.SUPERSEDED,
    (State.APPROVED, Event.WITHDRAW): State.WITHDRAWN,
    (State.APPROVED, Event.EXPIRE): State.EXPIRED,
    # Promise 5: what was approved stays as it was. New risk in the same content is a new round, reviewed again.
    (State.APPROVED, Event.FIND_STALE): State.STALE,
    (State.STALE, Event.REPORT_AGAIN): State.IN_REVIEW,
    (State.STALE, Event.COULD_NOT_PREPARE): State.FAILED,
    (State.STALE, Event.SUPERSEDE): State.SUPERSEDED,
    (State.STALE, Event.WITHDRAW): State.WITHDRAWN,
    (State.STALE, Event.EXPIRE): State.EXPIRED,
    (State.APPLYING, Event.FINISH): State.APPLIED,
    (State.APPLYING, Event.FAIL): State.FAILED,
    # spec.onFailure: RestorePrevious, after an apply that failed midway, or of a revision that was not healthy in time.
    # However that ends, what was asked for has failed; but it may become healthy before anything is restored.
    (State.APPLYING, Event.RESTORE): State.RESTORING,
    (State.APPLIED, Event.RESTORE): State.RESTORING,
    (State.RESTORING, Event.FAIL): State.FAILED,
    (State.RESTORING, Event.FINISH): State.APPLIED,
}

# Open: something may still come of it. At most one open request per deployment (a database constraint).
OPEN = frozenset({State.PREPARING, State.IN_REVIEW, State.APPROVED, State.APPLYING, State.RESTORING, State.STALE})
SETTLED = frozenset(State) - OPEN
# What the machine is writing to the cluster for; it finishes first.
AT_WORK = frozenset({State.APPLYING, State.RESTORING})
# Nobody has decided on a request in one of these.
UNDECIDED = (State.PREPARING, State.IN_REVIEW, State.STALE)
# A newer pivot takes the place of these.
SUPERSEDABLE = OPEN - AT_WORK
# The states in which the machine has something to do, and a worker may claim the row.
WORKABLE = OPEN


def move(state: State, event: Event) -> State:
    """The state after `event`; raises IllegalMove where the table has none."""
    try:
        return TRANSITIONS[State(state), event]
    except KeyError:
        raise IllegalMove(f"a request that is {state} cannot {event}") from None


def may(state: State, event: Event) -> bool:
    return (State(state), event) in TRANSITIONS
