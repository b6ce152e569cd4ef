"""`pratique rbac` without a bundle: who may do what in a whole cluster, with the findings of a report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from provisioner import pipeline
from provisioner.api_groups import RBAC_GROUP
from provisioner.cli.arguments import NEVER
from provisioner.cli.objects import stored_in
from provisioner.cli.review import cluster_of, exit_status, print_report
from provisioner.cli.usage import Usage
from provisioner.rbac import KINDS, RbacObjects, RbacSubject, subjects
from provisioner.review.base.facts import Gap, Stored
from provisioner.review.cluster_rights import ChosenAccounts, cluster_rights
from provisioner.values import GroupKind, Report, Section, Severity

_FORMS = "expected User/NAME, Group/NAME or ServiceAccount/NAMESPACE/NAME"
_ONLY_HERE = {
    "objects": "--objects",
    "namespace": "--namespace",
    "subject": "--subject",
    "without_kubernetes": "--without-kubernetes",
    "all": "--all",
    "explain": "--explain",
    "fail_on": "--fail-on",
}


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """What only the whole cluster has; a bundle goes without these."""
    parser.add_argument(
        "--objects", metavar="FILE|DIR", type=Path, help="all roles and bindings of a cluster, as kubectl prints them"
    )
    parser.add_argument(
        "--namespace",
        metavar="NS",
        action="append",
        help="only ServiceAccounts of this namespace, and whom RoleBindings there name; may be given several times",
    )
    parser.add_argument(
        "--subject",
        metavar="KIND/NAME",
        action="append",
        help="only this account: User/NAME, Group/NAME or ServiceAccount/NAMESPACE/NAME; may be given several times",
    )
    parser.add_argument(
        "--without-kubernetes",
        action="store_true",
        default=None,
        help="leave out accounts of Kubernetes itself: system:... and those of kube-system",
    )
    parser.add_argument("--all", action="store_true", default=None, help="text: what is safe, and every place, too")
    parser.add_argument("--explain", action="store_true", default=None, help="text: what each rule means, too")
    parser.add_argument(
        "--fail-on",
        choices=[NEVER, *map(str, Severity)],
        metavar="SEVERITY",
        help=f"the least severity that gives exit status 1: {', '.join(Severity)} or never; default: dangerous",
    )


def refuse_cluster_options(options: argparse.Namespace) -> None:
    """Raises Usage for an option that goes without a bundle."""
    given = [words for name, words in _ONLY_HERE.items() if getattr(options, name) is not None]
    if given:
        raise Usage(f"{given[0]} goes without BUNDLE: it is about the whole cluster")


def run_for_cluster(options: argparse.Namespace) -> int:
    """Tell of the cluster, or of what somebody saved of it; returns the exit status."""
    if (options.kubeconfig is None) == (options.objects is None):
        raise Usage("expected a BUNDLE, or for a whole cluster one of --kubeconfig and --objects")
    if options.old or options.old_config:
        raise Usage("--old goes with a BUNDLE")
    found = _of_files(options) if options.objects else _of_cluster(options)
    options.bundle = str(options.objects or options.context or options.kubeconfig)
    options.diff = options.show_credentials = False
    print_report(found, options, colours=sys.stdout.isatty())
    return exit_status(found, options.fail_on or str(Severity.DANGEROUS))


def _of_cluster(options: argparse.Namespace) -> Report:
    wanted = _subjects(options)
    cluster = cluster_of(options)
    assert cluster is not None
    roles = RbacObjects.of(pipeline.roles_and_bindings(cluster))
    return cluster_rights(roles, chosen=_chosen(options, wanted, roles))


def _of_files(options: argparse.Namespace) -> Report:
    wanted = _subjects(options)
    stored = stored_in(options.objects)
    roles = RbacObjects.of(stored.objects)
    return cluster_rights(roles, gaps=list(_gaps(stored, options.objects)), chosen=_chosen(options, wanted, roles))


def _gaps(stored: Stored, place: Path) -> Iterable[Gap]:
    """A kind of which the files say nothing may be left out by mistake; a cluster has some of each."""
    for kind in KINDS:
        if not stored.tells_of(GroupKind(RBAC_GROUP, kind)):
            words = f"{place} holds none of them; save them with `kubectl get {kind.lower()}s -A -o yaml`"
            yield Gap(f"what {kind}s there are", words, Section.PERMISSIONS)


def _chosen(options: argparse.Namespace, wanted: frozenset[RbacSubject], known: RbacObjects) -> ChosenAccounts:
    missing = sorted(map(str, wanted.difference(subjects(known))))
    if missing:
        raise Usage(f"no binding names the {missing[0]}; what a group may do is told of the group")
    return ChosenAccounts(wanted, frozenset(options.namespace or ()), with_kubernetes=not options.without_kubernetes)


def _subjects(options: argparse.Namespace) -> frozenset[RbacSubject]:
    return frozenset(_subject(words) for words in options.subject or ())


def _subject(words: str) -> RbacSubject:
    kind, _, name = words.partition("/")
    namespace, _, account = name.partition("/")
    if kind == "ServiceAccount" and namespace and account and "/" not in account:
        return RbacSubject(kind, account, namespace)
    if kind not in ("User", "Group") or not name:
        raise Usage(f"--subject {words}: {_FORMS}")
    return RbacSubject(kind, name)
