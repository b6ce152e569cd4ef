"""`pratique-manage map_identity`: map a local account to a Kubernetes user on a cluster."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandParser

from approvals import services
from approvals.errors import Refused
from approvals.management.operator_command import OperatorCommand, add_cluster, find_account, find_cluster


class Command(OperatorCommand):
    help = (
        "Map a local account to a Kubernetes user name and groups on a cluster. With --create the account is created"
        " without a password: `pratique-manage changepassword` sets one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the name of the local account")
        parser.add_argument("--create", action="store_true", help="create the account if it does not exist")
        add_cluster(parser)
        parser.add_argument("--as", dest="username", required=True, help="the Kubernetes user name")
        parser.add_argument(
            "--group",
            dest="groups",
            action="append",
            default=[],
            help="a Kubernetes group; repeat the option for several",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        cluster, name = find_cluster(options["cluster"]), options["user"]
        is_new = options["create"] and not User.objects.filter(username=name).exists()
        user = (
            User.objects.create_user(name)
            if is_new
            else find_account(name, "check the name, or add --create to create the account")
        )
        try:
            services.map_identity(
                user=user, cluster=cluster, username=options["username"], groups=options["groups"], by=self.actor
            )
        except Refused:
            if is_new:
                user.delete()
            raise
        if is_new:
            self.stdout.write(f"account {user.username} created; set its password with pratique-manage changepassword")
        self.stdout.write(f"{user.username} is {options['username']} on {cluster.name}")
