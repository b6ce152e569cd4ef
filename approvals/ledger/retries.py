"""What a request waits for: when it is looked at again, and what ends the wait before that.

A failure is one of three. What passes by itself is tried again, more and more rarely. What needs something else in the
cluster (`Awaits`) is looked at when that changes, too. All else needs another spec, and fails the request.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.core.cache import cache
from django.db import transaction
from django.db.models import QuerySet

from approvals import wake
from approvals.clock import database_now
from approvals.errors import Awaits
from approvals.ledger import made_values
from approvals.lifecycle import OPEN
from approvals.locks import hold as hold_rows
from approvals.models import Cluster, Request
from provisioner.errors import PratiqueError, TryLater, Unreachable
from provisioner.review.base.record import ref_record
from provisioner.values import ObjectRef

# The longest wait between two looks at what nobody tells us about.
LONGEST_SECONDS = 600
# The same where the clock says when it is over; what else ends it is heard of (Awaits).
LONGEST_BY_CLOCK_SECONDS = 3600
# Those that wait for the same moment are looked at within so long of it.
SPREAD_SECONDS = 20.0
# Waits that begin together do not end together: each is shortened by up to this share.
JITTER = 0.25
# Of one cluster so many are looked at as soon as something changed; the others follow, as many each step.
AT_ONCE = 40
STEP_SECONDS = 10.0
QUIET_SECONDS = 10
_HELD = ("attempts", "look_again_at", "problem_code", "problem", "problem_since", "remedy", "awaits", "mirrored_at")


def seconds(attempts: int, *, longest: float = LONGEST_SECONDS, share: float) -> float:
    """How long to wait after this many attempts: 2, 4, 8 … `longest`, less up to JITTER of it by `share`, 0 to 1."""
    whole = min(2.0 ** min(attempts, 16), longest)
    return whole * (1 - JITTER * share)


def postpone(row: Request, error: TryLater, now: datetime, *, longest: float = LONGEST_SECONDS) -> float:
    """Count the attempt of a locked row and have it wait; the seconds until it is looked at again."""
    row.attempts += 1
    wait = seconds(row.attempts, longest=longest, share=random.random())  # noqa: S311 - spreads load, keeps no secret
    if isinstance(error, Unreachable):
        wait = max(wait, min(error.retry_after_seconds, LONGEST_SECONDS))
    hold(row, error, now + timedelta(seconds=wait))
    return wait


def hold(row: Request, error: PratiqueError, until: datetime) -> None:
    """Keep what is waited for, and have the cluster shown it where that is news."""
    row.look_again_at = until
    remedy = getattr(error, "remedy", "")
    said: Collection[tuple[ObjectRef, str]] = getattr(error, "said", ())
    told = [{"ref": ref_record(ref), "words": words} for ref, words in said]
    shown = made_values.words_of_problem(row, str(error), told)
    if (row.problem_code, row.problem, row.remedy) != (error.code, shown["problem"], remedy):
        row.mirrored_at = None
        wake.deployment(row.deployment_id)
    if row.problem_since is None or row.problem_code != error.code:
        row.problem_since = database_now()
    row.problem_code, row.problem, row.remedy = error.code, shown["problem"], remedy
    row.server_words = shown["server_words"]
    row.awaits = getattr(error, "awaits", "")
    row.save(update_fields=[*_HELD, "server_words"])


def hold_until(row: Request, error: PratiqueError, due_at: datetime | None, now: datetime) -> None:
    """Have a locked row wait until the clock says so, and have those that wait for one moment not begin together."""
    spread = timedelta(seconds=random.uniform(0, SPREAD_SECONDS))  # noqa: S311 - spreads load, keeps no secret
    last = now + timedelta(seconds=LONGEST_BY_CLOCK_SECONDS)
    hold(row, error, min(due_at + spread, last) if due_at else last)


def waiting(cluster: Cluster, awaits: Awaits) -> QuerySet[Request]:
    """The open requests of a cluster that wait for this; who waits longest comes first."""
    return Request.objects.filter(deployment__cluster=cluster, state__in=OPEN, awaits=awaits).order_by("changed_at")


def look(requests: Iterable[int], now: datetime) -> None:
    """Have these requests looked at, each once: the first ones now, the others some at a time.

    Nobody is made to wait longer by it. A request is looked at so at most once in QUIET_SECONDS, however often
    something changes: what comes in between is seen by the look after that.
    """
    names = {f"awaited:{pk}": pk for pk in requests}
    quiet = cache.get_many(names)
    cache.set_many({name: True for name in names if name not in quiet}, QUIET_SECONDS)
    steps = defaultdict[float, list[int]](list)
    for position, (name, pk) in enumerate(names.items()):
        steps[max(position // AT_ONCE * STEP_SECONDS, QUIET_SECONDS if name in quiet else 0)].append(pk)
    for wait, keys in steps.items():
        at = now + timedelta(seconds=wait)
        later = Request.objects.filter(pk__in=keys, state__in=OPEN, look_again_at__gt=at).exclude(awaits="")
        with transaction.atomic():
            held = hold_rows(later)
            Request.objects.filter(pk__in=held).update(look_again_at=at)
            if not wait:
                for pk in held:
                    wake.request(pk)
