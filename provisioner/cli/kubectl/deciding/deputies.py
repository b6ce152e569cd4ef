"""`deputy`: let somebody hold a ClusterRole for you until a time, as the caller; or end that, or list who does.

The caller writes the binding, so Kubernetes gives no more than they hold. A Deputy owns it: Pratique deletes the Deputy
at its end, and Kubernetes then deletes the binding.
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from provisioner.api_groups import OWN_GROUP, RBAC_GROUP
from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.cluster import (
    VERSION,
    Record,
    add_cluster,
    ask_identity,
    bare_name,
    cluster_of,
    list_kind,
    own_ref,
)
from provisioner.cli.kubectl.tables import table
from provisioner.cli.kubectl.terminal import is_agreed, page
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import ClusterError, Forbidden, PreconditionFailed, UnknownKind
from provisioner.escaping import visible

HELP = "let somebody hold a ClusterRole for you until a time"
EPILOG = """\
deputy                        list the deputies of the cluster
deputy USER --until TIME      make USER your deputy
deputy --end NAME             end it now, by the name of the Deputy

Creates a Deputy, and the ClusterRoleBinding that it owns, as you: Kubernetes lets
you bind a role only if you hold all that is in it, or the verb bind on it. Pratique
deletes the Deputy at its end, and Kubernetes then deletes the binding. What a deputy
approved and is not applied by then needs another approval. In approval rules, parts
with clusterRoles count deputies; parts with groups or users do not.

exit status
  0  done
  2  it was refused, or an error; what was written is deleted again, or named
"""
DEPUTY, MANAGER = "Deputy", "kubectl-pratique"
DEFAULT_ROLE = "pratique-approver"
LONGEST = timedelta(days=92)
# As approvals.deciding.deputies has it, by which the service knows the binding.
BINDING_PREFIX = "pratique:deputy:"
LABEL, ENDS_AT, DEPUTY_OF = (f"{OWN_GROUP}/{name}" for name in ("deputy", "ends-at", "deputy-of"))
MAX_NAME, MAX_REASON = 253, 1000
_UNNAMED = re.compile(r"[^a-z0-9]+")
# Of a Deputy that is not there yet, for trying.
NO_UID = "00000000-0000-0000-0000-000000000000"


def add(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("user", metavar="USER", nargs="?", default="", help="the deputy, by the name that Kubernetes has")
    add_cluster(sub)
    until = "when it ends, such as 2026-12-24T18:00 or 2026-12-24; default zone: this machine's; at most 92 days"
    sub.add_argument("--until", metavar="TIME", default="", help=until)
    sub.add_argument("--role", metavar="CLUSTERROLE", default=DEFAULT_ROLE, help="default: %(default)s")
    whose = "whose deputy; default: you. Of others: administrators only"
    sub.add_argument("--for", metavar="USER", dest="deputy_for", default="", help=whose)
    sub.add_argument("--reason", default="", help="reason, for who reads the list")
    sub.add_argument("--end", metavar="NAME", type=bare_name, default="", help="end this Deputy now")
    sub.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
    sub.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")


def run(options: argparse.Namespace) -> int:
    if options.end and (options.user or options.until):
        raise Usage("--end goes with the name of a Deputy alone: `kubectl pratique deputy` lists them")
    api = cluster_of(options)
    if options.end:
        return _end(api, options)
    return _make(api, options) if options.user else _list(api, options)


def _list(api: ClusterClient, options: argparse.Namespace) -> int:
    if options.until:
        raise Usage("USER is missing: who shall be deputy")
    found = sorted(list_kind(api, DEPUTY), key=lambda one: str(one["spec"]["until"]))
    if options.output == "json":
        page(json.dumps({"kind": "List", "apiVersion": "v1", "items": found}, indent=2, sort_keys=True) + "\n")
        return 0
    rows = [
        tuple(str(value or "") for value in (one["metadata"]["name"], *map(one["spec"].get, _COLUMNS))) for one in found
    ]
    heads = ("NAME", "USER", "DEPUTY OF", "CLUSTERROLE", "UNTIL", "REASON")
    page(table(heads, rows) if rows else "There are no deputies.\n")
    return 0


_COLUMNS = ("user", "deputyFor", "clusterRole", "until", "reason")


def _make(api: ClusterClient, options: argparse.Namespace) -> int:
    now, end = datetime.now(UTC), _read_end(options.until)
    if not now < end <= now + LONGEST:
        raise Usage(f"--until is {end:%Y-%m-%d %H:%M} UTC; expected a time of the next {LONGEST.days} days")
    if len(options.reason) > MAX_REASON:
        raise Usage(f"--reason has {len(options.reason)} characters; at most {MAX_REASON} are allowed")
    owner = options.deputy_for or ask_identity(api).username
    for name in (options.user, owner):
        if not name.strip() or not name.isprintable() or len(name) > MAX_NAME or name.startswith("system:"):
            raise Usage(f"{name[:80]!r} is not the name of a person; expected one as Kubernetes has it")
    if options.user == owner:
        raise Usage(f"{owner} cannot be their own deputy")
    until = f"{end:%Y-%m-%dT%H:%M:%SZ}"
    stem = _UNNAMED.sub("-", options.user.lower())[:40].strip("-") or "deputy"
    deputy: dict[str, Any] = {
        "apiVersion": f"{OWN_GROUP}/{VERSION}",
        "kind": DEPUTY,
        "metadata": {"name": f"{stem}-{secrets.token_hex(3)}"},
        "spec": {"user": options.user, "deputyFor": owner, "clusterRole": options.role, "until": until},
    }
    if options.reason:
        deputy["spec"]["reason"] = options.reason
    # Both are tried before either is written.
    _write("it was not written", lambda: api.create(deputy, field_manager=MANAGER, dry_run=True))
    trial = _binding_of(deputy, NO_UID)
    _write("the binding would be refused", lambda: api.create(trial, field_manager=MANAGER, dry_run=True))
    if not is_agreed(options, f"let {options.user} hold ClusterRole {options.role} for {owner} until {until}"):
        raise Usage("nothing was written")
    made = _write("it was not written", lambda: api.create(deputy, field_manager=MANAGER))
    try:
        api.create(_binding_of(made, str(made["metadata"]["uid"])), field_manager=MANAGER)
    except ClusterError as exc:
        left = _undo(api, made)
        raise Usage(f"the binding was not written: {exc.server_words or exc}. {left}") from exc
    name = made["metadata"]["name"]
    if options.output == "json":
        page(json.dumps(made, indent=2, sort_keys=True) + "\n")
    else:
        print(f"{visible(options.user)} is deputy of {visible(owner)} until {until}")
    print(f"End it before with: kubectl pratique deputy --end {name}", file=sys.stderr)
    return 0


def _read_end(text: str) -> datetime:
    """A day ends when it does; what names no zone is of this machine's."""
    try:
        at = datetime.fromisoformat(text)
        return (at + timedelta(days=1) if len(text) == len("2026-12-24") else at).astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise Usage(f"--until is {text[:40]!r}; expected a time such as 2026-12-24T18:00, or a day") from exc


