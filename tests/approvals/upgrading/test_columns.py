"""Columns of large tables are added without writing their rows anew."""

from __future__ import annotations

import os

import psycopg
import pytest

from tests.support.approvals.databases import manage
from tests.support.servers import migrated
from tests.support.servers.postgresql import Postgres

FILES = "SELECT pg_relation_filenode('approvals_request'), pg_relation_filenode('approvals_bundledeployment')"
ADDED = """
SELECT count(*) FROM information_schema.columns
WHERE table_name = 'approvals_request' AND column_name IN ('bundle_version', 'source_moves')
"""


@pytest.mark.thorough
def test_what_floating_references_add_to_requests_writes_none_of_them_anew(postgres: Postgres) -> None:
    """So the table is locked for a moment only: the defaults are constants of the catalog."""
    url = postgres.migrated_database()
    with psycopg.connect(url, autocommit=True) as connection:
        manage(url, "migrate", "approvals", "0068")
        before = connection.execute(FILES).fetchone()
        migrated.migrate({**os.environ, "PRATIQUE_DATABASE_URL": url, "PRATIQUE_SECRET_KEY": "only-for-tests-" * 4})
        assert connection.execute(FILES).fetchone() == before
        assert connection.execute(ADDED).fetchone() == (2,)
