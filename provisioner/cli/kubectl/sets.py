"""`set`: the change sets that Pratique's service knows, and one decision for members that are alike."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.cluster import add_cluster
from provisioner.cli.kubectl.login import open_service
from provisioner.cli.kubectl.requests import format_output
from provisioner.cli.kubectl.service import Service, add_service, told_by
from provisioner.cli.kubectl.tables import table
from provisioner.cli.kubectl.terminal import is_agreed, page, read_one_document
from provisioner.escaping import visible
from provisioner.render import YamlLimits
from provisioner.sentences import and_more, number
from provisioner.values import Severity

OK, NOT_ALL = 0, 1
DECISIONS = {"approve": "Approve", "deny": "Deny"}
# What is done with the order of a set, by the part of the address.
ORDERS = {"order": "order", "approve-ring": "order/approve", "take-out": "order/take-out", "end-order": "order/end"}
LIMITS = YamlLimits(max_file_bytes=1_000_000, max_documents=2, max_nodes=20_000, max_characters=1_000_000)
# As many as the service takes at once, and as many lines as are read of a list.
MOST_DECIDED = 50
MOST_SHOWN = 50
# What is worse than notable is approved in the browser, where its name has to be typed.
SERIOUS = Severity.DANGEROUS
HELP = "list change sets, show one by groups that are alike, decide on a group, or apply its members in rings"
EPILOG = """\
A set is all BundleDeployments with the same label core.rukpak.io/set, on all
clusters that you can read. Members are alike if their purpose, options, rendered
objects, planned actions and findings are the same.

set                    list the sets
set NAME               show the groups of a set, and how they differ
set NAME approve       approve the members of a group, after you confirm
set NAME deny          deny them; needs --reason
set NAME order -f FILE give the set an order: FILE is YAML with rings, and with
                       onFailure and members (lists of cluster, deployment)
set NAME approve-ring  let the ring after --ring start; needs --reason
set NAME take-out      remove --member from the order; needs --reason
set NAME end-order     apply each member as soon as it is approved

The group is the largest one, or that of --group. Each member gets a review of its
own, and Kubernetes is asked about each. Needs a login (`login --help`); to decide,
its token must have the scope decide: create one on the account page and use
`login --token -`. Groups with dangerous or worse findings are approved in the
browser.

exit status
  0  done
  1  some members were refused: the list says which and why
  2  an error, or wrong usage
