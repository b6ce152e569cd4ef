"""Who and what Pratique knows of a cluster, read from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    open_requests = Request.objects.filter(deployment__cluster=cluster, state__in=OPEN)
    open_requests = open_requests.only("spec", "requesters", "purpose", "deployment", "generation")
    # Their requesters passed the check on what they name, or they were prepared.
    proved = list(open_requests.filter(Q(is_installer_proved=True) | ~Q(service_account_uid="")))
    readers, for_accounts = set[str](), set[ObjectRef]()
    for request in proved:
        purposes = (Request.Purpose.DEPLOY, Request.Purpose.ROTATE)
        is_fetched = request.purpose in purposes and bool(request.requesters)
        read = request.bundle_spec.reads() if is_fetched else []
        if not read:
            continue
        for person in request.requesters:
            readers.add(str(person["username"]))
            groups.update(map(str, person["groups"]))
        if account_of(str(access.last_writer_of(request)["username"])):
            for_accounts.update(read)
    named, wished_by_catalogs = set[ObjectRef](), set[ObjectRef]()
    for catalog in Catalog.objects.filter(cluster=cluster).only("spec", "authors", "is_writer_proved"):
        read = parse_catalog_source(catalog.spec).reads()
        # Those who wrote its source, where they passed the check; else nobody.
        known = authors_by_part(catalog.authors, catalog.spec) if read and catalog.is_writer_proved else None
        (named if known else wished_by_catalogs).update(read)
        for writer in (known or {}).values():
            readers.add(str(writer["username"]))
            groups.update(map(str, writer["groups"]))
            for_accounts.update(read if account_of(str(writer["username"])) else ())
    present = BundleDeployment.objects.filter(cluster=cluster, gone_at__isnull=True)
    # What was installed is watched, and put back, as its installer.
    running = present.filter(active_revision__isnull=False).values_list("active_revision__request__spec", flat=True)
    specs = [*(request.spec for request in proved), *running]
    wished = [*present.values_list("spec", flat=True), *(request.spec for request in open_requests)]
    installers, sources = _installers(specs), _sources(specs) | named
    kinds = InventoryItem.objects.filter(deployment__cluster=cluster, deployment__gone_at__isnull=True)
    watched = set[tuple[str, str]]()
    for group, kind in sorted(set(kinds.values_list("group", "kind"))):
        if found := api.resource_of(group, "", kind):
            watched.add((group, found.plural))
    return Registered(
        people=frozenset(people),
        groups=frozenset(groups),
        readers=frozenset(readers),
        installers=installers,
        sources=sources,
        for_accounts=frozenset(for_accounts),
        watched=frozenset(watched),
        unproved_installers=_installers(wished) - installers,
        unproved_sources=(_sources(wished) | wished_by_catalogs) - sources,
    )


def _installers(specs: Iterable[Spec]) -> frozenset[Account]:
    accounts = (parse_spec(spec).account for spec in specs)
    return frozenset(account for account in accounts if all(account))


def _sources(specs: Iterable[Spec]) -> frozenset[ObjectRef]:
    return frozenset(ref for spec in specs for ref in parse_spec(spec).reads())
