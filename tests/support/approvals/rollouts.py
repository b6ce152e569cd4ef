"""Ordered sets, as tests make them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from approvals import services
from approvals.ledger import pivots
from approvals.ledger.pivots import SpecWriter
from approvals.models import (
    BundleDeployment,
    Cluster,
    KubernetesIdentity,
    Request,
    Revision,
    Rollout,
    RolloutMember,
    Verdict,
)
from provisioner.values import Identity
from tests.support.approvals import world
from tests.support.approvals.world import acting

RINGS = [{"name": "canary", "clusters": ["prod"]}, {"name": "rest"}]


def known_on(where: Cluster, *people: User) -> None:
    """Have these people be somebody on another cluster, by the same name."""
    for person in people:
        row = KubernetesIdentity.objects.filter(user=person).first()
        KubernetesIdentity.objects.create(
            user=person,
            cluster=where,
            authenticator="mapped",
            username=person.username,
            groups=row.groups if row else [],
            groups_seen_at=timezone.now(),
        )


def asked(where: Cluster, name: str, by: User, **spec: Any) -> Request:
    """A request in review of a deployment of this name."""
    writer = SpecWriter(Identity(by.username, ()), "browser", by)
    made = pivots.see(cluster=where, obj=world.seen(name, world.spec(**spec)), writer=writer)
    return world.in_review(made.requests.get())


def order(
    by: User, *requests: Request, rings: object = None, on_failure: str = "Stop", name: str = "spring"
) -> Rollout:
    members = [(one.cluster.name, one.deployment.name) for one in requests]
    clusters = list({one.cluster.pk: one.cluster for one in requests}.values())
    return services.make_order(
        by=acting(by),
        clusters=clusters,
        name=name,
        members=members,
        rings=RINGS if rings is None else rings,
        on_failure=on_failure,
        via="browser",
    )


def ordered(name: str, rings: list[dict[str, Any]], *members: tuple[Request, int], on_failure: str = "Stop") -> Rollout:
    """The same as rows, whoever may do it: each request with the position of its ring."""
    row = Rollout.objects.create(name=name, rings=rings, on_failure=on_failure, made_by="rita", made_at=timezone.now())
    for request, ring in members:
        RolloutMember.objects.create(rollout=row, deployment=request.deployment, ring=ring, from_number=request.number)
    return row


def set_state(request: Request, state: str, *, health: str = "", since: datetime | None = None) -> None:
    """Bring a request this far, as the steps do: with its verdict, its revision, and how that is."""
    now = timezone.now()
    Request.objects.filter(pk=request.pk).update(state=state, changed_at=since or now)
    if state in ("approved", "applying", "applied", "restoring"):
        Verdict.objects.get_or_create(
            request=request,
            round=request.round,
            defaults={"verdict": "Approved", "subject_digest": request.subject_digest, "given_at": now},
        )
    if state in ("applying", "applied", "restoring", "failed"):
        kept = {"number": request.number + 1, "content": request.content, "started_at": now}
        kind = {"applied": "active", "restoring": "active", "failed": "failed"}.get(state, "applying")
        earlier = Revision.objects.filter(deployment=request.deployment, state="active").exclude(request=request)
        earlier.update(state="replaced")
        row, _ = Revision.objects.get_or_create(
            request=request, defaults={"deployment": request.deployment, "state": kind, **kept}
        )
        running = row if kind == "active" else None
        healthy = {"health": health, "healthy_since": since or now} if health else {}
        BundleDeployment.objects.filter(pk=request.deployment_id).update(active_revision=running, **healthy)


def silence(where: Cluster) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    Cluster.objects.filter(pk=where.pk).update(problem="the API server does not answer", reached_at=long_ago)
