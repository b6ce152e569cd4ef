"""The rows that stand for ApprovalPolicies and built-in guards where reviews and evaluations name them (decision 0096).

What decides is the object, which is read in the cluster before anything is applied. Its row counts the specs that were
seen, so that a review stands for one of them, and stays when the object is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings

from approvals.clock import database_now
from approvals.deciding.approval_policies import read_document
from approvals.models import Cluster, DecidingObject, Policy
from approvals.policy.built_in import BUILT_IN, UID_PREFIX

MAX_NAME = 63


def keep_row(seen: DecidingObject, *, is_new_spec: bool) -> None:
    """Copy an ApprovalPolicy as it was seen."""
    document, problem = read_document(seen.name, seen.spec)
    now = database_now()
    columns: dict[str, Any] = {
        **document.columns(),
        "name": seen.name[:MAX_NAME],
        "expression": "" if problem else document.expression,
        "is_active": True,
    }
    row = Policy.objects.filter(cluster=seen.cluster, uid=seen.uid).first()
    if row is None:
        Policy.objects.create(cluster=seen.cluster, uid=seen.uid, created_at=now, changed_at=now, **columns)
        return
    for column, value in columns.items():
        setattr(row, column, value)
    if is_new_spec:
        row.version, row.changed_at = row.version + 1, now
    row.save()


def end_row(seen: DecidingObject) -> None:
    """The object is gone, and decides nothing any more."""
    Policy.objects.filter(cluster=seen.cluster, uid=seen.uid).update(is_active=False)


def names_of_objects(cluster: Cluster, names: Iterable[str]) -> set[str]:
    """Those of the names that an ApprovalPolicy of the cluster has, or had: who lists such a name means the object."""
    rows = Policy.objects.filter(cluster=cluster, name__in=list(names)).exclude(uid="")
    return {*rows.exclude(uid__startswith=UID_PREFIX).values_list("name", flat=True)}


def keep_built_in(cluster: Cluster) -> None:
    """See that each built-in guard in force has its row on the cluster. One that is there stays switched on or off; of
    one that this version of Pratique has otherwise, a new version is evaluated."""
    names = settings.PRATIQUE["BUILT_IN_GUARDS"]
    if not names:
        return
    known = {row.uid: row for row in Policy.objects.filter(cluster=cluster, uid__startswith=UID_PREFIX)}
    now = database_now()
    for guard in BUILT_IN:
        row, columns = known.get(guard.uid), guard.document.columns()
        if row is None and guard.name in names:
            about = {"created_at": now, "changed_at": now, **columns}
            Policy.objects.get_or_create(cluster=cluster, uid=guard.uid, defaults=about)
        elif row is not None and (row.expression, row.message) != (columns["expression"], columns["message"]):
            row.expression, row.message, row.version = columns["expression"], columns["message"], row.version + 1
            row.save(update_fields=["expression", "message", "version"])
