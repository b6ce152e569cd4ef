"""What is watched as whom: a kind in the whole cluster where we may, else where its installers may."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Count, Max, QuerySet

from approvals.bundle_spec import parse_spec
from approvals.models import BundleDeployment, Cluster, InventoryItem
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import ServedResource
from provisioner.errors import UnknownKind
from provisioner.values import Identity


class ScopeRow(NamedTuple):
    """What is kept of one managed object."""

    pk: int
    deployment: int
    namespace: str
    name: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Scope:
    """One watch: a kind, in all namespaces as ourselves, or in one of them as an installer (namespace, name)."""

    group: str
    kind: str
    namespace: str = ""
    installer: tuple[str, str] | None = None

    def seen_by(self, service: Api) -> Api:
        return service.acting_as(Identity.of_service_account(*self.installer)) if self.installer else service

    def resource(self, api: Api) -> ServedResource:
        found = api.resource_of(self.group, "", self.kind)
        if found is None:
            raise UnknownKind(f"the cluster serves no {self.kind} of the group {self.group!r}", status=404)
        return found


def managed(cluster: Cluster) -> QuerySet[InventoryItem]:
    """The objects of all revisions that run on a cluster."""
    return InventoryItem.objects.filter(
        deployment__cluster=cluster, deployment__gone_at__isnull=True, deployment__active_revision__isnull=False
    )


def state_of(cluster: Cluster) -> object:
    """Something that differs once other objects are managed than before; asked every second, so it reads no rows."""
    counted = managed(cluster).aggregate(count=Count("pk"), last=Max("pk"))
    running = BundleDeployment.objects.filter(cluster=cluster, active_revision__isnull=False, gone_at__isnull=True)
    return (counted["count"], counted["last"], tuple(running.order_by("pk").values_list("pk", "active_revision_id")))


def scopes_of(cluster: Cluster, refused: Collection[Scope]) -> dict[Scope, list[ScopeRow]]:
    """Every watch that is needed, with what it is for. `refused` are those that the cluster does not allow.

    A refused installer's watch stays in the answer: who asks has to look at its objects in another way.
    """
    installers = dict(_installers(cluster))
    found: dict[Scope, list[ScopeRow]] = defaultdict(list)
    rows = managed(cluster).values_list("group", "kind", "deployment_id", "pk", "namespace", "name", "fingerprint")
    for group, kind, deployment, pk, namespace, name, fingerprint in rows.iterator(chunk_size=2000):
        scope = Scope(group, kind)
        if scope in refused:
            scope = Scope(group, kind, namespace, installers[deployment])
        found[scope].append(ScopeRow(pk, deployment, namespace, name, fingerprint))
    return dict(found)


def _installers(cluster: Cluster) -> Iterator[tuple[int, tuple[str, str]]]:
    running = BundleDeployment.objects.filter(cluster=cluster, active_revision__isnull=False, gone_at__isnull=True)
    for pk, spec in running.values_list("pk", "active_revision__request__spec"):
        yield pk, parse_spec(spec).account
