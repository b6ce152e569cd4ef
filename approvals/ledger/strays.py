"""What is known of writes that a dead or stopped worker may still have under way.

A database cannot hold back what is in a socket already. So what such a write would create is remembered, and looked for
after it was dropped (steps.running.strays); after a day no write is on its way any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from approvals import audit, wake
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.locks import hold
from approvals.models import BundleDeployment, InventoryItem, Stray
from provisioner.values import ObjectRef

LOOKED_FOR = timedelta(days=1)
FIRST, LONGEST = timedelta(seconds=5), timedelta(minutes=15)


def due(now: datetime) -> QuerySet[Stray]:
    return Stray.objects.filter(look_at__lte=now)


@transaction.atomic(durable=True)
def expect(deployment: BundleDeployment, pending: Iterable[InventoryItem]) -> None:
    """Whoever had begun to write these is not heard of: they may turn up, whatever the spec asks for by then."""
    now = database_now()
    rows = [
        Stray(
            deployment=deployment,
            revision_id=item.revision_id,
            group=item.group,
            version=item.version,
            kind=item.kind,
            namespace=item.namespace,
            name=item.name,
            nonce=item.nonce,
            begun_at=now,
            look_at=now + FIRST,
        )
        for item in pending
    ]
    again = ["begun_at", "look_at"]
    Stray.objects.bulk_create(rows, update_conflicts=True, unique_fields=["nonce"], update_fields=again)


def look_soon(deployment_id: int) -> None:
    """Something may have been dropped; in the transaction that says so."""
    if keys := hold(Stray.objects.filter(deployment=deployment_id)):
        Stray.objects.filter(pk__in=keys).update(look_at=database_now())
        wake.drift(deployment_id)


def is_known(row: Stray) -> bool:
    """Whether the inventory holds what this write makes: then it is as planned, or dropped by a plan."""
    return InventoryItem.objects.filter(deployment=row.deployment_id, nonce=row.nonce).exists()


@transaction.atomic(durable=True)
def settle(rows: Iterable[Stray], now: datetime) -> None:
    """Nothing of these is there that should not be: look again after as long as it has been, or no more."""
    for row in sorted(rows, key=lambda row: row.pk):
        age = now - row.begun_at
        if age > LOOKED_FOR:
            row.delete()
        else:
            row.look_at = now + min(max(age, FIRST), LONGEST)
            row.save(update_fields=["look_at"])


def postpone(rows: Iterable[Stray], now: datetime) -> None:
    """Nobody could look for these now: they are looked for again, however old they are."""
    for row in rows:
        Stray.objects.filter(pk=row.pk).update(look_at=now + min(max(now - row.begun_at, FIRST), LONGEST))


@transaction.atomic(durable=True)
def note_removed(row: Stray, uid: str) -> None:
    _record("stray.removed", row, uid)


@transaction.atomic(durable=True)
def keep(row: Stray, uid: str) -> None:
    """It is not taken away unasked: it is the deployment's from now on, so that the next plan shows it to reviewers."""
    identity = {"group": row.group, "kind": row.kind, "namespace": row.namespace, "name": row.name}
    rest = {"version": row.version, "nonce": row.nonce, "uid": uid, "revision": row.revision}
    _, is_new = InventoryItem.objects.get_or_create(deployment=row.deployment, **identity, defaults=rest)
    if is_new:
        _record("stray.kept", row, uid)
    row.delete()


def _record(verb: str, row: Stray, uid: str) -> None:
    facts = {
        "object": str(ObjectRef.from_parts(row)),
        "uid": uid,
        "revision": row.revision.number if row.revision else 0,
    }
    audit.record(verb=verb, actor=MACHINE, deployment=row.deployment, facts=facts)
    wake.deployment(row.deployment_id)
