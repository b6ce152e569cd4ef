"""Which live values of a report a viewer may see: those of objects that Kubernetes lets them get (S09)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django import template

from approvals.access.sight import (
    HiddenWords,
    Record,
    ReportSight,
    Sight,
    exists,
    headline_for,
    key_of,
    own_words,
    reference,
    unseen,
    withheld,
)
from approvals.models import Report
from approvals.selectors.pages import NEVER_FOLDED, ReportSection, severity_counts
from approvals.web.requests.overview import Grid, grids
from provisioner.api_groups import RBAC_GROUP
from provisioner.review.base.difference import DiffLine
from provisioner.review.base.grouping import Statement, count, statements
from provisioner.review.base.record import finding_from
from provisioner.review.output.entries import Entry, entries
from provisioner.review.output.evidence import EvidenceFact, facts_of, without_listed_places
from provisioner.review.output.lines import concerned_place, lines_at, names_in, rule_lines, rules_behind, telling_lines
from provisioner.review.rules import rows_of, rule_text
from provisioner.review.rules.explanations import in_one_paragraph
from provisioner.review.visibility.finding_views import OWNERS
from provisioner.values import Section

# Filters of the templates of these pages.
register = template.Library()


# Findings about objects of others; the page of each object has all of its own.
MAX_PRIVATE = 100
# So many findings of a section open in place; of the others critical and unknown ones keep their sentence on the page.
MAX_OPENED = 25
# What so many more statements of a section say stands on the page as well.
MAX_STATEMENTS = 40
# The page that draws what a section says.
PICTURES = {Section.PERMISSIONS: "request-rights", Section.CRDS: "request-schemas"}
SAID_IN_WORDS = ("basis", "live")
BASES = {
    "objects": "Severity based on the objects stored in the cluster, not on the schemas alone.",
    "schemas": "Severity based on the schemas alone: the stored objects did not decide it.",
}
VERDICT_WORDS = {
    "api": "API server",
    "stored": "stored objects",
    "writers": "writers",
    "readers": "readers",
    "rollback": "rollback",
}


def explanation(rule: str, evidence: Mapping[str, Any]) -> str:
    """What is behind a finding of this rule and evidence, as sentences; "" for one of another package's check."""
    words = rule_text(rows_of(rule, evidence)[0])
    return in_one_paragraph(words) if words else ""


@dataclass(frozen=True, slots=True)
class Picture:
    """The page that draws what a finding says, with the part of it that is about this one."""

    page: str
    query: str
    words: str


