"""An apply and a correction of one deployment exclude each other; those of several go on side by side."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.approvals.databases import environment, manage
from tests.support.folders import ROOT
from tests.support.patience import scaled

pytestmark = pytest.mark.thorough


SETTING = """
import time
from datetime import timedelta
from django.utils import timezone
from tests.support.patience import wait_for
from approvals import lifecycle
from approvals.ledger import claims, pivots
from approvals.models import BundleDeployment, Cluster, Content, Request, Revision
from approvals.steps import apply as step
from approvals.gate import Waiting as NotNow
from approvals.steps.running.correct import check_running
from approvals.gate.answers import GateQuestion
from approvals.gate.facts import GateFacts
def approved(name):
    meta = {"name": name, "uid": name, "generation": 1, "resourceVersion": "1"}
    spec = {"installNamespace": "n", "serviceAccountName": "s", "sources": []}
    deployment = pivots.see(cluster=Cluster.objects.get(), obj={"metadata": meta, "spec": spec}, writer=None)
    request = deployment.requests.get()
    running = Request.objects.create(
        deployment=deployment, cluster_id=deployment.cluster_id, number=9, generation=1, spec=spec, options_digest="o", state="applied", content_id="d",
        subject_digest="s", created_at=timezone.now(), changed_at=timezone.now(), expires_at=timezone.now(),
    )
    revision = Revision.objects.create(
        deployment=deployment, number=1, request=running, content_id="d", state="active", started_at=timezone.now()
    )
    BundleDeployment.objects.filter(pk=deployment.pk).update(active_revision=revision)
    until = timezone.now() + timedelta(hours=1)
    Request.objects.filter(pk=request.pk).update(
        state="approved", subject_digest="s", content_id="d", claimed_by="applier", claimed_until=until
    )
    return Request.objects.get(pk=request.pk)
def start(request):
    try:
        step._start(request, "applier", GateFacts(GateQuestion.APPLY, None, timezone.now()))
        return "started"
    except claims.Busy as busy:
        return busy.code
def correct(request, *, writes=lambda: None):
    if not claims.take(BundleDeployment.objects.filter(pk=request.deployment_id), "corrector"):
        return "held"
    try:
        check_running(Revision.objects.get(deployment=request.deployment_id, state="active"))
        writes()
        return "corrected"
    except NotNow:
        return "not now"
    finally:
        claims.give_back(BundleDeployment.objects.filter(pk=request.deployment_id), "corrector")
"""
ROWS = """
Cluster.objects.create(name="c", uid="u", created_at=timezone.now())
Content.objects.create(
    digest="d", install_namespace="n", service_account="s", format="plain", object_count=1, byte_count=1,
    created_at=timezone.now(),
)
"""
IN_TURN = """
one, two = approved("one"), approved("two")
print(correct(one, writes=lambda: print(start(one), start(two))))
print(correct(two), start(one), correct(one))
three = approved("three")
claims.take(BundleDeployment.objects.filter(pk=three.deployment_id), "corrector")
BundleDeployment.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
print(start(three), claims.renew_deployment(three.deployment_id, "corrector"))
"""
ROUNDS = 40
# One process applies, the other corrects; each tells the other in the database that it is ready for the round.
APPLYING = """
for number in range(ROUNDS):
    request = approved(f"d{number:03}")
    ready = claims.BundleDeployment.objects.filter(pk=request.deployment_id, drift_problem="ready")
    wait_for(ready.exists, "the corrector is ready", every=0.001)
    wait_for(lambda: start(request), "it starts", is_so=lambda said: said != "busy", every=0.001)
    print("started")
"""
CORRECTING = """
for number in range(ROUNDS):
    row = wait_for(
        lambda: Request.objects.filter(deployment__name=f"d{number:03}", state="approved").first(),
        "one is approved", every=0.001,
    )
    BundleDeployment.objects.filter(pk=row.deployment_id).update(drift_problem="ready")
    def writes():
        time.sleep(0.002)  # so that the other one comes in between
        print("wrote while", Request.objects.get(pk=row.pk).state)
    while correct(row, writes=writes) == "corrected":
        pass
    print("held off")
"""


def script(*parts: str) -> list[str]:
    return [sys.executable, "manage.py", "shell", "-v", "0", "-c", "\n".join([SETTING, f"ROUNDS = {ROUNDS}", *parts])]


@pytest.mark.parametrize(
    "migrated_database_url",
    ["sqlite", pytest.param("postgres", marks=[pytest.mark.services, pytest.mark.proof])],
    indirect=True,
)
def test_who_comes_first_holds_off_the_other_and_other_deployments_go_on(migrated_database_url: str) -> None:
    said = manage(migrated_database_url, *script(ROWS, IN_TURN)[2:]).splitlines()
    assert said == ["busy started", "corrected", "not now started not now", "started False"]


@pytest.mark.parametrize("migrated_database_url", ["postgres"], indirect=True)
def test_two_workers_racing_on_postgresql_never_write_at_once(migrated_database_url: str, tmp_path: Path) -> None:
    manage(migrated_database_url, *script(ROWS)[2:])
    workers: list[subprocess.Popen[Any]] = [
        subprocess.Popen(
            script(part),
            cwd=ROOT,
            env=environment(migrated_database_url),
            stdout=subprocess.PIPE,
            stderr=(tmp_path / "errors").open("ab"),
            text=True,
        )
        for part in (APPLYING, CORRECTING)
    ]
    applied, corrected = (worker.communicate(timeout=scaled(240))[0].splitlines() for worker in workers)
    assert [worker.returncode for worker in workers] == [0, 0], (tmp_path / "errors").read_text()
    assert applied == ["started"] * ROUNDS
    assert corrected.count("held off") == ROUNDS
    assert {line for line in corrected if line.startswith("wrote")} <= {"wrote while approved"}
