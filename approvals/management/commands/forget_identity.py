"""`pratique-manage forget_identity`: remove an account's identity on a cluster."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from approvals import services
from approvals.management.operator_command import OperatorCommand, add_cluster, find_account, find_cluster


class Command(OperatorCommand):
    help = (
        "Remove an account's identity on a cluster, mapped or verified. Sessions, API tokens and chat links "
        "that depend on it end at once. Anyone with a token of the cluster can sign in again, to a new account."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the name of the account")
        add_cluster(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        user = find_account(options["user"], "pratique-manage list_identities lists the accounts with identities")
        cluster = find_cluster(options["cluster"])
        name = services.forget_identity(user=user, cluster=cluster, by=self.actor)
        self.stdout.write(
            f"{user.username} is no longer {name} on {cluster.name}; the sessions, tokens and chat links that "
            "depended on it ended"
        )