@dataclass(frozen=True, slots=True)
class ShownLines:
    """The lines of one object of the plan that a finding comes from."""

    ref: Record
    position: int
    lines: list[DiffLine]


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding of a report's record; `hidden` says why its evidence is not shown, "" where it is.

    `position` is that of its object in the plan, `basis` whether schemas or stored objects settled how bad it is.
    `statement` is what it says of several places, with all of them; None for one place. `has_lines_to_load` where it is
    folded and has lines that are compared once somebody opens it.
    """

    record: Record
    hidden: str
    position: int | None
    explanation: str
    facts: list[EvidenceFact]
    basis: str = ""
    excerpts: list[ShownLines] = field(default_factory=list)
    has_lines_to_load: bool = False
    picture: Picture | None = None
    statement: Statement | None = None

    @property
    def words(self) -> str:
        """What it says: of several fields or objects that, and how many they are; they are listed below."""
        said = self.statement
        return f"{said.words}: {said.size}" if said and count(said.places) > 1 else str(self.record["message"])


@dataclass(frozen=True, slots=True)
class ShownStatement:
    """What `findings` say alike, or one says alone; `is_open` where none of its places may be folded (S24).

    Each of the findings is shown with all that is known of it, and accepted by itself.
    """

    statement: Statement
    findings: list[ShownFinding]
    is_open: bool

    @property
    def is_alone(self) -> bool:
        return len(self.findings) == 1

    @property
    def words(self) -> str:
        said = self.statement
        return f"{said.words}: {said.size}" if said.is_of_several else said.words

    @property
    def query(self) -> str:
        """Where its findings are listed."""
        first = self.statement.first
        if self.is_alone:
            return urlencode({"only": first.fingerprint})
        return urlencode({"section": first.section, "severity": first.severity, "search": first.rule})


def together(found: Iterable[ShownFinding]) -> list[ShownStatement]:
    """Findings in their order, those that say the same beside the first of them."""
    by_name: dict[str, list[ShownFinding]] = {}
    shown = list(found)
    for one in shown:
        by_name.setdefault(one.record["fingerprint"], []).append(one)
    return [
        ShownStatement(
            statement,
            [by_name[finding.fingerprint].pop(0) for finding in statement.everything],
            statement.first.severity in NEVER_FOLDED,
        )
        for statement in statements(finding_from(it.record) for it in shown)
    ]


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """Findings of one cause, as a sentence and folded below it (decided by what this viewer may see).

    `statements` open in place; of those past MAX_OPENED `brief` are never left out, and `more` are what others say.
    """

    entry: Entry
    statements: list[ShownStatement]
    brief: list[ShownFinding] = field(default_factory=list)
    more: list[ShownStatement] = field(default_factory=list)

    @property
    def findings(self) -> list[ShownFinding]:
        return [finding for said in self.statements for finding in said.findings]

    @property
    def is_alone(self) -> bool:
        """Whether one statement says all of it, which then stands in place of the entry."""
        return len(self.statements) == 1 and len(self.findings) == len(self.entry.findings)

    @property
    def is_open(self) -> bool:
        return not self.entry.is_told_whole

    @property
    def objects(self) -> list[str]:
        """What the findings that open in place are about."""
        named = [finding.record["ref"] for finding in self.findings if finding.record["ref"]]
        return list(dict.fromkeys(f"{ref['kind']} {_namespaced_name(ref)}" for ref in named))


def by_cause(shown: Iterable[ShownFinding]) -> list[ShownEntry]:
    """Findings that all open in place, an entry for each cause."""
    told = [(finding_from(shown_finding.record), shown_finding) for shown_finding in shown]
    by_identity = {id(finding): shown_finding for finding, shown_finding in told}
    made = entries(finding for finding, _ in told)
    return [ShownEntry(entry, together(by_identity[id(finding)] for finding in entry.findings)) for entry in made]


def _namespaced_name(ref: Record) -> str:
    return f"{ref['namespace']}/{ref['name']}" if ref["namespace"] else str(ref["name"])


@dataclass(frozen=True, slots=True)
class ShownSection:
    """What is new in a section, by cause, with its `counts`; `left_out` is only on the page of all findings."""

    name: str
    words: str
    counts: list[tuple[str, int]]
    is_loud: bool
    entries: list[ShownEntry]
    grids: list[Grid]
    left_out: list[tuple[str, int]]
    picture: str

    @property
    def in_place(self) -> list[ShownFinding]:
        """The findings that can be opened, and accepted, here."""
        return [finding for entry in self.entries for finding in entry.findings]


@dataclass(frozen=True, slots=True)
class OfOthers:
    """What this viewer may know of objects that are somebody else's: a line for each owner, and findings, each with
    the position of its object in the plan. `total` are all of them, `counts` by severity."""

    owners: list[str]
    findings: list[tuple[int | None, Record]]
    total: int
    counts: list[tuple[str, int]]


class ReportView:
    """One report as one viewer sees it."""

    def __init__(self, sight: Sight, report: Report) -> None:
        self._sight = ReportSight(sight, report.body, widest_first=False)
        self._actions = actions = report.body["plan"]["actions"]
        self._report = report
        # Of others' objects every one is asked about, so the kind comes first.
        self.wide_sight = ReportSight(sight, report.body)
        self._unseen: dict[int, Record] = {}
        self._drawn: dict[tuple[object, ...], list[DiffLine]] = {}
        self._roles = {
            str(reference(action["ref"])): at for at, action in enumerate(actions) if _is_role(action["ref"])
        }
        self._positions = {key_of(action["ref"]): position for position, action in enumerate(actions)}

    def section(self, section: ReportSection) -> ShownSection:
        """What is new, grouped by what the viewer may see of it: nothing else decides how many entries there are."""
        records = section.to_look_at
        seen = [self._sentence(record) for record in records]
        told = [finding_from(shown_finding.record) for shown_finding in seen]
        positions = {id(finding): at for at, finding in enumerate(told)}
        shown: list[ShownEntry] = []
        untold: list[Record] = []
        opened, listed = MAX_OPENED, MAX_STATEMENTS
        for entry in entries(told):
            places = [positions[id(finding)] for said in statements(entry.findings) for finding in said.everything]
            whole = [self.finding(records[at], is_folded=True) for at in places[:opened]]
            rest = [seen[at] for at in places[opened:]]
            brief = [shown_finding for shown_finding in rest if shown_finding.record["severity"] in NEVER_FOLDED]
            more = together(
                shown_finding for shown_finding in rest if shown_finding.record["severity"] not in NEVER_FOLDED
            )
            shown.append(ShownEntry(entry, together(whole), brief, more[:listed]))
            untold += [finding.record for said in more[listed:] for finding in said.findings]
            opened, listed = max(opened - len(whole), 0), max(listed - len(more), 0)
        in_place = [finding for entry in shown for finding in entry.findings]
        return ShownSection(
            section.name,
            section.name.heading,
            severity_counts(records),
            section.is_loud,
            shown,
            grids(place.record for place in in_place if not place.hidden),
            severity_counts(untold),
            PICTURES.get(section.name, ""),
        )

    def headline(self) -> list[str]:
        """The sentences on top, in the words of the findings that the viewer may see."""
        return headline_for(self._sight, self._report.body["findings"], self._report.headline)

    def of_others(self) -> OfOthers:
        """What is found about objects of others that the viewer may get."""
        body = self._report.body
        seen = [own_words(record) for record in self.wide_sight.private(body)]
        owners = [str(record["message"]) for record in seen if record["rule"] == OWNERS]
        told = [record for record in seen if record["rule"] != OWNERS]
        shown = [(self._positions.get(key_of(record["ref"])), record) for record in told[:MAX_PRIVATE]]
        return OfOthers(owners, shown, len(told), severity_counts(told))

    def said_of(self, action: Record) -> str:
        """What the API server said of a planned action, where the viewer may know it."""
        return str(self._sight.action(action).get("serverWords") or "")

    def steps_of(self, finding: Record) -> list[str]:
        """What a finding says to do, step by step, where the viewer may see its evidence."""
        steps = finding["evidence"].get("steps") or []
        return [str(step) for step in steps] if steps and self.may_show(finding) else []

    @property
    def unseen(self) -> HiddenWords:
        """What was shown so far without its details, and which rights would show it."""
        return unseen(self._sight, self._unseen.values())

    def may_show(self, record: Record) -> bool:
        """Whether the viewer may see the evidence of a finding."""
        return not self._sight.why_hidden(record)

    def finding(self, record: Record, *, is_folded: bool = False) -> ShownFinding:
        """One finding with its evidence as far as the viewer may see it; without lines where it `is_folded`."""
        said = self._sentence(record)
        (statement,) = statements([finding_from(said.record)])
        means = explanation(said.record["rule"], said.record["evidence"])
        said = replace(said, explanation=means, statement=statement if statement.is_of_several else None)
        if said.hidden:
            return said
        evidence = record["evidence"]
        basis = BASES.get(str(evidence.get("basis", "")), "")
        excerpts = [] if is_folded else [*self._own_lines(record, said.position), *self._rules(record)]
        to_load = is_folded and self._may_have_lines(record, said.position)
        kept = {name: value for name, value in evidence.items() if name not in SAID_IN_WORDS}
        facts = facts_of(without_listed_places(kept), str(record["rule"]))
        shown = replace(said, facts=facts, basis=basis, excerpts=excerpts, picture=_picture(record))
        return replace(shown, has_lines_to_load=to_load)

    def _may_have_lines(self, record: Record, position: int | None) -> bool:
        behind = [self._roles[role] for role, _ in rules_behind(record["evidence"]) if role in self._roles]
        own = [position] if position is not None and record["path"] else []
        return any(self._may_see(at) for at in (*own, *behind))

    def _own_lines(self, record: Record, position: int | None) -> list[ShownLines]:
        """Of a live object only where its finding's evidence may be seen, of which the viewer was asked about."""
        if position is None or not record["path"] or not self._may_see(position):
            return []
        action = self._actions[position]
        action = action if exists(action) else self._sight.new_object(action)
        version = str(record["evidence"].get("version") or "")
        # Many findings are about a part that comes or goes as a whole: its lines are compared once.
        place = concerned_place(action["before"], action["after"], tuple(record["path"]), version)
        key = (position, *place)
        if key not in self._drawn:
            self._drawn[key] = lines_at(action["before"], action["after"], place)
        lines = self._drawn[key]
        told = [*lines[:1], *telling_lines(lines[1:], names_in(record["rule"], record["evidence"]))]
        return [ShownLines(action["ref"], position, told)] if told else []

    def _rules(self, record: Record) -> list[ShownLines]:
        """The rules of roles of the plan that rights come from."""
        names = names_in(record["rule"], record["evidence"])
        made = []
        for role, index in rules_behind(record["evidence"]):
            position = self._roles.get(role)
            if position is None or not self._may_see(position):
                continue
            action = self._actions[position]
            lines = rule_lines(action["before"], action["after"], index, names)
            made += [ShownLines(action["ref"], position, lines)] if lines else []
        return made

    def _may_see(self, position: int) -> bool:
        action = self._actions[position]
        return not exists(action) or bool(self._sight.may_see(action["ref"]))

    def _sentence(self, record: Record) -> ShownFinding:
        """A finding without anything that stands below its sentence."""
        ref = record["ref"]
        position = self._positions.get(key_of(ref)) if ref else None
        hidden = self._sight.why_hidden(record)
        self._unseen |= {id(record): record} if hidden else {}
        record = withheld(record, hidden) if hidden else own_words(record)
        return ShownFinding(record, hidden, position, "", [])


def _is_role(ref: Record) -> bool:
    return ref["group"] == RBAC_GROUP and ref["kind"] in ("Role", "ClusterRole")


def _picture(record: Record) -> Picture | None:
    ref = record["ref"] or {}
    page = PICTURES.get(record["section"])
    if page == "request-schemas" and ref.get("kind") == "CustomResourceDefinition":
        return Picture(page, urlencode({"crd": ref["name"]}), "Show it in the schema")
    subject = record["evidence"].get("subject")
    if page == "request-rights" and subject and ref.get("kind") in ("ServiceAccount", "User", "Group"):
        return Picture(page, urlencode({"account": subject}), f"Show how {subject} comes by it")
    return None


@register.filter
def verdict(question: str) -> str:
    """Whom a verdict of a custom resource definition is about."""
    return VERDICT_WORDS.get(question, question)
