"""The same on PostgreSQL and SQLite: editions are written beside the one that is shown, a NUL stops nothing, and histories end."""

from __future__ import annotations

import json

from tests.support.approvals.databases import manage

PROGRAM = """
import io, json
from datetime import timedelta
from django.db import connections
from django.utils import timezone
from approvals import catalogs
from approvals.models import Catalog, CatalogEdition, CatalogPackage, Cluster
from provisioner.catalogs import CatalogFile

prod = Cluster.objects.create(name="prod", uid="u", kubeconfig="{}", created_at=timezone.now())
obj = {"metadata": {"name": "port", "uid": "c", "generation": 1, "resourceVersion": "5"}, "spec": {"source": {}}}
row = catalogs.see(cluster=prod, obj=obj, writer=None)
seen = []

def bundle(version, image):
    about = {"type": "olm.package", "value": {"packageName": "harbour", "version": version}}
    words = {"type": "olm.csv.metadata", "value": {"displayName": "Har\\0bour", "description": "a\\0b calls a Pilot",
        "keywords": ["Ti\\0de", "Moor"]}}
    return {"schema": "olm.bundle", "name": "harbour.v" + version, "package": "harbour", "image": image,
            "properties": [about, words]}

def files(*more):
    documents = [{"schema": "olm.package", "name": "harbour"}, *more]
    text = "\\n".join(map(json.dumps, documents)).encode()
    return [CatalogFile("a.json", lambda: io.BytesIO(text))]

def look():
    shown = catalogs.catalog(prod, "port")
    seen.append([one.head_version for one in catalogs.packages_of(shown).packages])

catalogs.store(row, "sha256:one", files(bundle("1.0.0", "old")))
catalogs.store(row, "sha256:two", files(bundle("1.0.0", "new"), bundle("2.0.0", "two")), check=look)
look()
changed = catalogs.changed_content(row, "harbour", "harbour.v1.0.0")
found = catalogs.packages_found([row.pk], "PILOT harbour")
excerpts = list(catalogs.excerpts(found, "pilot").values()) + catalogs.named_so(found, "pilot")
by_keyword = [[one.name, one.is_by_keyword] for word in ("moor", "pilot") for one in catalogs.packages_found([row.pk], word)]
words = catalogs.presentation(catalogs.catalog(prod, "port"), "harbour")
catalogs.forget(cluster=prod, uid="c")
left = CatalogEdition.objects.count() + CatalogPackage.objects.count()
forgotten = [catalogs.forget_gone(timezone.now() + timedelta(days=days)) for days in (364, 366)]
print(json.dumps({"seen": seen, "changed": [changed.before, changed.after], "name": words.display_name, "left": left,
    "forgotten": forgotten, "excerpts": excerpts, "by_keyword": by_keyword, "keywords": words.facts.keywords}))
"""


def test_an_edition_is_shown_when_it_is_whole(migrated_database_url: str) -> None:
    found = json.loads(manage(migrated_database_url, "shell", "--verbosity", "0", "-c", PROGRAM).splitlines()[-1])
    assert found == {
        "seen": [["1.0.0"], ["2.0.0"]],
        "changed": ["old", "new"],
        "name": "Har\ufffdbour",
        "left": 0,
        "forgotten": [0, 1],
        "by_keyword": [["harbour", 1], ["harbour", 0]],
        "keywords": ["Tide", "Moor"],
        "excerpts": ["a\ufffdb calls a Pilot"],
    }
