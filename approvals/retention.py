"""What PRATIQUE_KEEP_DAYS lets go: details of requests that are long settled, and stored bytes that nothing needs.

Kept for good: each request with who asked for it, its pins, reviews and verdicts, and the audit chain. Kept while they
are needed: what open requests compare with or put back, and of each deployment the running revision, the one before it
and all after it.

What the store holds and no row names goes as well, after a time of grace: what killed workers have left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import F, Q, QuerySet

from approvals import audit, store
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.encryption.files import UNFINISHED_AGE, StoredFile, content_files
from approvals.errors import StoreUnavailable
from approvals.ledger.moves import both_locked
from approvals.lifecycle import OPEN
from approvals.locks import for_change
from approvals.models import (
    BundleDeployment,
    CheckRun,
    Content,
    KeptValue,
    LookupAnswers,
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
# S3 takes no call that was signed more than 15 minutes ago; until then one that was not answered may come through.
DELETION_SETTLES = timedelta(minutes=20)
# Deletions without an answer, one after the other.
AWAY_AFTER = 5
# The running revision and the one before it.
LAST_REVISIONS = 2
# What hangs on a request and goes with its details. Reviews, verdicts and their dismissals are append-only.
DETAILS = (LookupAnswers, Report, Outcome, PolicyEvaluation, CheckRun, RequestRule, RequestText, ViewedObject)


@dataclass(frozen=True, slots=True)
class Cleared:
    """How many requests lost their details, and how many stored contents went, of together so many bytes.

    `leftovers` counts what killed workers had left in the store, `failures` say what could not be deleted now.
    """

    requests: int
    contents: int
    byte_count: int
    leftovers: int = 0
    failures: tuple[str, ...] = ()


@dataclass
class Deletions:
    """One that fails leaves the others alone, unless the store itself seems to be away."""

    failures: list[str] = field(default_factory=list)
    unanswered: int = 0

    def tried(self, delete: Callable[[], int]) -> int:
        """What `delete` returns, 0 where it failed. Raises its failure where too many in a row had no answer."""
        try:
            found = delete()
        except (StoreUnavailable, OSError) as exc:
            self.failures.append(str(exc))
            is_answer = isinstance(exc, StoreUnavailable) and exc.is_refused
            self.unanswered = 0 if is_answer else self.unanswered + 1
            if self.unanswered == AWAY_AFTER:
                raise
            return 0
        self.unanswered = 0
        return found


def clear(now: datetime, *, keep_days: int) -> Cleared:
    """Let go what was settled more than `keep_days` days before `now`, each request in a transaction of its own.

    May be stopped at any time: the next run goes on. 0 days keep everything that has a row.
    """
    requests, sizes, deletions = 0, [], Deletions()
    if keep_days:
        before = now - timedelta(days=keep_days)
        KeptValue.objects.filter(deployment__gone_at__lt=before).delete()
        requests = sum(_clear_request(pk, before, now) for pk in list(_outlived(before)))
        unneeded = list(_unneeded(now).values_list("pk", flat=True))
        sizes = [size for digest in unneeded if (size := deletions.tried(partial(_remove, digest, now)))]
    leftovers = _collect(now, deletions)
    done = Cleared(requests, len(sizes), sum(sizes), leftovers, tuple(deletions.failures))
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
    if done.failures:
        logger.warning(
            "some stored contents could not be deleted; they are tried again in an hour",
            extra={"failures": len(done.failures), "first": done.failures[0]},
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
        row.unused_files, row.requirements, row.chart_values, row.server_words, row.lookups = {}, [], None, [], []
        row.spec_values, row.repeated_keys, row.patches, row.helm_3_differs = [], [], [], None
        row.external_checks = []
        row.cleared_at = now
        row.save(
            update_fields=[
                *(
                    "unused_files",
                    "requirements",
                    "chart_values",
                    "spec_values",
                    "repeated_keys",
                    "server_words",
                    "lookups",
                    "patches",
                    "helm_3_differs",
                    "external_checks",
                    "cleared_at",
                )
            ]
        )
        audit.record(verb="request.cleared", actor=MACHINE, request=row, facts={"settledBefore": before})
    return 1


def _unneeded(now: datetime) -> QuerySet[Content]:
    fresh = Q(used_at__gte=now - GRACE)
    needed = Q(requests__cleared_at=None, requests__isnull=False)
    needed |= Q(revisions__request__cleared_at=None, revisions__isnull=False)
    candidates = Content.objects.filter(removed_at=None).exclude(fresh)
    return candidates.exclude(pk__in=Content.objects.filter(needed).values("pk"))


def _remove(digest: str, now: datetime) -> int:
    """Its size in bytes, where the content went; 0 where it has come into use. Raises StoreUnavailable and OSError.

    The row says first that it is gone, and until when the deletion may happen (`store.put` waits for that). What could
    not be deleted is then a file that no row names.
    """
    with transaction.atomic():
        row = for_change(Content.objects.filter(pk=digest)).get()
        if not _unneeded(now).filter(pk=digest).exists():
            return 0
        row.removed_at, row.deleting_until = now, database_now() + DELETION_SETTLES
        row.save(update_fields=["removed_at", "deleting_until"])
    content_files().delete(store.path_of(digest))
    _deleting(row).update(deleting_until=None)
    return row.byte_count


def _deleting(row: Content) -> QuerySet[Content]:
    """The row, if it still waits for our deletion."""
    return Content.objects.filter(pk=row.pk, deleting_until=row.deleting_until).exclude(removed_at=None)


def _collect(now: datetime, deletions: Deletions) -> int:
    storage = content_files()
    unfinished = deletions.tried(lambda: storage.collect_unfinished(now - UNFINISHED_AGE, store.is_ours))
    named = set(Content.objects.filter(removed_at=None).values_list("pk", flat=True))
    unnamed = [one for one in storage.stored() if store.digest_of(one.name) not in {None, *named}]
    collected = sum(deletions.tried(partial(collect_unnamed, one, now)) for one in unnamed)
    # Of a process that was killed while it collected what is gone now.
    Content.objects.filter(object_count=0, removed_at=F("created_at"), deleting_until__lt=now - GRACE).delete()
    return unfinished + collected


def collect_unnamed(one: StoredFile, now: datetime) -> bool:
    """Whether a content went that no row names: a worker died before it wrote the row, or while it removed the content.

    Who stores it meanwhile is told to wait by its row, or by one that is made here for as long.
    """
    digest = store.digest_of(one.name)
    if digest is None or now - one.modified < GRACE:
        return False
    with transaction.atomic():
        unused = {"object_count": 0, "byte_count": 0, "created_at": now, "removed_at": now}
        _, is_new = Content.objects.get_or_create(digest=digest, defaults=unused)
        row = for_change(Content.objects.filter(pk=digest)).get()
        began = database_now()
        if row.removed_at is None or (row.deleting_until is not None and began < row.deleting_until):
            return False
        row.deleting_until = began + DELETION_SETTLES
        row.save(update_fields=["deleting_until"])
    content_files().delete(one.name)
    if is_new:
        _deleting(row).delete()
    else:
        _deleting(row).update(deleting_until=None)
    return True
