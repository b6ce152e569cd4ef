"""A report in parts: however large it is, an answer stays small and says how much of the report it holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from approvals.access import Caller
from approvals.access.sight import ReportSight, Sight, seen_workloads
from approvals.clock import database_now
from approvals.models import Report, Request
from approvals.selectors.acceptances import Acceptance, acceptances_of
from provisioner.review.base.difference import MAX_PIECES, DiffLine, diff_lines, mask_secret
from provisioner.review.base.messages import unjudged_fields
from provisioner.review.base.record import finding_from
from provisioner.review.output.entries import entries_record
from provisioner.review.workloads.workload_changes import running_record

# Bytes of JSON. A report that is smaller is given whole.
MAX_BYTES = 300_000
_FINDINGS_BYTES = 160_000
_MAX_EVIDENCE_BYTES = 40_000
_SHORTENED = 2_000
_ROOM = 15_000
# Of one line that differs: as much as its pieces hold.
_PIECES = MAX_PIECES + _SHORTENED
# Of one container or workload in a part.
_MAX_SETTINGS = 20
# Of one entry: the fingerprints of so many of its findings.
_MAX_NAMED = 100
_MAX_SETTING = 500
Record = Mapping[str, Any]


# Kubernetes is asked at most this often for one report.
MAX_ASKED = 300


def part_of(report: Record, **starts: int) -> dict[str, Any]:
    """The report whole where it is small, else as many findings, entries, actions, workloads and containers as
    fit, from `findings_from`, `entries_from`, `actions_from`, `workloads_from` and `containers_from` on.

    In a part the actions have no `before` and `after`: each object can be asked for by its position in the plan. Of a
    container the first values stand there, and `settings_left_out` counts the others, as
    `findings_left_out` does of an entry; of a workload's access to nodes
    the first. `parts` says of each list how many there are, the first that is given and where the next part starts,
    None at the end. Counts of every severity and action stand in every part.
    """
    lists = {**{name: report[name] for name in ("findings", "entries", "workloads", "containers")}, **report["plan"]}
    if not any(starts.values()) and _size(report) <= MAX_BYTES - _ROOM:
        return {
            **report,
            "is_whole": True,
            "parts": {name: _part_record(lists[name], 0, len(lists[name])) for name in _PARTS},
        }
    given, parts = {}, {}
    for name, (shortened, budget) in _PARTS.items():
        first = starts.get(f"{name}_from", 0)
        given[name] = _that_fit(map(shortened, lists[name][first:]), budget)
        parts[name] = _part_record(lists[name], first, len(given[name]))
    actions = given.pop("actions")
    return {
        **report,
        **given,
        "headline": [_cut(sentence) for sentence in report["headline"]],
        "plan": {**report["plan"], "actions": actions},
        "is_whole": False,
        "parts": parts,
    }


def changes_of(planned: Record, *, lines_from: int = 0) -> dict[str, Any]:
    """What differs in one object as hunks, as many lines from this one on as fit.

    A hunk has the `place` where it begins, "" at the beginning of the object, and its lines with their numbers before
    and after, 0 where there is none. Of a hidden object there is none.
    """
    told = hunks_of(diff_lines(planned["before"], planned["after"]), lines_from=lines_from)
    return {"ref": planned["ref"], "action": planned["action"], **told}


def hunks_of(lines: Sequence[DiffLine], *, lines_from: int = 0) -> dict[str, Any]:
    """The lines that differ in an object, as `changes_of` has them, and which part of them this is."""
    told = [shown for shown in lines if shown.text or shown.kind != "@"]
    records = (
        {"kind": shown.kind, "text": _cut(shown.text, _PIECES), "old": shown.old, "new": shown.new}
        for shown in told[lines_from:]
    )
    some = _that_fit(records, _FINDINGS_BYTES)
    hunks: list[dict[str, Any]] = []
    for line in some:
        if line["kind"] == "@" or not hunks:
            hunks.append({"place": line["text"] if line["kind"] == "@" else "", "lines": []})
        if line["kind"] != "@":
            hunks[-1]["lines"].append(line)
    return {"hunks": hunks, "parts": {"lines": _part_record(told, lines_from, len(some))}}


def _part_record(everything: Sequence[Any], first: int, count: int) -> dict[str, int | None]:
    end = first + count
    return {"total": len(everything), "from": first, "count": count, "next": end if end < len(everything) else None}


def _that_fit(records: Iterable[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """One at least, so that the next part always starts further on."""
    fitting: list[dict[str, Any]] = []
    for record in records:
        budget -= _size(record) + 1
        if budget < 0 and fitting:
            break
        fitting.append(record)
    return fitting


def _without_bulk(finding: Record) -> dict[str, Any]:
    """Evidence that alone would fill a part is told by its size."""
    size = _size(finding["evidence"])
    shown = {**finding, "message": _cut(finding["message"])}
    return shown if size <= _MAX_EVIDENCE_BYTES else {**shown, "evidence": {"left_out_bytes": size}}


def _with_few_findings(entry: Record) -> dict[str, Any]:
    more = len(entry["findings"]) - _MAX_NAMED
    few = {**entry, "message": _cut(entry["message"]), "findings": entry["findings"][:_MAX_NAMED]}
    return {**few, **({"findings_left_out": more} if more > 0 else {})}


def _with_few_settings(container: Record) -> dict[str, Any]:
    few = [{**setting, "value": setting["value"][:_MAX_SETTING]} for setting in container["settings"][:_MAX_SETTINGS]]
    more = len(container["settings"]) - len(few)
    return {**container, "settings": few, **({"settings_left_out": more} if more else {})}


def _with_little_access(workload: Record) -> dict[str, Any]:
    access = {
        side: [_cut(setting, _MAX_SETTING) for setting in listed[:_MAX_SETTINGS]]
        for side, listed in workload["hostAccess"].items()
    }
    scale = {side: _cut(words, _MAX_SETTING) for side, words in workload["scale"].items()}
    return {**workload, "hostAccess": access, "scale": scale}


def _without_states(action: Record) -> dict[str, Any]:
    warnings = [_cut(warning) for warning in action.get("warnings", [])[:10]]
    short = {"warnings": warnings, "problem": _cut(action["problem"])} if "problem" in action else {}
    return {**action, "before": None, "after": None, "states_left_out": True, **short}


def _cut(text: str, most: int = _SHORTENED) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _size(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))


# How each list is shortened, and into how many bytes it has to fit.
_PARTS: dict[str, tuple[Callable[[Record], dict[str, Any]], int]] = {
    "findings": (_without_bulk, _FINDINGS_BYTES),
    "entries": (_with_few_findings, 30_000),
    "actions": (_without_states, 60_000),
    "workloads": (_with_little_access, 10_000),
    "containers": (_with_few_settings, 20_000),
}


def visible_report(caller: Caller, request: Request, report: Report) -> dict[str, Any]:
    """The report's record without the live values that this caller may not see, the words of the API server among them.

    A hidden object keeps its name and what is planned. `workloads` and `containers` are those of new objects and of
    those that the caller may get, as report.schema.json describes them; `containersHidden` counts the other objects
    that run pods. `entries` tell the findings by cause, made of what this caller sees
    of them. A finding that is accepted says in `accepted` by whom, why and until when.
    """
    body: dict[str, Any] = report.body
    reviews = request.reviews.select_related("replaced_by").exclude(waives=[])
    accepted = acceptances_of(request, report.round, reviews, database_now())
    sight = ReportSight(Sight(caller, request.deployment.cluster, limit=MAX_ASKED), body)
    actions = [_masked(sight.action(action)) for action in body["plan"]["actions"]]
    findings = [
        {**sight.finding(finding), **_accepted(accepted.get(finding["fingerprint"], ()))}
        for finding in body["findings"]
    ]
    running = seen_workloads(sight, body)
    return {
        **body,
        "findings": findings,
        "entries": entries_record(map(finding_from, findings)),
        "unjudged": sum(1 for finding in findings for _ in unjudged_fields(finding["rule"], finding["evidence"])),
        "private": sight.private(body),
        **running_record(running.changes),
        "containersHidden": running.hidden_count,
        "plan": {**body["plan"], "actions": actions},
    }


def _accepted(given: Iterable[Acceptance]) -> dict[str, Any]:
    found = [one.record for one in given]
    return {"accepted": found} if found else {}


def _masked(planned: Record) -> dict[str, Any]:
    """Secrets are masked once more, whatever the writer of the report did."""
    states = {name: planned.get(name) for name in ("before", "after")}
    return {**planned, **{name: mask_secret(obj) if obj else obj for name, obj in states.items()}}
