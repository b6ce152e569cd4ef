"""What a report needs to know of live objects beyond those that it changes: read in bounds, or said why not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import orjson

from provisioner.cluster.client.api import Cluster
from provisioner.cluster.client.discovery import Resource
from provisioner.cluster.client.openapi import schema_of_kind
from provisioner.errors import ClusterError, UnknownKind, Unreachable
from provisioner.values import ObjectRef

PARALLEL = 4
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is read of one list: whichever is met first ends it. `seconds` counts between pages."""

    objects: int = 5000
    total_bytes: int = 48 * 1024 * 1024
    seconds: float = 20.0
    page: int = 250


BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class Query:
    """One list to read; with `version` "" in the one that the server prefers, with `namespace` "" everywhere."""

    group: str
    version: str
    kind: str
    namespace: str = ""
    metadata_only: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read: the first `objects` of `total` (None: unknown). `problem` says why there is nothing."""

    objects: tuple[dict[str, Any], ...] = ()
    total: int | None = 0
    resource_version: str = ""
    problem: str = ""


def samples(readers: Sequence[Cluster], queries: Iterable[Query], *, bounds: Bounds = BOUNDS) -> dict[Query, Sample]:
    """Each list as the first of `readers` who may read it; a kind that is not served is an empty list."""
    wished = list(dict.fromkeys(queries))
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return dict(zip(wished, pool.map(lambda one: _sample(readers, one, bounds), wished), strict=True))


def existing(readers: Sequence[Cluster], refs: Iterable[ObjectRef]) -> dict[ObjectRef, bool]:
    """Whether objects exist, by their metadata alone; what nobody may ask has no entry."""
    wished = list(dict.fromkeys(refs))
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        found = pool.map(lambda ref: _exists(readers, ref), wished)
        return {ref: answer for ref, answer in zip(wished, found, strict=True) if answer is not None}


def published_schemas(
    readers: Sequence[Cluster], kinds: Iterable[tuple[str, str, str]]
) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The schemas of kinds, by (group, version, kind), as the server publishes them; those that it does not are left
    out."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for (group, version), members in groupby(sorted(set(kinds)), key=lambda one: one[:2]):
        document = _first(readers, partial(_document, group, version))
        for member in members:
            schema = schema_of_kind(document, *member) if isinstance(document, dict) else None
            if schema is not None:
                found[member] = schema
    return found


def _document(group: str, version: str, reader: Cluster) -> dict[str, Any]:
    return reader.openapi(group, version)


def _sample(readers: Sequence[Cluster], query: Query, bounds: Bounds) -> Sample:
    answer = _first(readers, lambda reader: _read(reader, query, bounds))
    return Sample(total=None, problem=str(answer)) if isinstance(answer, ClusterError) else answer


def _read(reader: Cluster, query: Query, bounds: Bounds) -> Sample:
    try:
        resource = reader.resource_of(query.group, query.version, query.kind)
    except Unreachable as exc:  # the group's own server is down, which trying again may never mend
        return Sample(total=None, problem=str(exc))
    if resource is None:
        return Sample()
    head = reader.excerpt(resource, namespace=query.namespace, at_most=1, metadata_only=True)
    if head.total is not None and head.total <= 1 and query.metadata_only:
        return Sample(head.objects, head.total, head.resource_version)
    objects, is_whole = _within(_listed(reader, resource, query, bounds.page), bounds)
    return Sample(tuple(objects), len(objects) if is_whole else head.total, head.resource_version)


def _listed(reader: Cluster, resource: Resource, query: Query, page: int) -> Iterator[dict[str, Any]]:
    return reader.list(resource, query.namespace, page=page, metadata_only=query.metadata_only)


def _within(objects: Iterator[dict[str, Any]], bounds: Bounds) -> tuple[list[dict[str, Any]], bool]:
    """The objects that the bounds let in, and whether those are all."""
    found: list[dict[str, Any]] = []
    size, until = 0, time.monotonic() + bounds.seconds
    for obj in objects:
        size += len(orjson.dumps(obj))
        if len(found) >= bounds.objects or size > bounds.total_bytes or time.monotonic() > until:
            return found, False
        found.append(obj)
    return found, True


def _exists(readers: Sequence[Cluster], ref: ObjectRef) -> bool | None:
    answer = _first(readers, lambda reader: reader.get(ref, metadata_only=True) is not None)
    if isinstance(answer, UnknownKind):
        return False
    return None if isinstance(answer, ClusterError) else answer


def _first(readers: Sequence[Cluster], ask: Callable[[Cluster], _T]) -> _T | ClusterError:
    """The first answer that is no refusal; else the first refusal."""
    refusal: ClusterError | None = None
    for reader in readers:
        try:
            return ask(reader)
        except ClusterError as exc:
            refusal = refusal or exc
    assert refusal is not None
    return refusal
