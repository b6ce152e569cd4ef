"""A cluster is removed, and registered again: what runs there stays, and what was agreed on here, too."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from approvals import services
from approvals.audit import Actor
from approvals.errors import InvalidInput
from approvals.models import AuditEntry, BundleDeployment, Cluster, KubernetesIdentity, Request, Review, Revision
from approvals.steps.mirroring.mirror import look_after
from approvals.watch import loop
from provisioner.api_groups import FINALIZER
from provisioner.errors import PreconditionFailed
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.running import Running
from tests.support.servers.registry import Registry

OPERATOR = Actor("test", "shell")
NOWHERE = "http://127.0.0.1:1"


def remove(*options: str) -> str:
    told = StringIO()
    call_command("remove_cluster", "journey", *options, stdout=told)
    return told.getvalue()


def finalizers(site: DeployedSite, name: str) -> list[str]:
    live: Any = site.api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", name))
    return list(live["metadata"].get("finalizers") or ())


def test_a_removed_cluster_keeps_what_runs_and_comes_back_as_the_same_one(
    site: DeployedSite, registry: Registry
) -> None:
    it = Running(site, registry)
    look_after(it.deployment.pk)
    assert finalizers(site, it.name) == [FINALIZER]
    before, kubeconfig = it.live(), site.cluster.kubeconfig
    opened = site.submit_spec(it.name, bundles.image(registry, it.name, bundles.app(it.name, "2")))
    told = remove("--yes")
    assert re.search(r"deployments +1, of which 0 .*\n +open requests +1\n +identities +3\n", told)
    assert "finalizer core" not in told
    cluster = Cluster.every.get()
    assert (Cluster.objects.count(), cluster.kubeconfig, cluster.watched_by) == (0, "", "")
    assert (it.live(), finalizers(site, it.name)) == (before, [])
    assert site.latest(opened).state == "withdrawn"
    assert (KubernetesIdentity.objects.count(), Review.objects.count()) == (0, 1)
    assert AuditEntry.objects.get(verb="cluster.removed").facts["deployments"] == [it.name]
    listed = StringIO()
    call_command("list_clusters", stdout=listed)
    assert "removed 20" in listed.getvalue()
    with pytest.raises(CommandError, match="cluster journey was removed on 20"):
        remove("--yes")
    # What a watch sees late, or a worker still wants: nothing comes of it.
    with pytest.raises(PreconditionFailed, match="was removed"):
        loop.take_list(cluster, site.api, loop._resource(site.api))
    assert not BundleDeployment.objects.filter(gone_at=None).exists()
    # Under its own name, and as itself, it is there again.
    with pytest.raises(InvalidInput, match="registered as journey, and removed"):
        services.register_cluster(name="again", kubeconfig=kubeconfig, by=OPERATOR)
    again = services.register_cluster(name="journey", kubeconfig=kubeconfig, by=OPERATOR)
    loop.take_list(again, site.api, loop._resource(site.api))
    row = BundleDeployment.objects.get(gone_at=None, name=it.name)
    assert (row.pk, row.active_revision, row.inventory.count()) == (
        it.deployment.pk,
        it.deployment.active_revision,
        it.deployment.inventory.count(),
    )


def test_one_that_does_not_respond_is_removed_with_the_commands_for_what_is_left(
    sandbox_site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Running(sandbox_site, registry)
    look_after(it.deployment.pk)
    row = Request.objects.get()
    Request.objects.filter(pk=row.pk).update(state="applying", settled_at=None)
    Revision.objects.update(state="applying")
    cluster = sandbox_site.cluster
    cluster.kubeconfig = re.sub(r"https?://[^\s\"']+", NOWHERE, cluster.kubeconfig)
    cluster.save()
    monkeypatch.setattr("builtins.input", lambda _: "journie")
    with pytest.raises(CommandError, match="its name was not typed"):
        remove()
    # A worker is at it, or puts back drift.
    for rows in (Request.objects.filter(pk=row.pk), BundleDeployment.objects.all()):
        rows.update(claimed_by="x", claimed_until=Now() + timedelta(minutes=1))
        with pytest.raises(CommandError, match=f"is writing to it for {it.name}. Wait until that has ended"):
            remove("--yes")
        rows.update(claimed_by="", claimed_until=None)
    assert Cluster.objects.count() == 1
    monkeypatch.setattr("builtins.input", lambda _: "journey")
    told = remove()
    assert f"The finalizer {FINALIZER} is still on {it.name}: " in told
    assert "kubectl patch bundledeployments.core.rukpak.io NAME --type=merge" in told
    row.refresh_from_db()
    assert (row.state, row.problem) == ("failed", "cluster journey was removed before this had ended")
    assert Revision.objects.get().state == "failed"
