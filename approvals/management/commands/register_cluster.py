"""`pratique-manage register_cluster`: register a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from approvals import services
from approvals.errors import Refused
from approvals.management.operator_command import OperatorCommand, find_cluster
from approvals.models import Cluster
from provisioner.cluster.client.kubeconfig import MAX_KUBECONFIG_BYTES

# What an option of the command adds to the words of the service, by the field or the code of its refusal.
REMEDIES = {"may_replace": "; to replace it, add --replace", "could-not-ask": ", by --uid"}


class Command(OperatorCommand):
    help = (
        "Register a cluster, or with --replace change the kubeconfig of a registered one. A cluster that was removed"
        " can be registered again under its name. `watch` connects to it within seconds."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="lowercase letters, digits and dashes")
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument("--kubeconfig", type=Path, help="server, CA and inline credentials of the service's account")
        where.add_argument("--in-cluster", action="store_true", help="the cluster Pratique runs in")
        parser.add_argument("--replace", action="store_true", help="change the connection of a registered cluster")
        parser.add_argument(
            "--uid",
            default="",
            help="with --replace: uid of the namespace kube-system, if the kubeconfig may not read it",
        )
        parser.add_argument("--context", default="", help="context of the kubeconfig, if it has several")

    def handle(self, *args: Any, **options: Any) -> None:
        name, path = options["name"], options["kubeconfig"]
        is_replacing = options["replace"]
        if is_replacing and not Cluster.every.filter(name=name, removed_at__isnull=False).exists():
            find_cluster(name)
        try:
            kubeconfig = "" if path is None else _text_of(path)
            services.register_cluster(
                name=name,
                kubeconfig=kubeconfig,
                context=options["context"],
                by=self.actor,
                replacing=services.Replacing(options["uid"]) if is_replacing else None,
            )
        except Refused as exc:
            remedy = REMEDIES.get(str(exc.facts.get("field") or exc.code), "")
            raise CommandError(f"{exc}{remedy}") from exc
        self.stdout.write(f"{name} is registered: open its page to see whether it can be reached")


def _text_of(path: Path) -> str:
    """The file, never empty: no text at all would register the cluster Pratique runs in."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_KUBECONFIG_BYTES + 1)
    except (OSError, UnicodeDecodeError) as exc:
        raise CommandError(f"{path}: cannot be read as text ({type(exc).__name__})") from exc
    if not text.strip():
        raise CommandError(f"{path}: the file is empty; for the cluster Pratique runs in, use --in-cluster")
    return text
