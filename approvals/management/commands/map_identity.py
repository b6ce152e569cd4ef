"""`pratique-manage map_identity`: who a local user is on a cluster."""

from __future__ import annotations

import getpass
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from approvals import services
from approvals.audit import Actor
from approvals.errors import Refused
from approvals.models import Cluster


class Command(BaseCommand):
    help = (
        "Say which Kubernetes name and groups a local user has on a cluster. The user is made if need be,"
        " without a password: `pratique-manage changepassword` sets one."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("user")
        parser.add_argument("--cluster", required=True)
        parser.add_argument("--as", dest="username", required=True, help="the name in Kubernetes")
        parser.add_argument("--group", dest="groups", action="append", default=[], help="once for each group")

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if cluster is None:
            known = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"no cluster {options['cluster']} is registered; there is: {known}")
        user = User.objects.filter(username=options["user"]).first() or User.objects.create_user(options["user"])
        try:
            services.map_identity(
                user=user,
                cluster=cluster,
                username=options["username"],
                groups=options["groups"],
                by=Actor(getpass.getuser(), "shell"),
            )
        except Refused as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(f"{user.username} is {options['username']} on {cluster.name}")
