"""Rows are locked in one order, deployment before request before the audit chain: else two wait for each other."""

from __future__ import annotations

import pytest

from tests.approvals.core.test_databases import database_url, manage

pytestmark = pytest.mark.thorough

__all__ = ["database_url"]

SETTING = """
import threading, time
import psycopg
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone
from approvals import audit
from approvals.ledger import pivots
from approvals.models import BundleDeployment, Cluster, Content, Request, Revision
from approvals.services import revisions as marks
from approvals.services.reviews import Decider
from approvals.steps import deploy, restore
from approvals.steps.restore import Target
from provisioner.errors import PratiqueError
from provisioner.values import Identity
SPEC = {"installNamespace": "n", "serviceAccountName": "s", "sources": []}
cluster = Cluster.objects.create(name="c", uid="u", created_at=timezone.now())
Content.objects.create(
    digest="d", install_namespace="n", service_account="s", format="plain", object_count=1, byte_count=1,
    created_at=timezone.now(),
)
def seen(name, generation):
    meta = {"name": name, "uid": name, "generation": generation, "resourceVersion": "1"}
    spec = {**SPEC, "config": {"generation": generation}}
    return {"metadata": meta, "spec": spec}
def made(name, number, state, revision_state, **more):
    deployment = BundleDeployment.objects.get(name=name)
    request = Request.objects.create(
        deployment=deployment, number=number, generation=1, spec=SPEC, options_digest="o", state=state,
        content_id="d", subject_digest="s", created_at=timezone.now(), changed_at=timezone.now(),
        expires_at=timezone.now(), claimed_by="w", **more,
    )
    revision = Revision.objects.create(
        deployment=deployment, number=number, request=request, content_id="d", state=revision_state,
        started_at=timezone.now(),
    )
    return Request.objects.select_related("deployment__cluster", "content", "from_revision").get(pk=request.pk)
def begun(name, state, revision_state, **marked):
    deployment = pivots.see(cluster=cluster, obj=seen(name, 1), writer=None)
    deployment.requests.all().delete()
    before = made(name, 1, "applied", "replaced" if revision_state == "active" else "active").revision
    request = made(name, 2, state, revision_state, from_revision=before)
    running = request.revision if revision_state == "active" else before
    BundleDeployment.objects.filter(pk=deployment.pk).update(active_revision=running)
    Revision.objects.filter(request=request).update(**marked)
    return request
def going_back(name):
    request = begun(name, "in_review", "applying")
    Request.objects.filter(pk=request.pk).update(
        purpose="rollback", to_revision=request.from_revision
    )
    return request
def in_review(name):
    return pivots.see(cluster=cluster, obj=seen(name, 1), writer=None).requests.get()
def target(request):
    return Target(request.from_revision, None)
known = settings.DATABASES["default"]
def connect():
    return psycopg.connect(
        host=known["HOST"], port=known["PORT"], user=known["USER"], password=known["PASSWORD"], dbname=known["NAME"]
    )
def meanwhile(held, probe, act):
    def run():
        act()
        connections.close_all()
    with connect() as holder, connect() as prober:
        holder.execute(held)
        thread = threading.Thread(target=run)
        thread.start()
        waiting = "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname=%s"
        while thread.is_alive() and not prober.execute(waiting, [known["NAME"]]).fetchone():
            prober.rollback()
            time.sleep(0.01)
        prober.rollback()
        is_waiting = thread.is_alive()
        try:
            found = prober.execute(probe).fetchone()[0]
        except psycopg.errors.LockNotAvailable:
            found = False
        prober.rollback()
        holder.rollback()
        thread.join()
    return ("waits" if is_waiting else "does not wait") + (" holding nothing" if found else " holding the next lock")
def on_deployment(request, act):
    return meanwhile(
        f"SELECT 1 FROM approvals_bundledeployment WHERE id={request.deployment_id} FOR UPDATE",
        f"SELECT true FROM approvals_request WHERE id={request.pk} FOR UPDATE NOWAIT", act,
    )
def on_request(request, act):
    return meanwhile(
        f"SELECT 1 FROM approvals_request WHERE id={request.pk} FOR UPDATE",
        f"SELECT pg_try_advisory_xact_lock({audit.CHAIN_LOCK})", act,
    )
"""
HOLDING_THE_DEPLOYMENT = {
    "an apply that succeeds": ('begun(name, "applying", "applying")', "deploy._finish(request, [], [])"),
    "an apply that is given up": ('begun(name, "applying", "applying")', 'deploy.give_up(request, PratiqueError("x"))'),
    "a restore that begins": ('begun(name, "restoring", "active")', 'restore._begin(request, target(request), "w")'),
    "a restore that is not needed": (
        'begun(name, "restoring", "active", healthy_at=timezone.now())',
        'restore._begin(request, target(request), "w")',
    ),
    "a restore that succeeds": (
        'begun(name, "restoring", "failed")',
        "restore._finish(request, target(request), [])",
    ),
    "a restore that is given up": (
        'begun(name, "restoring", "failed")',
        'restore.give_up(request, PratiqueError("x"))',
    ),
}
HOLDING_THE_REQUEST = {
    "another wish": ("in_review(name)", "pivots.see(cluster=cluster, obj=seen(name, 2), writer=None)"),
    "a deletion": ("in_review(name)", "pivots.forget(cluster=cluster, uid=name)"),
    "a revocation": (
        "going_back(name)",
        'marks._revoke(request.deployment_id, 1, "leaks", Decider(Identity("ada"), "", "ada"), "rest")',
    ),
}


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_who_waits_for_a_lock_holds_none_that_comes_after_it(database_url: str) -> None:
    tables = {"on_deployment": HOLDING_THE_DEPLOYMENT, "on_request": HOLDING_THE_REQUEST}
    cases = [(lock, name, *parts) for lock, table in tables.items() for name, parts in table.items()]
    lines = [
        f"name = {name!r}\nrequest = {setting}\nprint(name, {lock}(request, lambda: {act}))"
        for lock, name, setting, act in cases
    ]
    manage(database_url, "migrate", "-v", "0")
    said = manage(database_url, "shell", "-v", "0", "-c", "\n".join([SETTING, *lines])).splitlines()
    assert said == [f"{name} waits holding nothing" for _, name, *_ in cases]


