"""How the running revision is, asked of the cluster and kept with the deployment."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from approvals import audit
from approvals.access.port import connect
from approvals.audit import MACHINE
from approvals.models import BundleDeployment, InventoryItem
from approvals.steps.inventory import installer_of, ref_of
from provisioner import pipeline
from provisioner.values import Health, HealthState, ObjectRef

# The worst first: what makes a whole deployment unhealthy.
ORDER = (
    HealthState.FAILED,
    HealthState.NOT_FOUND,
    HealthState.UNKNOWN,
    HealthState.TERMINATING,
    HealthState.IN_PROGRESS,
    HealthState.CURRENT,
)


def observe(deployment: BundleDeployment) -> None:
    """Read every object of the inventory once, as the installer, and keep its health.

    A change of the whole has an audit row.
    """
    rows = list(deployment.inventory.exclude(uid=""))
    if not rows:
        return
    api = connect(deployment.cluster).acting_as(installer_of(deployment.spec))
    found = pipeline.observe(api, [ref_of(row) for row in rows])
    for row in rows:
        health = found.get(ref_of(row), Health(HealthState.UNKNOWN, "was not answered"))
        row.health, row.health_message = health.state, health.message
    InventoryItem.objects.bulk_update(rows, ["health", "health_message"], batch_size=500)
    _keep(deployment.pk, summary(found))


def summary(found: dict[ObjectRef, Health]) -> Health:
    """The worst object's health, with how many are settled, in words."""
    worst = min(found.items(), key=lambda item: (ORDER.index(item[1].state), str(item[0])))
    current = sum(1 for health in found.values() if health.state == HealthState.CURRENT)
    words = f"{current} of {len(found)} objects are ready"
    if worst[1].state != HealthState.CURRENT:
        words += f"; {worst[0]}: {worst[1].message or worst[1].state}"
    return Health(worst[1].state, words)


@transaction.atomic(durable=True)
def _keep(deployment_id: int, health: Health) -> None:
    row = BundleDeployment.objects.select_for_update(of=("self",)).select_related("cluster").get(pk=deployment_id)
    was = row.health
    row.health, row.health_message = health.state, health.message
    row.save(update_fields=["health", "health_message"])
    if was != health.state:
        audit.record(
            verb="deployment.health",
            actor=MACHINE,
            deployment=row,
            facts={"from": was, "to": health.state, "words": health.message, "at": timezone.now().isoformat()},
        )
