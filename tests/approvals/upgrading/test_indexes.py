"""Indexes of large tables are built beside those who write, and again where that was broken off."""

from __future__ import annotations

import os

import psycopg
import pytest

from tests.support.servers import migrated
from tests.support.servers.postgresql import Postgres

INDEX = "SELECT indisvalid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = 'audit_verb'::regclass"
# What a build leaves that was killed: an index that is not used, and no note that the migration ran.
BROKEN_OFF = """
DELETE FROM django_migrations WHERE app = 'approvals' AND name = '0068_audit_verb';
DROP INDEX audit_verb;
CREATE INDEX audit_verb ON approvals_auditentry (via);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'audit_verb'::regclass;
"""


@pytest.mark.thorough
def test_an_index_that_was_not_finished_is_built_again(postgres: Postgres) -> None:
    url = postgres.migrated_database()
    with psycopg.connect(url, autocommit=True) as connection:
        first = connection.execute(INDEX).fetchone()
        connection.execute(BROKEN_OFF)
        assert connection.execute(INDEX).fetchone() != first
        migrated.migrate({**os.environ, "PRATIQUE_DATABASE_URL": url, "PRATIQUE_SECRET_KEY": "only-for-tests-" * 4})
        assert connection.execute(INDEX).fetchone() == first
    assert first
    assert first[0] is True
    assert "(verb, number DESC)" in first[1]
