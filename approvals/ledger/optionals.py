"""What is known of objects that a running revision left out because their API is absent (security-rules.md S17)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from approvals import audit, wake
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.ledger import pivots
from approvals.lifecycle import OPEN
from approvals.locks import hold
from approvals.models import Cluster, OptionalObject, Request, Revision
from provisioner.values import ObjectOutcome, ObjectRef

State = OptionalObject.State


def keep(revision: Revision, refs: Iterable[ObjectRef]) -> None:
    """Remember what `revision` left out; within the transaction that ends its apply."""
    now = database_now()
    OptionalObject.objects.bulk_create(
        OptionalObject(
            revision=revision,
            group=ref.group,
            version=ref.version,
            kind=ref.kind,
            namespace=ref.namespace,
            name=ref.name,
            changed_at=now,
        )
        for ref in refs
    )


def waiting(cluster: Cluster | None = None) -> QuerySet[OptionalObject]:
    """What waits for its API, of revisions that run."""
    rows = OptionalObject.objects.filter(
        state=State.WAITING,
        revision=F("revision__deployment__active_revision"),
        revision__deployment__gone_at__isnull=True,
    )
    return rows.filter(revision__deployment__cluster=cluster) if cluster else rows


def due(now: datetime) -> QuerySet[OptionalObject]:
    return waiting().filter(look_at__lte=now)


@transaction.atomic
def mark(rows: QuerySet[OptionalObject], now: datetime) -> None:
    """Have these tried now, and wake who does."""
    deployments = set(rows.values_list("revision__deployment_id", flat=True))
    rows.filter(pk__in=hold(rows)).update(look_at=now)
    for deployment_id in sorted(deployments):
        wake.drift(deployment_id)


@transaction.atomic(durable=True)
def wait(rows: Iterable[OptionalObject], problem: str, again_at: datetime | None) -> None:
    """Not now; `again_at` is None where the API has to appear first."""
    pks = [row.pk for row in rows]
    keys = hold(OptionalObject.objects.filter(pk__in=pks, state=State.WAITING))
    OptionalObject.objects.filter(pk__in=keys).update(look_at=again_at, problem=problem)


@transaction.atomic(durable=True)
def note_created(row: OptionalObject, request: Request, outcome: ObjectOutcome) -> None:
    """It was written as approved; from now on it is an object of the revision like any other."""
    _settle(row, State.CREATED, "")
    facts = {"object": str(outcome.ref), "uid": outcome.uid, "contentDigest": row.revision.content.public_digest}
    audit.record(verb="optional.created", actor=MACHINE, request=request, facts=facts)
    wake.deployment(request.deployment_id)


@transaction.atomic(durable=True)
def ask(rows: Iterable[OptionalObject], request: Request, problem: str) -> None:
    """Its API is served, but what would come of it was not reviewed: that is for people to decide.

    A request is made unless one is open, which is about it too, or the spec asks for something else now.
    """
    pivots.ask_once_more(of=request)
    about = Request.objects.filter(deployment=request.deployment, state__in=OPEN).first()
    words = f"{problem}; request {about.number} includes it" if about else f"{problem}; request it again"
    for row in rows:
        _settle(row, State.ASKED, words)
        facts = {"object": str(ObjectRef.from_parts(row)), "why": problem, "number": about.number if about else 0}
        audit.record(verb="optional.asked", actor=MACHINE, request=request, facts=facts)
    wake.deployment(request.deployment_id)


def _settle(row: OptionalObject, state: str, problem: str) -> None:
    row.state, row.problem, row.look_at, row.changed_at = state, problem, None, database_now()
    row.save(update_fields=["state", "problem", "look_at", "changed_at"])
