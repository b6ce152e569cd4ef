"""What is known of drift: which objects to compare again, what was found, what was restored.

Every change that people would ask about has its audit row in the same transaction (promise 7).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet

from approvals import audit, wake
from approvals.audit import MACHINE
from approvals.ledger import made_values
from approvals.locks import for_change, hold
from approvals.models import BundleDeployment, Drift, InventoryItem, Revision
from provisioner.cluster import drift as found
from provisioner.cluster.compare import ALTERED, Altered, altered_words
from provisioner.cluster.drift import Strikes

FIELDS_IN_AUDIT = 20
FIELDS_KEPT = 200


def due(now: datetime) -> QuerySet[InventoryItem]:
    """The objects to compare now: something happened to them, or their drift was told of another revision."""
    has_time = Q(look_at__lte=now)
    is_old = Q(drift__isnull=False) & ~Q(drift__revision=F("deployment__active_revision"))
    return InventoryItem.objects.filter(has_time | (is_old & Q(look_at__isnull=True)), deployment__gone_at__isnull=True)


@transaction.atomic
def mark(item_ids: Iterable[int], at: datetime) -> None:
    """Have these compared at `at`; where somebody fights, not before the pause is over. The caller wakes."""
    rests = Q(look_at__gt=at, drift__is_fight=True)
    keys = hold(InventoryItem.objects.filter(pk__in=list(item_ids)))
    InventoryItem.objects.filter(pk__in=keys).exclude(rests).update(look_at=at)


@transaction.atomic
def stir(deployment_ids: Collection[int]) -> None:
    """Something happened to objects of these deployments: their health is read at the next look (steps.observe)."""
    if deployment_ids:
        keys = hold(BundleDeployment.objects.filter(pk__in=deployment_ids))
        BundleDeployment.objects.filter(pk__in=keys).update(event_count=F("event_count") + 1)


@transaction.atomic(durable=True)
def postpone(items: Iterable[InventoryItem], at: datetime) -> None:
    """Compare these at `at`, and not before unless something more happens to them. An apply may be at them now."""
    keys = hold(InventoryItem.objects.filter(pk__in=[item.pk for item in items]))
    InventoryItem.objects.filter(pk__in=keys).update(look_at=at)


def strikes_of(item: InventoryItem) -> Strikes:
    row = Drift.objects.filter(item=item).first()
    return Strikes(row.strikes, row.corrected_at) if row else Strikes()


@transaction.atomic(durable=True)
def settle(item: InventoryItem, fingerprint: str, *, again_at: datetime | None = None) -> None:
    """The object was compared as `fingerprint` knows it. What happened to it since it was read is compared again.

    By equality, not by time: the clocks of who watches and who compares may differ.
    """
    row = InventoryItem.objects.filter(pk=item.pk)
    row.update(fingerprint=fingerprint)
    row.filter(look_at=item.look_at).update(look_at=again_at)


@transaction.atomic(durable=True)
def note(
    *,
    item: InventoryItem,
    revision: Revision,
    drift: found.ObjectDrift,
    problem: str,
    strikes: Strikes,
    now: datetime,
    server_words: str = "",
) -> None:
    """Record an open drift; the same one told twice is one."""
    row = for_change(Drift.objects.filter(item=item)).first()
    fields = [asdict(field) for field in drift.fields[:FIELDS_KEPT]]
    problem, server_words, message, *values = made_values.without_values(
        item.deployment_id,
        [problem, server_words, drift.message, *([field["expected"], field["found"]] for field in fields)],
    )
    fields = [
        {**field, "expected": expected, "found": found_now}
        for field, (expected, found_now) in zip(fields, values, strict=True)
    ]
    fields = made_values.without_short_values(revision.request, item, fields)
    rival = ", ".join(drift.managers)[:300] if strikes.is_contested else ""
    told = {
        "revision": revision,
        "state": Drift.State.OPEN,
        "kind": drift.kind,
        "message": message,
        "fields": fields,
        "problem": problem,
        "server_words": server_words,
        "is_fight": strikes.is_contested,
        "rival": rival or (row.rival if row and strikes.is_contested else ""),
    }
    if row and all(getattr(row, name) == value for name, value in told.items()):
        return
    was_open = row is not None and row.state == Drift.State.OPEN
    was_fight = row is not None and row.is_fight
    is_same = was_open and row is not None and (row.kind, row.fields) == (str(drift.kind), fields)
    found_at = row.found_at if row and was_open else now
    if row is None:
        Drift.objects.create(item=item, found_at=found_at, changed_at=now, **told)
    else:
        _save(row, found_at=found_at, changed_at=now, **told)
    if not is_same:
        _record("drift.found", item, revision, drift)
    if strikes.is_contested and not was_fight:
        _record("drift.fight", item, revision, drift, corrections=strikes.count, rival=told["rival"])
    wake.deployment(item.deployment_id)


@transaction.atomic(durable=True)
def note_correction(
    *, item: InventoryItem, revision: Revision, drift: found.ObjectDrift, altered: Iterable[Altered], now: datetime
) -> None:
    """Record that the approved content stands again; `altered` are the fields that admission made something else of."""
    row = for_change(Drift.objects.filter(item=item)).get()
    strikes = Strikes(row.strikes, row.corrected_at).after_correction(now)
    wrong = list(altered)
    _save(
        row,
        state=Drift.State.OPEN if wrong else Drift.State.CORRECTED,
        problem=ALTERED if wrong else "",
        server_words=made_values.without_values(item.deployment_id, altered_words(wrong)),
        strikes=strikes.count,
        corrected_at=now,
        changed_at=now,
    )
    facts = {"contentDigest": revision.content.public_digest, "alteredByAdmission": bool(wrong)}
    _record("drift.corrected", item, revision, drift, **facts)
    wake.deployment(item.deployment_id)


@transaction.atomic(durable=True)
def note_end(*, item: InventoryItem, revision: Revision, now: datetime) -> None:
    """The object is as `revision` says, and not by our doing; one that was restored is remembered until peace."""
    row = for_change(Drift.objects.filter(item=item)).first()
    if row is None:
        return
    was_open = row.state == Drift.State.OPEN
    is_peace = Strikes(row.strikes, row.corrected_at).is_peace(now)
    if was_open or is_peace or row.revision_id != revision.pk:
        state = Drift.State.OVER if is_peace else Drift.State.CORRECTED
        is_fight = row.is_fight and not is_peace
        changed_at = now if was_open else row.changed_at
        _save(
            row, revision=revision, state=state, problem="", server_words="", is_fight=is_fight, changed_at=changed_at
        )
    if was_open:
        facts = {"object": str(item), "revision": revision.number}
        audit.record(verb="drift.over", actor=MACHINE, deployment=item.deployment, facts=facts)
        wake.deployment(item.deployment_id)


@transaction.atomic(durable=True)
def note_problem(deployment_id: int, problem: str) -> None:
    """Why nobody could tell whether something drifted; "" where everybody can."""
    rows = BundleDeployment.objects.filter(pk=deployment_id).exclude(drift_problem=problem)
    if rows.update(drift_problem=problem):
        wake.deployment(deployment_id)


def drop(item: InventoryItem) -> None:
    """The running revision has no such object, or a failed one touched it: there is nothing to compare it with."""
    Drift.objects.filter(item=item).delete()
    settle(item, "")


@transaction.atomic(durable=True)
def forget(deployment: BundleDeployment) -> None:
    """Nothing of this deployment is compared any more. Its deletion may be under way."""
    keys = hold(InventoryItem.objects.filter(deployment=deployment, look_at__isnull=False))
    InventoryItem.objects.filter(pk__in=keys).update(look_at=None)
    Drift.objects.filter(item__deployment=deployment).delete()


def _save(row: Drift, **changes: Any) -> None:
    for name, value in changes.items():
        setattr(row, name, value)
    row.save(update_fields=list(changes))


def _record(verb: str, item: InventoryItem, revision: Revision, drift: found.ObjectDrift, **more: Any) -> None:
    facts = {
        "object": str(item),
        "kind": drift.kind,
        "revision": revision.number,
        "fields": [
            {"path": field.place, "change": field.change, "manager": field.manager, "at": field.at}
            for field in drift.fields[:FIELDS_IN_AUDIT]
        ],
        **more,
    }
    audit.record(verb=verb, actor=MACHINE, deployment=item.deployment, facts=facts)
