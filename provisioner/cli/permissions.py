"""`pratique rbac`, what a bundle does to everybody's rights, and `pratique preflight`, whether it may be installed.

Without a bundle `pratique rbac` tells of the whole cluster (`cluster_rights`).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from provisioner import pipeline
from provisioner.cli import unanswered
from provisioner.cli.arguments import DEFAULT_NAMESPACE, ReviewCommand, add_bundle_options, add_old
from provisioner.cli.bundles import contents_of
from provisioner.cli.cluster_rights import add_cluster_options, refuse_cluster_options, run_for_cluster
from provisioner.cli.review import FINDINGS, OK, UNKNOWN, cluster_of, owned
from provisioner.cli.usage import Usage
from provisioner.rbac import RbacSubject
from provisioner.review.output import permission_text
from provisioner.review.preflight import findings
from provisioner.review.rights.permission_words import files_of
from provisioner.values import Severity

_PREFLIGHT_EPILOG = """\
Without --kubeconfig nobody is asked what the account holds: then the rules are
all that it would need.

exit status
  0  the account may install the bundle
  1  something is missing or stands in the way
  2  could not find out; with -o json an error is an answer, too, that says so
"""


_RBAC_EPILOG = """\
a bundle
  Whose effective rights it alters, whom it binds, and what everybody with a
  role gets that it widens. Others do not count, whatever they hold.

a whole cluster
  Without BUNDLE, --kubeconfig or --objects names the cluster, and everybody
  whom a binding names is told with all that is risky: the findings are those
  that `pratique review` has of a bundle, and so is the JSON. It reads roles and
  bindings of every namespace, and changes nothing. Who is a member of which
  group the cluster does not know: what a group may do is told of the group.

exit status of a bundle
  0  nobody gains anything dangerous
  1  somebody does
  2  could not find out: an error, or a role that nobody here knows;
     with -o json an error is a report, too, with one problem

exit status of a whole cluster
  0  nothing at or above --fail-on
  1  there is
  2  could not find out: an error (the cluster does not answer, or does not let
     you list roles and bindings), or an unknown finding and nothing worse;
     with -o json an error is a report, too, with one unknown finding
"""


# rbac


def _add_rbac(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "bundle",
        metavar="BUNDLE",
        nargs="?",
        help="what shall run; as for `pratique review`. Without it, the whole cluster",
    )
    add_old(parser, "what runs now: only what is new beside it counts")
    parser.add_argument("--install-namespace", metavar="NS", default=DEFAULT_NAMESPACE, help="default: %(default)s")
    parser.add_argument("--kubeconfig", metavar="FILE", type=Path, help="the cluster, whose roles count, too")
    parser.add_argument("--context", default="", help="the context of the kubeconfig to use")
    add_cluster_options(parser)
    add_bundle_options(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    parser.set_defaults(service_account="")


def _run_rbac(options: argparse.Namespace) -> int:
    if options.bundle is None:
        return run_for_cluster(options)
    refuse_cluster_options(options)
    cluster = cluster_of(options)
    content, old = contents_of(options, cluster)
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
    parser.add_argument("bundle", metavar="BUNDLE", help="what shall run; as for `pratique review`")
    parser.add_argument("--service-account", metavar="NS/NAME", required=True, help="the account that installs it")
    add_old(parser, "what runs now, and is taken for ours")
    parser.add_argument("--install-namespace", metavar="NS", help="default: the namespace of the account")
    parser.add_argument("--kubeconfig", metavar="FILE", type=Path, help="ask this cluster; nothing is changed in it")
    parser.add_argument("--context", default="", help="the context of the kubeconfig to use")
    add_bundle_options(parser)
    parser.add_argument(
        "-o", "--output", choices=("text", "json", "yaml"), default="text", help="yaml: the missing rules only"
    )
    parser.set_defaults(account=RbacSubject("ServiceAccount", ""))


def _run_preflight(options: argparse.Namespace) -> int:
    options.account = account = _account(options.service_account)
    options.install_namespace = options.install_namespace or account.namespace
    options.service_account = account.name
    cluster = cluster_of(options)
    content, old = contents_of(options, cluster)
    inventory = owned(cluster, old) if cluster else {}
    found = pipeline.preflight(cluster, content, account=account, previous=old, inventory=inventory)
    if options.output == "json":
        sys.stdout.write(json.dumps(findings.to_record(found), indent=2, sort_keys=True) + "\n")
    else:
        shown = findings.as_yaml if options.output == "yaml" else findings.as_text
        sys.stdout.write(shown(found))
    return {Severity.SAFE: OK, Severity.UNKNOWN: UNKNOWN}.get(found.verdict, FINDINGS)


def _account(words: str) -> RbacSubject:
    namespace, slash, name = words.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise Usage(f"--service-account {words}: expected NAMESPACE/NAME")
    return RbacSubject("ServiceAccount", name, namespace)


COMMANDS: tuple[ReviewCommand, ...] = (
    ReviewCommand(
        "rbac",
        "who could do what that they could not do before, or, in a whole cluster, who can do what",
        _add_rbac,
        _run_rbac,
        _RBAC_EPILOG,
        unanswered.rbac,
    ),
    ReviewCommand(
        "preflight",
        "whether a ServiceAccount may install a bundle, and the rules that it lacks",
        _add_preflight,
        _run_preflight,
        _PREFLIGHT_EPILOG,
        unanswered.preflight,
    ),
)
