"""`rules` and `window`: whose approvals a request still needs, and when a deployment may be applied next."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.cluster import add_cluster, bare_name, cluster_of, list_kind, subject_of
from provisioner.cli.kubectl.requests import Reports, format_output, request_uid
from provisioner.cli.kubectl.service import add_service, told_by
from provisioner.cli.kubectl.tables import table
from provisioner.cli.kubectl.terminal import page
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden
from provisioner.escaping import visible

RULES_HELP = "show the approval rules that select a request, and whose approvals are still needed"
RULES_EPILOG = """\
Needs a login. What each rule selects and asks for is read from the ApprovalRules
in the cluster, if you may list them. `kubectl get approvalrules` lists all rules.
"""
WINDOW_HELP = "show when a deployment may be applied next, by change windows"
WINDOW_EPILOG = """\
`window next NAME` needs a login. It is about the latest request that has a report,
because windows can select by what is in it. Times are in UTC, for a year at most.
"""
RULE = "ApprovalRule"
Record = Mapping[str, Any]


def add_rules(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", metavar="NAME", type=bare_name, help="a request or a BundleDeployment")
    _add_reading(sub)


def add_window(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("action", choices=("next",), help="what to show")
    sub.add_argument("name", metavar="NAME", type=bare_name, help="a BundleDeployment, or a request of it")
    _add_reading(sub)


def _add_reading(sub: argparse.ArgumentParser) -> None:
    add_cluster(sub)
    add_service(sub)
    sub.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: %(default)s")


def show_rules(options: argparse.Namespace) -> int:
    api = cluster_of(options)
    subject = subject_of(api, options.name)
    service = Reports(options).service(subject)
    specs = _list_rules(api)
    with told_by(service):
        found = service.get(f"requests/{request_uid(service, subject)}")
        rules = [_rule_record(standing, specs.get(str(standing["name"]))) for standing in found["approval_rules"]]
        record = {"request": subject.name, "state": str(found["state"]), "approvalRules": rules}
        page(format_output(options, record, _rules_text(record)))
    return 0


def _list_rules(api: ClusterClient) -> dict[str, Record]:
    """The rules of the cluster by name; none where the caller may not list them, which is said."""
    try:
        return {str(rule["metadata"]["name"]): rule for rule in list_kind(api, RULE)}
    except (Forbidden, Usage) as exc:
        words = f"what the rules select is not shown: {getattr(exc, 'server_words', '') or exc}"
        print(f"kubectl pratique: {visible(words)}", file=sys.stderr)
        return {}


def _rule_record(standing: Record, rule: Record | None) -> dict[str, Any]:
    needed, problem = [str(words) for words in standing["needed"]], str(standing["problem"])
    about = {"name": str(standing["name"]), "needed": needed, "problem": problem, "note": str(standing["note"])}
    about["escalated"] = [str(group) for group in standing.get("escalated") or ()]
    if rule is None:
        return about
    summary = str((rule.get("status") or {}).get("summary") or "")
    return {**about, "selects": _selector_words(rule.get("spec") or {}), "asksFor": summary}


def _selector_words(spec: Record) -> str:
    """`names: web-*; minSeverity: dangerous`: the parts of the selector as they were written, and `when`."""
    parts = {**(spec.get("selector") or {}), **({"when": spec["when"]} if spec.get("when") else {})}
    return "; ".join(f"{name}: {_value_words(value)}" for name, value in parts.items() if value) or "every request"


def _value_words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={text}" for key, text in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _rules_text(record: Record) -> str:
    rows = [
        (
            rule["name"],
            "unreadable" if rule["problem"] else "waiting" if rule["needed"] else "satisfied",
            "; ".join(filter(None, (rule["problem"], *rule["needed"], rule["note"]))),
            rule.get("asksFor", ""),
            rule.get("selects", ""),
        )
        for rule in record["approvalRules"]
    ]
    if not rows:
        return f"No approval rule selects {visible(record['request'])}.\n"
    return table(("RULE", "STATE", "STILL NEEDED", "ASKS FOR", "SELECTS"), rows)


def show_window(options: argparse.Namespace) -> int:
    subject = subject_of(cluster_of(options), options.name)
    service = Reports(options).service(subject)
    uid = str(subject.request["spec"]["bundleDeploymentRef"]["uid"])
    with told_by(service):
        found = service.get(f"deployments/{uid}/windows")
        spans = [(_time(one["begins_at"]), _time(one["ends_at"])) for one in found["openings"]]
        text = _window_text(subject.deployment, bool(found["is_open"]), str(found["why"]), spans)
    page(format_output(options, found, text))
    return 0


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _window_text(name: str, is_open: bool, why: str, spans: Sequence[tuple[datetime | None, datetime | None]]) -> str:
    if is_open:
        words = "can be applied now"
    elif spans:
        words = f"cannot be applied now: {why}"
    else:
        words = f"cannot be applied within a year: {why}"
    lines = [f"{name} {words}"]
    for begins_at, ends_at in spans:
        end = f"until {ends_at:%Y-%m-%d %H:%M} UTC" if ends_at else "without an end within a year"
        lines.append(f"  from {begins_at:%Y-%m-%d %H:%M} UTC {end}")
    return "".join(f"{visible(line)}\n" for line in lines)
