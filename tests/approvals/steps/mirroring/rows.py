"""The table of what a deployment can be in, and the object that shows a row of it."""

from __future__ import annotations

from typing import Any

from approvals.lifecycle import State
from approvals.steps.mirroring.conditions import ConditionStatus, Readiness, ReadinessFacts

T, F, U = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
WAITS = ReadinessFacts(None, waits_for_quota=True)
# The facts; Ready, Reconciling, Stalled and their reason, "" where it is the code of the problem; what kstatus says.
ROWS = {
    Readiness.NO_REQUEST: (ReadinessFacts(None), F, True, False, "Pending", "InProgress"),
    Readiness.QUOTA: (WAITS, F, True, False, "QuotaExceeded", "InProgress"),
    Readiness.PREPARING: (ReadinessFacts(State.PREPARING), F, True, False, "Preparing", "InProgress"),
    Readiness.CANNOT_PREPARE: (ReadinessFacts(State.PREPARING, has_problem=True), F, True, False, "", "InProgress"),
    Readiness.REPORTING_AGAIN: (ReadinessFacts(State.STALE, has_problem=True), F, True, False, "Stale", "InProgress"),
    Readiness.IN_REVIEW: (
        ReadinessFacts(State.IN_REVIEW, has_problem=True, is_paused=True),
        F,
        False,
        False,
        "WaitingForApproval",
        "InProgress",
    ),
    Readiness.APPROVED: (ReadinessFacts(State.APPROVED), F, True, False, "Approved", "InProgress"),
    Readiness.PAUSED: (
        ReadinessFacts(State.APPROVED, is_paused=True, has_problem=True),
        F,
        False,
        False,
        "Paused",
        "InProgress",
    ),
    Readiness.HELD: (ReadinessFacts(State.APPROVED, has_problem=True), F, True, False, "", "InProgress"),
    Readiness.APPLYING: (ReadinessFacts(State.APPLYING, is_paused=True), F, True, False, "Applying", "InProgress"),
    Readiness.RESTORING: (ReadinessFacts(State.RESTORING), F, True, False, "Restoring", "InProgress"),
    Readiness.PROGRESSING: (
        ReadinessFacts(State.APPLIED, health="InProgress"),
        F,
        True,
        False,
        "Progressing",
        "InProgress",
    ),
    Readiness.UNHEALTHY: (ReadinessFacts(State.APPLIED, health="Failed"), F, True, False, "Unhealthy", "InProgress"),
    Readiness.OVERDUE: (
        ReadinessFacts(State.APPLIED, health="Failed", is_overdue=True),
        F,
        False,
        True,
        "ProgressDeadlineExceeded",
        "Failed",
    ),
    Readiness.HEALTH_UNKNOWN: (
        ReadinessFacts(State.APPLIED, health="Unknown"),
        U,
        False,
        False,
        "HealthUnknown",
        "InProgress",
    ),
    Readiness.READY: (
        ReadinessFacts(State.APPLIED, health="Current", is_overdue=True),
        T,
        False,
        False,
        "Applied",
        "Current",
    ),
    Readiness.ROLLED_BACK: (
        ReadinessFacts(State.APPLIED, is_rollback=True, health="Current"),
        F,
        False,
        True,
        "RolledBack",
        "Failed",
    ),
    Readiness.DENIED: (ReadinessFacts(State.DENIED), F, False, True, "Denied", "Failed"),
    Readiness.EXPIRED: (ReadinessFacts(State.EXPIRED), F, False, True, "Expired", "Failed"),
    Readiness.WITHDRAWN: (ReadinessFacts(State.WITHDRAWN), F, False, True, "Withdrawn", "Failed"),
    Readiness.FAILED: (ReadinessFacts(State.FAILED, health="Current"), F, False, True, "", "Failed"),
    Readiness.DELETION_ASKED: (
        ReadinessFacts(State.APPLIED, is_leaving=True, health="Current"),
        F,
        True,
        False,
        "DeletionRequested",
        "InProgress",
    ),
    Readiness.DELETING: (
        ReadinessFacts(State.APPLYING, is_leaving=True, is_deletion=True),
        F,
        True,
        False,
        "Deleting",
        "InProgress",
    ),
}


def shown(readiness: Readiness, *, seen: int = 3) -> dict[str, Any]:
    """A BundleDeployment of generation 3 whose status is of generation `seen`."""
    row = readiness.value
    said = {
        "Ready": str(row.ready),
        "Reconciling": str(row.is_reconciling),
        "Stalled": str(row.is_stalled),
    }
    conditions = [
        {
            "type": name,
            "status": status,
            "reason": row.reason or "MissingRights",
            "message": row.when,
            "observedGeneration": seen,
        }
        for name, status in said.items()
    ]
    return {**wish(), "status": {"conditions": conditions, "observedGeneration": seen}}


def wish() -> dict[str, Any]:
    meta = {"name": "web", "generation": 3}
    return {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": meta, "spec": {}}
