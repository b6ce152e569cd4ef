"""`pratique-manage cluster_manifests`: what an operator applies to a cluster before Pratique can look after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from approvals.management.operator_command import OperatorCommand


class Command(OperatorCommand):
    help = (
        "Print the CRDs, roles and admission policies that Pratique needs in a cluster:"
        " pratique-manage cluster_manifests | kubectl apply --server-side -f -"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--without-author-stamp",
            action="store_true",
            help="leave out the policies that stamp authors and keep finalizers, for Kubernetes before 1.36",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        deploy = Path(settings.BASE_DIR) / "deploy"
        names = ("mirrors.yaml", "reviews.yaml", "deputies.yaml", "authors.yaml")
        admission = [deploy / "admission" / name for name in names]
        if not options["without_author_stamp"]:
            admission += [deploy / "admission" / name for name in ("author-stamp.yaml", "finalizer.yaml")]
        files = [*sorted((deploy / "crds").glob("*.yaml")), deploy / "rbac.yaml", *admission]
        self.stdout.write("\n---\n".join(file.read_text().strip() for file in files))
