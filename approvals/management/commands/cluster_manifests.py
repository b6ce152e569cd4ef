"""`pratique-manage cluster_manifests`: what an operator applies to a cluster before Pratique can look after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = (
        "Print the CRDs and roles that Pratique needs in a cluster:"
        " pratique-manage cluster_manifests | kubectl apply --server-side -f -"
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        deploy = Path(settings.BASE_DIR) / "deploy"
        files = [*sorted((deploy / "crds").glob("*.yaml")), deploy / "rbac.yaml"]
        self.stdout.write("\n---\n".join(file.read_text().strip() for file in files))
