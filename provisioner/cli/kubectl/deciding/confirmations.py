"""`confirm`: stand behind a finding exception as a second person, at Pratique's service."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.cluster import add_cluster, bare_name, cluster_of, own_ref
from provisioner.cli.kubectl.login import open_service
from provisioner.cli.kubectl.service import Service, ServiceSilent, add_service, told_by
from provisioner.cli.kubectl.terminal import is_agreed, page
from provisioner.escaping import visible
from provisioner.render import write

HELP = "confirm a finding exception as a second person"
EPILOG = """\
NAME is a FindingException. You are shown its spec as the cluster has it, and you
confirm exactly that: if anything in it changes, it has to be confirmed again.
Kubernetes decides who may (verb approve on findingexceptions). Needs a login
(`login --help`) whose token has the scope decide: create one on the account page
and use `login --token -`.

exit status
  0  confirmed, and the exception counts
  1  confirmed, and it does not count yet: the answer says why
  2  nothing was confirmed
"""
COUNTS, NOT_YET = 0, 1
EXCEPTION, SLUG = "FindingException", "finding-exceptions"
NO_SUCH = 404
Record = Mapping[str, Any]


def add(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", metavar="NAME", type=bare_name, help="a FindingException")
    add_cluster(sub)
    sub.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
    sub.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    add_service(sub)


def confirm(options: argparse.Namespace) -> int:
    live = cluster_of(options).get(own_ref(EXCEPTION, options.name))
    if live is None:
        raise Usage(f"there is no {EXCEPTION} {options.name}: `kubectl get findingexceptions` lists them")
    service = open_service(options, "confirmations are kept by Pratique's service")
    with told_by(service):
        address = _address_of(service, live)
    sys.stderr.write(visible(write(live["spec"]), keep_newlines=True))
    if not is_agreed(options, f"confirm the exception {options.name}, so that guards ignore these findings"):
        raise Usage("nothing was confirmed")
    meta = live["metadata"]
    made = service.post(f"{address}/confirm", {"version": f"{meta['uid']}.{meta['generation']}"})
    with told_by(service):
        ready = made["ready"]
        text = f"{made['name']} is confirmed: {ready['message']}\n"
        counts = bool(ready["status"])
    page(json.dumps(made, indent=2) + "\n" if options.output == "json" else visible(text, keep_newlines=True))
    return COUNTS if counts else NOT_YET


def _address_of(service: Service, live: Record) -> str:
    """Where the service has exactly this object: another cluster may have one of the same name."""
    name, uid = str(live["metadata"]["name"]), live["metadata"]["uid"]
    for proof in service.get("tokens/current")["proofs"]:
        address = f"clusters/{quote(str(proof['cluster']), safe='')}/{SLUG}/{quote(name, safe='')}"
        try:
            found = service.get(address)
        except ServiceSilent as exc:
            if exc.status != NO_SUCH:
                raise
            continue
        if found["uid"] == uid:
            return address
    raise Usage(
        f"{service.url} shows you no {EXCEPTION} {name} of this cluster: does it watch the cluster, and may you get it?"
    )
