"""Others edit and delete what runs while workers are killed (-9): the watch sees it, and all is as approved in the end."""

from __future__ import annotations

import json
import random
import time
from functools import partial
from typing import Any

import pytest

from tests.support.journeys.machine import SEED_SECONDS, Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled, wait_for

SETTLE_SECONDS = 90
NAMESPACE = "harbour-system"
APPROVE = """
from django.contrib.auth.models import User
from approvals import services
from approvals.management.commands.demo_seed import acting
from approvals.models import Request
for request in Request.objects.filter(state="in_review", deployment__name="tugboat"):
    services.review(by=acting(User.objects.get(username="ada")), request_id=request.pk, decision="Approve", channel="browser",
        subject_digest=request.subject_digest, reason="", acknowledges=services.to_acknowledge(request))
"""
PATHS = {
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
}
FIELDS = ("rules", "spec", "subjects", "roleRef")


def state_of(machine: Machine) -> list[tuple[object, ...]]:
    return machine.rows(
        "SELECT r.number, r.state FROM approvals_request r JOIN approvals_bundledeployment d ON d.id = r.deployment_id"
        " WHERE d.name = 'tugboat' ORDER BY r.number"
    )


def approved_fields(endpoint: Endpoint, path: str) -> dict[str, Any] | None:
    found = [
        one for one in endpoint.ask("GET", path.rpartition("/")[0])["items"] if path.endswith(one["metadata"]["name"])
    ]
    return {key: found[0].get(key) for key in FIELDS} if found else None


def spoil(endpoint: Endpoint, path: str, is_deleted: bool) -> None:
    if is_deleted:
        endpoint.ask("DELETE", path)
        return
    live = endpoint.ask("GET", path)
    if "rules" in live:
        live["rules"] = [*live["rules"], {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    elif "subjects" in live:
        live["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]
    else:
        live["spec"]["replicas"] = 7
    endpoint.ask("PUT", path, live)


@pytest.mark.thorough
def test_kill_9_of_workers_while_others_edit_and_delete_ends_as_approved(
    machine: Machine, own_sandbox: Endpoint
) -> None:
    seed = machine.prepare(own_sandbox)
    worker = machine.worker()
    machine.start("manage.py", "watch")
    machine.run(*seed)
    machine.run("manage.py", "shell", "--verbosity", "0", "-c", APPROVE)
    wait_for(
        lambda: [row[1] for row in state_of(machine)][1:],
        "the second request is applied",
        SEED_SECONDS,
        is_so=lambda states: "applied" in states,
        log=machine.log,
    )
    query = (
        "SELECT i.kind, i.name FROM approvals_inventoryitem i JOIN approvals_bundledeployment d"
        " ON d.id = i.deployment_id WHERE d.name = 'tugboat' AND i.uid != ''"
    )
    paths = [f"{PATHS[str(kind)]}/{name}" for kind, name in machine.rows(query) if kind in PATHS]
    assert len(paths) >= 4
    nothing_due = f"{query} AND (i.look_at IS NOT NULL OR i.fingerprint = '')"
    until_compared = partial(
        wait_for, lambda: machine.rows(nothing_due), seconds=SETTLE_SECONDS, is_so=lambda due: not due, log=machine.log
    )
    until_compared("all is compared")
    approved = {path: approved_fields(own_sandbox, path) for path in paths}

    moments = random.Random(20261121)
    for path in paths:
        spoil(own_sandbox, path, is_deleted="serviceaccounts" in path or moments.random() < 0.4)
        time.sleep(scaled(moments.uniform(0.2, 1.5)))
        machine.kill(worker)
        worker = machine.worker()
        time.sleep(scaled(moments.uniform(0.5, 4.0)))  # in which a worker gets somewhere

    wait_for(
        lambda: {path: approved_fields(own_sandbox, path) for path in paths},
        "all is as approved",
        SETTLE_SECONDS,
        is_so=approved.__eq__,
        log=machine.log,
    )
    until_compared("all is compared in the end")
    assert machine.rows("SELECT count(*) FROM approvals_inventoryitem WHERE uid = ''") == [(0,)]
    assert machine.rows("SELECT count(*) FROM approvals_drift WHERE state = 'open' AND kind != 'added'") == [(0,)]
    (found,) = machine.rows("SELECT count(*) FROM approvals_auditentry WHERE verb = 'drift.found'")
    assert found[0] == len(paths), json.dumps(paths)
    assert machine.chain_is_whole()
