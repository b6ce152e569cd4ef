"""`pratique-manage map_identity`: who a local user is on a cluster."""

from __future__ import annotations

import getpass
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from approvals import services
from approvals.audit import Actor
from approvals.errors import Refused
from approvals.management.names import account_named, cluster_named


class Command(BaseCommand):
    requires_system_checks = []  # they load every page, which takes seconds
    help = (
        "Map a local account to a Kubernetes user name and groups on a cluster. With --create the account is created"
        " without a password: `pratique-manage changepassword` sets one."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("user", help="the name of the local account")
        parser.add_argument("--create", action="store_true", help="create the account if it does not exist")
        parser.add_argument("--cluster", required=True)
        parser.add_argument("--as", dest="username", required=True, help="the Kubernetes user name")
        parser.add_argument(
            "--group",
            dest="groups",
            action="append",
            default=[],
            help="a Kubernetes group; repeat the option for several",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = cluster_named(options["cluster"])
        user, is_new = _account(options["user"], is_wanted=options["create"])
        try:
            services.map_identity(
                user=user,
                cluster=cluster,
                username=options["username"],
                groups=options["groups"],
                by=Actor(getpass.getuser(), "shell"),
            )
        except Refused as exc:
            if is_new:
                user.delete()
            raise CommandError(str(exc)) from exc
        if is_new:
            self.stdout.write(f"account {user.username} created; set its password with pratique-manage changepassword")
        self.stdout.write(f"{user.username} is {options['username']} on {cluster.name}")


def _account(name: str, *, is_wanted: bool) -> tuple[User, bool]:
    """The account of this name, and whether it was made just now."""
    if is_wanted and not User.objects.filter(username=name).exists():
        return User.objects.create_user(name), True
    return account_named(name, "check the name, or add --create to create the account"), False
