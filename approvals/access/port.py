"""What people's actions need of Kubernetes, as a port: the real thing, or in unit tests a fake through `using`."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from django.conf import settings

from approvals import instruments, models
from approvals.clock import database_now
from approvals.refusals import note_answer
from provisioner.api_groups import RBAC_GROUP
from provisioner.cluster.client.access import ask as ask_cluster
from provisioner.cluster.client.access import review_token
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import Served
from provisioner.cluster.client.kubeconfig import MAX_KUBECONFIG_BYTES, kept_kubeconfig
from provisioner.cluster.client.transport import Exchange, Observer
from provisioner.errors import BadSource, PreconditionFailed, UnknownKind
from provisioner.values import AccessAnswer, AccessRequest, Identity, ObjectRef

_OUTCOMES = {401: "refused", 403: "refused", 404: "not_found", 409: "conflict", 410: "gone", 429: "throttled"}
# So many answers of a cluster make its latency.
KEPT = 20


_answers: defaultdict[str, deque[tuple[datetime, float]]] = defaultdict(lambda: deque(maxlen=KEPT))
_silences: dict[str, datetime] = {}
AUDIENCE = "pratique"
KEPT_SECONDS = 600.0
# What a cluster serves is read again after so long; a kind that is new, or not served any more, is noticed at once.
DISCOVERED_SECONDS = 10.0
# What a trusted kubeconfig names, files and commands, is asked again: they renew tokens and certificates.
TRUSTED_KEPT_SECONDS = 30.0
_through: ContextVar[tuple[int, Api | None]] = ContextVar("through", default=(0, None))


@dataclass(frozen=True, slots=True)
class Answers:
    """What this process saw of a cluster's API server: its last answer, how long the last ones took, the last silence.

    `median_ms` is that of `count` answers, at most KEPT; None before the first.
    """

    answered_at: datetime | None
    median_ms: float | None
    count: int
    silent_at: datetime | None

    @property
    def is_silent(self) -> bool:
        """Whether the last call was not answered."""
        return self.silent_at is not None and (self.answered_at is None or self.silent_at > self.answered_at)


def observer_of(cluster: str) -> Observer:
    """What counts and times the calls to the cluster of this name."""

    def observe(exchange: Exchange) -> None:
        instruments.api_seconds.labels(cluster, exchange.verb).observe(exchange.seconds)
        instruments.api_calls.labels(cluster, exchange.verb, outcome_of(exchange.status)).inc()
        if exchange.status:
            _answers[cluster].append((database_now(), exchange.seconds))
        else:
            _silences[cluster] = database_now()
        if exchange.verb != "watch":  # which breaks off without harm, and is answered once
            note_answer(cluster, exchange.status)

    return observe


def answers_of(cluster: str) -> Answers:
    """Read from memory: nothing is asked."""
    kept = list(_answers[cluster]) if cluster in _answers else []
    last = kept[-1][0] if kept else None
    typical = median(seconds for _, seconds in kept) * 1000 if kept else None
    return Answers(last, typical, len(kept), _silences.get(cluster))


def outcome_of(status: int) -> str:
    """An HTTP status as one of few words."""
    if status == 0:
        return "no_answer"
    if status < 400:
        return "ok"
    return _OUTCOMES.get(status, "server_error" if status >= 500 else "invalid")


class Kubernetes(Protocol):
    """Raises provisioner.errors.PratiqueError where the cluster cannot be asked."""

    def ask(self, cluster: models.Cluster, identity: Identity, request: AccessRequest) -> AccessAnswer: ...

    def review_token(self, cluster: models.Cluster, token: str) -> Identity | None: ...

    def get(self, cluster: models.Cluster, ref: ObjectRef) -> Any: ...

    def create(
        self, cluster: models.Cluster, obj: dict[str, Any], *, as_person: Identity, dry_run: bool = False
    ) -> dict[str, Any]: ...

    def replace(self, cluster: models.Cluster, obj: dict[str, Any], *, as_person: Identity) -> dict[str, Any]: ...

    def delete(
        self, cluster: models.Cluster, ref: ObjectRef, *, uid: str, as_person: Identity, version: str = ""
    ) -> None: ...

    def plural_of(self, cluster: models.Cluster, ref: ObjectRef) -> str | None: ...

    def names_of(
        self, cluster: models.Cluster, kind: str, *, namespace: str, most: int, as_person: Identity
    ) -> list[str]: ...

    def cluster_roles(self, cluster: models.Cluster, *, most: int, as_person: Identity) -> list[dict[str, Any]]: ...

    def uid_behind(self, name: str, kubeconfig: str) -> str: ...


class RealKubernetes:
    """The port over provisioner.cluster."""

    def ask(self, cluster: models.Cluster, identity: Identity, request: AccessRequest) -> AccessAnswer:
        known, api = _through.get()
        return ask_cluster(api if api and known == cluster.pk else _kept.api(cluster), identity, request)

    def review_token(self, cluster: models.Cluster, token: str) -> Identity | None:
        """Of the very cluster that is registered: another one behind its name would make anybody's token (S19)."""
        api = _kept.api(cluster)
        _check_same(cluster, api.uid())
        return review_token(api, token, AUDIENCE)

    def get(self, cluster: models.Cluster, ref: ObjectRef) -> Any:
        return _kept.api(cluster).get(ref)

    def create(
        self, cluster: models.Cluster, obj: dict[str, Any], *, as_person: Identity, dry_run: bool = False
    ) -> dict[str, Any]:
        return dict(_kept.api(cluster).acting_as(as_person).create(obj, dry_run=dry_run))

    def replace(self, cluster: models.Cluster, obj: dict[str, Any], *, as_person: Identity) -> dict[str, Any]:
        return dict(_kept.api(cluster).acting_as(as_person).replace(obj))

    def delete(
        self, cluster: models.Cluster, ref: ObjectRef, *, uid: str, as_person: Identity, version: str = ""
    ) -> None:
        """Raises PreconditionFailed where it has another uid, or another resourceVersion than `version`."""
        _kept.api(cluster).acting_as(as_person).delete(ref, uid=uid, resource_version=version)

    def plural_of(self, cluster: models.Cluster, ref: ObjectRef) -> str | None:
        resource = _kept.api(cluster).resource_of(ref.group, ref.version, ref.kind)
        return resource.plural if resource else None

    def names_of(
        self, cluster: models.Cluster, kind: str, *, namespace: str, most: int, as_person: Identity
    ) -> list[str]:
        """The first `most` objects of a kind of the core group that the person may list."""
        api = _kept.api(cluster)
        resource = api.resource_of("", "v1", kind)
        if resource is None:
            raise UnknownKind(f"the cluster does not serve {kind} in v1")
        found = api.acting_as(as_person).list(resource, namespace, page=most, metadata_only=True)
        return [one["metadata"]["name"] for one in islice(found, most)]

    def cluster_roles(self, cluster: models.Cluster, *, most: int, as_person: Identity) -> list[dict[str, Any]]:
        """ClusterRoles and ClusterRoleBindings that the person may list, the first `most` of each."""
        api = _kept.api(cluster)
        resources = [api.resource_of(RBAC_GROUP, "v1", kind) for kind in ("ClusterRole", "ClusterRoleBinding")]
        there = [resource for resource in resources if resource is not None]
        return [obj for one in there for obj in islice(api.acting_as(as_person).list(one), most)]

    def uid_behind(self, name: str, kubeconfig: str) -> str:
        """Which cluster this kubeconfig leads to, not yet that of the cluster `name`: the uid of its kube-system."""
        seconds = float(settings.PRATIQUE["CLUSTER_TIMEOUT_SECONDS"])
        return ClusterRoute(kubeconfig, seconds, _is_trusted(name), os.getpid(), name).connect().uid()


