"""What may be asked of the gate, and which facts each answer needs. PURE."""

from __future__ import annotations

from enum import StrEnum

_PEOPLE = ("reviews", "guards", "unreviewed")


class Question(StrEnum):
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

    @property
    def needs(self) -> tuple[str, ...]:
        """The fields of GateFacts without which there is no yes."""
        return _NEEDS[self]


_ASKERS = ("requesters", "too_old", "sources")
_READY = ("cluster_uid", "wish", "account", *_ASKERS, "subject", "approved", *_PEOPLE, "unmet")
_STANDING = ("running", "cluster_uid", "wish", "account", "subject", "approved")
_NEEDS: dict[Question, tuple[str, ...]] = {
    Question.MEET: ("cluster_uid",),
    Question.PREPARE: ("cluster_uid", *_ASKERS, "account", "own_right"),
    Question.DECIDE: (*_PEOPLE, "grants", "too_old", "collisions"),
    # All that is cheap to know, before the cluster is asked about every object.
    Question.PLAN: _READY,
    Question.APPLY: (*_READY, "plan"),
    Question.GO_ON: ("wish", "account", *_PEOPLE),
    Question.RESTORE: ("revoked", "wish", "account", *_PEOPLE),
    Question.COMPARE: ("running",),
    Question.CORRECT: _STANDING,
    # What was left out as optional is a first write.
    Question.CREATE: (*_STANDING, *_PEOPLE),
}