INVENTORY = """
from functools import partial
from approvals.ledger import claims
from approvals.models import InventoryItem
from approvals.steps.inventory import DatabaseInventory
from provisioner.values import ObjectRef
request = begun("an intent", "applying", "applying")
def opened():
    found = DatabaseInventory(request.deployment, request.revision, partial(claims.check_held, request.pk, "w"))
    return found, found.items()
first, second = (ObjectRef("", "v1", "ConfigMap", "n", name) for name in ("a", "b"))
opened()[0].intend_many([(first, "n"), (second, "n")])
keys = list(InventoryItem.objects.order_by("pk").values_list("pk", flat=True))
# The first row now stands behind the second one in the table.
InventoryItem.objects.filter(pk=keys[0]).update(look_at=timezone.now())
def on_first(act):
    rows = "FROM approvals_inventoryitem WHERE id="
    return meanwhile(f"SELECT 1 {rows}{keys[0]} FOR UPDATE", f"SELECT true {rows}{keys[1]} FOR UPDATE NOWAIT", act)
for one in ("n", "another"):
    found, _ = opened()
    print(on_first(lambda: found.intend_many([(second, "n"), (first, one)])))
"""


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_rows_of_the_inventory_are_locked_by_their_key(database_url: str) -> None:
    manage(database_url, "migrate", "-v", "0")
    said = manage(database_url, "shell", "-v", "0", "-c", SETTING + INVENTORY).splitlines()
    assert said == ["waits holding nothing"] * 2
