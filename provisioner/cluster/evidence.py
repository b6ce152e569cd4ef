"""Live objects read for planning and for reports: in bounds, by few calls, or said why not.

Lists are a shortcut for planning (`read_many`): what is not found out by one, because it is too long or not allowed, is
left out of the answer, and whoever needs it asks for the one object.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import groupby
from operator import methodcaller
from typing import Any, TypeVar

import orjson

from provisioner.cluster.client.answers import Excerpt
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.client.discovery import ServedResource
from provisioner.cluster.client.failures import is_of_conversion, is_of_webhook
from provisioner.cluster.client.openapi import schema_of_kind
from provisioner.errors import AnswerTooLarge, ClusterError, UnknownKind, Unreachable
from provisioner.values import ObjectIdentity, ObjectRef, created_at

PARALLEL = 4
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is read of one list: whichever is met first ends it. `seconds` counts between pages.

    Of a list that is counted so many `objects` are kept, and `counted` are looked through.
    """

    objects: int = 5000
    counted: int = 100_000
    total_bytes: int = 48 * 1024 * 1024
    seconds: float = 20.0
    page: int = 250


BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class Query:
    """One list to read; with `version` "" in the one that the server prefers, with `namespace` "" everywhere.

    `is_counted`: what is beyond the bound of objects is looked through as well, to say when the last was created. Its
    kind exists: where it is served in another version it is read in that, and where in none, nobody could count it.
    `after`: only what was created after this instant is kept.
    """

    group: str
    version: str
    kind: str
    namespace: str = ""
    metadata_only: bool = False
    is_counted: bool = False
    after: str = ""


