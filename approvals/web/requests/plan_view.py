"""The objects of a plan as a tree: by phase, with a sign for what happens to each. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from approvals.access import Permission
from approvals.access.sight import (
    ReportSight,
    Sight,
    exists,
    hidden_action,
    is_in_the_way,
    is_private,
    is_secret,
    own_words,
    reference,
    withheld,
)
from approvals.models import Report
from approvals.web.requests.diff_lines import FoldedLines, Line, LinePlaces, Span, Wanted, changes, fold, opened
from approvals.web.requests.diff_rows import Drawing, LineNotes, Row
from provisioner.phases import PHASES, phase_name
from provisioner.review.base.difference import DiffLine, all_lines
from provisioner.review.base.facts import said
from provisioner.review.visibility.finding_views import OWNERS
from provisioner.values import Action, Severity

MAX_SEARCHED = 200
MAX_OPENED = 40
VIEWS = ("unified", "split")
_SPAN = re.compile(r"([0-9]{1,7})-([0-9]{1,7})")
_LINE = re.compile(r"([LR])([1-9][0-9]{0,6})")


SIGNS = {
    "create": "+",
    "delete": "-",
    "update": "~",
    "replace": "⇄",
    "rerun": "↻",
    "adopt": "⇥",
    "orphan": "⇤",
    "skip": "○",
    "none": "=",
    "hidden": "?",
}
# As long as Kubernetes lets a group, a kind, a namespace and a name be.
MAX_NAME = 640
# The rule that says of each hook when it runs.
_HOOK = "HOOK-01"
_WORST = {str(severity): place for place, severity in enumerate(Severity)}
Record = Mapping[str, Any]
# Of one object; the others are counted.
MAX_FINDINGS = 100
NEW = Permission(True, "the object is new")
UNASKED = Permission(False, "Open this object alone to see it: the cluster is asked about a limited number of objects.")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which objects of a plan to list; what is "" or False leaves none out."""

    search: str = ""
    kind: str = ""
    action: str = ""
    is_unviewed: bool = False

    def __bool__(self) -> bool:
        return bool(self.search or self.kind or self.action or self.is_unviewed)


@dataclass(frozen=True, slots=True)
class Wish:
    """`around` is the line of an anchor, which is shown with what surrounds it, `full` one whose end is shown too."""

    filter: Filter = field(default_factory=Filter)
    view: str = VIEWS[0]
    is_whole: bool = False
    opened: tuple[Span, ...] = ()
    around: Line | None = None
    full: Line | None = None
    page: str = ""

    @property
    def is_split(self) -> bool:
        return self.view == "split"

    @property
    def query(self) -> str:
        """What links from one object to another keep: the filter and the view."""
        wish = self.filter
        said = {
            "search": wish.search,
            "kind": wish.kind,
            "action": wish.action,
            "unviewed": "yes" if wish.is_unviewed else "",
            "view": self.view if self.is_split else "",
        }
        return urlencode({name: value for name, value in said.items() if value})

    @property
    def opens(self) -> str:
        """What a link that opens more adds to the address, so that what is open stays open."""
        return "".join(f"&open={first}-{last}" for first, last in self.opened)


def wish_of(asked: QueryDict) -> Wish:
    view = asked.get("view", "")
    return Wish(
        filter=Filter(
            search=asked.get("search", "").strip()[:MAX_SEARCHED],
            kind=asked.get("kind", "")[:MAX_SEARCHED],
            action=asked.get("action", "")[:MAX_SEARCHED],
            is_unviewed=asked.get("unviewed") == "yes",
        ),
        view=view if view in VIEWS else VIEWS[0],
        is_whole=asked.get("lines") == "all",
        opened=tuple(found for span in asked.getlist("open")[:MAX_OPENED] if (found := span_of(span))),
        around=_line(asked.get("at", "")),
        full=_line(asked.get("full", "")),
        page=asked.get("page", ""),
    )


def span_of(text: str) -> Span | None:
    found = _SPAN.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None


def _line(text: str) -> Line | None:
    found = _LINE.fullmatch(text)
    return (found[1], int(found[2])) if found else None


@dataclass(frozen=True, slots=True)
class Planned:
    """One object of a plan as its viewer may know it.

    `worst` is the severity of its worst finding, "" without one; `hook` when it runs as a hook, "" where it is none.
    """

    position: int
    record: Record
    name: str
    is_viewed: bool
    worst: str
    hook: str = ""

    @property
    def action(self) -> str:
        return str(self.record["action"])

    @property
    def sign(self) -> str:
        return SIGNS.get(self.action, "?")

    @property
    def kind(self) -> str:
        return str(self.record["ref"]["kind"])

    @property
    def phase(self) -> str:
        return phase_name(self.record["ref"]["group"], self.kind)


@dataclass(frozen=True, slots=True)
class PhaseBranch:
    """The objects of one kind in one phase."""

    phase: str
    kind: str
    objects: list[Planned]


@dataclass(frozen=True, slots=True)
class Counts:
    """Of all objects that change: how many there are, how many the viewer has ticked, and how many of each kind."""

    total: int
    viewed: int
    actions: list[tuple[str, str, int]]
    kinds: list[tuple[str, int]]


def object_name(ref: Mapping[str, str]) -> str:
    """What is the same object in two reports of a request, whatever version it is written in."""
    return "/".join((ref["group"], ref["kind"], ref["namespace"], ref["name"]))[:MAX_NAME]


