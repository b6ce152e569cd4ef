"""Our copy of the objects that say how requests are decided, and what they said while open requests were made.

Whoever lowers a rule by two changes in a row must not hide the first one: what an object said is kept as long as a
request is open that was made then, and so is an object that is gone (decision 0091).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Min, Q

from approvals import audit, wake
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.deciding.approval_policies import ApprovalPolicy
from approvals.deciding.kinds import DecidingKind
from approvals.deciding.spec_fields import UnreadableObject
from approvals.deciding.table import BY_NAME
from approvals.errors import Awaits
from approvals.ledger import retries
from approvals.ledger.deciding import policy_rows
from approvals.ledger.digests import digest_of_spec
from approvals.lifecycle import OPEN, State
from approvals.locks import for_change, hold
from approvals.models import CheckSecret, Cluster, DecidingObject, Request
from approvals.policy import BadExpression, check_compiled, check_form
from provisioner.expressions import ExpressionQuestion
from provisioner.expressions.evaluator import ask_all

# A controller that writes one for ever leaves no more than this; where it does, the oldest may have been anything.
MOST_EARLIER = 50
MOST_EARLIER_BYTES = 1024 * 1024
# What it was before more changes than are kept: no kind can read it, so that it holds what it might select.
FORGOTTEN: Mapping[str, Any] = {"forgotten": True}
WOKEN, MARKED = 100, 500
# A status is shown again this long after the cluster did not take it.
SHOW_AGAIN = timedelta(seconds=60)


@transaction.atomic
def observe(
    *,
    cluster: Cluster,
    kind: str,
    obj: Mapping[str, Any],
    writer: Mapping[str, Any] | None = None,
    actor: Actor | None = None,
    earlier_authors: Iterable[Mapping[str, Any]] = (),
    is_listed: bool,
    is_made: bool = False,
) -> DecidingObject | None:
    """Copy an object as it was seen; the row where it is news, None where nothing follows from it.

    `writer` is who wrote this generation of its spec, where that is known: of a door of ours, which is told when the
    watch may have seen it already, or proved by the watch; `actor` is how the audit names them. `is_listed`: the
    cluster has it so now, which counts also where the row has seen a later generation: the cluster was restored.
    `earlier_authors` wrote what a new object says before it was one. `is_made`: the door has just created it.
    """
    meta, spec, now = obj["metadata"], dict(obj.get("spec") or {}), database_now()
    generation = int(meta.get("generation") or 1)
    rows = DecidingObject.objects.filter(cluster=cluster, kind=kind)
    row = for_change(rows.filter(uid=meta["uid"])).first()
    is_first, verb = row is None, "created" if is_made or not (row or actor) else "changed"
    if row and (row.gone_at or generation < row.generation) and not is_listed:
        if actor:  # what somebody wrote here was overwritten before we came to keep it
            _record(row, verb, actor, spec)
        return None
    for other in for_change(rows.filter(name=meta["name"], gone_at=None).exclude(uid=meta["uid"])):
        _end(other, now)
    if row is None:
        row = DecidingObject(cluster=cluster, kind=kind, uid=meta["uid"], name=meta["name"], changed_at=now, spec=spec)
        row.authors = _add_author([*map(dict, earlier_authors)], writer, is_next=generation == 1)
        is_news = is_new_spec = True
    else:
        is_new_spec = _take_spec(row, spec, generation, writer, now)
        # One that a list has again was never deleted: the API server did not serve its kind for a while.
        is_news, row.gone_at = is_new_spec or row.gone_at is not None, None
    if is_news:
        row.show_at = now
        _, row.problem = BY_NAME[kind].read(spec)
        row.writers = [dict(writer)] if writer else []
    elif _by_type(obj.get("status") or {}) != _by_type(row.status):
        row.show_at = row.show_at or now
    if writer and not row.writers and generation == row.generation:  # the watch was faster than who wrote it
        row.writers, row.show_at = [dict(writer)], row.show_at or now
    row.generation, row.resource_version = generation, str(meta["resourceVersion"])
    row.labels, row.seen_at = dict(meta.get("labels") or {}), now
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:  # the watch and a door of ours saw it at one moment, and the other one has made its row
        if not is_first:
            raise
        about: dict[str, Any] = {"cluster": cluster, "kind": kind, "obj": obj, "writer": writer, "actor": actor}
        return observe(**about, is_listed=is_listed, is_made=is_made)
    if is_news:
        _judge_anew(row, is_new_spec=is_new_spec)
    if is_news or actor:
        _record(row, verb, actor)
    return row if is_news or row.show_at == now else None


def _judge_anew(row: DecidingObject, *, is_new_spec: bool) -> None:
    if row.kind == ApprovalPolicy.kind:
        policy_rows.keep_row(row, is_new_spec=is_new_spec)
    look_again(row.cluster)


def _take_spec(
    row: DecidingObject, spec: dict[str, Any], generation: int, writer: Mapping[str, Any] | None, now: datetime
) -> bool:
    """Keep what a known object says at this generation, and who wrote it; whether it says something else."""
    # The generation counts changes: one that is the same again was something else in between, which nobody saw.
    is_changed_back = BY_NAME[row.kind].needs_people and generation > row.generation
    is_new_spec = bool(spec != row.spec) or is_changed_back
    if is_new_spec:
        row.earlier_specs = _earlier(row, now)
        row.spec, row.changed_at = spec, now
    if is_new_spec or generation != row.generation:
        row.authors = _add_author(row.authors, writer, is_next=generation == row.generation + 1)
    elif writer and row.authors and not row.authors[-1]:
        row.authors, row.show_at = _add_author(row.authors[:-1], writer, is_next=True), now
    return is_new_spec


@transaction.atomic
def forget(*, cluster: Cluster, uid: str, actor: Actor | None = None, is_gone: bool = True) -> None:
    """It was deleted, and is gone unless a finalizer keeps it. What it said is kept while a request is open that it may
    have held. `actor` is who deleted it here."""
    row = for_change(DecidingObject.objects.filter(cluster=cluster, uid=uid)).first()
    if row is None or (row.gone_at and not actor):
        return
    if is_gone and row.gone_at is None:
        _end(row, database_now())
        look_again(cluster)
    _record(row, "deleted", actor)


def _record(row: DecidingObject, verb: str, actor: Actor | None, spec: Mapping[str, Any] | None = None) -> None:
    """What was done to it: the spec stands in the cluster, and whoever may not get it there reads no more than this."""
    digest = digest_of_spec(row.spec if spec is None else spec)
    about = {"kind": row.kind, "name": row.name, "cluster": row.cluster.name, "specDigest": digest}
    if actor:
        audit.record(verb=f"deciding-object.{verb}", actor=actor, facts=about)
    else:
        audit.record(verb="deciding-object.seen", actor=audit.MACHINE, facts={**about, "change": verb})


@transaction.atomic
def add_earlier_authors(row: DecidingObject, authors: Iterable[Mapping[str, Any]]) -> None:
    """They wrote what the object says before it was one: it is their work as well as of who made it."""
    locked = for_change(DecidingObject.objects.filter(pk=row.pk)).get()
    locked.authors = [*(dict(author) for author in authors if author not in locked.authors), *locked.authors]
    locked.save(update_fields=["authors"])


def look_again(cluster: Cluster) -> None:
    """Have requests of a cluster that are decided on, or about to be applied, looked at again: the oldest ones now. The
    others are looked at in their turn, so that a change of a rule holds up nobody's report."""
    waiting = Request.objects.filter(cluster=cluster, state__in=(State.IN_REVIEW, State.APPROVED))
    for pk in waiting.order_by("pk").values_list("pk", flat=True)[:WOKEN]:
        wake.request(pk)
    # Afterwards: no request is locked after the audit chain (approvals/locks.py). What a crash leaves out is looked at
    # all the same, later.
    transaction.on_commit(partial(_mark_due, cluster), robust=True)


