"""`pratique-manage label_cluster`: say what a cluster is, for the rings of change sets."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from approvals import services
from approvals.management.operator_command import OperatorCommand, find_cluster


class Command(OperatorCommand):
    help = (
        "Set labels of a cluster, as in `label_cluster east ring=canary region-`: KEY=VALUE sets one, KEY- removes it."
        " Rings of change sets go by these labels when an order is made."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of a registered cluster")
        parser.add_argument("labels", nargs="+", metavar="KEY=VALUE|KEY-", help="what to set or to remove")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = find_cluster(options["name"])
        found = services.label_cluster(cluster=cluster, changes=options["labels"], by=self.actor)
        words = ", ".join(f"{key}={value}" for key, value in sorted(found.items())) or "no labels"
        self.stdout.write(f"{cluster.name}: {words}")
