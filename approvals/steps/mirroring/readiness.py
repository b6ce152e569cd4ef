"""How a deployment stands, and the conditions Ready, Reconciling and Stalled that say so. PURE.

The one table of `docs/reference/conditions.md`. The conditions follow kstatus, which Flux and others read: Stalled=True
is `Failed`, Reconciling=True or Ready=False is `InProgress`, Ready=True alone is `Current`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum

from approvals.lifecycle import State
from provisioner.values import HealthState


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class ReadinessRow:
    """`when` says when it is so. `reason` is that of the conditions, "" where it is the code of what is wrong."""

    when: str
    ready: ConditionStatus = ConditionStatus.FALSE
    is_reconciling: bool = False
    is_stalled: bool = False
    reason: str = ""


class Readiness(Enum):
    """Everything that a deployment can be in; nothing else is shown as Ready, Reconciling and Stalled."""

    NO_REQUEST = ReadinessRow("there is no request yet", is_reconciling=True, reason="Pending")
    QUOTA = ReadinessRow("a quota is used up, so no request was made yet", is_reconciling=True, reason="QuotaExceeded")
    PREPARING = ReadinessRow("sources are fetched and rendered, and reported", is_reconciling=True, reason="Preparing")
    CANNOT_PREPARE = ReadinessRow("preparing does not work, and is tried again", is_reconciling=True)
    REPORTING_AGAIN = ReadinessRow("a new report is being prepared", is_reconciling=True, reason="Stale")
    IN_REVIEW = ReadinessRow("people or policies have to approve it", reason="WaitingForApproval")
    APPROVED = ReadinessRow("approved, about to be applied", is_reconciling=True, reason="Approved")
    PAUSED = ReadinessRow("approved, and the BundleDeployment is paused", reason="Paused")
    HELD = ReadinessRow("approved, and something has to be so in the cluster first", is_reconciling=True)
    APPLYING = ReadinessRow("objects are being applied", is_reconciling=True, reason="Applying")
    RESTORING = ReadinessRow("the previous revision is being restored", is_reconciling=True, reason="Restoring")
    PROGRESSING = ReadinessRow("applied, not healthy yet", is_reconciling=True, reason="Progressing")
    UNHEALTHY = ReadinessRow("applied, and an object failed or is missing", is_reconciling=True, reason="Unhealthy")
    OVERDUE = ReadinessRow("not healthy within its deadline", is_stalled=True, reason="ProgressDeadlineExceeded")
    HEALTH_UNKNOWN = ReadinessRow(
        "applied, and nobody could tell whether it is healthy", ConditionStatus.UNKNOWN, reason="HealthUnknown"
    )
    READY = ReadinessRow("applied and healthy", ConditionStatus.TRUE, reason="Applied")
    ROLLED_BACK = ReadinessRow(
        "an earlier revision runs, and the spec asks for something else", is_stalled=True, reason="RolledBack"
    )
    DENIED = ReadinessRow("reviewers or a policy denied it", is_stalled=True, reason="Denied")
    EXPIRED = ReadinessRow("nobody settled it in time", is_stalled=True, reason="Expired")
    WITHDRAWN = ReadinessRow("it was withdrawn", is_stalled=True, reason="Withdrawn")
    FAILED = ReadinessRow("it needs another spec, or to be requested again", is_stalled=True)
    DELETION_ASKED = ReadinessRow(
        "deleted with kubectl, and the request is not made yet", is_reconciling=True, reason="DeletionRequested"
    )
    DELETING = ReadinessRow("its objects are being deleted", is_reconciling=True, reason="Deleting")


# What a request says by its state alone. The others depend on more.
_BY_STATE = {
    State.STALE: Readiness.REPORTING_AGAIN,
    State.IN_REVIEW: Readiness.IN_REVIEW,
    State.RESTORING: Readiness.RESTORING,
    State.DENIED: Readiness.DENIED,
    State.EXPIRED: Readiness.EXPIRED,
    State.WITHDRAWN: Readiness.WITHDRAWN,
    State.FAILED: Readiness.FAILED,
    State.SUPERSEDED: Readiness.NO_REQUEST,
}
_BY_HEALTH = {
    HealthState.CURRENT: Readiness.READY,
    HealthState.FAILED: Readiness.UNHEALTHY,
    HealthState.NOT_FOUND: Readiness.UNHEALTHY,
    HealthState.IN_PROGRESS: Readiness.PROGRESSING,
    HealthState.TERMINATING: Readiness.PROGRESSING,
    "": Readiness.PROGRESSING,
}


@dataclass(frozen=True, slots=True)
class ReadinessFacts:
    """What is known of a deployment and of its latest request (`state` is None where there is none).

    `is_deletion`, `is_rollback`: what that request is for. `is_leaving`: somebody has deleted the BundleDeployment.
    `health` is that of the running revision.
    """

    state: State | None
    is_deletion: bool = False
    is_rollback: bool = False
    is_leaving: bool = False
    waits_for_quota: bool = False
    is_paused: bool = False
    has_problem: bool = False
    is_overdue: bool = False
    health: str = ""


def readiness_of(facts: ReadinessFacts) -> Readiness:
    """The one row of the table that is true of a deployment. PURE."""
    if facts.waits_for_quota:
        return Readiness.QUOTA
    if facts.is_leaving and not facts.is_deletion:
        return Readiness.DELETION_ASKED
    if facts.state is None:
        return Readiness.NO_REQUEST
    if facts.state in _BY_STATE:
        return _BY_STATE[facts.state]
    return _on_its_way(facts) if facts.state is not State.APPLIED else _applied(facts)


def _on_its_way(facts: ReadinessFacts) -> Readiness:
    if facts.state is State.PREPARING:
        return Readiness.CANNOT_PREPARE if facts.has_problem else Readiness.PREPARING
    if facts.state is State.APPLYING:
        return Readiness.DELETING if facts.is_deletion else Readiness.APPLYING
    if facts.is_paused:
        return Readiness.PAUSED
    return Readiness.HELD if facts.has_problem else Readiness.APPROVED


def _applied(facts: ReadinessFacts) -> Readiness:
    if facts.is_deletion:
        # Its objects are gone or left alone: the finalizer goes next.
        return Readiness.DELETING
    if facts.is_rollback:
        return Readiness.ROLLED_BACK
    found = _BY_HEALTH.get(facts.health, Readiness.HEALTH_UNKNOWN)
    return Readiness.OVERDUE if facts.is_overdue and found is not Readiness.READY else found
