"""Migrations and what the database itself guarantees, on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from tests.support.approvals.databases import manage

# With a number that is a whole one past 64 bits to PostgreSQL.
BODY = "BODY = {'depth': [1.5, 'zwölf', 2.0**64]}"
# Which PostgreSQL's JSON cannot hold, and what must not be taken for it.
NUL = r"NUL = {'a\0b': ['c\0\0', {'d': '\\\0 \\u0000'}]}"
GUARANTEES = f"""
{BODY}
{NUL}
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone
from approvals import audit
from approvals.ledger import pivots
from approvals.models import AuditEntry, Cluster, Report, Request, Review
cluster = Cluster.objects.create(name="c", uid="u", created_at=timezone.now())
def seen(version, generation):
    meta = {{"name": "x", "uid": "1", "generation": generation, "resourceVersion": "1"}}
    return {{"metadata": meta, "spec": {{"sources": [version]}}}}
pivots.see(cluster=cluster, obj=seen("1", 1), writer=None)
pivots.see(cluster=cluster, obj=seen("2", 2), writer=None)
print(sorted(Request.objects.values_list("state", flat=True)))
Review.objects.create(
    request=Request.objects.get(number=2), round=1, decision="Approve", subject_digest="d", channel="rest", voter="v",
    username="ada", waives=[{{"fingerprint": "f", "reason": "known"}}], given_at=timezone.now(),
)
Report.objects.create(
    request=Request.objects.get(number=2), round=1, worst="safe", body={{**BODY, **NUL}}, computed_at=timezone.now()
)
for change in (
    lambda: AuditEntry.objects.update(verb="z"),
    lambda: AuditEntry.objects.all().delete(),
    lambda: Review.objects.update(waives=[]),
    lambda: Review.objects.all().delete(),
):
    try:
        with transaction.atomic():
            change()
        print("changed")
    except DatabaseError as error:
        print("append-only" in str(error))
row = Request.objects.get(state="preparing")
row.pk, row.number, row.uid = None, 9, "6b3d2c5e-0000-4000-8000-000000000000"
try:
    with transaction.atomic():
        row.save(force_insert=True)
    print("two open")
except IntegrityError:
    print("one open")
print(audit.verify_chain().is_whole)
"""

# PostgreSQL runs elsewhere; SQLite has the clock of the process.
CLOCK = """
from datetime import timedelta
import time_machine
from django.db import connection
from django.utils import timezone
from approvals.clock import database_now
true = timezone.now()
with time_machine.travel(true + timedelta(hours=2), tick=True):
    connection.close()
    connection.ensure_connection()
    print(round((database_now() - true) / timedelta(hours=1)), connection.vendor)
"""


def test_a_connection_tells_the_clock_of_its_database(migrated_database_url: str) -> None:
    hours, vendor = manage(migrated_database_url, "shell", "--verbosity", "0", "-c", CLOCK).split()
    assert int(hours) == (0 if vendor == "postgresql" else 2)


@pytest.mark.parametrize(
    "migrated_database_url", ["sqlite", pytest.param("postgres", marks=pytest.mark.services)], indirect=True
)
def test_migrations_run_and_the_guarantees_hold(migrated_database_url: str) -> None:
    said = manage(migrated_database_url, "shell", "--verbosity", "0", "-c", GUARANTEES).splitlines()
    assert said[-7:] == ["['preparing', 'superseded']", *["True"] * 4, "one open", "True"]
