"""Databases of 9e385e5640f0, the last commit with many migrations: they count as migrated, and nothing in them is lost."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import sqlite3
import subprocess
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from django.core.management import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from tests.support.approvals.databases import manage
from tests.support.folders import ROOT
from tests.support.servers.postgresql import find_programs

# One cluster, two requests, a review and a report, written by the program GUARANTEES of project/test_databases.py there.
DUMPS = Path(__file__).parent / "last_before"
# Of the report in them.
KEY = base64.b64encode(hashlib.sha256(b"only for tests").digest()).decode()
SQLITE = "sqlite:///"
initial = import_module("approvals.migrations.0001_initial")
UPGRADE = r"""
from django.core.management import call_command
from django.db import DatabaseError
from approvals import audit
from approvals.models import AuditEntry, Report, Request, Review
call_command("migrate", verbosity=0)
body = Report.objects.get().body
print(body.pop("depth") == [1.5, "zwölf", 2.0**64])
print(body == {"a\0b": ["c\0\0", {"d": "\\\0 \\u0000"}]})
print(sorted(Request.objects.values_list("state", flat=True)) == ["preparing", "superseded"])
print(Review.objects.get().waives == [{"fingerprint": "f", "reason": "known"}])
for change in (lambda: Review.objects.update(waives=[]), lambda: AuditEntry.objects.all().delete()):
    try:
        change()
        print("changed")
    except DatabaseError as error:
        print("append-only" in str(error))
print(AuditEntry.objects.count() > 0 and audit.verify_chain().is_whole)
"""


def restore(url: str) -> None:
    """The database as it was left there."""
    name = "sqlite" if url.startswith(SQLITE) else "postgresql"
    text = gzip.decompress((DUMPS / f"{name}.sql.gz").read_bytes())
    if name == "sqlite":
        with sqlite3.connect(url.removeprefix(SQLITE)) as database:
            database.executescript(text.decode())
        return
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(text)


def schema_of(url: str) -> list[tuple[str, ...]]:
    """Each statement that makes the schema, whatever the order of columns is."""
    if url.startswith(SQLITE):
        with sqlite3.connect(url.removeprefix(SQLITE)) as database:
            statements = [sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql <> ''")]
        return sorted(tuple(sorted(re.split("[,()]", sql.replace(" ", "")))) for sql in statements)
    command = [find_programs() / "pg_dump", "--schema-only", "--no-comments", "--dbname", url]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # A dump that was read back has other casts. Checks without a name get that of their column, which two had not yet.
    casts = r"::(text|character varying)(?!\()|\[\]|[()]|^(--|\\).*"
    text = re.sub(r"CONSTRAINT \w+_check CHECK", "CHECK", re.sub(casts, "", text, flags=re.MULTILINE))
    return sorted(tuple(sorted(re.split(r",?\s*\n\s*", one.strip()))) for one in text.split(";\n"))


@pytest.mark.parametrize(
    "migrated_database_url",
    ["sqlite", pytest.param("postgres", marks=[pytest.mark.services, pytest.mark.thorough])],
    indirect=True,
)
def test_a_database_of_the_last_commit_is_upgraded_and_has_the_schema_and_rows_that_it_should(
    migrated_database_url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if migrated_database_url.startswith(SQLITE):
        old = migrated_database_url.replace("pratique.", "old.")
    else:
        old = request.getfixturevalue("postgres").fresh_database()
    restore(old)
    monkeypatch.setenv("PRATIQUE_ENCRYPTION_KEYS", KEY)
    assert manage(old, "shell", "--verbosity", "0", "-c", UPGRADE).splitlines()[-7:] == ["True"] * 7
    assert schema_of(old) == schema_of(migrated_database_url)


def test_a_database_that_stopped_before_that_is_not_touched_and_told_the_commit_to_migrate_with(db: None) -> None:
    recorder = MigrationRecorder(connection)
    recorder.migration_qs.filter(app="approvals").delete()
    recorder.record_applied("approvals", "0002_append_only")
    recorder.record_applied("approvals", "0050_request_changes")
    refuse = initial.Migration.operations[0].code
    with pytest.raises(CommandError, match=r"to 0050_request_changes, .* Check out commit 9e385e5640f0, run"):
        refuse(None, SimpleNamespace(connection=connection))


def test_a_new_migration_has_a_number_that_no_old_one_had() -> None:
    """Old databases remember the names of before: of a migration with such a name, they would say that they have it."""
    names = [path.name for path in (ROOT / "approvals/migrations").glob("0*.py") if path.name != "0001_initial.py"]
    assert all(name > initial.LAST_BEFORE for name in names)
