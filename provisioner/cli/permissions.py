"""`pratique rbac`: rights that a bundle changes, or all rights in a cluster. `pratique preflight`: missing rights."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from provisioner import pipeline
from provisioner.api_groups import RBAC_GROUP
from provisioner.cli import json_output
from provisioner.cli.arguments import DEFAULT_NAMESPACE, NEVER, ReviewCommand, Usage, add_bundle_options, add_old
from provisioner.cli.inputs import read_contents, read_stored_objects
from provisioner.cli.review import FINDINGS, OK, UNKNOWN, cluster_of, exit_status, owned, print_report
from provisioner.rbac import KINDS, RbacObjects, RbacSubject, subjects
from provisioner.review.base.facts import Gap
from provisioner.review.cluster_rights import ChosenAccounts, cluster_rights
from provisioner.review.output import permission_text
from provisioner.review.preflight import findings
from provisioner.review.rights.permission_words import files_of
from provisioner.values import GroupKind, Section, Severity

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
        "--objects", metavar="FILE|DIR", type=Path, help="all roles and bindings of a cluster, saved with kubectl"
    )
    parser.add_argument(
        "--namespace",
        metavar="NS",
        action="append",
        help="only ServiceAccounts in this namespace and subjects of its RoleBindings; can be repeated",
    )
    parser.add_argument(
        "--subject",
        metavar="KIND/NAME",
        action="append",
        help="only this subject: User/NAME, Group/NAME or ServiceAccount/NAMESPACE/NAME; can be repeated",
    )
    parser.add_argument(
        "--without-kubernetes",
        action="store_true",
        default=None,
        help="leave out accounts of Kubernetes: system:... and those in kube-system",
    )
    parser.add_argument(
        "--all", action="store_true", default=None, help="text output: also show safe findings, with every location"
    )
    parser.add_argument("--explain", action="store_true", default=None, help="text output: also explain each rule")
    parser.add_argument(
        "--fail-on",
        choices=[NEVER, *map(str, Severity)],
        metavar="SEVERITY",
        help=f"lowest severity that gives exit status 1: {', '.join(Severity)} or never; default: dangerous",
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
    wanted = frozenset(_parse_subject(words) for words in options.subject or ())
    gaps = []
    if options.objects:
        stored = read_stored_objects(options.objects)
        roles = RbacObjects.of(stored.objects)
        # A kind of which the files say nothing may be left out by mistake; a cluster has some of each.
        for kind in KINDS:
            if not stored.tells_of(GroupKind(RBAC_GROUP, kind)):
                words = f"{options.objects} holds none of them; save them with `kubectl get {kind.lower()}s -A -o yaml`"
                gaps.append(Gap(f"what {kind}s there are", words, Section.PERMISSIONS))
    else:
        cluster = cluster_of(options)
        assert cluster is not None
        roles = RbacObjects.of(pipeline.roles_and_bindings(cluster))
    missing = sorted(map(str, wanted.difference(subjects(roles))))
    if missing:
        raise Usage(f"no binding names the {missing[0]}; what a group may do is told of the group")
    chosen = ChosenAccounts(wanted, frozenset(options.namespace or ()), with_kubernetes=not options.without_kubernetes)
    found = cluster_rights(roles, gaps=gaps, chosen=chosen)
    options.bundle = str(options.objects or options.context or options.kubeconfig)
    options.diff = options.show_credentials = False
    print_report(found, options, colours=sys.stdout.isatty())
    return exit_status(found, options.fail_on or str(Severity.DANGEROUS))


def _parse_subject(words: str) -> RbacSubject:
    kind, _, name = words.partition("/")
    namespace, _, account = name.partition("/")
    if kind == "ServiceAccount" and namespace and account and "/" not in account:
        return RbacSubject(kind, account, namespace)
    if kind not in ("User", "Group") or not name:
        raise Usage(f"--subject {words}: {_FORMS}")
    return RbacSubject(kind, name)


_PREFLIGHT_EPILOG = """\
Without --kubeconfig, the current rights of the account are not read, and all
rules that it needs are printed.

exit status
  0  the account may install the bundle
  1  a right is missing, or something else blocks the installation
  2  an error; with -o json it is also printed as an answer
"""


_RBAC_EPILOG = """\
a bundle
  Shows whose effective rights it changes, whom it binds, and what everyone with
  a role gains if it widens that role. Other subjects are left out.

