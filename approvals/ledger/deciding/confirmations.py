"""Who stands behind an object of Kubernetes as it is now: whoever wrote it here, and whoever confirmed it.

Whoever wrote it with kubectl is not known here and counts for nobody: then two people confirm it. A confirmation is of
one spec; where anything in it changes, it counts no longer (decision 0097).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from approvals import access, audit, wake
from approvals.access import Person
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.deciding.kinds import DecidingKind, ReadyState
from approvals.deciding.spec_fields import UnreadableObject
from approvals.deciding.table import BY_NAME
from approvals.ledger.deciding.deciding_objects import look_again
from approvals.ledger.digests import digest_of
from approvals.locks import for_change
from approvals.models import Cluster, Confirmation, DecidingObject
from provisioner.values import Identity


def people_behind(row: DecidingObject) -> list[Person]:
    """Those who stand behind its present spec since it is so, each once: who may be one person counts as one."""
    digest = digest_of_spec(row.spec)
    given = (one for one in row.confirmations.all() if one.digest == digest and one.given_at >= row.changed_at)
    records = [*row.writers, *(one.person for one in given)]
    groups: list[list[Person]] = []
    for person in map(access.person_recorded, records):
        if not person.username or not access.is_human(Identity(person.username)):
            continue
        same = [group for group in groups if any(map(person.is_same, group))]
        merged = [*(known for group in same for known in group), person]
        groups = [*(group for group in groups if group not in same), merged]
    return [group[0] for group in groups]


def ready_state(row: DecidingObject, now: datetime, problem: str | None = None) -> ReadyState:
    """Whether it counts; `problem` is why it cannot be read, where that was found out just now."""
    kind, why = BY_NAME[row.kind], row.problem if problem is None else problem
    try:
        known = kind.parse(row.spec)
    except UnreadableObject as exc:
        known, why = None, str(exc)
    if known is None or (why and not kind.has_when):
        words = f"it cannot be read, so {kind.describe_unreadable(row.spec)}: {why}"
        return ReadyState(False, "Unreadable", words)
    if why:
        return ReadyState(False, "ConditionFails", f"its condition cannot be evaluated, so {kind.if_unknown}: {why}")
    people = [person.username for person in people_behind(row)] if kind.needs_people else []
    return known.ready(people, now)


def confirmed_objects(cluster: Cluster, kind: type[DecidingKind]) -> list[DecidingObject]:
    """The objects of a kind that anybody has confirmed as they are or as they were, by name."""
    rows = DecidingObject.objects.filter(cluster=cluster, kind=kind.kind, gone_at=None, confirmations__isnull=False)
    return list(rows.distinct().prefetch_related("confirmations").order_by("name"))


@transaction.atomic
def confirm(
    *, row: DecidingObject, spec: Mapping[str, Any], by: access.Caller, access_reason: str, via: str
) -> DecidingObject:
    """Keep that a person stands behind this spec of the object; once more changes nothing."""
    locked, now = for_change(DecidingObject.objects.filter(pk=row.pk)).get(), database_now()
    person = access.person_of(by, row.cluster)
    about_spec: dict[str, Any] = {"object": locked, "digest": digest_of_spec(spec), "user": by.user}
    if not Confirmation.objects.filter(**about_spec, given_at__gte=locked.changed_at).exists():
        said = {"person": person.record(), "access_reason": access_reason, "given_at": now}
        found, _ = Confirmation.objects.update_or_create(**about_spec, defaults=said)
        locked.show_at = now
        locked.save(update_fields=["show_at"])
        look_again(row.cluster)
        wake.deciding_object(row.pk)
        about = {"kind": row.kind, "name": row.name, "cluster": row.cluster.name, "specDigest": found.digest}
        audit.record(verb="deciding-object.confirmed", actor=Actor(by.name, via), facts=about)
    return locked


def digest_of_spec(spec: Mapping[str, Any]) -> str:
    return digest_of([json.dumps(spec, sort_keys=True)])
