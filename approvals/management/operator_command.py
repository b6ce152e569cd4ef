"""What the commands of operators share: a refusal is one sentence, and names that do not exist are an error."""

from __future__ import annotations

import getpass
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from approvals.audit import Actor
from approvals.errors import Refused
from approvals.models import Cluster
from provisioner.escaping import visible


class OperatorCommand(BaseCommand):
    """A command that ends with a sentence when the service refuses it."""

    requires_system_checks = []  # they load every page, which takes seconds

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except Refused as exc:
            raise CommandError(str(exc)) from exc

    @property
    def actor(self) -> Actor:
        """The account of this machine that runs the command, for the audit log."""
        return Actor(getpass.getuser(), "shell")


def add_cluster(parser: CommandParser) -> None:
    parser.add_argument("--cluster", required=True, metavar="NAME", help="name of a registered cluster")


def find_cluster(name: str) -> Cluster:
    """Return the registered cluster of this name. Raises CommandError, which lists the registered ones."""
    cluster = Cluster.every.filter(name=name).first()
    if cluster is None:
        known = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"cluster {visible(name)} is not registered; registered: {known}")
    if cluster.removed_at:
        raise CommandError(f"cluster {visible(name)} was removed on {cluster.removed_at:%Y-%m-%d}; register it again")
    return cluster


def find_account(name: str, hint: str) -> User:
    """Return the account of this name. Raises CommandError, which ends with `hint`."""
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"account {visible(name)} does not exist; {hint}")
    return user