def _mark_due(cluster: Cluster) -> None:
    """Have all of them be due: those that wait for a window would be looked at when it opens, perhaps in weeks."""
    now = database_now()
    later = Request.objects.filter(cluster=cluster, state=State.IN_REVIEW, look_again_at__gt=now)
    keys = list(later.values_list("pk", flat=True))
    for first in range(0, len(keys), MARKED):  # so that who decides on one of them does not wait for all
        with transaction.atomic():
            held = hold(later.filter(pk__in=keys[first : first + MARKED]))
            Request.objects.filter(pk__in=held).update(look_again_at=now)
    retries.look(retries.waiting(cluster, Awaits.WINDOW).values_list("pk", flat=True), now)


def count_due(cluster: Cluster) -> dict[str, int]:
    """How many requests of the cluster are in review, as `all`, and how many of these are to be looked at, as `due`."""
    rows = Request.objects.filter(cluster=cluster, state=State.IN_REVIEW)
    is_due = Q(look_again_at__lte=database_now())
    return rows.aggregate(all=Count("pk"), due=Count("pk", filter=is_due))


def changed_since(cluster_id: int, at: datetime) -> bool:
    """Whether any object of the cluster was written or deleted after that."""
    rows = DecidingObject.objects.filter(cluster=cluster_id)
    return rows.filter(Q(changed_at__gt=at) | Q(gone_at__gt=at)).exists()