def _binding_of(deputy: Record, uid: str) -> dict[str, Any]:
    """The binding that the Deputy of this uid owns."""
    name, spec = deputy["metadata"]["name"], deputy["spec"]
    owner = {"apiVersion": deputy["apiVersion"], "kind": DEPUTY, "name": name, "uid": uid}
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {
            "name": f"{BINDING_PREFIX}{uid}",
            "labels": {LABEL: "true"},
            "annotations": {ENDS_AT: spec["until"], DEPUTY_OF: spec["deputyFor"]},
            "ownerReferences": [owner],
        },
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": spec["clusterRole"]},
        "subjects": [{"apiGroup": RBAC_GROUP, "kind": "User", "name": spec["user"]}],
    }


def _write(what: str, write: Callable[[], Record]) -> Record:
    try:
        return write()
    except UnknownKind:
        raise
    except ClusterError as exc:
        raise Usage(f"{what}. Kubernetes says: {exc.server_words or exc}") from exc


def _undo(api: ClusterClient, made: Record) -> str:
    """Delete the Deputy again, which gives no right without a binding; what became of it, in words."""
    name = made["metadata"]["name"]
    try:
        api.delete(own_ref(DEPUTY, name), uid=str(made["metadata"]["uid"]))
    except ClusterError:
        return f"Deputy {name} is left, and gives no right: delete it with `kubectl delete deputy {name}`"
    return "Nothing is left"


def _end(api: ClusterClient, options: argparse.Namespace) -> int:
    live = api.get(own_ref(DEPUTY, options.end))
    if live is None:
        raise Usage(f"there is no Deputy {options.end}: `kubectl pratique deputy` lists them")
    spec = live["spec"]
    if not is_agreed(options, f"end that {spec['user']} is deputy of {spec['deputyFor']}"):
        raise Usage("nothing was ended")
    try:
        api.delete(own_ref(DEPUTY, options.end), uid=str(live["metadata"]["uid"]))
    except PreconditionFailed as exc:
        raise Usage(f"{options.end} was made anew meanwhile: run the command again") from exc
    except Forbidden as exc:
        raise Usage(f"it was not ended. Kubernetes says: {exc.server_words or exc}") from exc
    print(f"{visible(str(spec['user']))} is no longer deputy of {visible(str(spec['deputyFor']))}")
    return 0
