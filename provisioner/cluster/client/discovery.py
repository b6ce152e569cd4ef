"""Which kinds a cluster serves, read from its discovery documents; api.py fetches them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from provisioner.errors import ClusterError, InvalidObject, OutOfTime, PratiqueError, Unreachable
from provisioner.missing_kinds import Absence, absence_of

DISCOVERY_SECONDS = 300.0
# A kind that is not known may be new: discovery is read again for it, but not more often than this.
DISCOVERY_AGAIN_SECONDS = 1.0

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One kind in one version as the API server serves it. `plural` is its word in URLs and in RBAC rules,
    `other_names` are its singular and its short names."""

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()
    is_preferred: bool = False
    other_names: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path. Raises InvalidObject for names that would name another path."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        place = f"/namespaces/{_segment(namespace)}" if self.is_namespaced and namespace else ""
        tail = "".join(f"/{_segment(part)}" for part in (name, subresource) if part)
        return f"{root}{place}/{self.plural}{tail}"


@dataclass(frozen=True, slots=True)
class Served:
    """Everything that one reading of discovery showed. `unknown` holds the (group, version)s that did not answer."""

    resources: tuple[ServedResource, ...] = ()
    unknown: frozenset[tuple[str, str]] = frozenset()
    _by_kind: dict[tuple[str, str, str], ServedResource] = field(default_factory=dict, repr=False, compare=False)

    def of_kind(self, group: str, version: str, kind: str) -> ServedResource | None:
        """The resource of a kind; with version "" the preferred one."""
        if not self._by_kind:
            index: dict[tuple[str, str, str], ServedResource] = {}
            for resource in self.resources:
                index.setdefault((resource.group, resource.version, resource.kind), resource)
                if resource.is_preferred:
                    index.setdefault((resource.group, "", resource.kind), resource)
            self._by_kind.update(index)
        return self._by_kind.get((group, version, kind))

    def is_unknown(self, group: str, version: str) -> bool:
        """Whether this group's documents could not be read, so that "no such kind" is not proved."""
        return any(group == broken and version in {"", version_gone} for broken, version_gone in self.unknown)

    def absence_of(self, group: str, version: str, kind: str) -> Absence:
        """Why a kind is not served in this version."""
        return absence_of(
            group, version, kind, ((resource.group, resource.version, resource.kind) for resource in self.resources)
        )


def from_aggregated(documents: Iterable[Mapping[str, Any]]) -> Served:
    """Read APIGroupDiscoveryLists (of /api and of /apis)."""
    found: list[ServedResource] = []
    unknown: set[tuple[str, str]] = set()
    for document in documents:
        for group in document.get("items") or []:
            name = str((group.get("metadata") or {}).get("name") or "")
            for version in group.get("versions") or []:
                word = str(version.get("version") or "")
                entries = version.get("resources") or []
                if version.get("freshness") == "Stale" and not entries:
                    unknown.add((name, word))
                for entry in entries:
                    if kind := str((entry.get("responseKind") or {}).get("kind") or ""):
                        resource = ServedResource(
                            name,
                            word,
                            str(entry.get("resource") or ""),
                            kind,
                            entry.get("scope") == "Namespaced",
                            frozenset(entry.get("verbs") or ()),
                            frozenset(str(sub.get("subresource")) for sub in entry.get("subresources") or []),
                            other_names=_other_names(entry, "singularResource"),
                        )
                        found.append(resource)
    return Served(_with_preferred(found), frozenset(unknown))


def _other_names(entry: Mapping[str, Any], singular: str) -> frozenset[str]:
    return frozenset(str(name) for name in (entry.get(singular), *(entry.get("shortNames") or ())) if name)


def from_legacy(lists: Iterable[Mapping[str, Any]], unknown: Iterable[tuple[str, str]] = ()) -> Served:
    """Read APIResourceLists, those of the preferred version of a group first."""
    found: list[ServedResource] = []
    for document in lists:
        group, _, version = str(document.get("groupVersion") or "").rpartition("/")
        entries = document.get("resources") or []
        subresources: dict[str, set[str]] = {}
        for entry in entries:
            plural, slash, rest = str(entry.get("name") or "").partition("/")
            if slash:
                subresources.setdefault(plural, set()).add(rest)
        found.extend(
            [
                ServedResource(
                    group,
                    version,
                    str(entry["name"]),
                    str(entry.get("kind") or ""),
                    bool(entry.get("namespaced")),
                    frozenset(entry.get("verbs") or ()),
                    frozenset(subresources.get(str(entry["name"]), ())),
                    other_names=_other_names(entry, "singularName"),
                )
                for entry in entries
                if entry.get("name") and entry.get("kind") and "/" not in str(entry["name"])
            ]
        )
    return Served(_with_preferred(found), frozenset(unknown))


