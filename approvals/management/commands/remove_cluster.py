"""`pratique-manage remove_cluster`: remove a cluster from Pratique."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from approvals import services
from approvals.access.port import connect
from approvals.lifecycle import OPEN
from approvals.management.operator_command import OperatorCommand, find_cluster
from approvals.models import BundleDeployment, KubernetesIdentity, Policy, Request
from approvals.steps.mirroring import mirror
from provisioner.api_groups import FINALIZER, OWN_GROUP
from provisioner.errors import PratiqueError

WORDS = """\
Remove cluster {name} from Pratique?

  deployments    {deployments}, of which {leaving} are being deleted
  open requests  {open}
  identities     {people}
  policies       {policies}

Ends at once: open requests, the watch, drift correction, catalogs and identities, with the sessions, tokens and chat
links that depend on them. The stored credentials are erased.
Stays in the cluster: every object that was applied, which nobody corrects or removes any more, and every
BundleDeployment. One that is being deleted goes, and its objects stay.
Stays in Pratique: requests with reviews and verdicts, revisions, policies and the audit; reports and stored content as
long as PRATIQUE_KEEP_DAYS says.
"""
BY_HAND = """\
The finalizer {finalizer} is still on {names}: {problem}.
Each stays Terminating once it is deleted, until you run

  kubectl patch bundledeployments.{group} NAME --type=merge -p '{{"metadata":{{"finalizers":null}}}}'
"""


class Command(OperatorCommand):
    help = (
        "Remove a cluster, with its credentials, identities and open requests. Applied objects stay in the cluster; "
        "requests, reviews and the audit log stay in Pratique. It works for a cluster that does not respond. The same "
        "cluster can be registered again under its name."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of a registered cluster")
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = find_cluster(options["name"])
        there = BundleDeployment.objects.filter(cluster=cluster, gone_at__isnull=True)
        self.stdout.write(
            WORDS.format(
                name=cluster.name,
                deployments=there.count(),
                leaving=there.filter(deletion_requested_at__isnull=False).count(),
                open=Request.objects.filter(cluster=cluster, state__in=OPEN).count(),
                people=KubernetesIdentity.objects.filter(cluster=cluster).count(),
                policies=Policy.objects.filter(cluster=cluster, uid="").count(),
            )
        )
        if not options["yes"] and _typed(f"Type {cluster.name} to remove it: ") != cluster.name:
            raise CommandError(f"cluster {cluster.name} was not removed: its name was not typed")
        try:
            api, problem = connect(cluster), ""
        except PratiqueError as exc:
            api, problem = None, str(exc)
        try:
            deployments = services.remove_cluster(cluster=cluster, by=self.actor)
        except PratiqueError as exc:
            raise CommandError(str(exc)) from exc
        kept = [deployment.name for deployment in deployments]
        if api is not None:
            kept, problem = mirror.release_all(api, deployments)
        self.stdout.write(
            f"{cluster.name} is removed. A file of its name in PRATIQUE_KUBECONFIGS_DIR is yours to delete"
        )
        if kept:
            names, why = ", ".join(kept), problem or "something puts it back"
            self.stdout.write(BY_HAND.format(finalizer=FINALIZER, group=OWN_GROUP, names=names, problem=why))


def _typed(question: str) -> str:
    try:
        return input(question).strip()
    except EOFError:
        raise CommandError("no terminal to confirm on: pass --yes to remove the cluster") from None
