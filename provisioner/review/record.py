"""A report as JSON, for the database, for files and for other programs; report.schema.json describes it.

The record is complete: what comes back equals what went in. A new VERSION means that a reader has to change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import is_
from typing import Any

from provisioner.errors import BadRecord
from provisioner.values import Action, Finding, ObjectRef, Plan, PlannedAction, Report, Section, Severity

VERSION = 1


def to_record(report: Report) -> dict[str, Any]:
    """The report as plain JSON values. `worst` and `totals` are there for readers that do not count."""
    counted = Counter(one.severity for one in report.findings)
    return {
        "version": VERSION,
        "headline": list(report.headline),
        "worst": str(report.worst),
        "totals": {str(severity): counted[severity] for severity in Severity},
        "findings": [_finding_record(one) for one in report.findings],
        "plan": {"digest": report.plan.digest, "actions": [_action_record(one) for one in report.plan.actions]},
    }


def from_record(record: Mapping[str, Any]) -> Report:
    """The report of a record. Raises BadRecord for what `to_record` of this VERSION did not write."""
    if record.get("version") != VERSION:
        raise BadRecord(f"a report of version {record.get('version')!r}; expected {VERSION}")
    try:
        return Report(
            tuple(record["headline"]),
            tuple(_finding(one) for one in record["findings"]),
            Plan(tuple(_action(one) for one in record["plan"]["actions"]), record["plan"]["digest"]),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise BadRecord(f"a report that was not written by this version ({type(exc).__name__}: {exc})") from exc


def _finding_record(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "section": str(finding.section),
        "severity": str(finding.severity),
        "message": finding.message,
        "ref": _ref_record(finding.ref) if finding.ref else None,
        "path": list(finding.path),
        "evidence": plain(finding.evidence),
        "verdicts": {question: str(severity) for question, severity in sorted(finding.verdicts.items())},
        "isNew": finding.is_new,
        "fingerprint": finding.fingerprint,
    }


def _finding(record: Mapping[str, Any]) -> Finding:
    return Finding(
        record["rule"],
        Section(record["section"]),
        Severity(record["severity"]),
        record["message"],
        _ref(record["ref"]) if record["ref"] else None,
        tuple(record["path"]),
        record["evidence"],
        {question: Severity(severity) for question, severity in record["verdicts"].items()},
        record["isNew"],
        record["fingerprint"],
    )


def _action_record(planned: PlannedAction) -> dict[str, Any]:
    return {
        "ref": _ref_record(planned.ref),
        "action": str(planned.action),
        "uid": planned.uid,
        "resourceVersion": planned.resource_version,
        "before": plain(planned.before),
        "after": plain(planned.after),
        "isProved": planned.is_proved,
        "warnings": list(planned.warnings),
        "problem": planned.problem,
        "problemCode": planned.problem_code,
    }


def _action(record: Mapping[str, Any]) -> PlannedAction:
    return PlannedAction(
        _ref(record["ref"]),
        Action(record["action"]),
        record["uid"],
        record["resourceVersion"],
        record["before"],
        record["after"],
        record["isProved"],
        tuple(record["warnings"]),
        record["problem"],
        record["problemCode"],
    )


def _ref_record(ref: ObjectRef) -> dict[str, str]:
    return {
        "group": ref.group,
        "version": ref.version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
    }


def _ref(record: Mapping[str, str]) -> ObjectRef:
    return ObjectRef(record["group"], record["version"], record["kind"], record["namespace"], record["name"])


def plain(value: object) -> Any:
    """`value` in the types that JSON has: evidence may hold tuples, sets, enums and read-only mappings.

    What is plain already is not copied, for a report holds every object of a bundle twice.
    """
    if isinstance(value, Mapping):
        made = {str(key): plain(inner) for key, inner in value.items()}
        is_plain = type(value) is dict and all(map(is_, made, value)) and all(map(is_, made.values(), value.values()))
        return value if is_plain else made
    if isinstance(value, list | tuple):
        members = [plain(inner) for inner in value]
        return value if type(value) is list and all(map(is_, members, value)) else members
    if isinstance(value, set | frozenset):
        return sorted((plain(inner) for inner in value), key=str)
    if isinstance(value, bool | int | float) or value is None:
        return value
    return str(value)