def _with_preferred(found: Iterable[ServedResource]) -> tuple[ServedResource, ...]:
    """The first version in which a group serves a kind is the one it prefers; servers list them in that order."""
    seen: set[tuple[str, str]] = set()
    marked = []
    for resource in found:
        key = (resource.group, resource.kind)
        marked.append(replace(resource, is_preferred=key not in seen))
        seen.add(key)
    return tuple(marked)


def _segment(name: str) -> str:
    if name in {".", ".."} or "/" in name or "%" in name or not name.isprintable():
        raise InvalidObject(f"{name!r} cannot be a name in a Kubernetes URL")
    return quote(name, safe="")


@dataclass(slots=True)
class _KeptServed:
    """The last reading, shared by all that read the same server; `at` is time.monotonic. `failure` is of the last one
    that failed, at `failed_at`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    served: Served | None = None
    at: float = 0.0
    failure: PratiqueError | None = None
    failed_at: float = 0.0


class ResourceDiscovery:
    """What the server serves, kept for DISCOVERY_SECONDS. In memory: a file could be written by others."""

    def __init__(self, fetch: Callable[[str], dict[str, Any]]):
        self._fetch = fetch
        self._kept = _KeptServed()
        self._until = math.inf
        self._oldest_seconds = DISCOVERY_SECONDS
        self._began = time.monotonic()

    def served(self, *, at_most_seconds: float = math.inf) -> Served:
        """What was read within `at_most_seconds`, else what is read now."""
        kept, began = self._kept, time.monotonic()
        left = self._until - began
        # One reads, the others wait for it, as long as they have time.
        if not kept.lock.acquire(timeout=-1 if left == math.inf else max(0.0, left)):
            raise OutOfTime("which kinds the cluster serves was not read within the time for all questions")
        try:
            if kept.failure is not None and kept.failed_at > began:
                raise kept.failure  # of a reading that was waited for: the next one would end in the same way
            oldest = min(at_most_seconds, self._oldest_seconds)
            if kept.served is None or time.monotonic() - kept.at > oldest:
                try:
                    kept.served = self._discover()
                except OutOfTime:
                    raise  # the time of this one alone
                except PratiqueError as exc:
                    kept.failure, kept.failed_at = exc, time.monotonic()
                    raise
                kept.at = time.monotonic()
            return kept.served
        finally:
            kept.lock.release()

    def served_again(self) -> Served:
        """For a kind that is not known, so that it may be new: as it is since this view was made, and of late."""
        return self.served(at_most_seconds=min(DISCOVERY_AGAIN_SECONDS, time.monotonic() - self._began))

    def within(self, seconds: float) -> ResourceDiscovery:
        """The same reading, read anew where it is older than that."""
        found = self._view(self._fetch)
        found._oldest_seconds = seconds
        return found

    def until(self, moment: float, fetch: Callable[[str], dict[str, Any]]) -> ResourceDiscovery:
        """The same reading; what has to be read is fetched by `fetch`, and waited for until `moment` (time.monotonic),
        when OutOfTime is raised."""
        found = self._view(fetch)
        found._until, found._began = min(moment, self._until), self._began
        return found

    def _view(self, fetch: Callable[[str], dict[str, Any]]) -> ResourceDiscovery:
        found = ResourceDiscovery(fetch)
        found._kept, found._until, found._oldest_seconds = self._kept, self._until, self._oldest_seconds
        return found

    def known(self) -> tuple[Served, float] | None:
        """The last reading and how many seconds old it is, for another process."""
        kept = self._kept
        return (kept.served, time.monotonic() - kept.at) if kept.served is not None else None

    def learn(self, served: Served, age_seconds: float) -> None:
        """Take over what another process has read."""
        self._kept.served, self._kept.at = served, time.monotonic() - age_seconds

    def forget(self) -> None:
        with self._kept.lock:
            self._kept.served = None

    def _discover(self) -> Served:
        documents = [self._fetch(path) for path in ("/api", "/apis")]
        if all(document.get("kind") == "APIGroupDiscoveryList" for document in documents):
            return from_aggregated(documents)
        core, groups = documents  # of a server before 1.27, which has one document per group and version
        wanted = [("", str(version)) for version in core.get("versions") or []]
        for group in groups.get("groups") or []:
            versions = [str(served.get("version")) for served in group.get("versions") or []]
            first = str((group.get("preferredVersion") or {}).get("version") or "")
            wanted += [(str(group.get("name")), version) for version in sorted(versions, key=lambda it: it != first)]
        lists, unknown = [], set()
        for name, version in wanted:
            try:
                lists.append(self._fetch(f"/apis/{name}/{version}" if name else f"/api/{version}"))
            except (Unreachable, ClusterError):
                unknown.add((name, version))
        return from_legacy(lists, unknown)
