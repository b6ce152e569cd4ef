"""Who and what Pratique knows of a cluster, read from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import Q

from approvals import access
from approvals.bundle_spec import parse_catalog_source, parse_spec
from approvals.catalogs.schedule import authors_by_part
from approvals.lifecycle import OPEN
from approvals.models import BundleDeployment, Catalog, Cluster, InventoryItem, KubernetesIdentity, Request
from approvals.rights.needs import Account, Registered, account_of
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import ObjectRef

Spec = Mapping[str, Any]
_OF_CATALOGS = ("spec", "authors", "is_writer_proved")


def registered(cluster: Cluster, api: Api) -> Registered:
    """Everybody and everything that rights are named after; `api` says how kinds are called there.

    Whoever may write a wish can name any account and any Secret in it. So only those are here whose requesters passed
    the check on them, or that a request was prepared or applied with: those rights had been given before. And what
    Catalogs name, where who wrote it passed the check at the last look.
    """
    people, groups = set[str](), set[str]()
    identities = KubernetesIdentity.objects.filter(cluster=cluster, user__is_active=True)
    for username, their in identities.values_list("username", "groups"):
        people.add(username)
        groups.update(their)
    requests = list(_proved(cluster))
    readers, for_accounts = set[str](), set[ObjectRef]()
    for request in requests:
        read = _read_for(request)
        for person in request.requesters if read else []:
            readers.add(str(person["username"]))
            groups.update(map(str, person["groups"]))
        if read and account_of(str(access.last_writer_of(request)["username"])):
            for_accounts.update(read)
    of_catalogs = [_of_catalog(one) for one in Catalog.objects.filter(cluster=cluster).only(*_OF_CATALOGS)]
    named, wished_by_catalogs = set[ObjectRef](), set[ObjectRef]()
    for read, writers in of_catalogs:
        (named if writers else wished_by_catalogs).update(read)
        readers.update(str(one["username"]) for one in writers)
        groups.update(str(group) for one in writers for group in one["groups"])
        for_accounts.update(read if any(account_of(str(one["username"])) for one in writers) else ())
    specs = [*(request.spec for request in requests), *_running(cluster)]
    installers, sources = _installers(specs), _sources(specs) | named
    wished = list(_wished(cluster))
    return Registered(
        people=frozenset(people),
        groups=frozenset(groups),
        readers=frozenset(readers),
        installers=installers,
        sources=sources,
        for_accounts=frozenset(for_accounts),
        watched=frozenset(_watched(cluster, api)),
        unproved_installers=_installers(wished) - installers,
        unproved_sources=(_sources(wished) | wished_by_catalogs) - sources,
    )


def _of_catalog(catalog: Catalog) -> tuple[list[ObjectRef], list[dict[str, Any]]]:
    """What a Catalog names, and those who wrote its source where they passed the check; else nobody."""
    read = parse_catalog_source(catalog.spec).reads()
    known = authors_by_part(catalog.authors, catalog.spec) if read and catalog.is_writer_proved else None
    return read, list((known or {}).values())


def _open(cluster: Cluster) -> Any:
    rows = Request.objects.filter(deployment__cluster=cluster, state__in=OPEN)
    return rows.only("spec", "requesters", "purpose", "deployment", "generation")


def _proved(cluster: Cluster) -> Iterator[Request]:
    """The open requests whose requesters passed the check on what they name, and those that were prepared."""
    yield from _open(cluster).filter(Q(is_installer_proved=True) | ~Q(service_account_uid=""))


def _read_for(request: Request) -> list[ObjectRef]:
    is_fetched = request.purpose == Request.Purpose.DEPLOY and bool(request.requesters)
    return request.bundle_spec.reads() if is_fetched else []


def _present(cluster: Cluster) -> Any:
    return BundleDeployment.objects.filter(cluster=cluster, gone_at__isnull=True)


def _running(cluster: Cluster) -> Iterator[Spec]:
    """What was installed is watched, and put back, as its installer."""
    rows = _present(cluster).filter(active_revision__isnull=False)
    yield from rows.values_list("active_revision__request__spec", flat=True)


def _wished(cluster: Cluster) -> Iterator[Spec]:
    yield from _present(cluster).values_list("spec", flat=True)
    yield from (request.spec for request in _open(cluster))


def _installers(specs: Iterable[Spec]) -> frozenset[Account]:
    accounts = (parse_spec(spec).account for spec in specs)
    return frozenset(account for account in accounts if all(account))


def _sources(specs: Iterable[Spec]) -> frozenset[ObjectRef]:
    return frozenset(ref for spec in specs for ref in parse_spec(spec).reads())


def _watched(cluster: Cluster, api: Api) -> Iterator[tuple[str, str]]:
    present = InventoryItem.objects.filter(deployment__cluster=cluster, deployment__gone_at__isnull=True)
    for group, kind in sorted(set(present.values_list("group", "kind"))):
        if found := api.resource_of(group, "", kind):
            yield group, found.plural
