"""Registering a cluster (security.md S19)."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from approvals import audit
from approvals.audit import Actor
from approvals.models import Cluster


@transaction.atomic(durable=True)
def register_cluster(*, name: str, kubeconfig: str, by: Actor) -> Cluster:
    """Add a cluster, or give a known one a new kubeconfig. Its uid is read at the first contact and then kept."""
    cluster, is_new = Cluster.objects.get_or_create(
        name=name, defaults={"kubeconfig": kubeconfig, "created_at": timezone.now()}
    )
    if not is_new and cluster.kubeconfig == kubeconfig:
        return cluster
    cluster.kubeconfig = kubeconfig
    cluster.save(update_fields=["kubeconfig"])
    audit.record(verb="cluster.registered", actor=by, facts={"cluster": name, "new": is_new})
    return cluster
