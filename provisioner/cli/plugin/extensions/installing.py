"""`rbac`: the account that installs a bundle, and the least rights with which it can."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from provisioner import pipeline
from provisioner.cli.arguments import BUNDLE_EPILOG, DEFAULT_NAMESPACE, add_bundle_options
from provisioner.cli.bundles import contents_of
from provisioner.cli.plugin.extensions.installed import may_be_there
from provisioner.cli.plugin.extensions.manifests import commented
from provisioner.cli.plugin.reading import add_cluster, cluster_of
from provisioner.cli.plugin.terminal import write
from provisioner.cluster.client.api import ClusterClient
from provisioner.escaping import visible
from provisioner.rbac import RbacSubject
from provisioner.render import write_quoted
from provisioner.review.preflight.answer import Preflight, obstacles
from provisioner.review.preflight.findings import as_yaml
from provisioner.values import JsonObject

HELP = "the account that installs a bundle, and the least rights that it needs for it"
EPILOG = f"""\
Prints a ServiceAccount, and roles and bindings with the fewest rights with which it
can install BUNDLE where nothing of it is yet: what it writes, by name; what it has
to hold to write the roles of the bundle; the roles that it binds; hooks of charts,
too. Each rule stands below what it is needed for. Apply it as somebody who may
grant all of it, and name the account in the spec. Whoever asks for the deployment
has to be allowed to impersonate the account.

Your cluster is asked which kinds and roles it has, and is not changed. With
--with-deletion the account may also delete all of it again. Several bundles with
one account need a --role-name each.

{BUNDLE_EPILOG}
exit status
  0  the rights are complete
  1  they are, and something else is in the way: standard error says what
  2  they are not, or could not be found out: standard error says why
"""
OK, IN_THE_WAY, UNKNOWN = 0, 1, 2
ACCOUNT = "installer"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", metavar="BUNDLE", help="what shall run")
    add_cluster(parser)
    parser.add_argument("--install-namespace", metavar="NS", default=DEFAULT_NAMESPACE, help="default: %(default)s")
    parser.add_argument("--service-account", metavar="NAME", default=ACCOUNT, help="default: %(default)s")
    parser.add_argument(
        "--role-name", metavar="NAME", default="", help="of all roles and bindings; default: NS-NAME-installs"
    )
    parser.add_argument("--with-deletion", action="store_true", help="also the rights to delete all of it again")
    add_bundle_options(parser)
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="default: %(default)s")
    parser.set_defaults(old="", old_config=None)


def rbac(options: argparse.Namespace) -> int:
    cluster = cluster_of(options)
    content, _ = contents_of(options, cluster)
    account = RbacSubject("ServiceAccount", options.service_account, options.install_namespace)
    found = pipeline.least_rights(cluster, content, account=account, with_deletion=options.with_deletion)
    _print(options, account, found)
    status = OK
    for code, words in (*_problems(found), *_of_place(cluster, account.namespace)):
        print(f"kubectl pratique: {visible(words)}", file=sys.stderr)
        status = max(status, code)
    return status


def _print(options: argparse.Namespace, account: RbacSubject, found: Preflight) -> None:
    name = options.role_name or f"{account.namespace}-{account.name}-installs"
    first, rules = _account(account), as_yaml(found, name=name)
    if options.output == "json":
        items = [first, *yaml.safe_load_all(rules)]
        write(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n")
        return
    what = Path(options.bundle).name if Path(options.bundle).exists() else options.bundle
    write(commented(visible(f"To install {what} as {account.namespace}/{account.name}")))
    write(write_quoted([first]) + (f"---\n{rules}" if rules else ""))


def _account(account: RbacSubject) -> JsonObject:
    meta = {"name": account.name, "namespace": account.namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}


def _of_place(cluster: ClusterClient, namespace: str) -> Iterator[tuple[int, str]]:
    if not may_be_there(cluster, namespace):
        yield IN_THE_WAY, f"there is no namespace {namespace} for the account: create it before you apply this"


def _problems(found: Preflight) -> Iterator[tuple[int, str]]:
    for one in obstacles(found):
        yield UNKNOWN if one.is_incomplete else IN_THE_WAY, one.words
