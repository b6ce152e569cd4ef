"""A report in parts: however large it is, an answer stays small and says how much of the report it holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

# Bytes of JSON. A report that is smaller is given whole.
MAX_BYTES = 300_000
_FINDINGS_BYTES = 190_000
_ACTIONS_BYTES = 90_000
_MAX_EVIDENCE_BYTES = 40_000
_SHORTENED = 2_000
_ROOM = 15_000
Record = Mapping[str, Any]


def part_of(report: Record, *, findings_from: int = 0, actions_from: int = 0) -> dict[str, Any]:
    """The report whole where it is small, else as many findings and actions as fit, from these on.

    In a part the actions have no `before` and `after`: each object can be asked for by its position in the plan.
    `parts` says of both lists how many there are, the first that is given and where the next part starts, None at the
    end. Counts of every severity and action stand in every part.
    """
    findings, actions = report["findings"], report["plan"]["actions"]
    if not findings_from and not actions_from and _size(report) <= MAX_BYTES - _ROOM:
        parts = {"findings": _words(findings, 0, len(findings)), "actions": _words(actions, 0, len(actions))}
        return {**report, "is_whole": True, "parts": parts}
    some = _that_fit((_without_bulk(one) for one in findings[findings_from:]), _FINDINGS_BYTES)
    planned = _that_fit((_without_states(one) for one in actions[actions_from:]), _ACTIONS_BYTES)
    return {
        **report,
        "headline": [_cut(sentence) for sentence in report["headline"]],
        "findings": some,
        "plan": {**report["plan"], "actions": planned},
        "is_whole": False,
        "parts": {
            "findings": _words(findings, findings_from, len(some)),
            "actions": _words(actions, actions_from, len(planned)),
        },
    }


def _words(everything: list[Any], first: int, count: int) -> dict[str, int | None]:
    end = first + count
    return {"total": len(everything), "from": first, "count": count, "next": end if end < len(everything) else None}


def _that_fit(records: Iterable[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """One at least, so that the next part always starts further on."""
    fitting: list[dict[str, Any]] = []
    for one in records:
        budget -= _size(one) + 1
        if budget < 0 and fitting:
            break
        fitting.append(one)
    return fitting


def _without_bulk(finding: Record) -> dict[str, Any]:
    """Evidence that alone would fill a part is told by its size."""
    size = _size(finding["evidence"])
    shown = {**finding, "message": _cut(finding["message"])}
    return shown if size <= _MAX_EVIDENCE_BYTES else {**shown, "evidence": {"left_out_bytes": size}}


def _without_states(action: Record) -> dict[str, Any]:
    warnings = [_cut(one) for one in action.get("warnings", [])[:10]]
    short = {"warnings": warnings, "problem": _cut(action["problem"])} if "problem" in action else {}
    return {**action, "before": None, "after": None, "states_left_out": True, **short}


def _cut(text: str) -> str:
    return text if len(text) <= _SHORTENED else f"{text[:_SHORTENED]}…"


def _size(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))
