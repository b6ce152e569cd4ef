"""Whose catalog is read next: the longest due first, and nobody ever has all places (S40).

The rows are the queue: who waits is due, who is being read says since when (`reading_since`) under the claim of its
task, which lapses where its worker dies.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from approvals import catalogs
from approvals.ledger import claims
from approvals.models import Catalog, TaskClaim
from approvals.working import in_turn
from provisioner.errors import SourceTooSlow

TASK = "refresh_catalog"
# So many at once over all workers: each may hold the largest layer of an image.
PLACES = 4
OF_ONE_CLUSTER = 3
OF_ONE_AUTHOR = 2
# What was not read in the time of a turn gets a long one later, in a place of its own: it waits for others like it.
TURN_SECONDS, LONG_TURN_SECONDS = 60.0, 600.0
SLOW, SLOW_OF_ONE_CLUSTER = 2, 1


def seconds_for(catalog: Catalog) -> float:
    """How long one reading of it may take, however slowly the other side sends."""
    return LONG_TURN_SECONDS if _is_slow(catalog) else TURN_SECONDS


def take(catalog: Catalog, now: datetime) -> bool:
    """Whether it is read now, under the claim that the caller holds: then it has a place until `catalogs.note_idle`.

    Where it is not, it stays due, and is called when it is next in line.
    """
    catalogs.note_idle(catalog)  # whoever read it before has died
    if catalog.pk not in in_line(now):
        return False
    catalogs.note_reading(catalog, now)
    return True


def in_line(now: datetime) -> list[int]:
    """The catalogs that may be read now, in the order in which they get the places that are free."""
    known = Catalog.objects.filter(Q(look_at__lte=now) | Q(reading_since__isnull=False)).order_by("look_at", "pk")
    rows = list(known.only("cluster", "authors", "look_at", "reading_since", "problem_code"))
    tasks = TaskClaim.objects.filter(task=TASK)
    held = set(tasks.filter(claims.held()).values_list("key", flat=True))
    suspects = set(tasks.filter(worker_deaths__gt=0).values_list("key", flat=True))
    resting = set(tasks.filter(rests_until__gte=now).values_list("key", flat=True))
    waiting, taken = {}, []
    for number, row in enumerate(rows):
        alike = (f"slow of {row.cluster_id}", "slow") if _is_slow(row) else (str(row.pk), str(row.pk))
        groups = (catalogs.author_of(row), str(row.cluster_id), "", *alike)
        if row.reading_since is not None and row.pk in held:
            taken.append(groups)
        elif row.look_at is not None and row.look_at <= now and row.pk not in resting:
            # What has killed its worker keeps nobody waiting while it waits for a worker of its own.
            waiting[row.pk] = groups, number + (len(rows) if row.pk in suspects else 0)
    return in_turn(waiting, taken, (OF_ONE_AUTHOR, OF_ONE_CLUSTER, PLACES, SLOW_OF_ONE_CLUSTER, SLOW))


def _is_slow(catalog: Catalog) -> bool:
    return catalog.problem_code == SourceTooSlow.code