a whole cluster
  Without BUNDLE, use --kubeconfig or --objects to name the cluster. Shows every
  subject that a binding names, with risky rights. Findings and JSON are those
  of `pratique review`. Roles and bindings of all namespaces are read; nothing
  is changed. The cluster does not know the members of groups, so rights of a
  group are listed for the group.

exit status for a bundle
  0  no one gains dangerous rights
  1  someone gains dangerous rights
  2  an error, or a role that cannot be read; with -o json an error is also
     printed as a report with one problem

exit status for a whole cluster
  0  no finding at or above --fail-on
  1  at least one finding at or above --fail-on
  2  an error (the cluster does not respond, or does not let you list roles and
     bindings), or an unknown finding and nothing worse; with -o json an error
     is also printed as a report with one unknown finding
"""


# rbac


def _add_rbac(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "bundle",
        metavar="BUNDLE",
        nargs="?",
        help="the new bundle, as for `pratique review`; without it, the whole cluster is reviewed",
    )
    add_old(parser, "the current bundle; only findings that are new compared with it count")
    parser.add_argument("--install-namespace", metavar="NS", default=DEFAULT_NAMESPACE, help="default: %(default)s")
    parser.add_argument("--kubeconfig", metavar="FILE", type=Path, help="also consider the roles in this cluster")
    parser.add_argument("--context", default="", help="context of the kubeconfig")
    add_cluster_options(parser)
    add_bundle_options(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    parser.set_defaults(service_account="")


def _run_rbac(options: argparse.Namespace) -> int:
    if options.bundle is None:
        return run_for_cluster(options)
    refuse_cluster_options(options)
    cluster = cluster_of(options)
    content, old = read_contents(options, cluster)
    found = pipeline.permissions(cluster, content, old)
    files = files_of(content)
    if options.output == "json":
        sys.stdout.write(json.dumps(permission_text.to_record(found, files), indent=2, sort_keys=True) + "\n")
    else:
        sys.stdout.write(permission_text.as_text(found, files))
    if found.worst is Severity.UNKNOWN:
        return UNKNOWN
    return FINDINGS if found.worst.is_at_least(Severity.DANGEROUS) else OK


# preflight


def _add_preflight(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", metavar="BUNDLE", help="the new bundle, as for `pratique review`")
    parser.add_argument(
        "--service-account", metavar="NS/NAME", required=True, help="the ServiceAccount that installs it"
    )
    add_old(parser, "the current version; its objects count as owned by this bundle")
    parser.add_argument("--install-namespace", metavar="NS", help="default: the namespace of the account")
    parser.add_argument("--kubeconfig", metavar="FILE", type=Path, help="compare with this cluster; it is not changed")
    parser.add_argument("--context", default="", help="context of the kubeconfig")
    add_bundle_options(parser)
    parser.add_argument(
        "-o", "--output", choices=("text", "json", "yaml"), default="text", help="yaml prints only the missing rules"
    )
    parser.set_defaults(account=RbacSubject("ServiceAccount", ""))


def _run_preflight(options: argparse.Namespace) -> int:
    namespace, slash, name = options.service_account.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise Usage(f"--service-account {options.service_account}: expected NAMESPACE/NAME")
    options.account = account = RbacSubject("ServiceAccount", name, namespace)
    options.install_namespace = options.install_namespace or account.namespace
    options.service_account = account.name
    cluster = cluster_of(options)
    content, old = read_contents(options, cluster)
    inventory = owned(cluster, old) if cluster else {}
    found = pipeline.preflight(cluster, content, account=account, previous=old, inventory=inventory)
    if options.output == "json":
        sys.stdout.write(json.dumps(findings.to_record(found), indent=2, sort_keys=True) + "\n")
    else:
        shown = findings.as_yaml if options.output == "yaml" else findings.as_text
        sys.stdout.write(shown(found))
    return {Severity.SAFE: OK, Severity.UNKNOWN: UNKNOWN}.get(found.verdict, FINDINGS)


COMMANDS: tuple[ReviewCommand, ...] = (
    ReviewCommand(
        "rbac",
        "show who gains which rights from a bundle, or who has which rights in a cluster",
        _add_rbac,
        _run_rbac,
        _RBAC_EPILOG,
        json_output.unanswered_rbac,
    ),
    ReviewCommand(
        "preflight",
        "check whether a ServiceAccount may install a bundle, and list the missing rules",
        _add_preflight,
        _run_preflight,
        _PREFLIGHT_EPILOG,
        json_output.unanswered_preflight,
    ),
)
