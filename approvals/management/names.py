"""Clusters and accounts by the names that operators type: one that does not exist is an error, and is not made."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from approvals.models import Cluster
from provisioner.escaping import visible


def cluster_named(name: str) -> Cluster:
    """Raises CommandError that lists the clusters there are."""
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None and (removed := Cluster.every.filter(name=name).first()):
        raise CommandError(f"cluster {visible(name)} was removed on {removed.removed_at:%Y-%m-%d}; register it again")
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"cluster {visible(name)} is not registered; registered: {known}")
    return cluster


def account_named(name: str, hint: str = "") -> User:
    """Raises CommandError, which ends with `hint`."""
    user = User.objects.filter(username=name).first()
    if user is None:
        words = f"account {visible(name)} does not exist"
        raise CommandError(f"{words}; {hint}" if hint else words)
    return user
