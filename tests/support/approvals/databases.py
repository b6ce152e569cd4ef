"""A database of its own, SQLite's or PostgreSQL's, and our commands on it, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers import migrated

# Requests in any state, and what to look at from another connection while somebody waits for a lock.
SETTING = """
import threading
from datetime import timedelta
import psycopg
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone
from approvals import audit
from approvals.ledger import pivots
from approvals.models import BundleDeployment, Cluster, Content, Request, Revision
from approvals.services import revisions as marks
from approvals.gate.reviewer_checks import Decider
from approvals.steps import apply, restore
from approvals.steps.running import observe
from approvals.steps.restore import RestoreTarget
from provisioner.errors import PratiqueError
from provisioner.values import Health, HealthState, Identity
from tests.support.patience import scaled, wait_for
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
        deployment=deployment, cluster_id=deployment.cluster_id, number=number, generation=1, spec=SPEC, options_digest="o", state=state,
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
def overdue(name):
    request = begun(name, "applied", "active")
    Revision.objects.filter(request=request).update(finished_at=timezone.now() - timedelta(days=1))
    return request
def in_review(name):
    return pivots.see(cluster=cluster, obj=seen(name, 1), writer=None).requests.get()
def target(request):
    return RestoreTarget(request.from_revision, None, None)
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
        def is_met():
            found = prober.execute(waiting, [known["NAME"]]).fetchone()
            prober.rollback()
            return found or not thread.is_alive()
        wait_for(is_met, "it waits, or has ended", every=0.01)
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
# Two transactions that really meet: the first one stops where `paused` says, until the other one waits for a lock.
MEETING = """
import contextlib
from django.db import DatabaseError
def meet(first, second):
    reached, go, told = threading.Event(), threading.Event(), {}
    def pause():
        reached.set()
        assert go.wait(scaled(60))
    def run(name, act):
        try:
            act()
            told[name] = "done"
        except DatabaseError as error:
            told[name] = str(error).splitlines()[0]
        finally:
            connections.close_all()
    one = threading.Thread(target=run, args=("first", lambda: first(pause)))
    two = threading.Thread(target=run, args=("second", second))
    one.start()
    assert reached.wait(scaled(60))
    two.start()
    waiting = "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname=%s"
    with connect() as prober:
        prober.autocommit = True
        wait_for(
            lambda: not two.is_alive() or prober.execute(waiting, [known["NAME"]]).fetchone(),
            "it waits, or has ended", every=0.01,
        )
    told["met"] = two.is_alive()
    go.set()
    one.join()
    two.join()
    return f"{told['first']}, {told['second']}" if told["met"] else "they did not meet"
@contextlib.contextmanager
def before(module, name, pause):
    original = getattr(module, name)
    def paused(*words, **named):
        if threading.current_thread() is stopped:
            pause()
        return original(*words, **named)
    stopped = threading.current_thread()
    setattr(module, name, paused)
    try:
        yield
    finally:
        setattr(module, name, original)
"""


def environment(url: str) -> dict[str, str]:
    return {**os.environ, "PRATIQUE_DATABASE_URL": url, "PRATIQUE_SECRET_KEY": "x" * 50}


def manage(url: str, *words: str) -> str:
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(url), capture_output=True, text=True, check=False, timeout=scaled(240)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/pratique.sqlite3"
    service: Any = request.getfixturevalue("postgres")
    return str(service.fresh_database())


@pytest.fixture(
    params=[pytest.param("sqlite", marks=pytest.mark.thorough), pytest.param("postgres", marks=pytest.mark.services)]
)
def migrated_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same with all migrations, for tests that are not about them. What is tested without a process of its own is on SQLite."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/pratique.sqlite3"
        migrated.make(environment(url))
        return url
    service: Any = request.getfixturevalue("postgres")
    return str(service.migrated_database())
