"""`stop` and `start`: hold all changes of the cluster, and let them go again, as the caller."""

from __future__ import annotations

import argparse
import secrets
from typing import Any

from provisioner.api_groups import OWN_GROUP
from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.cluster import VERSION, Record, add_cluster, bare_name, cluster_of, list_kind, own_ref
from provisioner.cli.kubectl.terminal import is_agreed
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden, PreconditionFailed
from provisioner.escaping import visible
from provisioner.sentences import number

STOP_HELP = "stop all changes of the cluster, until `start`"
STOP_EPILOG = """\
Creates a ChangeWindow of type Deny without an end, as you, without a question.
Requests can be approved meanwhile; nothing is applied, and drift is not corrected.
If an apply fails, its previous revision is still restored, and a break-glass goes
past the stop.
"""
START_HELP = "end a stop, so that changes of the cluster are applied again"
START_EPILOG = """\
Deletes the ChangeWindow, as you, after you confirm. If there are several stops, name
one; changes are applied once all have ended.
"""
WINDOW = "ChangeWindow"
# As the page has it: a reason stands in lists.
MAX_REASON = 500
HELD = ["Apply", "DriftCorrection", "Restore"]


def add_stop(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("reason", metavar="REASON", help="why, shown to everybody who waits")
    add_cluster(sub)


def add_start(sub: argparse.ArgumentParser) -> None:
    one = "the stop, if there are several"
    sub.add_argument("name", metavar="NAME", nargs="?", type=bare_name, default="", help=one)
    add_cluster(sub)
    sub.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def stop(options: argparse.Namespace) -> int:
    api, reason = cluster_of(options), options.reason.strip()
    if not 0 < len(reason) <= MAX_REASON:
        raise Usage(f"give a reason of up to {MAX_REASON} characters: everybody who waits sees it")
    window: dict[str, Any] = {
        "apiVersion": f"{OWN_GROUP}/{VERSION}",
        "kind": WINDOW,
        "metadata": {"name": f"stop-{secrets.token_hex(4)}"},
        "spec": {"type": "Deny", "description": reason, "appliesTo": HELD},
    }
    try:
        made = api.create(window, field_manager="kubectl-pratique")
    except Forbidden as exc:
        raise Usage(f"nothing was stopped. Kubernetes says: {exc.server_words or exc}") from exc
    name = made["metadata"]["name"]
    print(f"changewindow {name} stops all changes: `kubectl pratique start {name}` ends it")
    return 0


def start(options: argparse.Namespace) -> int:
    api = cluster_of(options)
    stops = {str(window["metadata"]["name"]): window for window in list_kind(api, WINDOW) if _is_stop(window)}
    if options.name and options.name not in stops:
        raise Usage(f"there is no stop {options.name}: `kubectl get changewindows` lists all windows")
    chosen = [stops[options.name]] if options.name else list(stops.values())
    if not chosen:
        raise Usage("nothing is stopped: `kubectl get changewindows` lists other windows")
    if len(chosen) > 1:
        raise Usage(f"there are {number(len(chosen), 'stop')}: name one of {', '.join(sorted(stops))}")
    _end(api, options, chosen[0])
    left = len(stops) - 1
    if left:
        print(f"{number(left, 'other stop')} left: nothing that it selects is applied yet")
    return 0


def _is_stop(window: Record) -> bool:
    spec = window.get("spec") or {}
    return spec.get("type") == "Deny" and not spec.get("dtstart")


def _end(api: ClusterClient, options: argparse.Namespace, window: Record) -> None:
    """Delete exactly the window that was shown."""
    name, why = str(window["metadata"]["name"]), str(window["spec"].get("description") or "no reason given")
    if not is_agreed(options, f"end the stop {name} ({why})"):
        raise Usage("nothing was ended")
    try:
        api.delete(own_ref(WINDOW, name), uid=str(window["metadata"]["uid"]))
    except PreconditionFailed as exc:
        raise Usage(f"{name} was made anew meanwhile: run the command again") from exc
    except Forbidden as exc:
        raise Usage(f"{name} was not ended. Kubernetes says: {exc.server_words or exc}") from exc
    print(f"changewindow {visible(name)} is deleted: what waited for it alone is applied")
