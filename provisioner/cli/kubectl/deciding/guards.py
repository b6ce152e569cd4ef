"""`guard`: the guards that come with Pratique, and switching one on or off for a cluster, at Pratique's service."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.login import open_service
from provisioner.cli.kubectl.service import Service, add_service, told_by
from provisioner.cli.kubectl.tables import table
from provisioner.cli.kubectl.terminal import is_agreed, page

HELP = "list the built-in guards of clusters, or switch one on or off"
EPILOG = """\
guard                             list them, for all clusters that you can read
guard NAME on --cluster CLUSTER   switch one on
guard NAME off --cluster CLUSTER  switch it off: it holds nothing there any more

CLUSTER is the name that Pratique has for it. To switch one takes approve on all
deployments of the cluster. Needs a login (`login --help`); to switch one, its token
must have the scope decide: create one on the account page, then `login --token -`.
"""
MOST_PAGES = 20
Record = Mapping[str, Any]


def add(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", metavar="NAME", nargs="?", default="", help="a built-in guard")
    sub.add_argument("state", choices=("on", "off"), nargs="?", default=None, help="what it shall be")
    sub.add_argument("--cluster", metavar="CLUSTER", default="", help="the cluster, by its name in Pratique")
    sub.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
    sub.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    add_service(sub)


def run(options: argparse.Namespace) -> int:
    service = open_service(options, "built-in guards are switched at Pratique's service")
    if options.name and not (options.state and options.cluster):
        raise Usage("say what it shall be, and where: guard NAME on|off --cluster CLUSTER")
    if options.name:
        if not is_agreed(options, f"switch guard {options.name} {options.state} for cluster {options.cluster}"):
            raise Usage("nothing was switched")
        address = f"clusters/{quote(options.cluster, safe='')}/built-in-guards/{quote(options.name, safe='')}"
        found = [service.put(address, {"is_active": options.state == "on"})]
    else:
        with told_by(service):
            found = [one for one in _policies(service) if one["is_built_in"]]
    with told_by(service):
        rows = [(one["name"], one["cluster"], "on" if one["is_active"] else "off", one["message"]) for one in found]
    if options.output == "json":
        page(json.dumps(found, indent=2) + "\n")
    else:
        page(table(("NAME", "CLUSTER", "STATE", "HOLDS"), rows) if rows else "No built-in guards.\n")
    return 0


def _policies(service: Service) -> Iterator[Record]:
    cursor = ""
    for _ in range(MOST_PAGES):
        found = service.get("policies", cursor=cursor)
        yield from found["results"]
        following = parse_qs(urlsplit(found["next"] or "").query).get("cursor")
        if not following:
            return
        cursor = following[0]
