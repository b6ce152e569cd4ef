"""A report as JSON, for the database, for files and for other programs; report.schema.json describes it.

The record is complete: what comes back equals what went in. A new VERSION means that a reader has to change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from operator import is_
from typing import Any

from provisioner.errors import BadRecord
from provisioner.review.base.messages import is_as_written
from provisioner.values import (
    Action,
    Finding,
    Note,
    ObjectRef,
    Plan,
    PlannedAction,
    Report,
    Section,
    Severity,
    certainty_of,
    display_name,
)

VERSION = 3
# Until this one the words of the API server stood among ours.
_MIXED_VERSION = 1
# Until this one nothing said of which objects beside the plan a finding is made.
_SOURCELESS_VERSION = 2
# Of a record of that version nobody can say which words are whose, so that all of them count as values.
OLD_WORDS = "Reported before the words of the cluster were kept apart; they are shown to people who may get the object"


def to_record(report: Report) -> dict[str, Any]:
    """The report as plain JSON values. `worst` and `totals` are there for readers that do not count."""
    counted = Counter(finding.severity for finding in report.public)
    return {
        "version": VERSION,
        "headline": list(report.headline),
        "worst": str(report.worst),
        "totals": {str(severity): counted[severity] for severity in Severity},
        "findings": [_finding_record(finding) for finding in report.public],
        "private": [_finding_record(finding) for finding in report.private],
        "plan": {"digest": report.plan.digest, "actions": [_action_record(planned) for planned in report.plan.actions]},
    }


def from_record(record: Mapping[str, Any]) -> Report:
    """The report of a record. Raises BadRecord for what no `to_record` up to this VERSION wrote."""
    try:
        record = upgraded(record)
        if record.get("version") != VERSION:
            raise BadRecord(f"a report of version {record.get('version')!r}; expected {VERSION}")
        private = (replace(finding_from(finding), is_private=True) for finding in record["private"])
        return Report(
            tuple(record["headline"]),
            (*(finding_from(finding) for finding in record["findings"]), *private),
            Plan(tuple(action_from(planned) for planned in record["plan"]["actions"]), record["plan"]["digest"]),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise BadRecord(f"a report that was not written by this version ({type(exc).__name__}: {exc})") from exc


def upgraded(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """`record` in the present version, where it is of an earlier one.

    Of the first version every word about an object is a value. Of the second nobody can say what findings were made of
    beside the plan; they keep the words that everybody could read.
    """
    if record.get("version") == _MIXED_VERSION:
        plan = record["plan"]
        record = {
            **record,
            "version": _SOURCELESS_VERSION,
            "headline": [OLD_WORDS],
            "findings": [
                {
                    **finding,
                    "message": f"{finding['rule']}. {OLD_WORDS}",
                    "serverWords": finding["message"],
                    "withheld": True,
                }
                for finding in record["findings"]
            ],
            "private": [],
            "plan": {
                **plan,
                "actions": [
                    {
                        **planned,
                        "problem": f"It cannot be done as things stand. {OLD_WORDS}" if planned["problem"] else "",
                        "notes": [],
                        "serverWords": planned["problem"],
                    }
                    for planned in plan["actions"]
                ],
            },
        }
    if record.get("version") == _SOURCELESS_VERSION:
        record = {**record, "version": VERSION}
        for part in ("findings", "private"):
            record[part] = [
                {**finding, "sources": [], "certainty": str(certainty_of(finding["evidence"]))}
                for finding in record[part]
            ]
    return record


def _finding_record(finding: Finding) -> dict[str, Any]:
    notes = [
        {"file": note.file, "name": note.name, "params": plain(note.params), "isMinor": note.is_minor}
        for note in finding.notes
    ]
    return {
        "rule": finding.rule,
        "section": str(finding.section),
        "severity": str(finding.severity),
        "certainty": str(finding.certainty),
        "message": finding.message,
        "ref": ref_record(finding.ref) if finding.ref else None,
        "path": list(finding.path),
        "evidence": plain(finding.evidence),
        "verdicts": {question: str(severity) for question, severity in sorted(finding.verdicts.items())},
        "isNew": finding.is_new,
        "fingerprint": finding.fingerprint,
        "serverWords": finding.server_words,
        "sources": [ref_record(source) for source in finding.sources],
        **({"variant": finding.variant} if finding.variant else {}),
        **({"notes": notes} if notes else {}),
        **({"also": list(finding.also)} if finding.also else {}),
        **({"withheld": True} if finding.is_withheld else {}),
    }


def finding_from(record: Mapping[str, Any]) -> Finding:
    """One finding of a record of this VERSION, also as it is shown to who may not see all of it.

    Where the files of the rules no longer have the sentence of a stored report, it stands as it was written.
    """
    found = Finding(
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
        record["serverWords"],
        sources=tuple(_ref(source) for source in record["sources"]),
        also=tuple(record.get("also", ())),  # reports of before said each by itself
        is_withheld=bool(record.get("withheld", False)),
        variant=record.get("variant", ""),
        notes=tuple(
            Note(note["file"], note["name"], note["params"], note["isMinor"]) for note in record.get("notes", ())
        ),
    )
    return found if is_as_written(found) else replace(found, variant="", notes=())


def _action_record(planned: PlannedAction) -> dict[str, Any]:
    return {
        "ref": ref_record(planned.ref),
        "action": str(planned.action),
        "uid": planned.uid,
        "resourceVersion": planned.resource_version,
        "before": plain(planned.before),
        "after": plain(planned.after),
        "isProved": planned.is_proved,
        "warnings": list(planned.warnings),
        "problem": planned.problem,
        "problemCode": planned.problem_code,
        "notes": list(planned.notes),
        "serverWords": planned.server_words,
        **({"owner": planned.owner} if planned.owner else {}),
        **({"returnsAs": planned.returns_as} if planned.returns_as else {}),
    }


def action_from(record: Mapping[str, Any]) -> PlannedAction:
    """One planned action of a record of this VERSION."""
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
        tuple(record["notes"]),
        record["serverWords"],
        record.get("owner", ""),
        record.get("returnsAs", ""),
    )


def ref_record(ref: ObjectRef) -> dict[str, str]:
    """The parts of a reference, as a record of a report names an object."""
    return {"group": ref.group, "version": ref.version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


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
    return display_name(value) if isinstance(value, ObjectRef) else str(value)


class Mark(StrEnum):
    """What a change does to one thing in a picture."""

    NEW = "new"
    GONE = "gone"
    CHANGED = "changed"
    SAME = "as before"

    @property
    def sign(self) -> str:
        return {Mark.NEW: "+", Mark.GONE: "–", Mark.CHANGED: "±", Mark.SAME: "="}[self]

    @classmethod
    def of(cls, *, was: bool, is_: bool) -> Mark:
        """The mark of what was there before or is there after, or both."""
        if was and is_:
            return cls.SAME
        return cls.NEW if is_ else cls.GONE
