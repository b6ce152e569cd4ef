"""The one table of what a deployment can be in, and what kstatus, Argo CD and Flux make of each row."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime

from approvals.lifecycle import State
from approvals.steps.mirroring.conditions import ConditionStatus, Readiness, ReadinessFacts, readiness_of
from provisioner.cluster.health import observation
from provisioner.health_checks import HealthCheck, health_checks
from provisioner.values import HealthState
from tests.support.built import built
from tests.support.folders import ROOT
from tests.support.patience import scaled

SECONDS = 30
FALSE = ConditionStatus.FALSE
# Ready, Reconciling and Stalled, and what kstatus says of them.
RECONCILING = (FALSE, True, False, "InProgress")
STALLED = (FALSE, False, True, "Failed")
WAITING = (FALSE, False, False, "InProgress")
READY = (ConditionStatus.TRUE, False, False, "Current")
UNKNOWN = (ConditionStatus.UNKNOWN, False, False, "InProgress")
# The facts, how it stands, and the reason of the conditions, "" where it is the code of the problem.
ROWS = {
    Readiness.NO_REQUEST: (ReadinessFacts(None), RECONCILING, "Pending"),
    Readiness.QUOTA: (ReadinessFacts(None, waits_for_quota=True), RECONCILING, "QuotaExceeded"),
    Readiness.PREPARING: (ReadinessFacts(State.PREPARING), RECONCILING, "Preparing"),
    Readiness.CANNOT_PREPARE: (ReadinessFacts(State.PREPARING, has_problem=True), RECONCILING, ""),
    Readiness.REPORTING_AGAIN: (ReadinessFacts(State.STALE, has_problem=True), RECONCILING, "Stale"),
    Readiness.IN_REVIEW: (
        ReadinessFacts(State.IN_REVIEW, has_problem=True, is_paused=True),
        WAITING,
        "WaitingForApproval",
    ),
    Readiness.APPROVED: (ReadinessFacts(State.APPROVED), RECONCILING, "Approved"),
    Readiness.PAUSED: (ReadinessFacts(State.APPROVED, is_paused=True, has_problem=True), WAITING, "Paused"),
    Readiness.HELD: (ReadinessFacts(State.APPROVED, has_problem=True), RECONCILING, ""),
    Readiness.APPLYING: (ReadinessFacts(State.APPLYING, is_paused=True), RECONCILING, "Applying"),
    Readiness.RESTORING: (ReadinessFacts(State.RESTORING), RECONCILING, "Restoring"),
    Readiness.PROGRESSING: (ReadinessFacts(State.APPLIED, health="InProgress"), RECONCILING, "Progressing"),
    Readiness.UNHEALTHY: (ReadinessFacts(State.APPLIED, health="Failed"), RECONCILING, "Unhealthy"),
    Readiness.OVERDUE: (
        ReadinessFacts(State.APPLIED, health="Failed", is_overdue=True),
        STALLED,
        "ProgressDeadlineExceeded",
    ),
    Readiness.HEALTH_UNKNOWN: (ReadinessFacts(State.APPLIED, health="Unknown"), UNKNOWN, "HealthUnknown"),
    Readiness.READY: (ReadinessFacts(State.APPLIED, health="Current", is_overdue=True), READY, "Applied"),
    Readiness.ROLLED_BACK: (ReadinessFacts(State.APPLIED, is_rollback=True, health="Current"), STALLED, "RolledBack"),
    Readiness.DENIED: (ReadinessFacts(State.DENIED), STALLED, "Denied"),
    Readiness.EXPIRED: (ReadinessFacts(State.EXPIRED), STALLED, "Expired"),
    Readiness.WITHDRAWN: (ReadinessFacts(State.WITHDRAWN), STALLED, "Withdrawn"),
    Readiness.FAILED: (ReadinessFacts(State.FAILED, health="Current"), STALLED, ""),
    Readiness.DELETION_ASKED: (
        ReadinessFacts(State.APPLIED, is_leaving=True, health="Current"),
        RECONCILING,
        "DeletionRequested",
    ),
    Readiness.DELETING: (ReadinessFacts(State.APPLYING, is_leaving=True, is_deletion=True), RECONCILING, "Deleting"),
}
WISH = {
    "apiVersion": "core.rukpak.io/v1alpha2",
    "kind": "BundleDeployment",
    "metadata": {"name": "web", "generation": 3},
    "spec": {},
}


def shown(readiness: Readiness, *, seen: int = 3) -> dict[str, Any]:
    """A BundleDeployment of generation 3 whose status is of generation `seen`."""
    row = readiness.value
    statuses = {"Ready": str(row.ready), "Reconciling": str(row.is_reconciling), "Stalled": str(row.is_stalled)}
    about = {"reason": row.reason or "MissingRights", "message": row.when, "observedGeneration": seen}
    conditions = [{"type": name, "status": status, **about} for name, status in statuses.items()]
    return {**WISH, "status": {"conditions": conditions, "observedGeneration": seen}}


def test_the_table_is_whole() -> None:
    assert set(ROWS) == set(Readiness)


@pytest.mark.parametrize("readiness", ROWS, ids=lambda readiness: readiness.name)
def test_each_state_is_shown_as_the_table_says(readiness: Readiness) -> None:
    facts, (ready, is_reconciling, is_stalled, _), reason = ROWS[readiness]
    row = readiness_of(facts).value
    assert readiness_of(facts) is readiness
    assert (row.ready, row.is_reconciling, row.is_stalled, row.reason) == (ready, is_reconciling, is_stalled, reason)


@pytest.mark.parametrize("state", State)
def test_every_state_of_a_request_has_its_row(state: State) -> None:
    for is_deletion in (False, True):
        found = readiness_of(ReadinessFacts(state, is_deletion=is_deletion, is_leaving=is_deletion))
        assert found is not Readiness.READY, "nobody has said that it is healthy"


@pytest.mark.parametrize("state", [State.PREPARING, State.IN_REVIEW, State.DENIED, State.FAILED])
def test_a_deletion_says_where_it_stands_like_any_other_request(state: State) -> None:
    leaving = readiness_of(ReadinessFacts(state, is_deletion=True, is_leaving=True))
    assert leaving is readiness_of(ReadinessFacts(state))


@pytest.fixture(scope="module")
def kstatus() -> Path:
    """The library that Flux itself judges with."""
    found = built("kstatus")
    assert found is not None
    return found


def judged(kstatus: Path, objects: Sequence[dict[str, Any]]) -> list[str]:
    done = subprocess.run(
        [kstatus], input=json.dumps(objects), capture_output=True, text=True, check=False, timeout=scaled(SECONDS)
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.thorough
def test_kstatus_judges_each_row_as_the_table_says(kstatus: Path) -> None:
    found = dict(zip(Readiness, judged(kstatus, [shown(readiness) for readiness in Readiness]), strict=True))
    assert found == {readiness: how[-1] for readiness, (_, how, _) in ROWS.items()}


@pytest.mark.thorough
def test_kstatus_waits_for_a_look_at_the_spec_whatever_was_said_before(kstatus: Path) -> None:
    assert set(judged(kstatus, [shown(readiness, seen=2) for readiness in Readiness])) == {"InProgress"}


@pytest.mark.thorough
def test_kstatus_says_that_what_is_deleted_is_terminating_whatever_is_said(kstatus: Path) -> None:
    leaving = {"metadata": {"name": "web", "generation": 3, "deletionTimestamp": "2026-11-26T00:00:00Z"}}
    assert set(judged(kstatus, [shown(readiness) | leaving for readiness in Readiness])) == {"Terminating"}


# Progressing, where nothing else is written.
ARGO = {
    Readiness.IN_REVIEW: "Suspended",
    Readiness.PAUSED: "Suspended",
    Readiness.HEALTH_UNKNOWN: "Unknown",
    Readiness.READY: "Healthy",
    **{readiness: "Degraded" for readiness, (_, how, _) in ROWS.items() if how is STALLED},
}
# In progress, where nothing else is written.
FLUX = {
    Readiness.READY: HealthState.CURRENT,
    **{readiness: HealthState.FAILED for readiness, (_, how, _) in ROWS.items() if how is STALLED},
}


def argo_health(obj: dict[str, Any]) -> tuple[str, str]:
    """As Argo CD runs it: the object as `obj`, in a Lua of 5.1 with nothing of the machine."""
    key = "resource.customizations.health.core.rukpak.io_BundleDeployment"
    script = yaml.safe_load((ROOT / "deploy/gitops/argocd.yaml").read_text())["data"][key]
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    lua.globals().obj = lua.table_from(obj, recursive=True)
    found = lua.execute(script)
    return found["status"], found["message"]


@pytest.fixture(scope="module")
def flux_check() -> HealthCheck:
    (entry,) = yaml.safe_load((ROOT / "deploy/gitops/flux.yaml").read_text())["healthCheckExprs"]
    texts = {name: entry.pop(name) for name in ("failed", "current")}
    (check,) = health_checks({"healthChecks": [{**entry, "cel": texts}]})
    return check


def test_argo_cd_shows_how_it_stands_and_waits_for_a_look_at_the_spec_that_it_wrote() -> None:
    for readiness in Readiness:
        assert argo_health(shown(readiness)) == (ARGO.get(readiness, "Progressing"), readiness.value.when)
        words = "Waiting for Pratique to look at the changed spec"
        assert argo_health(shown(readiness, seen=2)) == ("Progressing", words), readiness


def test_flux_waits_fails_or_goes_on_and_waits_for_a_look_at_the_spec_that_it_wrote(flux_check: HealthCheck) -> None:
    found = observation.cel_answers([(flux_check, shown(readiness)) for readiness in Readiness])
    states = {readiness: health.state for readiness, health in zip(Readiness, found, strict=True)}
    assert states == {readiness: FLUX.get(readiness, HealthState.IN_PROGRESS) for readiness in Readiness}
    unseen = observation.cel_answers([(flux_check, shown(readiness, seen=2)) for readiness in Readiness])
    assert {health.state for health in unseen} == {HealthState.IN_PROGRESS}


@pytest.mark.parametrize(
    "early",
    # The last one lacks what makes a condition.
    [{}, {"status": {}}, {"status": {"conditions": []}}, {"status": {"conditions": [{"type": "Applied"}]}}],
    ids=str,
)
def test_argo_cd_and_flux_wait_where_nothing_is_said_yet(early: dict[str, Any], flux_check: HealthCheck) -> None:
    obj = WISH | early
    assert argo_health(obj) == ("Progressing", "Waiting for Pratique to look at it")
    assert observation.cel_answers([(flux_check, obj)])[0].state == HealthState.IN_PROGRESS
