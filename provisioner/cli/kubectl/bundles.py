"""`preview` and `rbac`: what a bundle would do to the cluster, and the least rights of the account that installs it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import yaml

from provisioner import pipeline
from provisioner.cli.arguments import (
    BUNDLE_EPILOG,
    DEFAULT_NAMESPACE,
    Usage,
    add_bundle_options,
    add_review_bundles,
    add_review_options,
)
from provisioner.cli.inputs import read_contents
from provisioner.cli.kubectl.apis import may_be_there
from provisioner.cli.kubectl.cluster import add_cluster, cluster_of
from provisioner.cli.kubectl.grants import comment_lines
from provisioner.cli.kubectl.terminal import is_coloured, page, write
from provisioner.cli.review import review_against
from provisioner.escaping import visible
from provisioner.rbac import RbacSubject
from provisioner.render import write_quoted
from provisioner.review.preflight.answer import obstacles
from provisioner.review.preflight.findings import as_yaml

PREVIEW_HELP = "show what a bundle would do to your cluster, before you request it"
PREVIEW_EPILOG = f"""\
The report is made on this machine with your kubeconfig. The API server tries
each object as a dry run; nothing is changed. The report says what you may not
read or do. With --service-account, objects are tried as the account that would
install them, which you must be allowed to impersonate. No request is created,
and Pratique's service is not contacted.

{BUNDLE_EPILOG}
exit status
  0  no finding at or above --fail-on
  1  at least one finding at or above --fail-on
  2  an error, or an unknown finding and nothing worse
"""


def add_preview(parser: argparse.ArgumentParser) -> None:
    add_review_bundles(parser)
    add_cluster(parser)
    add_review_options(parser)


def preview(options: argparse.Namespace) -> int:
    if options.service_account and options.acting_as:
        raise Usage("--service-account and --as both say whose rights are tried: give one of them")
    return review_against(cluster_of(options), options, colours=is_coloured(options), tell=page)


RBAC_HELP = "print the account that installs a bundle, with the least rights that it needs"
RBAC_EPILOG = f"""\
Prints a ServiceAccount, and roles and bindings with the fewest rights with which
it can install BUNDLE for the first time: to write its objects, by name; to write
and bind its roles; and to run chart hooks. Each rule has a comment with what it
is for. Apply it as someone who may grant all of it, and name the account in the
spec. The requester of the deployment must be allowed to impersonate the account.

Your cluster is read for its kinds and roles, and is not changed. With
--with-deletion the account may also delete everything again. If several bundles
share an account, give each its own --role-name.

{BUNDLE_EPILOG}
exit status
  0  the rights are complete
  1  the rights are complete, but something else blocks the installation:
     standard error says what
  2  the rights are incomplete, or an error: standard error says why
"""
OK, IN_THE_WAY, UNKNOWN = 0, 1, 2
ACCOUNT = "installer"


def add_rbac(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", metavar="BUNDLE", help="the new bundle; see below")
    add_cluster(parser)
    parser.add_argument("--install-namespace", metavar="NS", default=DEFAULT_NAMESPACE, help="default: %(default)s")
    parser.add_argument("--service-account", metavar="NAME", default=ACCOUNT, help="default: %(default)s")
    parser.add_argument(
        "--role-name",
        metavar="NAME",
        default="",
        help="name prefix for the roles and bindings; default: NS-NAME-installs",
    )
    parser.add_argument(
        "--with-deletion", action="store_true", help="also include the rights to delete everything again"
    )
    add_bundle_options(parser)
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="default: %(default)s")
    parser.set_defaults(old="", old_config=None)


def rbac(options: argparse.Namespace) -> int:
    cluster = cluster_of(options)
    content, _ = read_contents(options, cluster)
    account = RbacSubject("ServiceAccount", options.service_account, options.install_namespace)
    found = pipeline.least_rights(cluster, content, account=account, with_deletion=options.with_deletion)
    name = options.role_name or f"{account.namespace}-{account.name}-installs"
    meta = {"name": account.name, "namespace": account.namespace}
    first, rules = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}, as_yaml(found, name=name)
    if options.output == "json":
        items = [first, *yaml.safe_load_all(rules)]
        write(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n")
    else:
        what = Path(options.bundle).name if Path(options.bundle).exists() else options.bundle
        write(comment_lines(visible(f"To install {what} as {account.namespace}/{account.name}")))
        write(write_quoted([first]) + (f"---\n{rules}" if rules else ""))
    problems = [(UNKNOWN if obstacle.is_incomplete else IN_THE_WAY, obstacle.words) for obstacle in obstacles(found)]
    if not may_be_there(cluster, account.namespace):
        words = f"there is no namespace {account.namespace} for the account: create it before you apply this"
        problems.append((IN_THE_WAY, words))
    for _, words in problems:
        print(f"kubectl pratique: {visible(words)}", file=sys.stderr)
    return max((status for status, _ in problems), default=OK)