class Unread(StrEnum):
    """Why there is nothing of a list, where that is no plain refusal."""

    CONVERSION = "conversion"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read: the first `objects` of `total` (None: unknown). `problem` says why there is nothing, `why` of
    which sort that is, and `server_words` what the server said of it.

    `last` is when the last of all was created, "" of none; None where not all were looked through. `late` is how many
    were created after the query's `after`, kept or not.
    """

    objects: tuple[dict[str, Any], ...] = ()
    total: int | None = 0
    resource_version: str = ""
    problem: str = ""
    last: str | None = ""
    late: int = 0
    why: Unread | None = None
    server_words: str = ""


def read_samples(
    readers: Sequence[ClusterClient], queries: Iterable[Query], *, bounds: Bounds = BOUNDS
) -> dict[Query, Sample]:
    """Each list as the first of `readers` who may read it; a kind that is not served is an empty list."""
    wished = list(dict.fromkeys(queries))
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return dict(zip(wished, pool.map(lambda one: _sample(readers, one, bounds), wished), strict=True))


def find_existing(readers: Sequence[ClusterClient], refs: Iterable[ObjectRef]) -> dict[ObjectRef, bool]:
    """Whether objects exist, by their metadata alone; what nobody may ask has no entry."""

    def exists(ref: ObjectRef) -> bool | ClusterError:
        answer = _first(readers, lambda reader: reader.get(ref, metadata_only=True) is not None)
        return False if isinstance(answer, UnknownKind) else answer

    wished = list(dict.fromkeys(refs))
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        found = pool.map(exists, wished)
        return {ref: answer for ref, answer in zip(wished, found, strict=True) if isinstance(answer, bool)}


def read_objects(readers: Sequence[ClusterClient], refs: Iterable[ObjectRef]) -> dict[ObjectRef, dict[str, Any] | None]:
    """Each object as the first of `readers` who may read it, None where there is none. Raises what nobody may."""
    wished = list(dict.fromkeys(refs))
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        found = list(pool.map(lambda ref: _first(readers, lambda reader: reader.get(ref)), wished))
    for answer in found:
        if isinstance(answer, ClusterError):
            raise answer
    return {ref: answer for ref, answer in zip(wished, found, strict=True) if not isinstance(answer, ClusterError)}


def published_schemas(
    readers: Sequence[ClusterClient], kinds: Iterable[tuple[str, str, str]]
) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The schemas of kinds, by (group, version, kind), as the server publishes them; those that it does not are left
    out."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for (group, version), members in groupby(sorted(set(kinds)), key=lambda one: one[:2]):
        ask = methodcaller("openapi", group, version)
        document: dict[str, Any] | ClusterError = _first(readers, ask)
        for member in members:
            schema = schema_of_kind(document, *member) if isinstance(document, dict) else None
            if schema is not None:
                found[member] = schema
    return found


def _sample(readers: Sequence[ClusterClient], query: Query, bounds: Bounds) -> Sample:
    def read(reader: ClusterClient) -> Sample:
        try:
            return _list(reader, query, bounds)
        except UnknownKind:  # it was served when discovery was read, which is read again now
            return _list(reader, query, bounds)

    try:
        answer = _first(readers, read)
    except Unreachable as exc:
        if not is_of_conversion(exc):
            raise
        # Whoever converts the kind may be gone for ever, and all else is there.
        words = f"the conversion webhook of {query.kind} does not work"
        return _unread(words, Unread.CONVERSION, exc.server_words)
    if isinstance(answer, ClusterError):
        why = Unread.TOO_LARGE if isinstance(answer, AnswerTooLarge) else None
        return _unread(str(answer), why)
    return answer


def _unread(problem: str, why: Unread | None = None, server_words: str = "") -> Sample:
    return Sample(total=None, problem=problem, last=None, why=why, server_words=server_words)


def _list(reader: ClusterClient, query: Query, bounds: Bounds) -> Sample:
    try:
        resource = reader.resource_of(query.group, query.version, query.kind)
        if resource is None and query.is_counted and query.version:
            resource = reader.resource_of(query.group, "", query.kind)
    except Unreachable as exc:  # the group's own server is down, which trying again may never mend
        return _unread(str(exc))
    if resource is None:
        unserved = f"the cluster serves no version of {query.kind}, and objects of it may be stored all the same"
        return _unread(unserved) if query.is_counted else Sample()
    head, is_all = _head(reader, resource, query, bounds)
    if is_all:
        read = _Read.of(iter(head.objects), query, bounds)
    else:
        # What is only looked through is asked for in longer pages.
        page = bounds.page * 4 if query.is_counted else bounds.page
        listed = reader.list(resource, query.namespace, page=page, metadata_only=query.metadata_only)
        read = _Read.of(listed, query, bounds)
    total = read.count if read.is_whole else head.total
    last = read.last if read.is_whole else None
    return Sample(tuple(read.objects), total, head.resource_version, last=last, late=read.late)


def _head(reader: ClusterClient, resource: ServedResource, query: Query, bounds: Bounds) -> tuple[Excerpt, bool]:
    """The first page, and whether that is all, as of most lists; where it is too large, how many there are."""
    ask = partial(reader.excerpt, resource, namespace=query.namespace)
    try:
        head = ask(at_most=bounds.page, metadata_only=query.metadata_only)
    except AnswerTooLarge:
        return ask(at_most=1, metadata_only=True), False
    return head, head.total == len(head.objects)


@dataclass
class _Read:
    """The objects of one list that the bounds let in, how many were looked through, and whether those are all."""

    objects: list[dict[str, Any]] = field(default_factory=list)
    size: int = 0
    count: int = 0
    late: int = 0
    last: str = ""
    is_whole: bool = True

    @classmethod
    def of(cls, objects: Iterator[dict[str, Any]], query: Query, bounds: Bounds) -> _Read:
        read, until = cls(), time.monotonic() + bounds.seconds
        for obj in objects:
            is_over = read.count >= bounds.counted or time.monotonic() > until
            if is_over or not (read.keep(obj, query, bounds) or query.is_counted):
                read.is_whole = False
                break
            read.count += 1
            read.late += created_at(obj) > query.after
            read.last = max(read.last, created_at(obj))
        return read

    def keep(self, obj: dict[str, Any], query: Query, bounds: Bounds) -> bool:
        """Keep it, if it is wanted and within the bounds; whether it was kept."""
        if len(self.objects) >= bounds.objects or (query.after and created_at(obj) <= query.after):
            return False
        self.size += len(orjson.dumps(obj))
        if self.size > bounds.total_bytes:
            return False
        self.objects.append(obj)
        return True


def _first(readers: Sequence[ClusterClient], ask: Callable[[ClusterClient], _T]) -> _T | ClusterError:
    """The first answer that is no refusal; else the first refusal. A server refuses what it does not serve as well, to
    whoever may not ask for it: that there is no such kind is said to those who may."""
    refusal: ClusterError | None = None
    for reader in readers:
        try:
            return ask(reader)
        except UnknownKind as exc:
            return exc
        except ClusterError as exc:
            refusal = refusal or exc
    assert refusal is not None
    return refusal


PARALLEL_READS = 8
# Fewer objects than this are asked for one by one.
WORTH_A_LIST = 4
# How much of other people's objects a list may hold before asking one by one is cheaper.
MAX_STRANGERS = 500

Live = dict[ObjectIdentity, dict[str, Any] | None]


def read_many(cluster: ClusterClient, refs: Iterable[ObjectRef]) -> Live:
    """The live objects by identity, None for one that does not exist; see above for what is missing.

    Raises TryLater where the API server does not answer.
    """
    groups: dict[tuple[ServedResource, str], list[ObjectRef]] = {}
    for ref in refs:
        try:
            resource = cluster.resource_of(ref.group, ref.version, ref.kind) if ref.version else None
        except Unreachable:  # perhaps only the server behind this API
            continue
        if resource is not None and resource.is_namespaced == bool(ref.namespace):
            groups.setdefault((resource, ref.namespace), []).append(ref)
    wanted = [(resource, place, group) for (resource, place), group in groups.items() if len(group) >= WORTH_A_LIST]
    found: Live = {}
    with ThreadPoolExecutor(max_workers=PARALLEL_READS) as pool:
        for part in pool.map(lambda group: _list_known(cluster, *group), wanted):
            found |= part
    return found


def _list_known(cluster: ClusterClient, resource: ServedResource, namespace: str, refs: list[ObjectRef]) -> Live:
    """Nothing but what was asked for is kept, so that a long list costs time and no memory."""
    found: Live = {ref.identity: None for ref in refs}
    seen: Live = {}
    try:
        for number, obj in enumerate(cluster.list(resource, namespace)):
            if number > len(refs) + MAX_STRANGERS:
                return seen
            identity = ObjectRef.of(obj).identity
            if identity in found:
                seen[identity] = obj
    except ClusterError:
        return {}
    except Unreachable as exc:
        if is_of_webhook(exc):
            return {}
        raise
    return found | seen
