"""A deputy on a real API server: made with the plug-in, counted by Kubernetes' own words, and over at the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals.deciding.deputies import LONGEST
from approvals.errors import NotAllowed
from approvals.models import DecidingObject, KubernetesIdentity
from approvals.steps.mirroring.deciding_status import ShowDecidingObject
from approvals.watch.own_kinds import SeenDecidingObjects
from approvals.working import do
from provisioner.api_groups import OWN_GROUP, RBAC_GROUP
from provisioner.cli.kubectl import main
from provisioner.values import Identity, ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import SEEDER, DeployedSite, binding, user_subject
from tests.support.kubernetes.live import once_answered
from tests.support.servers.registry import Registry


def known(site: DeployedSite, name: str) -> Identity:
    """Somebody who has signed in, and may do nothing."""
    site.people[name] = User.objects.create_user(name)
    about = {"authenticator": KubernetesIdentity.Authenticator.MAPPED, "groups_seen_at": timezone.now()}
    KubernetesIdentity.objects.create(user=site.people[name], cluster=site.cluster, username=name, **about)
    return Identity(name)


def plug_in(site: DeployedSite, *words: str) -> int:
    return main(["deputy", *words, "--kubeconfig", str(site.kubeconfig), "--context", "alice"])


def watched(site: DeployedSite) -> None:
    for kind in ("Deputy", "ApprovalRule"):
        watch = SeenDecidingObjects(cluster=site.cluster, kind=kind)
        watch.stop.set()
        once_answered(lambda watch=watch: watch.look(site.api))


def test_S52_what_a_deputy_approved_counts_until_the_deputy_ends(
    real_site: DeployedSite, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    site, name = real_site, real_site.namespace
    dora, alice = known(site, f"dora-{name}"), Identity("alice")
    site.api.apply(binding(f"{name}-maker", "pratique-deputy-maker", user_subject("alice")), field_manager=SEEDER)
    site.until_may(alice, "create", "deputies", OWN_GROUP)
    site.until_may(alice, "create", "clusterrolebindings", RBAC_GROUP)
    end = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert plug_in(site, dora.username, "--until", end, "--role", "cluster-admin", "--yes") == 2
    assert "the binding would be refused" in capsys.readouterr().err
    assert plug_in(site, dora.username, "--until", end, "--yes") == 0
    site.until_may(dora, "approve", "bundledeployments", OWN_GROUP, name=name)

    rule: dict[str, Any] = {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "ApprovalRule", "metadata": {"name": name}}
    part = {"name": "approvers", "clusterRoles": ["pratique-approver"]}
    site.api.apply({**rule, "spec": {"selector": {"names": [name]}, "require": [part]}}, field_manager="somebody")
    deployment = site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))
    with pytest.raises(NotAllowed, match="as a deputy only"):
        site.agree(deployment, by=dora.username)  # before the watch has seen the Deputy
    watched(site)
    row = DecidingObject.objects.get(kind="Deputy", spec__user=dora.username)
    do(ShowDecidingObject(row.pk))
    assert " True " in site.ctl("get", "deputies", row.name, "--no-headers")
    site.pause(deployment)
    request = site.approve(deployment, by=dora.username)
    assert (request.state, request.problem_code) == ("approved", "paused"), request.problem
    said = request.reviews.get()
    assert f'ClusterRoleBinding "pratique:deputy:{row.uid}"' in said.access_reason
    assert said.deputy_words.startswith("deputy of alice until ")

    # Kubernetes allows it still; nothing that is over counts, and it is deleted.
    ended = {"changed_at": timezone.now() - LONGEST, "show_at": timezone.now()}
    DecidingObject.objects.filter(pk=row.pk).update(**ended)
    site.resume(deployment)
    site.work(request)
    assert (request.state, request.round) == ("in_review", 2), request.problem
    assert request.voided_rounds.get().words.endswith("still needed: 1 of ClusterRole pratique-approver")
    with pytest.raises(NotAllowed, match="as a deputy only, and that has ended"):
        site.agree(deployment, by=dora.username)
    assert site.live("Deployment", name) is None
    do(ShowDecidingObject(row.pk))
    assert site.api.get(ObjectRef(OWN_GROUP, "v1alpha2", "Deputy", "", row.name)) is None
    row.refresh_from_db()
    assert row.gone_at is not None
    given = site.api.get(ObjectRef(RBAC_GROUP, "v1", "ClusterRoleBinding", "", f"pratique:deputy:{row.uid}"))
    owners = [owner["uid"] for owner in given["metadata"]["ownerReferences"]] if given else [row.uid]
    assert owners == [row.uid], "what Kubernetes deletes with the Deputy"
