"""A change set of 500 requests on four clusters, in an order of three rings, as rows.

python -m tests.support.program tests.bench.deciding.large_set KUBECONFIG
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

import approvals.project.celery  # noqa: F401 - importing makes it the default app, whose queue takes the wakes
from approvals.models import Report, Request
from approvals.selectors import sets
from tests.bench.installation import clusters_of, people_of, person, role, session
from tests.support.approvals import scene, world
from tests.support.approvals.rollouts import ordered
from tests.support.approvals.sets import NEEDS

MEMBERS = 500
# Of so many members each is like one other one; all others are alike.
APART = 30
RINGS = [{"name": "canary"}, {"name": "half", "soakMinutes": 30}, {"name": "rest", "requiresApproval": True}]


def rights() -> list[dict[str, Any]]:
    group = ["core.rukpak.io"]
    return [
        *role("set-read", {"apiGroups": group, "resources": ["bundledeploymentrequests"], "verbs": ["get"]}, "ada"),
        *role("set-approve", {"apiGroups": group, "resources": ["bundledeployments"], "verbs": ["approve"]}, "ada"),
        *role("set-see", {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}, "ada"),
    ]


def make(kubeconfig: str) -> dict[str, Any]:
    many = {"MAX_OPEN_REQUESTS": 10 * MEMBERS, "MAX_OPEN_REQUESTS_OF_ONE": MEMBERS}
    settings.PRATIQUE = {**settings.PRATIQUE, **many}
    clusters = clusters_of(kubeconfig)
    people, body = people_of(clusters), scene.report_of("image-known-before", "service-for-everybody")
    places, members = list(clusters.values()), list[tuple[Request, int]]()
    askers = [person(f"asker-{where.name}", [where]) for where in places]
    for number in range(MEMBERS):
        seen = world.seen(f"app-{number:03}", world.spec(), labels={sets.LABEL: "spring"})
        made = scene.reported(world.submit_spec(places[number % 4], seen, askers[number % 4]).requests.get(), body)
        likeness = f"apart-{number // 2}" if number < APART else "alike"
        Report.objects.filter(request=made).update(likeness={"digest": likeness, "needs": NEEDS})
        members.append((made, min(number // 50, 2)))
    ordered("spring", RINGS, *members)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return {"sessions": {name: session(user) for name, user in people.items()}}


if __name__ == "__main__":
    print(json.dumps(make(Path(sys.argv[1]).read_text())))