def objects_to_show(now: datetime) -> list[int]:
    """Those of which the cluster is to be told, the longest ago first."""
    due = DecidingObject.objects.filter(show_at__lte=now, gone_at=None)
    return list(due.order_by("show_at", "pk").values_list("pk", flat=True))


def record_shown(row: DecidingObject, status: Mapping[str, Any], *, problem: str, again_at: datetime | None) -> None:
    """What the cluster is told now; `again_at` is when it will be something else."""
    seen = DecidingObject.objects.filter(pk=row.pk, spec=row.spec)
    seen.update(status=dict(status), problem=problem)
    seen.filter(show_at=row.show_at).update(show_at=again_at)


def postpone_showing(row: DecidingObject) -> None:
    """The cluster did not take it."""
    DecidingObject.objects.filter(pk=row.pk, show_at=row.show_at).update(show_at=database_now() + SHOW_AGAIN)


def clear_gone(now: datetime) -> None:
    """Let go of objects that went before it could matter to anything that is open or carried over."""
    for row in DecidingObject.objects.filter(gone_at__lte=now):
        if (row.gone_at or now) <= _kept_since(row.cluster_id, now):
            CheckSecret.objects.filter(cluster=row.cluster_id, check_uid=row.uid).delete()
            row.delete()


def check_expressions(parsed: DecidingKind) -> None:
    """Raise UnreadableObject for the first expression of an object that does not compile."""
    wanted = parsed.expressions
    answers = ask_all([ExpressionQuestion(expression.language, expression.text) for expression in wanted])
    for expression, found in zip(wanted, answers, strict=True):
        try:
            check_form(expression.text)
            check_compiled(found, expression.type)
        except BadExpression as exc:
            raise UnreadableObject(f"{expression.place}: {exc}", expression.place) from exc


def _add_author(authors: list[Any], writer: Mapping[str, Any] | None, *, is_next: bool) -> list[Any]:
    """With whoever wrote this generation as the last one, each once; an empty record is somebody unknown.

    Of what is not the next generation nobody knows who wrote the ones between.
    """
    known = [*authors, *([] if is_next else [{}])]
    found = [author for author in known if author and author != writer]
    # One unknown author of an earlier generation says as much as several.
    return [*([{}] if not all(known) else []), *found, dict(writer or {})]


def _end(row: DecidingObject, now: datetime) -> None:
    """What is deleted and made again and again leaves no more than MOST_EARLIER copies: of the oldest that stays,
    nobody knows what it said."""
    row.gone_at, row.show_at = now, None
    row.save(update_fields=["gone_at", "show_at"])
    gone = DecidingObject.objects.filter(cluster=row.cluster_id, kind=row.kind, name=row.name, gone_at__isnull=False)
    if left := list(gone.order_by("-gone_at", "-pk").values_list("pk", flat=True)[MOST_EARLIER:]):
        gone.filter(pk__in=left).delete()
        oldest = gone.earliest("gone_at", "pk")
        oldest.spec, oldest.earlier_specs = dict(FORGOTTEN), []
        oldest.save(update_fields=["spec", "earlier_specs"])
    policy_rows.end_row(row)


def _earlier(row: DecidingObject, now: datetime) -> list[dict[str, Any]]:
    """What it said until now, with what it said before that and is still worth knowing."""
    since = _kept_since(row.cluster_id, now)
    kept = [one for one in row.earlier_specs if datetime.fromisoformat(one["until"]) > since]
    kept = [*kept, {"spec": row.spec, "until": now.isoformat()}]
    sizes = list(accumulate(len(json.dumps(one["spec"])) for one in reversed(kept)))
    fitting = sum(size <= MOST_EARLIER_BYTES for size in sizes)
    if min(fitting, MOST_EARLIER) == len(kept):
        return kept
    dropped = max(len(kept) - fitting, len(kept) - MOST_EARLIER + 1)
    return [{"spec": dict(FORGOTTEN), "until": kept[dropped - 1]["until"]}, *kept[dropped:]]


def _by_type(status: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions are a map by type: the cluster keeps the order that it finds."""
    return {**status, "conditions": {condition.get("type"): condition for condition in status.get("conditions") or []}}


def _kept_since(cluster_id: int, now: datetime) -> datetime:
    """Since when it may matter what an object said: an open request was made then, or an approval was given that may be
    carried over."""
    oldest = Request.objects.filter(cluster=cluster_id, state__in=OPEN).aggregate(oldest=Min("created_at"))["oldest"]
    return min(oldest or now, now - timedelta(hours=settings.PRATIQUE["REQUEST_HOURS"]))
