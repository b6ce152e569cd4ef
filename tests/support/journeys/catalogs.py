"""Catalogs of a cluster whose publishers push them, and what follows for those who take their packages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from approvals.catalogs import followed_packages
from approvals.catalogs.editions import find_catalog
from approvals.catalogs.schedule import observe_catalog
from approvals.models import Catalog
from approvals.steps.catalogs.refresh import RefreshCatalog
from approvals.steps.source_checks import LookForUpgrades
from approvals.working import do
from provisioner.api_groups import OWN_GROUP
from tests.support.journeys.contents.catalogs import HARBOUR, documents
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import Registry


def written(site: DeployedSite, name: str, **spec: Any) -> Catalog:
    """A Catalog in the cluster, as the watch sees it first."""
    about = {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "Catalog", "metadata": {"name": name}}
    obj = site.api.apply({**about, "spec": spec}, field_manager="somebody").object
    row = observe_catalog(cluster=site.cluster, obj=obj, writer=None)
    assert row is not None
    return row


def named(site: DeployedSite, registry: Registry, name: str) -> Catalog:
    """One that comes from an image."""
    return written(site, name, source={"kind": "image", "image": {"ref": f"{registry.host}/{name}:latest"}})


def offer(
    registry: Registry, row: Catalog, *versions: str, of: str = HARBOUR, bundles: Registry | None = None
) -> Catalog:
    """Its publisher pushes it with these versions, whose images are in `bundles`, and it is looked at."""
    return publish(registry, row, documents(bundles or registry, of, versions))


def publish(registry: Registry, row: Catalog, content: Iterable[Mapping[str, Any]]) -> Catalog:
    text = "\n".join(json.dumps(one) for one in content)
    registry.push(f"{registry.host}/{row.name}:latest", {"catalog.json": text.encode()})
    return read(row)


def look_at_source(row: Catalog) -> None:
    """As when its time has come, and nobody's before it."""
    Catalog.objects.filter(pk=row.pk).update(look_at=timezone.now() - timedelta(days=1))
    do(RefreshCatalog(row.pk))


def read(row: Catalog) -> Catalog:
    """Look at its source, which has to answer."""
    look_at_source(row)
    found = find_catalog(row.cluster, row.name)
    assert found is not None
    assert found.edition is not None, found.problem
    return found


def look(site: DeployedSite) -> None:
    """As when the sweep comes by; then what the workers do."""
    for pk in followed_packages.deployments_due(timezone.now()):
        do(LookForUpgrades(pk))
    site.work()
