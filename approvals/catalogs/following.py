"""Which catalogs a cluster names, what was found at the last look at each, and when the next one is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from approvals.bundle_spec import parse_catalog_source
from approvals.catalogs import authors, history
from approvals.clock import database_now
from approvals.locks import for_change
from approvals.models import Catalog, Cluster
from approvals.policy.source_changes import end_of_wait, interval_of, next_look
from provisioner.catalogs import READING


@transaction.atomic
def see(
    *, cluster: Cluster, obj: Mapping[str, Any], writer: Mapping[str, Any] | None, is_listed: bool = False
) -> Catalog | None:
    """Copy a Catalog as it was seen; the row where somebody has to look at it now. `writer` is who wrote this
    generation of its spec, where that is proved. `is_listed`: the cluster has it so now, and does not tell of a write.

    Another source is another catalog: until that was read, nothing is offered, and each part of it is its writer's
    (S05). Whoever changes anything else wrote none of it. Of what is new after a generation that nobody saw, nobody
    knows who wrote which part. A list counts also where the row has seen a later generation: the cluster was restored.
    """
    meta, spec, now = obj["metadata"], dict(obj.get("spec") or {}), database_now()
    generation = int(meta.get("generation") or 1)
    seen = {"generation": generation, "resource_version": meta["resourceVersion"], "seen_at": now}
    row = _locked(Catalog.objects.filter(cluster=cluster, name=meta["name"]))
    if row is not None and row.uid != meta["uid"]:
        row.delete()
        row = None
    if row is None:
        history.take_up(cluster, meta["name"])
        return Catalog.objects.create(
            cluster=cluster,
            uid=meta["uid"],
            name=meta["name"],
            spec=spec,
            authors=authors.written([], spec, writer),
            look_at=now,
            show_at=now,
            **seen,
        )
    if generation < row.generation and not is_listed:
        return None
    is_news = generation != row.generation or spec != row.spec
    if is_news:
        _take_spec(row, spec, writer if generation == row.generation + 1 else None, now)
    elif obj.get("status") and by_type(obj["status"]) != by_type(row.status):
        row.show_at = now
    for name, value in seen.items():
        setattr(row, name, value)
    row.save()
    return row if is_news or row.show_at == now else None


def _take_spec(row: Catalog, spec: dict[str, Any], writer: Mapping[str, Any] | None, now: datetime) -> None:
    if _content_of(spec) != _content_of(row.spec):
        row.edition, row.etag, row.looked_at, row.failures = None, "", None, 0
        row.problem_code, row.problem, row.problem_since = "", "", None
        row.is_writer_proved = False
    row.authors = authors.written(row.authors, spec, writer)
    row.spec, row.look_at, row.show_at = spec, now, now


@transaction.atomic
def forget(*, cluster: Cluster, uid: str) -> None:
    """It is gone, and what was read of it goes with it. Which content its versions had is kept (history)."""
    row = _locked(Catalog.objects.filter(cluster=cluster, uid=uid))
    if row is not None:
        history.keep(row, database_now())
        row.delete()


def to_show(now: datetime) -> list[int]:
    """Those of which the cluster is to be told, the longest ago first."""
    return list(Catalog.objects.filter(show_at__lte=now).order_by("show_at", "pk").values_list("pk", flat=True))


def read_anew(now: datetime) -> int:
    """Have those looked at that are never looked at again, and were read by rules of before; how many there are."""
    rows = Catalog.objects.filter(look_at__isnull=True, edition__reading__lt=READING)
    return rows.update(look_at=now)


def interval(catalog: Catalog) -> int:
    """Seconds between two looks, by its spec and the operator's limits; 0 for none."""
    operator = settings.PRATIQUE
    if not operator["SOURCE_POLLS_PER_HOST"]:
        return 0
    default, least = operator["SOURCE_POLL_SECONDS"], operator["SOURCE_POLL_MIN_SECONDS"]
    return interval_of(parse_catalog_source(catalog.spec).interval_seconds, default=default, least=least)