def check_registered(cluster: models.Cluster) -> None:
    """Raise PreconditionFailed where it was removed: without credentials it would be the one that Pratique runs in."""
    if cluster.removed_at is not None:
        raise PreconditionFailed(f"cluster {cluster.name} was removed from Pratique; an operator can register it again")


def _check_same(cluster: models.Cluster, uid: str) -> None:
    """Raise PreconditionFailed where this is another cluster; the uid of one never reached before is learned (S19)."""
    if cluster.uid is None:
        models.Cluster.objects.filter(pk=cluster.pk, uid__isnull=True).update(uid=uid)
        cluster.refresh_from_db(fields=["uid"])
    if uid != cluster.uid:
        words = f"its kube-system has uid {uid}, expected {cluster.uid}"
        raise PreconditionFailed(f"cluster {cluster.name} is a different cluster: {words}")


def kubeconfig_to_keep(name: str, text: str, *, context: str = "") -> str:
    """What a cluster of this name may be registered with (S19); raises BadSource in words."""
    return kept_kubeconfig(text, context=context, trusted=_is_trusted(name))


def _is_trusted(name: str) -> bool:
    return name in settings.PRATIQUE["TRUSTED_KUBECONFIGS"]


@dataclass(frozen=True, slots=True)
class ClusterRoute:
    """All that decides how a cluster is reached; another process has connections of its own."""

    kubeconfig: str = field(repr=False)
    timeout_seconds: float
    is_trusted: bool
    process: int
    cluster: str

    @classmethod
    def to(cls, cluster: models.Cluster) -> ClusterRoute:
        check_registered(cluster)
        configuration = settings.PRATIQUE
        seconds = float(configuration["CLUSTER_TIMEOUT_SECONDS"])
        own = own_kubeconfig(cluster.name)
        kubeconfig = cluster.kubeconfig if own is None else own
        return cls(kubeconfig, seconds, _is_trusted(cluster.name), os.getpid(), cluster.name)

    @property
    def kept_seconds(self) -> float:
        return TRUSTED_KEPT_SECONDS if self.is_trusted else KEPT_SECONDS

    def connect(self) -> Api:
        """As the service itself. Kubeconfigs that name files or commands need the operator's trust (S19)."""
        observe = observer_of(self.cluster)
        if not self.kubeconfig:
            return Api.in_cluster(timeout_seconds=self.timeout_seconds, observe=observe)
        return Api.connect(
            self.kubeconfig, timeout_seconds=self.timeout_seconds, trusted=self.is_trusted, observe=observe
        )


