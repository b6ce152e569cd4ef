"""The same on PostgreSQL and SQLite: editions are written beside the one that is shown, a NUL stops nothing, and histories end."""

from __future__ import annotations

import json

from tests.support.approvals.databases import manage

PROGRAM = """
import io, json
from datetime import timedelta
from django.db import connections
from django.utils import timezone
from approvals.catalogs.editions import find_catalog, find_presentation, list_packages, store_edition
from approvals.catalogs.history import find_content_change, forget_removed_history
from approvals.catalogs.schedule import forget_catalog, observe_catalog
from approvals.catalogs.search import best_matches, search_excerpts, search_packages
from approvals.models import Catalog, CatalogEdition, CatalogPackage, Cluster
from provisioner.catalogs.file_based import CatalogFile

prod = Cluster.objects.create(name="prod", uid="u", kubeconfig="{}", created_at=timezone.now())
obj = {"metadata": {"name": "port", "uid": "c", "generation": 1, "resourceVersion": "5"}, "spec": {"source": {}}}
row = observe_catalog(cluster=prod, obj=obj, writer=None)
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
    shown = find_catalog(prod, "port")
    seen.append([one.head_version for one in list_packages(shown).packages])

store_edition(row, "sha256:one", files(bundle("1.0.0", "old")))
store_edition(row, "sha256:two", files(bundle("1.0.0", "new"), bundle("2.0.0", "two")), check=look)
look()
changed = find_content_change(row, "harbour", "harbour.v1.0.0")
found = search_packages([row.pk], "PILOT harbour")
excerpts = list(search_excerpts(found, "pilot").values()) + best_matches(found, "pilot")
by_keyword = [[one.name, one.is_by_keyword] for word in ("moor", "pilot") for one in search_packages([row.pk], word)]
words = find_presentation(find_catalog(prod, "port"), "harbour")
forget_catalog(cluster=prod, uid="c")
left = CatalogEdition.objects.count() + CatalogPackage.objects.count()
forgotten = [forget_removed_history(timezone.now() + timedelta(days=days)) for days in (364, 366)]
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
