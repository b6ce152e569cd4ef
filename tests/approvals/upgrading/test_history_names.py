"""What was known of the versions of a Catalog before it belonged to its name is known still."""

from __future__ import annotations

import json

import pytest

from tests.support.approvals.databases import manage, ran

BEFORE, AFTER = "0081", "0082"
FILL = """
for name in ("prod", "test"):
    cluster = model("Cluster").create(name=name, uid=name, created_at=now)
    row = model("Catalog").create(
        cluster=cluster, uid=name, name="port", generation=1, resource_version="1", spec={}, seen_at=now
    )
    model("CatalogHistory").create(catalog=row, package="harbour", bundles=[[name]], change_count=1)
print("filled")
"""
READ = """
rows = model("CatalogHistory").order_by("pk")
print(json.dumps([[one.cluster.name, one.catalog_name, one.package, one.bundles, one.gone_at] for one in rows]))
"""


@pytest.mark.thorough
def test_the_history_of_a_catalog_stays_and_belongs_to_its_name(database_url: str) -> None:
    manage(database_url, "migrate", "--verbosity", "0", "auth")
    manage(database_url, "migrate", "--verbosity", "0", "approvals", BEFORE)
    ran(database_url, BEFORE, FILL)
    manage(database_url, "migrate", "--verbosity", "0", "approvals", AFTER)
    found = json.loads(ran(database_url, AFTER, READ))
    assert found == [[name, "port", "harbour", [[name]], None] for name in ("prod", "test")]
    manage(database_url, "migrate", "--verbosity", "0", "approvals", BEFORE)
