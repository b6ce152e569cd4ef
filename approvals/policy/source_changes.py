"""Whether what moved or is offered calls for a new request, and when a reference is looked at next. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from approvals.bundle_spec import UpgradePolicy

# A source that is down is asked less and less often, but within an hour of its return it is seen.
LONGEST_SECONDS = 3600
RATE_SECONDS = 3600


class Answer(Enum):
    """What follows from a look for one source of one deployment."""

    NOTHING = "nothing"
    # Nobody knows what the latest request was made of: from now on, other than what was seen is a move.
    REMEMBER = "remember"
    WAIT = "wait"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class SpecFacts:
    """How a deployment and its latest request for its spec stand, whatever it is that moved or is offered.

    `is_stopped`: paused, being deleted or gone. `is_other_spec`: another spec calls for a request. `is_pinning`: the
    latest request is still to be pinned, or may be. `is_held`: an open request must be settled first, because somebody
    has begun to review it, it is approved or at work, or it is not for this. `is_too_soon`: the deployment has got as
    many requests by itself as it may (`rest_of`).
    """

    is_stopped: bool = False
    is_other_spec: bool = False
    is_pinning: bool = False
    is_held: bool = False
    is_too_soon: bool = False

    @property
    def takes_nothing(self) -> bool:
        return self.is_stopped or self.is_other_spec

    @property
    def answer_to_news(self) -> Answer:
        return Answer.WAIT if self.is_held or self.is_too_soon else Answer.ASK


@dataclass(frozen=True, slots=True)
class FollowerFacts:
    """`seen` is what the reference is, `pin` what the latest request for this spec was made of ("" where that is not
    known), `answered` what a request was last made because of. `is_fresh`: it was seen after that request had been
    pinned.
    """

    seen: str
    pin: str
    answered: str
    is_fresh: bool = True


def answer_of(facts: FollowerFacts, spec: SpecFacts) -> Answer:
    """Whether a new request is due because the reference moved."""
    if spec.takes_nothing or not facts.seen:
        return Answer.NOTHING
    if spec.is_pinning:
        return Answer.WAIT
    known = facts.pin or facts.answered
    if not known:
        return Answer.REMEMBER
    return spec.answer_to_news if facts.seen != known and facts.is_fresh else Answer.NOTHING


def rest_of(made: Sequence[datetime], *, most: int, now: datetime) -> datetime | None:
    """Until when a deployment gets no further request by itself, of those `made` so, the latest first; None: it may.

    At most `most` within an hour, 0 for as many as there are moves: what flaps would take each request away before
    anybody has read it, or have each applied where a policy approves it.
    """
    if not most or len(made) < most:
        return None
    until = made[most - 1] + timedelta(seconds=RATE_SECONDS)
    return until if until > now else None


@dataclass(frozen=True, slots=True)
class UpgradeFacts:
    """`is_offered`: a catalog has a bundle that would be taken and does not run. `is_asked`: a request was for it
    already, whatever came of it. `policy` is the deployment's.
    """

    is_offered: bool
    is_asked: bool = False
    policy: UpgradePolicy = UpgradePolicy.REQUEST


def answer_upgrade(facts: UpgradeFacts, spec: SpecFacts) -> Answer:
    """Whether a new request is due because a catalog offers something."""
    if spec.takes_nothing or not facts.is_offered:
        return Answer.NOTHING
    if spec.is_pinning:
        return Answer.WAIT
    is_wanted = not facts.is_asked and facts.policy is not UpgradePolicy.MANUAL
    return spec.answer_to_news if is_wanted else Answer.NOTHING


def interval_of(asked: int | None, *, default: int, least: int) -> int:
    """Seconds between two looks; 0 for none."""
    wanted = default if asked is None else asked
    return max(wanted, least) if wanted > 0 else 0


def next_look(now: datetime, *, interval: int, failures: int, not_before: datetime | None = None) -> datetime:
    """When to look again, later with each failure, and not before the server wants to be asked."""
    longest = max(interval, LONGEST_SECONDS)
    seconds = min(interval * 2 ** min(failures, 10), longest) if failures else interval
    found = now + timedelta(seconds=seconds)
    return max(found, not_before) if not_before else found


def end_of_wait(now: datetime, *, asked_to_wait: float) -> datetime | None:
    """Until when a server that asked for so many seconds is left alone: an hour at most, or it could end all looks."""
    return now + timedelta(seconds=min(asked_to_wait, LONGEST_SECONDS)) if asked_to_wait > 0 else None