@transaction.atomic
def note_seen(catalog: Catalog, *, etag: str, began: datetime, is_floating: bool) -> None:
    """The source answered, and what is offered is what it holds."""
    row = _same(catalog)
    if row is None:
        return
    row.etag, row.looked_at, row.tried_at, row.failures = etag, began, began, 0
    row.problem_code, row.problem, row.problem_since = "", "", None
    seconds = interval(row) if is_floating else 0
    row.look_at = next_look(began, interval=seconds, failures=0) if seconds else None
    row.show_at = began
    row.save()


@transaction.atomic
def note_problem(catalog: Catalog, *, code: str, words: str, began: datetime, wait: float = 0.0) -> None:
    """It could not be looked at, since when, and why. It is tried again, also where it is pinned, until it was read."""
    row = _same(catalog)
    if row is None:
        return
    row.failures, row.tried_at = row.failures + 1, began
    row.problem_code, row.problem, row.problem_since = code, words, row.problem_since or began
    seconds = interval(row) or settings.PRATIQUE["SOURCE_POLL_MIN_SECONDS"]
    rest = end_of_wait(began, asked_to_wait=wait)
    row.look_at = next_look(began, interval=seconds, failures=row.failures, not_before=rest)
    row.show_at = began
    row.save()


def note_reader(catalog: Catalog, *, is_proved: bool) -> None:
    """Whether Kubernetes lets everybody who wrote a part of the source get all that it names."""
    Catalog.objects.filter(pk=catalog.pk, generation=catalog.generation).update(is_writer_proved=is_proved)


def note_reading(catalog: Catalog, now: datetime) -> None:
    """A worker looks at its source."""
    catalog.reading_since = now
    Catalog.objects.filter(pk=catalog.pk).update(reading_since=now)


def note_idle(catalog: Catalog) -> None:
    """Nobody looks at its source any more."""
    catalog.reading_since = None
    Catalog.objects.filter(pk=catalog.pk, reading_since__isnull=False).update(reading_since=None)


def postpone(catalog: Catalog, until: datetime) -> None:
    """Its turn has not come: nothing was asked."""
    Catalog.objects.filter(pk=catalog.pk, spec=catalog.spec).update(look_at=until)


def note_shown(catalog: Catalog, status: Mapping[str, Any]) -> None:
    """What the cluster is about to be told; whoever wants it told anew meanwhile, is heard later."""
    Catalog.objects.filter(pk=catalog.pk).update(status=dict(status))
    Catalog.objects.filter(pk=catalog.pk, show_at=catalog.show_at).update(show_at=None)


def by_type(status: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions are a map by type: the cluster keeps the order that it finds."""
    return {**status, "conditions": {one.get("type"): one for one in status.get("conditions") or []}}


def author_of(catalog: Catalog) -> str:
    """Who wrote the source, by name: whose turn its reading is. Where nobody is known to have, those of its cluster."""
    names = sorted({str(one["writer"].get("username") or "") for one in catalog.authors} - {""})
    return ", ".join(names) or f"cluster {catalog.cluster_id}"


def is_same_source(catalog: Catalog) -> bool:
    """Whether the locked row still names the source of `catalog`, and by the word of the same people."""
    row = Catalog.objects.get(pk=catalog.pk)
    return (_content_of(row.spec), row.authors) == (_content_of(catalog.spec), catalog.authors)


def _content_of(spec: Mapping[str, Any]) -> tuple[Any, Any]:
    return spec.get("source"), spec.get("format")


def _same(catalog: Catalog) -> Catalog | None:
    """The row, locked, where it is still about the same spec: the new one has its own look."""
    row = _locked(Catalog.objects.filter(pk=catalog.pk))
    return row if row is not None and row.generation == catalog.generation else None


def _locked(rows: QuerySet[Catalog]) -> Catalog | None:
    return for_change(rows).first()
