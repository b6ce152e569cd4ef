"""`pratique-manage rights`: the roles with which Pratique impersonates others in a cluster, and missing rights."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from approvals.access.port import connect, connect_as_registered
from approvals.gate.plan_options import reserved_namespaces
from approvals.management.operator_command import OperatorCommand, add_cluster, find_cluster
from approvals.models import Cluster
from approvals.rights.known_names import registered
from approvals.rights.missing_rights import (
    Chosen,
    accounts_of,
    choose_form,
    holder_words,
    missing_of_account,
    missing_of_self,
    shared_by_all,
    words_of,
)
from approvals.rights.needs import Account, ImpersonationForm, Process, manifests, roles
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import PratiqueError
from provisioner.escaping import visible
from provisioner.render import write_quoted
from provisioner.values import AccessRequest

NOTHING = "# No registered person or account needs to be impersonated.\n"


class Command(OperatorCommand):
    help = (
        "Print the roles and bindings that let web, worker and watch impersonate people and installing "
        "accounts, based on the registered ones: pratique-manage rights --cluster NAME | kubectl apply -f -"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_cluster(parser)
        parser.add_argument("--form", choices=[*ImpersonationForm], help="default: the form that the cluster supports")
        parser.add_argument("--process", action="append", choices=[*Process], help="only this process; can be repeated")
        parser.add_argument("--check", action="store_true", help="report what is missing instead of printing roles")
        parser.add_argument(
            "--named",
            action="store_true",
            help="list people by name even if web may impersonate anyone to write a BundleDeployment",
        )
        for what, words in (("user", "a person"), ("group", "a group"), ("installer", "NAMESPACE/NAME of an account")):
            text = f"{words} to include before it is registered; can be repeated"
            parser.add_argument(f"--{what}", action="append", default=[], help=text, type=_types.get(what, str))
        parser.add_argument(
            "--account", type=_account, help="NAMESPACE/NAME of the ServiceAccount, if all processes use one"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = find_cluster(options["cluster"])
        try:
            api = connect(cluster)
            if options["check"]:
                self._say_what_is_missing(cluster, api, options)
            else:
                self._print(cluster, api, options)
        except PratiqueError as exc:
            raise CommandError(f"cluster {cluster.name}: {exc}") from exc

    def _print(self, cluster: Cluster, api: Api, options: dict[str, Any]) -> None:
        given = options["form"]
        chosen = Chosen(ImpersonationForm(given), "--form says so") if given else choose_form(api)
        known = registered(cluster, api)
        known = replace(
            known,
            people=known.people | set(options["user"]),
            groups=known.groups | set(options["group"]),
            installers=known.installers | set(options["installer"]),
        )
        kept = {namespace for namespace, _ in options["installer"]}
        known, planted = known.without(reserved_namespaces(), kept=kept)
        made = roles(known, chosen.form, _processes(options), is_named=options["named"])
        namespace = settings.PRATIQUE["NAMESPACE"]
        shared = options["account"] or shared_by_all(cluster, api, namespace)
        holders = dict.fromkeys(Process, shared) if shared else accounts_of(namespace)
        objects = manifests(made, holders)
        words = f"the {chosen.form} form, because {chosen.why}"
        left_out = visible(", ".join(known.left_out))
        self.stderr.write(f"{cluster.name}: {words}")
        if shared and not options["account"]:
            self.stderr.write(
                f"{cluster.name}: for {visible(holder_words(shared))}, because the registered kubeconfig is theirs, and"
                " all processes use it. --account NAMESPACE/NAME binds the roles to another account"
            )
        if left_out:
            self.stderr.write(f"{cluster.name}: never impersonated, so not listed: {left_out}")
        if planted:
            self.stderr.write(
                f"{cluster.name}: left out, because everyone who can write a BundleDeployment can name these "
                f"accounts: {visible(', '.join(planted))}. To include one, pass --installer NAMESPACE/NAME"
            )
        if known.unproved:
            self.stderr.write(
                f"{cluster.name}: left out, because no one who is allowed to use these has requested them: "
                f"{visible(', '.join(known.unproved))}. To include an account, pass --installer NAMESPACE/NAME; "
                "a Secret is read only for a signed-in person who is allowed to get it"
            )
        if shared and known.beyond:
            names = ", ".join("/".join(place) for place in known.beyond)
            self.stderr.write(
                f"{cluster.name}: with one account for all processes, acting as {visible(names)} also grants "
                "what the account may do as an installing account. Use a separate account for each process, or "
                "do not let privileged accounts sign in"
            )
        self.stdout.write(f"# Rights of Pratique on cluster {cluster.name}: {words}.\n", ending="")
        self.stdout.write(write_quoted(objects) if objects else NOTHING, ending="")

    def _say_what_is_missing(self, cluster: Cluster, api: Api, options: dict[str, Any]) -> None:
        found = [
            words_of(cluster.name, process, _missing(cluster, api, process, options["account"]), options["account"])
            for process in _processes(options)
        ]
        if any(found):
            raise CommandError("\n".join(words for words in found if words))
        self.stdout.write(f"{cluster.name}: no rights are missing")


def _missing(cluster: Cluster, api: Api, process: Process, account: Account | None) -> list[AccessRequest]:
    """What lacks who works as this process: `account`, who the registered kubeconfig is, or the account of its own."""
    namespace = settings.PRATIQUE["NAMESPACE"]
    if account is None and shared_by_all(cluster, api, namespace):
        return missing_of_self(cluster, connect_as_registered(cluster), process)
    return missing_of_account(cluster, api, process, account or accounts_of(namespace)[process])


def _processes(options: dict[str, Any]) -> tuple[Process, ...]:
    chosen = options["process"]
    return tuple(process for process in Process if not chosen or process in chosen)


def _account(text: str) -> Account:
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise ArgumentTypeError(f"{text!r} is not an account: expected NAMESPACE/NAME")
    return namespace, name


_types = {"installer": _account}