def own_kubeconfig(name: str) -> str | None:
    """The kubeconfig that this process alone was given for the cluster `name`; None where it was given none (S31).

    Read at every use, so that a credential that somebody renews there counts at once. Raises BadSource where there is a
    file that cannot be read: the registered kubeconfig is another account's.
    """
    folder = settings.PRATIQUE["KUBECONFIGS_DIR"]
    if not folder:
        return None
    try:
        with (Path(folder) / name).open(encoding="utf-8") as file:
            text = file.read(MAX_KUBECONFIG_BYTES + 1)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise BadSource(f"PRATIQUE_KUBECONFIGS_DIR: {name} cannot be read as text ({type(exc).__name__})") from exc
    if not text.strip():
        raise BadSource(f"PRATIQUE_KUBECONFIGS_DIR: {name} is empty; expected a kubeconfig file")
    return text


@dataclass(frozen=True, slots=True)
class Connected:
    way: ClusterRoute
    api: Api
    at: float


class _Kept:
    """The connections of this process, by cluster: otherwise each step would make TLS handshakes of its own.

    Without a lock, which a process that forks would take along: two threads that find none make one each.
    """

    def __init__(self) -> None:
        self._known: dict[int, Connected] = {}

    def api(self, cluster: models.Cluster) -> Api:
        way, now = ClusterRoute.to(cluster), time.monotonic()
        known = self._known.get(cluster.pk)
        if known and known.way == way and now - known.at < way.kept_seconds:
            return known.api
        made = Connected(way, way.connect(), now)
        self._known[cluster.pk] = made
        return made.api


_kept = _Kept()


def connect(cluster: models.Cluster) -> Api:
    """The cluster as the service itself meets it, over the connections and by the discovery of this process."""
    return _kept.api(cluster).within(DISCOVERED_SECONDS)


@contextlib.contextmanager
def asking_through(cluster: models.Cluster, api: Api) -> Iterator[None]:
    """Meanwhile this thread asks about people on this cluster by `api`, whatever it knows or notes."""
    token = _through.set((cluster.pk, api))
    try:
        yield
    finally:
        _through.reset(token)


def discovered(cluster: models.Cluster) -> tuple[Served, float] | None:
    """What this process has read of what a cluster serves, and how many seconds ago; None where it has not."""
    return _kept.api(cluster).discovery.known()


def learn_discovered(cluster: models.Cluster, known: tuple[Served, float]) -> None:
    _kept.api(cluster).discovery.learn(*known)


def connect_as_registered(cluster: models.Cluster) -> Api:
    """The cluster by what is registered alone, whatever this process was given for it: who others come as."""
    return replace(ClusterRoute.to(cluster), kubeconfig=cluster.kubeconfig).connect()


_current: list[Kubernetes] = [RealKubernetes()]


def kubernetes() -> Kubernetes:
    return _current[-1]


@contextlib.contextmanager
def using(other: Kubernetes) -> Iterator[Kubernetes]:
    """Put `other` in the real one's place, for unit tests of services and pages."""
    _current.append(other)
    try:
        yield other
    finally:
        _current.remove(other)
