"""What may be asked of the gate, and what it answers: what may happen next, or every reason why not. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from provisioner.values import ObjectRef

_PEOPLE = ("reviews", "guards", "unreviewed")


class GateQuestion(StrEnum):
    """What is to happen next."""

    MEET = "meet"
    PREPARE = "prepare"
    DECIDE = "decide"
    PLAN = "plan"
    APPLY = "apply"
    GO_ON = "go on"
    RESTORE = "restore"
    COMPARE = "compare"
    CORRECT = "correct"
    CREATE = "create"
    TAKE_AWAY = "take away"

    @property
    def needs(self) -> tuple[str, ...]:
        """The fields of GateFacts without which there is no yes."""
        return _NEEDS[self]


_ASKERS = ("requesters", "too_old", "sources")
_READ = "read_unattended"
_READY = (
    *("cluster_uid", "desired_spec", "account", *_ASKERS, _READ, "subject", "approved", *_PEOPLE, "rules"),
    *("unmet", "offers", "windows", "orders", "checks"),
)
_STANDING = ("running", "cluster_uid", "desired_spec", "account", "subject", "approved")
_NEEDS: dict[GateQuestion, tuple[str, ...]] = {
    GateQuestion.MEET: ("cluster_uid",),
    GateQuestion.PREPARE: ("cluster_uid", *_ASKERS, _READ, "account", "own_right"),
    GateQuestion.DECIDE: (*_PEOPLE, "grants", "rules", "checks", "too_old", _READ, "collisions", "offers"),
    # All that is cheap to know, before the cluster is asked about every object.
    GateQuestion.PLAN: _READY,
    GateQuestion.APPLY: (*_READY, "plan"),
    GateQuestion.GO_ON: ("desired_spec", "account", *_PEOPLE, _READ, "unseen", "windows"),
    GateQuestion.RESTORE: ("revoked", "desired_spec", "account", *_PEOPLE),
    GateQuestion.COMPARE: ("running",),
    GateQuestion.CORRECT: (*_STANDING, "windows"),
    # What was left out as optional is a first write.
    GateQuestion.CREATE: (*_STANDING, *_PEOPLE, "rules", _READ, "windows"),
    # What a worker created after its successor had dropped it: nobody approved that it exists.
    GateQuestion.TAKE_AWAY: ("running", "cluster_uid", "desired_spec"),
}


class Next(StrEnum):
    """What may happen. All but GO are a no."""

    GO = "go"
    WAIT = "wait"
    REPORT_AGAIN = "report again"
    DENY = "deny"
    END = "end"


# Of several reasons the gravest says what happens: a no of people is never talked over, and what cannot come right is
# not waited for.
_GRAVITY = (Next.DENY, Next.END, Next.REPORT_AGAIN, Next.WAIT)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason against. `words` say what is so and why, `remedy` who can do what about it.

    `said` is what the API server said of which object (S27). `is_problem`: not merely that people have not decided yet.
    `awaits`: what in the cluster may end it (Awaits), "" where nothing there tells. `is_costly`: to find out whether it
    is over costs the cluster so much that it is asked more and more rarely, however soon the request could go on.
    `due_at` is when it is over by the clock; None where that says nothing.
    """

    next: Next
    code: str
    words: str
    remedy: str
    said: tuple[tuple[ObjectRef, str], ...] = ()
    is_problem: bool = True
    awaits: str = ""
    is_costly: bool = False
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """Yes where there is no reason against; else the gravest is the first.

    `along` is said with a yes as with a no: how many approvals there are.
    """

    question: GateQuestion
    reasons: tuple[Reason, ...] = ()
    along: str = ""

    @classmethod
    def of(cls, question: GateQuestion, reasons: list[Reason], along: str = "") -> GateAnswer:
        return cls(question, tuple(sorted(reasons, key=lambda reason: _GRAVITY.index(reason.next))), along)

    @property
    def may(self) -> bool:
        return not self.reasons

    @property
    def next(self) -> Next:
        return self.reasons[0].next if self.reasons else Next.GO

    @property
    def reason(self) -> Reason:
        """The gravest; there is one wherever the answer is no."""
        return self.reasons[0]
