"""`manage.py register_cluster`: a cluster to look after."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from approvals import services
from approvals.audit import Actor
from approvals.errors import Refused
from provisioner.cluster.kubeconfig import read_kubeconfig
from provisioner.errors import BadSource


class Command(BaseCommand):
    help = "Register a cluster, or give a known one another kubeconfig. `watch` sees to it within seconds."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("name", help="small letters, digits and dashes")
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument("--kubeconfig", type=Path, help="server, CA and inline credentials of the service's account")
        where.add_argument("--in-cluster", action="store_true", help="the cluster that Pratique runs in")

    def handle(self, *args: Any, **options: Any) -> None:
        name, path = options["name"], options["kubeconfig"]
        kubeconfig = "" if path is None else path.read_text()
        try:
            if kubeconfig:
                read_kubeconfig(kubeconfig, trusted=name in settings.PRATIQUE["TRUSTED_KUBECONFIGS"])
            services.register_cluster(name=name, kubeconfig=kubeconfig, by=Actor(getpass.getuser(), "shell"))
        except (BadSource, Refused) as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(f"{name} is registered: its page says whether it answers")
