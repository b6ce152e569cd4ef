"""Catalogs of one cluster, as rows: many small ones, one of 1,000 packages, and a package of 300 versions that many follow.

python -m tests.support.program tests.bench.catalogs.offering KUBECONFIG
"""

from __future__ import annotations

import base64
import copy
import itertools
import json
import sys
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

import approvals.project.celery  # noqa: F401 - importing makes it the default app, whose queue takes the wakes
from approvals import services
from approvals.access import port
from approvals.catalogs import bundle_choice, comparisons
from approvals.models import Catalog, Cluster
from approvals.services import ComparisonQuestion
from tests.bench.installation import person, role, session
from tests.support.approvals import world
from tests.support.approvals.revisions import revision
from tests.support.comparisons import result
from tests.support.pictures import png
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, stored, with_words

CATALOGS, PACKAGES, VERSIONS, FOLLOWERS = 60, 1_000, 300, 100
OBJECTS, FINDINGS = 2_000, 1_000
LINES = [["+", f"  line: {at}", 0, at + 1] for at in range(20)]
# May get every catalog and create deployments; gets every one and creates none; gets some by name.
PEOPLE = ("ada", "carla", "dora")
NAMED = ["large", "long", *(f"port-{number:02}" for number in range(10))]
ICON = {"mediatype": "image/png", "base64data": base64.b64encode(png(80, 80)).decode()}
WORDS = {
    "displayName": "Harbour",
    "description": "Keeps ships. " * 300,
    "annotations": {"description": "Keeps ships, and their papers. " * 4},
    "provider": {"name": "Port Authority"},
}


def rights() -> list[dict[str, Any]]:
    """What lets the people do that: ClusterRoles and their bindings."""
    group = ["core.rukpak.io"]
    get = {"apiGroups": group, "resources": ["catalogs"], "verbs": ["get"]}
    requests = {"apiGroups": group, "resources": ["bundledeploymentrequests"], "verbs": ["get"]}
    create = {"apiGroups": group, "resources": ["bundledeployments"], "verbs": ["create"]}
    return [
        *role("catalogs-get", get, "ada", "carla"),
        *role("catalogs-get-some", {**get, "resourceNames": NAMED}, "dora"),
        *role("catalogs-read", requests, *PEOPLE),
        *role("catalogs-create", create, "ada"),
    ]


def of_large() -> list[Any]:
    names = [f"package-{number:04}" for number in range(PACKAGES)]
    return [one for name in names for one in of_package(name, ["1.0.0", "1.1.0", "1.2.0"])]


def of_package(name: str, versions: list[str]) -> list[Any]:
    """Each version replaces the one before, skips the one before that, and may follow all lower ones of its major."""
    names = [f"{name}.v{one}" for one in versions]
    entries: list[dict[str, Any]] = [{"name": names[0]}]
    for at, (before, here) in enumerate(itertools.pairwise(names)):
        major = versions[at + 1].partition(".")[0]
        skips = [names[at - 1]] if at else []
        entries.append(
            {"name": here, "replaces": before, "skips": skips, "skipRange": f">={major}.0.0 <{versions[at + 1]}"}
        )
    bundles = [with_words(pinned(one, name), **WORDS) for one in versions]
    described = package(name, defaultChannel="stable", icon=ICON, description="Keeps ships.")
    return [described, *bundles, channel("stable", *entries, of=name), channel("fast", *entries[-50:], of=name)]


def pinned(version: str, name: str) -> dict[str, Any]:
    return {**bundle(version, name), "image": f"example.com/{name}@sha256:{version.replace('.', 'a'):0>64}"}


def followed(where: Cluster, versions: list[str], by: User) -> None:
    """Deployments of the long package, each with a version that runs."""
    for number in range(FOLLOWERS):
        wanted = {"name": "long", "package": "harbour", "version": versions[-1 - number % 50]}
        spec = world.spec(format="registry-v1", sources=[{"kind": "catalog", "catalog": wanted}])
        made = world.submit_spec(where, world.seen(f"buoy-{number:03}", spec, uid=f"buoy-{number}"), by)
        bundle_choice.bundles_for(made.requests.get())
        revision(made, 1, "active")


def compared(where: Cluster, by: User, before: str, after: str) -> None:
    """What would change is known, and much."""
    question = ComparisonQuestion("harbour", after, before=before)
    asked = services.resolve_comparison(by=world.acting(by), cluster=where, catalog="long", question=question)
    row = comparisons.start_comparison(where, asked.wish, user=by, most=100, now=timezone.now())
    with transaction.atomic():
        made = large(result(is_first=not before))
        lines = {at: {"lines": LINES, "left": 0} for at in made["changed"]}
        comparisons.finish_comparison(row, made, lines, timezone.now())


def large(record: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(record)
    plan, findings = found["report"]["plan"], found["report"]["findings"]
    first = plan["actions"][0]
    plan["actions"] = [{**first, "ref": {**first["ref"], "name": f"harbour-{at}"}} for at in range(OBJECTS)]
    found["changed"] = {str(at): [len(LINES), 0] for at in range(OBJECTS)}
    found["report"]["findings"] = [copy.deepcopy(findings[at % len(findings)]) for at in range(FINDINGS)]
    return found


def make(kubeconfig: str) -> dict[str, Any]:
    """All rows; answers with the session of each person."""
    where = Cluster.objects.create(name="prod", uid="prod", kubeconfig=kubeconfig, created_at=timezone.now())
    people = {name: person(name, [where]) for name in PEOPLE}
    for number in range(CATALOGS):
        stored(catalog(f"port-{number:02}", of=where), *of_package("harbour", ["1.0.0", "1.1.0"]))
    stored(catalog("large", of=where), *of_large())
    versions = [f"{major}.{minor}.0" for major in range(1, 4) for minor in range(VERSIONS // 3)]
    stored(catalog("long", of=where), *of_package("harbour", versions))
    followed(where, versions, people["ada"])
    fake = world.FakeKubernetes()
    fake.allow("ada", "get")
    fake.allow("ada", "create")
    with port.using(fake):
        compared(where, people["ada"], versions[-2], versions[-1])
        compared(where, people["ada"], "", versions[-1])
    assert Catalog.objects.filter(edition__isnull=False).count() == CATALOGS + 2
    return {
        "sessions": {name: session(user) for name, user in people.items()},
        "before": versions[-2],
        "after": versions[-1],
    }


def main(kubeconfig: Path) -> None:
    print(json.dumps(make(kubeconfig.read_text())))
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
