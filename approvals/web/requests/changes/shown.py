"""What one viewer may see of the objects of a plan (S09): a live object's lines only where they may get it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from approvals import access
from approvals.access import Caller, Permission
from approvals.access.own_words import own_words
from approvals.access.sight import (
    ReportSight,
    Sight,
    exists,
    hidden_action,
    is_in_the_way,
    is_private,
    is_secret,
    reference,
    withheld,
)
from approvals.models import Cluster, Report
from approvals.web.requests.changes.drawing import Drawing, LineNotes, Row
from approvals.web.requests.changes.folding import FoldedLines, Span, Wanted, changes, fold, opened
from approvals.web.requests.changes.placing import LinePlaces
from approvals.web.requests.changes.planned import Planned, object_name
from approvals.web.requests.changes.wishes import Line, Wish
from provisioner.review.base.difference import DiffLine, all_lines
from provisioner.review.base.facts import said
from provisioner.review.visibility.finding_views import OWNERS
from provisioner.values import Action, Severity

# Kubernetes is asked at most this often for one page; what nobody was asked about is hidden.
MAX_ASKED = 30
# Of one object; the others are counted.
MAX_FINDINGS = 100
NEW = Permission(True, "the object is new")
UNASKED = Permission(False, "Open this object alone to see it: the cluster is asked about a limited number of objects.")
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ShownChange:
    """One planned action with its lines, without what the viewer may not see; `permission` says whether and why.

    `findings` stand at no line that is shown, `quiet_findings` are those of them that are no worse than notable;
    `more_findings` counts those left out. `rows` are None where the lines are loaded when somebody opens them.
    """

    planned: Planned
    record: Record
    permission: Permission
    rows: list[Row] | None = None
    findings: list[Record] = field(default_factory=list)
    quiet_findings: list[Record] = field(default_factory=list)
    more_findings: int = 0
    private: list[Record] = field(default_factory=list)
    added: int = 0
    removed: int = 0
    change_count: int = 0
    has_gaps: bool = False
    line_count: int = 0


class ShownChanges:
    """One report as one viewer sees it, object by object."""

    def __init__(self, caller: Caller, cluster: Cluster, report: Report) -> None:
        self._caller, self._cluster = caller, cluster
        self._body = report.body
        self._sight = ReportSight(Sight(caller, cluster, limit=MAX_ASKED, widest_first=False), report.body)
        # All of a plan are asked about, so the kind comes first.
        self._secrets = Sight(caller, cluster, limit=MAX_ASKED)

    def records(self) -> list[tuple[int, Record]]:
        """Every planned action with its position, as this viewer may know it without its object."""
        return [(at, self._public(one)) for at, one in enumerate(self._body["plan"]["actions"])]

    def _public(self, action: Record) -> Record:
        if is_private(action):
            return {**action, "problem": "", "isProved": True}
        if is_in_the_way(action):  # whether it could be tried tells of it
            return {**action, "isProved": False, "notes": [], "warnings": [], "serverWords": ""}
        # Whether a stored Secret is updated or left as it is tells whether it equals the bundle's.
        is_telling = exists(action) and is_secret(action["ref"]) and action["action"] in (Action.UPDATE, Action.NONE)
        if is_telling and not self._secrets.may_see(reference(action["ref"])):
            return hidden_action(action)
        return action

    @property
    def findings(self) -> list[Record]:
        return list(self._body["findings"])

    def headed(self, planned: Planned) -> ShownChange:
        """An object whose lines are loaded when somebody opens it."""
        return ShownChange(planned, planned.record, NEW)

    def change(self, planned: Planned, wish: Wish) -> ShownChange:
        """An object with the lines that a wish asks for."""
        action = self._seen(planned.position)
        permission = self._permission(action)
        if not permission.allowed:
            return ShownChange(planned, hidden_action(action), permission, rows=[])
        lines = all_lines(action["before"], action["after"])
        told, more = self._findings(action)
        placed = self._placed(action, lines, told)
        around = _at(lines, wish.around) | _at(lines, wish.full)
        rows = fold(lines, Wanted(wish.is_whole, wish.opened, around, frozenset(placed)))
        notes = LineNotes(changes(lines, rows), placed, wish.full)
        shown = {id(one) for found in placed.values() for one in found}
        beside = [one for one in told if id(one) not in shown]
        kinds = [one.kind for one in lines]
        return ShownChange(
            planned,
            _without_what_is_told(self._sight.action(action), beside),
            permission,
            rows=_drawn(lines, rows, notes, wish),
            findings=[one for one in beside if _is_loud(one)],
            quiet_findings=[one for one in beside if not _is_loud(one)],
            more_findings=more,
            private=self._private(action),
            added=kinds.count("+"),
            removed=kinds.count("-"),
            change_count=len(notes.changes),
            has_gaps=any(isinstance(one, FoldedLines) for one in rows),
            line_count=len(lines),
        )

    def lines(self, planned: Planned, gap: Span, span: Span, wish: Wish) -> list[Row]:
        """The rows of one gap of an object, a span of it opened; none where the viewer may not see the object."""
        action = self._seen(planned.position)
        if not self._permission(action).allowed:
            return []
        lines = all_lines(action["before"], action["after"])
        rows = opened(lines, gap, span)
        return _drawn(lines, rows, LineNotes(changes(lines, rows)), wish)

    def _seen(self, position: int) -> Record:
        action = self._body["plan"]["actions"][position]
        return action if exists(action) else self._sight.new_object(action)

    def _permission(self, action: Record) -> Permission:
        if not exists(action):
            return NEW
        is_seen = self._sight.may_see(action["ref"])
        if is_seen is None:
            return UNASKED
        ask = partial(access.may_see_object, self._caller, self._cluster, reference(action["ref"]))
        return Permission(True, "") if is_seen else ask()

    def _findings(self, action: Record) -> tuple[list[Record], int]:
        """What was found of this object, worst first, as far as it is shown here; and how many there are besides."""
        name = object_name(action["ref"])
        found = [one for one in self._body["findings"] if one["ref"] and object_name(one["ref"]) == name]
        return [self._told(one) for one in found[:MAX_FINDINGS]], max(len(found) - MAX_FINDINGS, 0)

    def _told(self, finding: Record) -> Record:
        hidden = self._sight.why_hidden(finding)
        return withheld(finding, hidden) if hidden else own_words(finding)

    def _private(self, action: Record) -> list[Record]:
        name = object_name(action["ref"])
        about = {**self._body, "private": [one for one in self._body["private"] if _is_about(one, name)]}
        return self._sight.private(about)

    def _placed(self, action: Record, lines: Sequence[DiffLine], told: Sequence[Record]) -> dict[int, list[Record]]:
        places = LinePlaces(action["before"], action["after"], lines)
        name = said(reference(action["ref"]))
        placed: dict[int, list[Record]] = {}
        for finding in told:
            for at in places.lines_of(finding, name):
                placed.setdefault(at, []).append(finding)
        return placed


def _is_loud(finding: Record) -> bool:
    return Severity(finding["severity"]).is_at_least(Severity.DANGEROUS)


def _without_what_is_told(action: Record, findings: Sequence[Record]) -> Record:
    """The action without its problem where a finding beside it says the same."""
    is_told = any(one["evidence"].get("code") == action["problemCode"] for one in findings)
    return {**action, "problem": "", "serverWords": ""} if action["problem"] and is_told else action


def _is_about(finding: Record, name: str) -> bool:
    """Whether a private finding is about the object; who holds it is said of each that it tells of."""
    told = finding["sources"] if finding["rule"] == OWNERS else [finding["ref"]]
    return any(object_name(one) == name for one in told)


def _drawn(lines: Sequence[DiffLine], rows: Sequence[int | FoldedLines], notes: LineNotes, wish: Wish) -> list[Row]:
    drawing = Drawing(lines, notes)
    return list(drawing.split(rows) if wish.is_split else drawing.unified(rows))


def _at(lines: Sequence[DiffLine], line: Line | None) -> frozenset[int]:
    """The place of the line that an anchor names."""
    if line is None:
        return frozenset()
    side, number = line
    return frozenset(at for at, one in enumerate(lines) if number and number == (one.old if side == "L" else one.new))