"""
Record = Mapping[str, Any]


def add(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", metavar="NAME", nargs="?", default="", help="name of a set")
    actions = [*DECISIONS, *ORDERS]
    sub.add_argument("action", choices=actions, nargs="?", default=None, help="decide on a group, or order the set")
    sub.add_argument("--group", metavar="N", type=int, default=1, help="number of the group; default: %(default)s")
    sub.add_argument("-f", "--filename", metavar="FILE", default="", help="rings of the order, as YAML; - is stdin")
    sub.add_argument("--ring", default="", help="for approve-ring: name of the ring that is healthy")
    sub.add_argument("--member", metavar="CLUSTER/NAME", default="", help="for take-out: the deployment")
    sub.add_argument("--reason", default="", help="reason, shown to the requesters and kept in the record")
    acknowledges = "a deletion, replacement or adoption in the plan that you accept; can be repeated"
    sub.add_argument("--acknowledge", metavar="ACTION", action="append", default=[], help=acknowledges)
    sub.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
    sub.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: %(default)s")
    add_service(sub)
    add_cluster(sub)


def run(options: argparse.Namespace) -> int:
    service = open_service(options, "sets are read at Pratique's service")
    address = f"sets/{quote(options.name, safe='')}" if options.name else "sets"
    found = {} if options.action in ORDERS else service.get(address)
    with told_by(service):
        if options.action in ORDERS:
            status, record, lines = OK, *_change_order(options, service, address)
        elif options.action:
            status, record, lines = _decide(options, service, address, found)
        else:
            status, record, lines = OK, found, list(_set_lines(found) if options.name else _list_lines(found))
    text = "".join(f"{visible(line)}\n" for line in lines)
    page(format_output(options, record, text))
    return status


def _decide(
    options: argparse.Namespace, service: Service, address: str, found: Record
) -> tuple[int, Record, list[str]]:
    """The exit status, what the service answered, and that in words."""
    groups = found["groups"]
    if not 0 < options.group <= len(groups):
        raise Usage(f"set {options.name} has {number(len(groups), 'group')}: `kubectl pratique set {options.name}`")
    group = groups[options.group - 1]
    left = [member for member in group["members"] if not member["has_decided"]]
    if not left:
        raise Usage(f"you have decided on all members of group {options.group}")
    if options.action == "deny" and not options.reason.strip():
        raise Usage("--reason is missing: say what has to change")
    if options.action == "approve" and group["only_on_own_page"]:
        raise Usage(f"approve each request of group {options.group} on its own page: {group['only_on_own_page']}")
    if options.action == "approve" and (not group["worst"] or Severity(group["worst"]).is_at_least(SERIOUS)):
        # As with other channels that do not show whole reports (S32).
        raise Usage(
            f"group {options.group} has a {group['worst'] or 'missing'} finding: approve it at {service.url}/{address}"
        )
    members = [member for member in left if member["request"] == group["shown"]]
    members += [member for member in left if member["request"] != group["shown"]][: MOST_DECIDED - len(members)]
    sys.stderr.write("".join(f"{visible(line)}\n" for line in _group_lines(options.group, group)))
    if not is_agreed(options, f"{options.action} {number(len(members), 'request')} of set {options.name}"):
        raise Usage("nothing was decided")
    wish = {
        "decision": DECISIONS[options.action],
        "shown": members[0]["request"],
        "members": [{name: member[name] for name in ("request", "subject_digest")} for member in members],
        "reason": options.reason,
        "acknowledges": options.acknowledge,
    }
    answer = service.post(f"{address}/review", wish)
    results = answer["results"]
    lines = [
        f"{one['cluster']}/{one['deployment']}: {'recorded' if one['recorded'] else 'refused: ' + one['detail']}"
        for one in results
    ]
    if len(members) < len(left):
        lines.append(f"{number(len(left) - len(members), 'member')} left: run the command again")
    return OK if all(one["recorded"] for one in results) else NOT_ALL, answer, lines


def _change_order(options: argparse.Namespace, service: Service, address: str) -> tuple[Record, list[str]]:
    """What the service answered, and that in words."""
    action = options.action
    if action == "order":
        wish = _order_of(options.filename)
        made = service.post(f"{address}/{ORDERS[action]}", wish)
        return made, list(_order_lines(made))
    if not options.reason.strip():
        raise Usage("--reason is missing: say why the set may continue")
    wish = {"reason": options.reason}
    if action == "approve-ring":
        wish["ring"] = options.ring
        words = f"approve the ring after {options.ring} of set {options.name}"
    elif action == "take-out":
        wish["cluster"], _, wish["deployment"] = options.member.partition("/")
        words = f"remove {options.member} from the order of set {options.name}"
    else:
        words = f"end the order of set {options.name}"
    if action != "end-order" and "" in wish.values():
        raise Usage("--ring is missing" if action == "approve-ring" else "--member is not CLUSTER/NAME")
    if action == "approve-ring":
        order = service.get(address)["order"] or {"rings": []}
        versions = {ring["name"]: ring["version"] for ring in order["rings"]}
        if options.ring not in versions:
            raise Usage(f"set {options.name} has no order with a ring {options.ring}")
        # What is shown here is what the approval is bound to.
        wish["version"] = versions[options.ring]
        sys.stderr.write("".join(f"{visible(line)}\n" for line in _order_lines(order)))
    if not is_agreed(options, words):
        raise Usage("nothing was changed")
    service.post(f"{address}/{ORDERS[action]}", wish)
    return {"done": action}, [f"done: {words}"]


def _order_of(name: str) -> dict[str, Any]:
    """The body that a file means."""
    if not name:
        raise Usage("-f FILE is missing: a file with rings")
    found = read_one_document(name, LIMITS, "order of a set, with a list of rings")
    if not isinstance(found.get("rings"), list):
        raise Usage(f"{name} has no list of rings")
    if unknown := sorted(found.keys() - {"rings", "members", "onFailure"}):
        raise Usage(f"{name} has the field {unknown[0]}; expected rings, members and onFailure")
    names = {"rings": "rings", "members": "members", "onFailure": "on_failure"}
    return {names[key]: value for key, value in found.items()}


def _order_lines(order: Record) -> Iterator[str]:
    yield f"order, made by {order['made_by']}; if a deployment fails on a cluster: {order['on_failure']}"
    for ring in order["rings"]:
        state = "complete" if not ring["waits_for"] else "in progress" if ring["has_begun"] else "not started"
        yield f"  ring {ring['name']}: {state}"
        yield from (f"    {words}" for words in ring["waits_for"])
        for member in ring["members"][:MOST_SHOWN]:
            why = f": {member['why']}" if member["why"] else ""
            yield f"    {member['cluster']}/{member['deployment']} {member['state']}{why}"
        if ring["hidden"]:
            yield f"    {number(ring['hidden'], 'member')} on clusters that you cannot read"


def _list_lines(found: Record) -> Sequence[str]:
    heads = ("NAME", "WORST", "MEMBERS", "OPEN", "DECIDED")
    rows = [
        (one["name"], one["worst"], *(str(one[name]) for name in ("members", "open", "decided")))
        for one in found["results"]
    ]
    return table(heads, rows).splitlines() if rows else ("No sets on the clusters that you can read.",)


def _set_lines(found: Record) -> Iterator[str]:
    if found.get("order"):
        yield from (*_order_lines(found["order"]), "")
    for position, group in enumerate(found["groups"], 1):
        yield from _group_lines(position, group)
        yield ""
    if found["more_groups"]:
        yield f"{number(found['more_groups'], 'more group')}, not shown"
    if found["alone"]:
        yield f"{number(len(found['alone']), 'member')} not compared:"
        yield from (f"  {_member_words(one['member'])}: {one['why']}" for one in found["alone"][:MOST_SHOWN])
    if found["settled"]:
        states = Counter(str(member["state"]) for member in found["settled"])
        yield f"Not in review: {', '.join(f'{count} {state}' for state, count in sorted(states.items()))}"


def _group_lines(position: int, group: Record) -> Iterator[str]:
    members = group["members"]
    yield f"group {position}: {number(len(members), 'member')}, worst new finding {group['worst']}"
    for line in group["findings"]:
        times = f" ({line['count']} times)" if line["count"] > 1 else ""
        yield f"  {line['severity']}  {line['rule']} {line['message']}{times}"
    if group["other_findings"]:
        yield f"  {number(group['other_findings'], 'finding')} safe or not new"
    if (differences := group["differences"]) is not None:
        yield "  compared with group 1:"
        for change in differences["findings"]:
            where = {"new": "only here", "gone": "only in group 1"}.get(change["change"], f"worse, was {change['was']}")
            yield f"    {where}: {change['severity']} {change['message']}"
        for change in differences["objects"]:
            now, was = (change[name] or "not in the plan" for name in ("now", "was"))
            yield f"    {change['object']}: {now}, {'other content' if now == was else f'in group 1 {was}'}"
        left = differences["more_findings"] + differences["more_objects"]
        if left:
            yield f"    {number(left, 'more difference')}"
    if group["only_on_own_page"]:
        yield f"  approve each on its own page: {group['only_on_own_page']}"
    yield from (f"  {_member_words(member)}" for member in members[:MOST_SHOWN])
    if more := and_more(len(members) - MOST_SHOWN, "members"):
        yield f"  {more}"


def _member_words(member: Record) -> str:
    decided = ", decided by you" if member["has_decided"] else ""
    return f"{member['cluster']}/{member['deployment']} request {member['number']}{decided}"
