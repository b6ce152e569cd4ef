"""The Catalogs of a cluster: what was found at the last look at each, when the next one is, and who wrote what.

The Secret of a source, and where it is sent, stand in several parts that different people may have written: each of
them must be allowed to get the Secret (S05, S08).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from approvals.bundle_spec import parse_catalog_source
from approvals.catalogs import history
from approvals.clock import database_now
from approvals.locks import for_change
from approvals.models import Catalog, Cluster
from approvals.policy.source_changes import end_of_wait, interval_of, next_look
from provisioner.catalogs.values import READING

Record = Mapping[str, Any]


def source_parts(spec: Mapping[str, Any]) -> dict[str, str]:
    """What the spec says of its source, by path, such as `image.ref` and `image.auth.secret.name`; nothing of what it
    leaves empty."""
    said = {"format": spec.get("format"), **(spec.get("source") or {})}
    return {path: text for path, text in _list_leaves(said, "") if text}


def _list_leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _list_leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, "" if value is None else str(value)


def assign_authors(authors: Iterable[Record], spec: Mapping[str, Any], writer: Record | None) -> list[dict[str, Any]]:
    """The authors of `spec` once `writer` has made it of what `authors` wrote; None where nobody can tell who did.

    Each is of one part: {part, value, writer}. A part that was taken out is of whoever did that, as long as the kind of
    the source is the same. Whoever writes again has their groups proved anew.
    """
    said, known = source_parts(spec), {str(author["part"]): author for author in authors}
    found = []
    for part in sorted({*said, *known}):
        value, one = said.get(part, ""), known.get(part)
        if one is not None and one["value"] == value:
            is_theirs = bool(writer) and _identify(one["writer"]) == _identify(writer or {})
            found.append(
                {"part": part, "value": value, "writer": dict(writer if writer and is_theirs else one["writer"])}
            )
        elif value or part.partition(".")[0] in ("format", said.get("kind")):
            found.append({"part": part, "value": value, "writer": dict(writer or {})})
    return found


def authors_by_part(authors: Iterable[Record], spec: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Who wrote each part of the source as the spec has it; None where of any part nobody can tell."""
    known = [dict(author) for author in authors]
    written_as = {record["part"]: record["value"] for record in known if record["value"]}
    if written_as != source_parts(spec) or not all(record["writer"] for record in known):
        return None
    return {record["part"]: dict(record["writer"]) for record in known}


def _identify(writer: Record) -> tuple[Any, ...]:
    return tuple(writer.get(name) for name in ("username", "uid", "user_id", "issuer", "subject"))


