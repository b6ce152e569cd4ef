"""What a scrape costs PostgreSQL: the indexes that it reads by, and how long it may take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers.postgresql import Postgres

# In a process of its own: the database of the test run itself may be SQLite.
PROGRAM = """
import uuid
from django.db import connection
from django.utils import timezone
from django.test.utils import CaptureQueriesContext
from approvals.metrics import collectors
from approvals.metrics.collectors import SourceAway
from approvals.models import ChatDelivery
now = timezone.now()
ChatDelivery.objects.bulk_create(
    [ChatDelivery(tool="slack", key=str(n), wish={}, received_at=now, done_at=now) for n in range(20_000)]
)
with connection.cursor() as cursor:
    cursor.execute("ANALYZE")
collectors.TIMEOUT_MILLISECONDS = 600_000
with CaptureQueriesContext(connection) as asked:
    collectors.RecordsCollector().read()
words = [one["sql"] for one in asked]
assert [one for one in words if "statement_timeout" in one], words
assert len([one for one in words if one.startswith("SELECT")]) == 7, words
with connection.cursor() as cursor:
    for sql in (one for one in words if "chatdelivery" in one):
        cursor.execute("EXPLAIN " + sql)
        plan = " ".join(row[0] for row in cursor.fetchall())
        assert "delivery_open" in plan, plan
collectors.TIMEOUT_MILLISECONDS = 200
def slow(now):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(3600)")
    yield
collectors.FAMILIES = (slow,)
try:
    collectors.RecordsCollector().read()
except SourceAway:
    pass
else:
    raise AssertionError("nothing cut the query off")
with connection.cursor() as cursor:
    cursor.execute("SHOW statement_timeout")
    assert cursor.fetchone() == ("0",), "the limit outlives the scrape"
"""


@pytest.mark.thorough
def test_a_scrape_reads_by_indexes_and_is_cut_off(postgres: Postgres, tmp_path: Path) -> None:
    environment = {**os.environ, "PRATIQUE_SECRET_KEY": "x" * 50, "PRATIQUE_DATABASE_URL": postgres.fresh_database()}
    for command in (["migrate", "--verbosity", "0"], ["shell", "--verbosity", "0", "--command", PROGRAM]):
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=scaled(240),
        )
        assert done.returncode == 0, done.stderr[-3000:]
