"""What people's actions need of Kubernetes, as a port: the real thing, or in unit tests a fake through `using`."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from typing import Any, Protocol

from django.conf import settings

from approvals import models
from provisioner.cluster.access import ask as ask_cluster
from provisioner.cluster.access import review_token
from provisioner.cluster.api import Cluster as Api
from provisioner.values import AccessAnswer, AccessRequest, Identity, ObjectRef

AUDIENCE = "pratique"


class Kubernetes(Protocol):
    """Raises provisioner.errors.PratiqueError where the cluster cannot be asked."""

    def ask(self, cluster: models.Cluster, identity: Identity, request: AccessRequest) -> AccessAnswer: ...

    def review_token(self, cluster: models.Cluster, token: str) -> Identity | None: ...

    def get(self, cluster: models.Cluster, ref: ObjectRef, *, as_person: Identity | None = None) -> Any: ...

    def create(self, cluster: models.Cluster, obj: dict[str, Any], *, as_person: Identity) -> dict[str, Any]: ...

    def replace(self, cluster: models.Cluster, obj: dict[str, Any], *, as_person: Identity) -> dict[str, Any]: ...

    def delete(self, cluster: models.Cluster, ref: ObjectRef, *, uid: str, as_person: Identity) -> None: ...

    def plural_of(self, cluster: models.Cluster, ref: ObjectRef) -> str | None: ...


class RealKubernetes:
    """The port over provisioner.cluster; connections are kept per cluster and kubeconfig."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: dict[int, tuple[str, Api]] = {}

    def connect(self, cluster: models.Cluster) -> Api:
        key = hashlib.sha256(cluster.kubeconfig.encode()).hexdigest()
        with self._lock:
            known = self._connections.get(cluster.pk)
            if known and known[0] == key:
                return known[1]
        api = connect(cluster)
        with self._lock:
            self._connections[cluster.pk] = (key, api)
        return api

    def ask(self, cluster: models.Cluster, identity: Identity, request: AccessRequest) -> AccessAnswer:
        return ask_cluster(self.connect(cluster), identity, request)

    def review_token(self, cluster: models.Cluster, token: str) -> Identity | None:
        return review_token(self.connect(cluster), token, AUDIENCE)

    def get(self, cluster: models.Cluster, ref: ObjectRef, *, as_person: Identity | None = None) -> Any:
        api = self.connect(cluster)
        return (api.acting_as(as_person) if as_person else api).get(ref)

    def create(self, cluster: models.Cluster, obj: dict[str, Any], *, as_person: Identity) -> dict[str, Any]:
        return dict(self.connect(cluster).acting_as(as_person).create(obj))

    def replace(self, cluster: models.Cluster, obj: dict[str, Any], *, as_person: Identity) -> dict[str, Any]:
        return dict(self.connect(cluster).acting_as(as_person).replace(obj))

    def delete(self, cluster: models.Cluster, ref: ObjectRef, *, uid: str, as_person: Identity) -> None:
        self.connect(cluster).acting_as(as_person).delete(ref, uid=uid)

    def plural_of(self, cluster: models.Cluster, ref: ObjectRef) -> str | None:
        resource = self.connect(cluster).resource_of(ref.group, ref.version, ref.kind)
        return resource.plural if resource else None


def connect(cluster: models.Cluster) -> Api:
    """A connection as the service itself. Kubeconfigs that name files or commands need the operator's trust (S19)."""
    configuration = settings.PRATIQUE
    timeout = float(configuration["CLUSTER_TIMEOUT_SECONDS"])
    if not cluster.kubeconfig:
        return Api.in_cluster(timeout_seconds=timeout)
    return Api.connect(
        cluster.kubeconfig,
        timeout_seconds=timeout,
        trusted=cluster.name in configuration["TRUSTED_KUBECONFIGS"],
    )


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