@transaction.atomic
def observe_catalog(
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
    seen = {
        "generation": generation,
        "resource_version": meta["resourceVersion"],
        "seen_at": now,
        "labels": dict(meta.get("labels") or {}),
    }
    row = _lock_first(Catalog.objects.filter(cluster=cluster, name=meta["name"]))
    if row is not None and row.uid != meta["uid"]:
        row.delete()
        row = None
    if row is None:
        history.resume_history(cluster, meta["name"])
        return Catalog.objects.create(
            cluster=cluster,
            uid=meta["uid"],
            name=meta["name"],
            spec=spec,
            authors=assign_authors([], spec, writer),
            look_at=now,
            show_at=now,
            **seen,
        )
    if generation < row.generation and not is_listed:
        return None
    is_news = generation != row.generation or spec != row.spec
    if is_news:
        if _source_of(spec) != _source_of(row.spec):
            row.edition, row.etag, row.looked_at, row.failures = None, "", None, 0
            row.problem_code, row.problem, row.problem_since = "", "", None
            row.is_writer_proved = False
        row.authors = assign_authors(row.authors, spec, writer if generation == row.generation + 1 else None)
        row.spec, row.look_at, row.show_at = spec, now, now
    elif obj.get("status") and conditions_by_type(obj["status"]) != conditions_by_type(row.status):
        row.show_at = now
    for name, value in seen.items():
        setattr(row, name, value)
    row.save()
    return row if is_news or row.show_at == now else None


@transaction.atomic
def forget_catalog(*, cluster: Cluster, uid: str) -> None:
    """It is gone, and what was read of it goes with it. Which content its versions had is kept (history)."""
    row = _lock_first(Catalog.objects.filter(cluster=cluster, uid=uid))
    if row is not None:
        history.keep_history(row, database_now())
        row.delete()


def catalogs_to_show(now: datetime) -> list[int]:
    """Those of which the cluster is to be told, the longest ago first."""
    return list(Catalog.objects.filter(show_at__lte=now).order_by("show_at", "pk").values_list("pk", flat=True))


def schedule_rereads(now: datetime) -> int:
    """Have those looked at that are never looked at again, and were read by rules of before; how many there are."""
    rows = Catalog.objects.filter(look_at__isnull=True, edition__reading__lt=READING)
    return rows.update(look_at=now)


def read_interval(catalog: Catalog) -> int:
    """Seconds between two looks, by its spec and the operator's limits; 0 for none."""
    operator = settings.PRATIQUE
    if not operator["SOURCE_POLLS_PER_HOST"]:
        return 0
    default, least = operator["SOURCE_POLL_SECONDS"], operator["SOURCE_POLL_MIN_SECONDS"]
    return interval_of(parse_catalog_source(catalog.spec).interval_seconds, default=default, least=least)


@transaction.atomic
def record_success(catalog: Catalog, *, etag: str, began: datetime, is_floating: bool) -> None:
    """The source answered, and what is offered is what it holds."""
    row = _lock_same(catalog)
    if row is None:
        return
    row.etag, row.looked_at, row.tried_at, row.failures = etag, began, began, 0
    row.problem_code, row.problem, row.problem_since = "", "", None
    seconds = read_interval(row) if is_floating else 0
    row.look_at = next_look(began, interval=seconds, failures=0) if seconds else None
    row.show_at = began
    row.save()


@transaction.atomic
def record_problem(catalog: Catalog, *, code: str, words: str, began: datetime, wait: float = 0.0) -> None:
    """It could not be looked at, since when, and why. It is tried again, also where it is pinned, until it was read."""
    row = _lock_same(catalog)
    if row is None:
        return
    row.failures, row.tried_at = row.failures + 1, began
    row.problem_code, row.problem, row.problem_since = code, words, row.problem_since or began
    seconds = read_interval(row) or settings.PRATIQUE["SOURCE_POLL_MIN_SECONDS"]
    rest = end_of_wait(began, asked_to_wait=wait)
    row.look_at = next_look(began, interval=seconds, failures=row.failures, not_before=rest)
    row.show_at = began
    row.save()


def record_reader_proof(catalog: Catalog, *, is_proved: bool) -> None:
    """Whether Kubernetes lets everybody who wrote a part of the source get all that it names."""
    Catalog.objects.filter(pk=catalog.pk, generation=catalog.generation).update(is_writer_proved=is_proved)


def record_read_start(catalog: Catalog, now: datetime) -> None:
    """A worker looks at its source."""
    catalog.reading_since = now
    Catalog.objects.filter(pk=catalog.pk).update(reading_since=now)


def record_read_end(catalog: Catalog) -> None:
    """Nobody looks at its source any more."""
    catalog.reading_since = None
    Catalog.objects.filter(pk=catalog.pk, reading_since__isnull=False).update(reading_since=None)


def postpone_read(catalog: Catalog, until: datetime) -> None:
    """Its turn has not come: nothing was asked."""
    Catalog.objects.filter(pk=catalog.pk, spec=catalog.spec).update(look_at=until)


def record_shown_status(catalog: Catalog, status: Mapping[str, Any]) -> None:
    """What the cluster is about to be told; whoever wants it told anew meanwhile, is heard later."""
    Catalog.objects.filter(pk=catalog.pk).update(status=dict(status))
    Catalog.objects.filter(pk=catalog.pk, show_at=catalog.show_at).update(show_at=None)


def conditions_by_type(status: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions are a map by type: the cluster keeps the order that it finds."""
    return {**status, "conditions": {condition.get("type"): condition for condition in status.get("conditions") or []}}


def author_names(catalog: Catalog) -> str:
    """Who wrote the source, by name: whose turn its reading is. Where nobody is known to have, those of its cluster."""
    names = sorted({str(author["writer"].get("username") or "") for author in catalog.authors} - {""})
    return ", ".join(names) or f"cluster {catalog.cluster_id}"


def has_same_source(catalog: Catalog) -> bool:
    """Whether the locked row still names the source of `catalog`, and by the word of the same people."""
    row = Catalog.objects.get(pk=catalog.pk)
    return (_source_of(row.spec), row.authors) == (_source_of(catalog.spec), catalog.authors)


def _source_of(spec: Mapping[str, Any]) -> tuple[Any, Any]:
    return spec.get("source"), spec.get("format")


def _lock_same(catalog: Catalog) -> Catalog | None:
    """The row, locked, where it is still about the same spec: the new one has its own look."""
    row = _lock_first(Catalog.objects.filter(pk=catalog.pk))
    return row if row is not None and row.generation == catalog.generation else None


def _lock_first(rows: QuerySet[Catalog]) -> Catalog | None:
    return for_change(rows).first()
