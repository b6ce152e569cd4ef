"""`pratique-manage list_clusters`: every registered cluster, for operators who are nobody on some of them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from approvals.models import Cluster
from provisioner.review.base.text import visible


class Command(BaseCommand):
    help = (
        "List the clusters: name, uid, version, when each was last reached, and its problem. Credentials are not shown."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for cluster in Cluster.objects.defer("kubeconfig"):
            reached = cluster.reached_at.isoformat(timespec="seconds") if cluster.reached_at else "never reached"
            words = (cluster.name, cluster.uid or "no uid yet", cluster.version or "no version yet", reached)
            self.stdout.write("  ".join(visible(word) for word in (*words, cluster.problem or "no problem")))
