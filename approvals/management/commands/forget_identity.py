"""`pratique-manage forget_identity`: an account is nobody on a cluster any more."""

from __future__ import annotations

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from approvals import services
from approvals.audit import Actor
from approvals.errors import Refused
from approvals.management.names import account_named, cluster_named


class Command(BaseCommand):
    requires_system_checks = []  # they load every page, which takes seconds
    help = (
        "Remove an account's identity on a cluster, mapped or verified. Sessions, API tokens and chat links "
        "that depend on it end at once. Anyone with a token of the cluster can sign in again, to a new account."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("user")
        parser.add_argument("--cluster", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        user = account_named(options["user"], "pratique-manage list_identities lists the accounts with identities")
        cluster = cluster_named(options["cluster"])
        try:
            name = services.forget_identity(user=user, cluster=cluster, by=Actor(getpass.getuser(), "shell"))
        except Refused as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(
            f"{user.username} is no longer {name} on {cluster.name}; the sessions, tokens and chat links that "
            "depended on it ended"
        )
