"""A deployment whose first revision runs, and the people who touch its objects."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from approvals.ledger import drifts
from approvals.models import AuditEntry, BundleDeployment, Drift, InventoryItem
from approvals.steps.running.correct import SOON_SECONDS, correct
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import MAX_LOOKS, DeployedSite
from tests.support.servers.registry import Registry

EDITOR = "kubectl-edit"
_numbers = itertools.count(1)

RESTORE: dict[str, Any] = {"onFailure": "RestorePrevious"}


class Watched:
    """A deployment of which a revision runs, whoever brought it there."""

    def __init__(self, site: DeployedSite, deployment: BundleDeployment):
        self.site = site
        self.name = deployment.name
        self.deployment = deployment

    def ref(self, kind: str = "ConfigMap") -> ObjectRef:
        group = {"Deployment": "apps"}.get(kind, "")
        return ObjectRef(group, "v1", kind, self.site.namespace, self.name)

    def live(self, kind: str = "ConfigMap") -> Any:
        return self.site.api.get(self.ref(kind))

    def edit(self, change: Callable[[Any], object], kind: str = "ConfigMap", manager: str = EDITOR) -> None:
        self.site.edit(self.ref(kind), change, manager=manager)

    def look(self) -> None:
        """What the watch and a worker do after something has happened."""
        now = timezone.now()
        drifts.mark(InventoryItem.objects.filter(deployment=self.deployment).values_list("pk", flat=True), now)
        for _ in range(MAX_LOOKS):
            correct(self.deployment.pk)
            if not (soon := self._due_soon(now)):
                break
            time.sleep(max(0.0, (soon - timezone.now()).total_seconds()))
        self.deployment.refresh_from_db()

    def _due_soon(self, after: datetime) -> datetime | None:
        """When a worker comes back to what a controller wrote in the same moment; not to fights and to what waits."""
        items = InventoryItem.objects.filter(deployment=self.deployment).exclude(drift__is_fight=True)
        soon = timezone.now() + timedelta(seconds=SOON_SECONDS)
        return items.filter(look_at__gt=after, look_at__lte=soon).values_list("look_at", flat=True).first()

    def drift(self, kind: str = "ConfigMap") -> Drift:
        return Drift.objects.get(item__deployment=self.deployment, item__kind=kind)

    def audited(self) -> list[str]:
        rows = AuditEntry.objects.filter(deployment_uid=self.deployment.uid, verb__startswith="drift.")
        return list(rows.order_by("number").values_list("verb", flat=True))


class Running(Watched):
    """A new one, of a small bundle, that alice has approved."""

    def __init__(self, site: DeployedSite, registry: Registry, **options: Any):
        # BundleDeployments have no namespace: the station's own name keeps workers apart.
        name = f"{site.namespace}-drift-{next(_numbers)}"
        source = bundles.image(registry, name, bundles.app(name, "1"))
        wished = site.applied(name, source, **options)
        super().__init__(site, BundleDeployment.objects.get(pk=wished.pk))
        self.look()
