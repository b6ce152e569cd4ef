"""What PRATIQUE_KEEP_DAYS lets go: details of requests that are long settled, and stored bytes that nothing needs.

Kept for good: each request with who asked for it, its pins, reviews and verdicts, and the audit chain. Kept while they
are needed: what open requests compare with or put back, and of each deployment the running revision, the one before it
and all after it.

What the store holds and no row names goes as well, after a time of grace: what killed workers have left.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from approvals import audit, store
from approvals.audit import MACHINE
from approvals.encryption.files import UNFINISHED_AGE, StoredFile, content_files
from approvals.ledger.locks import for_change
from approvals.ledger.moves import both_locked
from approvals.lifecycle import OPEN
from approvals.models import (
    BundleDeployment,
    Content,
    OptionalObject,
    Outcome,
    PolicyEvaluation,
    Report,
    Request,
    RequestRule,
    RequestText,
    Revision,
    ViewedObject,
)

logger = logging.getLogger(__name__)

# Bytes that were stored a moment ago may not have their request yet.
GRACE = timedelta(days=1)
# The running revision and the one before it.
LAST_REVISIONS = 2
# What hangs on a request and goes with its details. Reviews, verdicts and their dismissals are append-only.
DETAILS = (Report, Outcome, PolicyEvaluation, RequestRule, RequestText, ViewedObject)


@dataclass(frozen=True, slots=True)
class Cleared:
    """How many requests lost their details, and how many stored contents went, of together so many bytes.

    `leftovers` counts what killed workers had left in the store.
    """

    requests: int
    contents: int
    byte_count: int
    leftovers: int = 0


def clear(now: datetime, *, keep_days: int) -> Cleared:
    """Let go what was settled more than `keep_days` days before `now`, each request in a transaction of its own.

    May be stopped at any time: the next run goes on. 0 days keep everything that has a row.
    """
    requests, sizes = 0, []
    if keep_days:
        before = now - timedelta(days=keep_days)
        requests = sum(_clear_request(pk, before, now) for pk in list(_outlived(before)))
        sizes = [size for digest in list(_unneeded(now)) if (size := _remove(digest, now)) is not None]
    done = Cleared(requests, len(sizes), sum(sizes), _collect(now))
    if done.requests or done.contents or done.leftovers:
        logger.info(
            "cleared what was kept long enough",
            extra={
                "requests": done.requests,
                "contents": done.contents,
                "bytes": done.byte_count,
                "leftovers": done.leftovers,
            },
        )
    return done


def outlived(now: datetime, *, keep_days: int) -> int:
    """How many requests `clear` would take the details of."""
    return sum(1 for _ in _outlived(now - timedelta(days=keep_days))) if keep_days else 0


def _outlived(before: datetime) -> Iterator[int]:
    settled = Request.objects.filter(settled_at__lt=before, cleared_at=None).exclude(state__in=OPEN)
    for deployment_id in settled.order_by().values_list("deployment_id", flat=True).distinct():
        deployment = BundleDeployment.objects.get(pk=deployment_id)
        yield from _of_deployment(deployment, before).values_list("pk", flat=True)


def _of_deployment(deployment: BundleDeployment, before: datetime) -> QuerySet[Request]:
    """Its requests that nothing needs; all of them where it has been gone that long."""
    old = Request.objects.filter(deployment=deployment, settled_at__lt=before, cleared_at=None)
    old = old.exclude(state__in=OPEN).order_by("pk")
    if deployment.gone_at is not None and deployment.gone_at < before:
        return old
    is_used = Q(pk__in=_used_by_open(deployment))
    latest = deployment.requests.order_by("-number").values_list("pk", flat=True)[:1]
    is_used |= Q(pk__in=list(latest))
    return old.exclude(is_used | Q(revision__number__gte=_first_needed(deployment)))


def _first_needed(deployment: BundleDeployment) -> int:
    """From this revision on all are needed: what runs, what it may go back to, and what failed since."""
    in_force = deployment.revisions.filter(state__in=(Revision.State.ACTIVE, Revision.State.REPLACED), revoked_at=None)
    numbers = list(in_force.order_by("-number").values_list("number", flat=True)[:LAST_REVISIONS])
    running = deployment.revisions.filter(Q(state=Revision.State.ACTIVE) | Q(pk=deployment.active_revision_id or 0))
    return min([*numbers, *running.values_list("number", flat=True)], default=0)


def _used_by_open(deployment: BundleDeployment) -> set[int]:
    """Requests whose revisions an open one compares with, or puts back."""
    opened = deployment.requests.filter(state__in=OPEN)
    used = opened.values_list("from_revision__request_id", "to_revision__request_id")
    return {pk for pair in used for pk in pair if pk}


def _clear_request(pk: int, before: datetime, now: datetime) -> int:
    """1 where the request lost its details; it may have come into use since it was found."""
    with transaction.atomic():
        deployment, row = both_locked(Request.objects.get(pk=pk))
        if not _of_deployment(deployment, before).filter(pk=pk).exists():
            return 0
        for details in DETAILS:
            details._default_manager.filter(request=row).delete()
        OptionalObject.objects.filter(revision__request=row).delete()
        row.unused_files, row.requirements, row.chart_values, row.server_words = {}, [], None, []
        row.cleared_at = now
        row.save(update_fields=["unused_files", "requirements", "chart_values", "server_words", "cleared_at"])
        audit.record(verb="request.cleared", actor=MACHINE, request=row, facts={"settledBefore": before})
    return 1


def _unneeded(now: datetime) -> Iterator[str]:
    fresh = Q(used_at__gte=now - GRACE)
    needed = Q(requests__cleared_at=None, requests__isnull=False)
    needed |= Q(revisions__request__cleared_at=None, revisions__isnull=False)
    candidates = Content.objects.filter(removed_at=None).exclude(fresh)
    yield from candidates.exclude(pk__in=Content.objects.filter(needed).values("pk")).values_list("pk", flat=True)


def _remove(digest: str, now: datetime) -> int | None:
    """Its size in bytes, where the content went. Who stores it again waits for this row, and writes the file anew.

    The one place where a transaction waits for the store: so briefly that its row stays locked (Bucket.delete).
    """
    with transaction.atomic():
        row = for_change(Content.objects.filter(pk=digest)).get()
        if row.removed_at is not None or digest not in set(_unneeded(now)):
            return None
        row.removed_at = now
        row.save(update_fields=["removed_at"])
        content_files().delete(store.path_of(digest))
    return row.byte_count


def _collect(now: datetime) -> int:
    storage = content_files()
    unfinished = storage.collect_unfinished(now - UNFINISHED_AGE)
    named = set(Content.objects.filter(removed_at=None).values_list("pk", flat=True))
    unnamed = [one for one in storage.stored() if store.digest_of(one.name) not in {None, *named}]
    return unfinished + sum(collect_unnamed(one, now) for one in unnamed)


def collect_unnamed(one: StoredFile, now: datetime) -> bool:
    """Whether a content went that no row names: a worker died before it wrote the row, or while it removed the content.

    Who stores it meanwhile waits: for the row, or for one that is made here and never committed.
    """
    digest = store.digest_of(one.name)
    if digest is None or now - one.modified < GRACE:
        return False
    with transaction.atomic():
        unused = {"object_count": 0, "byte_count": 0, "created_at": now, "removed_at": now}
        _, is_new = Content.objects.get_or_create(digest=digest, defaults=unused)
        row = for_change(Content.objects.filter(pk=digest)).get()
        if row.removed_at is None:
            return False
        content_files().delete(one.name)
        if is_new:
            row.delete()
    return True
