"""`pratique-manage list_clusters`: every registered cluster, with its problems."""

from __future__ import annotations

from typing import Any

from approvals import refusals
from approvals.clock import database_now
from approvals.management.operator_command import OperatorCommand
from approvals.models import Cluster
from provisioner.escaping import visible


class Command(OperatorCommand):
    help = (
        "List the clusters: name, uid, version, when each was last reached, its problem, and whether its credentials"
        " expire soon, or when it was removed. Credentials are not shown."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        now = database_now()
        for cluster in Cluster.every.defer("kubeconfig"):
            reached = cluster.reached_at.isoformat(timespec="seconds") if cluster.reached_at else "never reached"
            words = (cluster.name, cluster.uid or "no uid yet", cluster.version or "no version yet", reached)
            told = (refusals.problem_of(cluster, now), refusals.end_of_credentials(cluster, now))
            problem = "; ".join(words.replace("\n", "; ") for words in told if words)
            if cluster.removed_at:
                problem = f"removed {cluster.removed_at.isoformat(timespec='seconds')}"
            self.stdout.write("  ".join(visible(word) for word in (*words, problem or "no problem")))
