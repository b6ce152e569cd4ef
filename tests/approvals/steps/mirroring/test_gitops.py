"""What Argo CD and Flux are told to make of each row of the table of conditions, by what they themselves would run."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime

from approvals.steps.mirroring.conditions import Readiness
from provisioner.cluster.health import observation
from provisioner.health_checks import HealthCheck, health_checks
from provisioner.values import HealthState
from tests.approvals.steps.mirroring.rows import shown, wish
from tests.support.folders import ROOT

ARGO_KEY = "resource.customizations.health.core.rukpak.io_BundleDeployment"
# Progressing, where nothing else is written.
ARGO = {
    Readiness.IN_REVIEW: "Suspended",
    Readiness.PAUSED: "Suspended",
    Readiness.OVERDUE: "Degraded",
    Readiness.HEALTH_UNKNOWN: "Unknown",
    Readiness.READY: "Healthy",
    Readiness.ROLLED_BACK: "Degraded",
    Readiness.DENIED: "Degraded",
    Readiness.EXPIRED: "Degraded",
    Readiness.WITHDRAWN: "Degraded",
    Readiness.FAILED: "Degraded",
}
# In progress, where nothing else is written.
FLUX = {
    Readiness.READY: HealthState.CURRENT,
    **{one: HealthState.FAILED for one, argo in ARGO.items() if argo == "Degraded"},
}
# Seen before there is anything to say; the last one lacks what makes a condition.
EARLY = [{}, {"status": {}}, {"status": {"conditions": []}}, {"status": {"conditions": [{"type": "Applied"}]}}]


def argo_health(obj: dict[str, Any]) -> tuple[str, str]:
    """As Argo CD runs it: the object as `obj`, in a Lua of 5.1 with nothing of the machine."""
    script = yaml.safe_load((ROOT / "deploy/gitops/argocd.yaml").read_text())["data"][ARGO_KEY]
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    lua.globals().obj = lua.table_from(obj, recursive=True)
    found = lua.execute(script)
    return found["status"], found["message"]


def flux_check() -> HealthCheck:
    (entry,) = yaml.safe_load((ROOT / "deploy/gitops/flux.yaml").read_text())["healthCheckExprs"]
    texts = {name: entry.pop(name) for name in ("failed", "current")}
    (check,) = health_checks({"healthChecks": [{**entry, "cel": texts}]})
    return check


@pytest.mark.parametrize("readiness", Readiness, ids=lambda one: one.name)
def test_argo_cd_shows_how_it_stands(readiness: Readiness) -> None:
    assert argo_health(shown(readiness)) == (ARGO.get(readiness, "Progressing"), readiness.value.when)


@pytest.mark.parametrize("readiness", Readiness, ids=lambda one: one.name)
def test_argo_cd_waits_for_a_look_at_the_spec_that_it_wrote(readiness: Readiness) -> None:
    expected = ("Progressing", "Waiting for Pratique to look at the changed spec")
    assert argo_health(shown(readiness, seen=2)) == expected


def test_flux_waits_fails_or_goes_on() -> None:
    objects = [shown(one) for one in Readiness]
    found = observation.cel_answers([(flux_check(), one) for one in objects])
    assert [one.state for one in found] == [FLUX.get(one, HealthState.IN_PROGRESS) for one in Readiness]


def test_flux_waits_for_a_look_at_the_spec_that_it_wrote() -> None:
    found = observation.cel_answers([(flux_check(), shown(one, seen=2)) for one in Readiness])
    assert {one.state for one in found} == {HealthState.IN_PROGRESS}


@pytest.mark.parametrize("early", EARLY, ids=str)
def test_both_wait_where_nothing_is_said_yet(early: dict[str, Any]) -> None:
    obj = wish() | early
    assert argo_health(obj) == ("Progressing", "Waiting for Pratique to look at it")
    assert observation.cel_answers([(flux_check(), obj)])[0].state == HealthState.IN_PROGRESS
