"""Which live values of a report a viewer may see: those of objects that Kubernetes lets them get (S09)."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from approvals import access
from approvals.access import Permission
from approvals.access.sight import EXISTS, Record, Sight, is_secret, key_of, reference, withheld
from approvals.models import Cluster, Report
from approvals.selectors.pages import ReportSection
from approvals.web.grid import Grid, grids
from approvals.web.rules import explanation
from provisioner.review.as_html import Fact, facts_of
from provisioner.review.difference import DiffLine, diff_lines
from provisioner.values import Section

# Kubernetes is asked about this many objects for one page; the evidence about others is shown on the object's page.
MAX_ASKED = 30
WORDS = {
    Section.OBJECTS: "Objects",
    Section.PERMISSIONS: "Permissions",
    Section.CRDS: "Custom resources",
    Section.PODS: "Pods",
    Section.WEBHOOKS: "Webhooks",
    Section.IMAGES: "Images",
    Section.PREFLIGHT: "Preflight",
    Section.CONTENT: "Content",
}


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding of a report's record; `hidden` says why its evidence is not shown, "" where it is.

    `position` is that of its object in the plan.
    """

    record: Record
    hidden: str
    position: int | None
    explanation: str
    facts: list[Fact]


@dataclass(frozen=True, slots=True)
class ShownSection:
    """`findings` are those to look at, `known` those that were there before and can stay folded."""

    name: str
    words: str
    counts: list[tuple[str, int]]
    known_counts: list[tuple[str, int]]
    is_loud: bool
    findings: list[ShownFinding]
    known: list[ShownFinding]
    grids: list[Grid]


@dataclass(frozen=True, slots=True)
class ShownObject:
    """One planned action with its lines; `permission` says whether the live values may be seen."""

    record: Record
    permission: Permission
    lines: list[DiffLine]


class ShownReport:
    """One report as one viewer sees it."""

    def __init__(self, user: User, cluster: Cluster, report: Report) -> None:
        self._sight = Sight(user, cluster, limit=MAX_ASKED, widest_first=False)
        actions = report.body["plan"]["actions"]
        self._positions = {key_of(action["ref"]): position for position, action in enumerate(actions)}
        self._live = {key_of(action["ref"]) for action in actions if action["before"] is not None}

    def section(self, section: ReportSection) -> ShownSection:
        shown, known = ([self._finding(record) for record in part] for part in (section.to_look_at, section.known))
        seen = [one.record for one in shown + known if not one.hidden]
        return ShownSection(
            section.name,
            WORDS[section.name],
            section.counts,
            section.known_counts,
            section.is_loud,
            shown,
            known,
            grids(seen),
        )

    def _finding(self, record: Record) -> ShownFinding:
        ref = record["ref"]
        position = self._positions.get(key_of(ref)) if ref else None
        is_live = bool(ref) and key_of(ref) in self._live
        hidden = self._why_hidden(ref) if is_live and (record["evidence"] or is_secret(ref)) else ""
        record = withheld(record, hidden) if hidden else record
        facts = [] if hidden else facts_of(record["evidence"])
        return ShownFinding(record, hidden, position, explanation(record["rule"]), facts)

    def _why_hidden(self, ref: Record) -> str:
        may_see = self._sight.may_see(reference(ref))
        return "see the object" if may_see is None else "" if may_see else EXISTS


def show_object(user: User, cluster: Cluster, action: Record) -> ShownObject:
    """The lines in which an object changes; none where the viewer may not get the live object."""
    if action["before"] is None:
        return ShownObject(action, Permission(True, "the object is new"), diff_lines(None, action["after"]))
    permission = access.may_see_object(user, cluster, reference(action["ref"]))
    lines = diff_lines(action["before"], action["after"]) if permission.allowed else []
    return ShownObject(action, permission, lines)
