"""Who and what Pratique knows of a cluster, read from its rows."""

from __future__ import annotations

from collections.abc import Iterator

from approvals.gate.planning import installers_on
from approvals.lifecycle import OPEN
from approvals.models import BundleDeployment, Cluster, InventoryItem, KubernetesIdentity, Request
from approvals.rights.needs import Registered
from approvals.steps.sources import read_by
from provisioner.cluster.api import Cluster as Api
from provisioner.values import ObjectRef


def registered(cluster: Cluster, api: Api) -> Registered:
    """Everybody and everything that rights are named after; `api` says how kinds are called there."""
    people, groups = set[str](), set[str]()
    identities = KubernetesIdentity.objects.filter(cluster=cluster, user__is_active=True)
    for username, their in identities.values_list("username", "groups"):
        people.add(username)
        groups.update(their)
    readers = set[str]()
    for request in _open(cluster):
        is_read = bool(request.purpose == Request.Purpose.DEPLOY and read_by(request.spec))
        for person in request.requesters if is_read else []:
            readers.add(str(person["username"]))
            groups.update(map(str, person["groups"]))
    return Registered(
        people=frozenset(people),
        groups=frozenset(groups),
        readers=frozenset(readers),
        installers=frozenset(one for one in _installers(cluster) if all(one)),
        sources=frozenset(_sources(cluster)),
        watched=frozenset(_watched(cluster, api)),
    )


def _open(cluster: Cluster) -> Iterator[Request]:
    rows = Request.objects.filter(deployment__cluster=cluster, state__in=OPEN)
    yield from rows.only("spec", "requesters", "purpose")


def _installers(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Of the wishes, of requests that are open, and of what runs: what was installed is watched as its installer."""
    yield from installers_on(cluster)
    present = BundleDeployment.objects.filter(cluster=cluster, gone_at__isnull=True)
    running = present.filter(active_revision__isnull=False).values_list("active_revision__request__spec", flat=True)
    for spec in (*running, *(request.spec for request in _open(cluster))):
        yield str(spec.get("installNamespace") or ""), str(spec.get("serviceAccountName") or "")


def _sources(cluster: Cluster) -> Iterator[ObjectRef]:
    """What the wishes and the open requests name."""
    present = BundleDeployment.objects.filter(cluster=cluster, gone_at__isnull=True).values_list("spec", flat=True)
    for spec in (*present, *(request.spec for request in _open(cluster))):
        yield from read_by(spec)


def _watched(cluster: Cluster, api: Api) -> Iterator[tuple[str, str]]:
    present = InventoryItem.objects.filter(deployment__cluster=cluster, deployment__gone_at__isnull=True)
    for group, kind in sorted(set(present.values_list("group", "kind"))):
        if found := api.resource_of(group, "", kind):
            yield group, found.plural
