"""`needs`: the requests that would come before one, because its bundle needs other packages."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from provisioner.api_groups import OWN_GROUP
from provisioner.cli.kubectl.cluster import DEPLOYMENT, VERSION, add_cluster, bare_name, cluster_of, subject_of
from provisioner.cli.kubectl.requests import Reports, format_output, request_uid
from provisioner.cli.kubectl.service import add_service, told_by
from provisioner.cli.kubectl.terminal import page
from provisioner.escaping import visible

HELP = "show what the bundle of a request needs, and the requests that would come first"
EPILOG = """\
Needs a login, and shows packages of catalogs that you may get. -o yaml prints the
BundleDeployments that would be created, in order. To create them with your own
rights, try them first, so that all are created or none:

  kubectl pratique needs NAME -o yaml > first.yaml
  kubectl create --dry-run=server -f first.yaml && kubectl create -f first.yaml
"""
Record = Mapping[str, Any]


def add(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", metavar="NAME", type=bare_name, help="a request or a BundleDeployment")
    add_cluster(sub)
    add_service(sub)
    sub.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: %(default)s")


def show_needs(options: argparse.Namespace) -> int:
    subject = subject_of(cluster_of(options), options.name)
    service = Reports(options).service(subject)
    with told_by(service):
        found = service.get(f"requests/{request_uid(service, subject)}/dependencies")
        objects = [
            {
                "apiVersion": f"{OWN_GROUP}/{VERSION}",
                "kind": DEPLOYMENT,
                "metadata": {"name": one["name"]},
                "spec": one["spec"],
            }
            for one in found["deployments"]
        ]
        text = _needs_text(found)
    page(format_output(options, {"kind": "List", "apiVersion": "v1", "items": objects}, text))
    return 0


def _needs_text(found: Record) -> str:
    if not found["needs"]:
        return "It needs no other package, or has ended.\n"
    lines = [f"{need['need']}: {need['state']}, {need['why']}" for need in found["needs"]]
    if found["deployments"]:
        lines += ["", "These requests would come first:"]
    for number, one in enumerate(found["deployments"], 1):
        spec = one["spec"]
        place = (
            f"deployment {one['name']} in namespace {spec['installNamespace']}, account {spec['serviceAccountName']}"
        )
        lines.append(f"{number}. {one['package']} {one['version']} of catalog {one['catalog']}: {place}")
        lines += [f"   not checked: {words}" for words in one["unjudged"]]
    lines += [f"Catalogs may be missing: {found['unasked']}"] if found["unasked"] else []
    return "".join(f"{visible(line)}\n" for line in lines)