class Hooks:
    """When the objects run that do so as hooks, by what a report says of them."""

    def __init__(self, findings: Iterable[Record]) -> None:
        told = [finding for finding in findings if finding["rule"] == _HOOK and finding["ref"]]
        # Of many that are alike it is said once.
        self._moments = {
            name: finding["evidence"].get("moments") or ()
            for finding in told
            for name in finding["evidence"].get("objects") or [said(reference(finding["ref"]))]
        }

    def words_of(self, record: Record) -> str:
        """`before`, or `before and after`; "" for an object that is no hook, or that the viewer may not see."""
        if record["action"] == "hidden":
            return ""
        return " and ".join(self._moments.get(said(reference(record["ref"])), ())).replace("-", " ")


def planned(
    records: Iterable[tuple[int, Record]], findings: Sequence[Record], viewed: Collection[str]
) -> list[Planned]:
    """The objects that something happens to, phase by phase, in the order of the plan."""
    hooks = Hooks(findings)
    worst: dict[str, str] = {}
    for finding in findings:
        if finding["ref"]:
            name = object_name(finding["ref"])
            worst[name] = min(
                worst.get(name, finding["severity"]), finding["severity"], key=lambda it: _WORST.get(it, 0)
            )
    found = []
    for position, record in records:
        name = object_name(record["ref"])
        if record["action"] != "none" or record["problem"]:
            found.append(Planned(position, record, name, name in viewed, worst.get(name, ""), hooks.words_of(record)))
    return sorted(found, key=lambda one: PHASES.index(one.phase))


def taken(objects: Iterable[Planned], wish: Filter) -> list[Planned]:
    """The objects that a filter takes."""
    searched = wish.search.casefold()
    return [
        obj
        for obj in objects
        if (not wish.kind or obj.kind == wish.kind)
        and (not wish.action or obj.action == wish.action)
        and not (wish.is_unviewed and obj.is_viewed)
        and searched in f"{obj.kind} {obj.record['ref']['namespace']}/{obj.record['ref']['name']}".casefold()
    ]


def branches(objects: Sequence[Planned]) -> list[PhaseBranch]:
    grouped = groupby(objects, key=lambda one: (one.phase, one.kind))
    return [PhaseBranch(phase, kind, list(group)) for (phase, kind), group in grouped]


def counts(objects: Sequence[Planned]) -> Counts:
    actions, kinds = Counter(row.action for row in objects), Counter(row.kind for row in objects)
    return Counts(
        len(objects),
        sum(1 for obj in objects if obj.is_viewed),
        [(name, sign, actions[name]) for name, sign in SIGNS.items() if actions[name]],
        sorted(kinds.items()),
    )


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


class PlanView:
    """One report as one viewer sees it, object by object."""

    def __init__(self, sight: Sight, report: Report) -> None:
        self._all_objects = sight
        self._sight = ReportSight(sight, report.body, widest_first=False)
        self._body = report.body

    def records(self) -> list[tuple[int, Record]]:
        """Every planned action with its position, as this viewer may know it without its object."""
        return [(at, self._public(action)) for at, action in enumerate(self._body["plan"]["actions"])]

    def _public(self, action: Record) -> Record:
        if is_private(action):
            return {**action, "problem": "", "isProved": True}
        if is_in_the_way(action):  # whether it could be tried tells of it
            return {**action, "isProved": False, "notes": [], "warnings": [], "serverWords": ""}
        # Whether a stored Secret is updated or left as it is tells whether it equals the bundle's.
        is_telling = exists(action) and is_secret(action["ref"]) and action["action"] in (Action.UPDATE, Action.NONE)
        # All of a plan are asked about, so the kind comes first.
        if is_telling and not self._all_objects.may_see(reference(action["ref"])):
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
        places = LinePlaces(action["before"], action["after"], lines)
        name = said(reference(action["ref"]))
        placed: dict[int, list[Record]] = {}
        for finding in told:
            for at in places.lines_of(finding, name):
                placed.setdefault(at, []).append(finding)
        around = _at(lines, wish.around) | _at(lines, wish.full)
        rows = fold(lines, Wanted(wish.is_whole, wish.opened, around, frozenset(placed)))
        notes = LineNotes(changes(lines, rows), placed, wish.full)
        shown = {id(one) for found in placed.values() for one in found}
        beside = [one for one in told if id(one) not in shown]
        kinds = [line.kind for line in lines]
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
            has_gaps=any(isinstance(row, FoldedLines) for row in rows),
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
        return Permission(True, "") if is_seen else self._all_objects.permission(reference(action["ref"]))

    def _findings(self, action: Record) -> tuple[list[Record], int]:
        """What was found of this object, worst first, as far as it is shown here; and how many there are besides."""
        name = object_name(action["ref"])
        found = [
            finding for finding in self._body["findings"] if finding["ref"] and object_name(finding["ref"]) == name
        ]
        return [self._told(finding) for finding in found[:MAX_FINDINGS]], max(len(found) - MAX_FINDINGS, 0)

    def _told(self, finding: Record) -> Record:
        hidden = self._sight.why_hidden(finding)
        return withheld(finding, hidden) if hidden else own_words(finding)

    def _private(self, action: Record) -> list[Record]:
        name = object_name(action["ref"])
        about = {**self._body, "private": [finding for finding in self._body["private"] if _is_about(finding, name)]}
        return self._sight.private(about)


def _is_loud(finding: Record) -> bool:
    return Severity(finding["severity"]).is_at_least(Severity.DANGEROUS)


def _without_what_is_told(action: Record, findings: Sequence[Record]) -> Record:
    """The action without its problem where a finding beside it says the same."""
    is_told = any(finding["evidence"].get("code") == action["problemCode"] for finding in findings)
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
    return frozenset(
        at
        for at, shown_line in enumerate(lines)
        if number and number == (shown_line.old if side == "L" else shown_line.new)
    )
