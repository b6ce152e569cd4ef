"""The one author of a Catalog's source of before is the author of each part of it (S05)."""

from __future__ import annotations

import json

import pytest

from tests.support.approvals.databases import manage, ran

BEFORE, AFTER = "0075", "0077"
FILL = """
cluster = model("Cluster").create(name="prod", uid="u", created_at=now)
auth = {"secret": {"name": "pull", "namespace": "port"}}
source = {"kind": "git", "git": {"repository": "https://git.example/x", "ref": {"tag": "v1"}, "directory": "", "auth": auth}}
for name, writer in (("known", {"username": "kim", "groups": ["night"]}), ("unknown", {})):
    model("Catalog").create(
        cluster=cluster, uid=name, name=name, generation=1, resource_version="1", spec={"source": source},
        writer=writer, seen_at=now,
    )
print("filled")
"""
READ = """
print(json.dumps({one.name: one.authors for one in model("Catalog").order_by("name")}))
"""
PARTS = ["git.auth.secret.name", "git.auth.secret.namespace", "git.ref.tag", "git.repository", "kind"]


@pytest.mark.thorough
def test_S05_who_wrote_a_catalog_of_before_wrote_each_part_of_its_source(database_url: str) -> None:
    manage(database_url, "migrate", "--verbosity", "0", "auth")
    manage(database_url, "migrate", "--verbosity", "0", "approvals", BEFORE)
    ran(database_url, BEFORE, FILL)
    manage(database_url, "migrate", "--verbosity", "0", "approvals", AFTER)
    found = json.loads(ran(database_url, AFTER, READ))
    assert sorted(one["part"] for one in found["known"]) == PARTS
    assert {one["writer"]["username"] for one in found["known"]} == {"kim"}
    assert {json.dumps(one["writer"]) for one in found["unknown"]} <= {"{}"}
