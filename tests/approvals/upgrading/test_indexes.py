"""PostgreSQL finds a part of a name by an index; where the right to build it is missing, it is said what to run."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import psycopg
import pytest

from tests.support.approvals.databases import environment
from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers.postgresql import Postgres

BUILD = """
from importlib import import_module
from django.db import connection
with connection.schema_editor() as editor:
    import_module("approvals.migrations.0001_initial").index_parts_of_texts(None, editor)
"""
UNUSABLE = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'request_text_parts'::regclass"
SEARCH = "EXPLAIN SELECT request_id FROM approvals_requesttext WHERE text::text LIKE '%part of a name%'"
# As where an operator keeps the rights to the database, and gives Pratique those to its tables.
WITHOUT_RIGHTS = """
DROP EXTENSION pg_trgm CASCADE;
CREATE ROLE tenant LOGIN;
GRANT ALL ON ALL TABLES IN SCHEMA public TO tenant;
"""


def build(url: str) -> str:
    """What the migration says while it builds its index."""
    command = [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", BUILD]
    about = {**environment(url), "PRATIQUE_LOG_FORMAT": "console"}
    done = subprocess.run(
        command, cwd=ROOT, env=about, capture_output=True, text=True, check=False, timeout=scaled(240)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def plan_of(connection: psycopg.Connection[Any]) -> str:
    connection.execute("SET enable_seqscan = off")
    return "\n".join(line for (line,) in connection.execute(SEARCH))


def test_a_part_of_a_name_is_found_by_an_index(postgres: Postgres) -> None:
    with psycopg.connect(postgres.migrated_database(), autocommit=True) as connection:
        assert "request_text_parts" in plan_of(connection)


@pytest.mark.thorough
def test_without_the_right_to_an_extension_it_is_said_what_to_run_and_that_works(postgres: Postgres) -> None:
    url = postgres.migrated_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(WITHOUT_RIGHTS)
        said = build(url.replace("//postgres@", "//tenant@"))
        assert "request_text_parts" not in plan_of(connection)
        assert "permission denied" in said
        assert said.index("permission denied") < said.index("To mend it"), "the error stands in the words"
        for _ in range(2):  # also where the first time was broken off
            for statement in said.partition("at any time: ")[2].split(";")[:3]:
                connection.execute(statement)
            assert "request_text_parts" in plan_of(connection)
            connection.execute(UNUSABLE)
            assert "request_text_parts" not in plan_of(connection)
