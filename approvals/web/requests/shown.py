"""Which live values of a report a viewer may see: those of objects that Kubernetes lets them get (S09)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from approvals import access
from approvals.access import Caller, Permission
from approvals.access.sight import Record, ReportSight, Sight, exists, hidden_action, key_of, reference, withheld
from approvals.models import Cluster, Report
from approvals.selectors.pages import NEVER_FOLDED, ReportSection, severity_counts
from approvals.web.requests.grid import Grid, grids
from approvals.web.requests.rules import explanation
from provisioner.review.base.difference import DiffLine, diff_lines
from provisioner.review.output.evidence import Fact, facts_of
from provisioner.review.output.lines import concerned_lines
from provisioner.values import Section

# Kubernetes is asked about this many objects for one page; the evidence about others is shown on the object's page.
MAX_ASKED = 30
# So many findings of a section open in place; of the others critical and unknown ones keep their sentence on the page.
MAX_OPENED = 25
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

# The page that draws what a section says.
PICTURES = {Section.PERMISSIONS: "request-rights", Section.CRDS: "request-schemas"}
SAID_IN_WORDS = ("basis", "live")
BASES = {
    "objects": "Severity based on the objects stored in the cluster, not on the schemas alone.",
    "schemas": "Severity based on the schemas alone: the stored objects did not decide it.",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """The page that draws what a finding says, with the part of it that is about this one."""

    page: str
    query: str
    words: str


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding of a report's record; `hidden` says why its evidence is not shown, "" where it is.

    `position` is that of its object in the plan, `basis` whether schemas or stored objects settled how bad it is.
    """

    record: Record
    hidden: str
    position: int | None
    explanation: str
    facts: list[Fact]
    basis: str = ""
    lines: list[DiffLine] = field(default_factory=list)
    picture: Picture | None = None


@dataclass(frozen=True, slots=True)
class ShownSection:
    """`findings` are those to look at, `known` those that were there before and can stay folded.

    `brief` are sentences of those past MAX_OPENED that are never left out, `left_out` counts by severity what the page
    of all findings lists and this one does not.
    """

    name: str
    words: str
    counts: list[tuple[str, int]]
    known_counts: list[tuple[str, int]]
    is_loud: bool
    findings: list[ShownFinding]
    known: list[ShownFinding]
    grids: list[Grid]
    brief: list[ShownFinding]
    left_out: list[tuple[str, int]]
    picture: str


@dataclass(frozen=True, slots=True)
class ShownObject:
    """One planned action with its lines, without what the viewer may not see.

    `permission` says whether that is the live object's values; `private` are findings about somebody else's object.
    """

    record: Record
    permission: Permission
    lines: list[DiffLine]
    private: list[Record] = field(default_factory=list)


class ShownReport:
    """One report as one viewer sees it."""

    def __init__(self, caller: Caller, cluster: Cluster, report: Report) -> None:
        self._sight = ReportSight(Sight(caller, cluster, limit=MAX_ASKED, widest_first=False), report.body)
        self._actions = actions = report.body["plan"]["actions"]
        self._positions = {key_of(action["ref"]): position for position, action in enumerate(actions)}

    def section(self, section: ReportSection) -> ShownSection:
        shown, known = (
            [self.finding(record) for record in part[:MAX_OPENED]] for part in (section.to_look_at, section.known)
        )
        rest = section.to_look_at[MAX_OPENED:]
        brief = [self._sentence(record) for record in rest if record["severity"] in NEVER_FOLDED]
        left_out = [record for record in rest if record["severity"] not in NEVER_FOLDED] + section.known[MAX_OPENED:]
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
            brief,
            severity_counts(left_out),
            PICTURES.get(section.name, ""),
        )

    def finding(self, record: Record) -> ShownFinding:
        """One finding with its evidence as far as the viewer may see it."""
        said = self._sentence(record)
        if said.hidden:
            return said
        evidence = record["evidence"]
        basis = BASES.get(str(evidence.get("basis", "")), "")
        lines = self._lines(record, said.position)
        told = {name: value for name, value in evidence.items() if name not in SAID_IN_WORDS}
        return replace(said, facts=facts_of(told), basis=basis, lines=lines, picture=_picture(record))

    def _lines(self, record: Record, position: int | None) -> list[DiffLine]:
        """Of a live object only where its finding's evidence may be seen, of which the viewer was asked about."""
        if position is None or not record["path"]:
            return []
        action = self._actions[position]
        if exists(action) and not self._sight.may_see(action["ref"]):
            return []
        version = str(record["evidence"].get("version") or "")
        return concerned_lines(action["before"], action["after"], tuple(record["path"]), version)

    def _sentence(self, record: Record) -> ShownFinding:
        ref = record["ref"]
        position = self._positions.get(key_of(ref)) if ref else None
        hidden = self._sight.why_hidden(record)
        record = withheld(record, hidden) if hidden else record
        return ShownFinding(record, hidden, position, explanation(record["rule"], record["evidence"]), [])


def _picture(record: Record) -> Picture | None:
    ref = record["ref"] or {}
    page = PICTURES.get(record["section"])
    if page == "request-schemas" and ref.get("kind") == "CustomResourceDefinition":
        return Picture(page, urlencode({"crd": ref["name"]}), "Show it in the schema")
    subject = record["evidence"].get("subject")
    if page == "request-rights" and subject and ref.get("kind") in ("ServiceAccount", "User", "Group"):
        return Picture(page, urlencode({"account": subject}), f"Show how {subject} comes by it")
    return None


def show_object(caller: Caller, cluster: Cluster, report: Report, action: Record) -> ShownObject:
    """The lines in which an object changes, and what the API server says of it, as far as the viewer may get it."""
    if not exists(action):
        lines = diff_lines(None, action["after"])
        shown = ReportSight(Sight(caller, cluster, limit=1, widest_first=False), report.body).action(action)
        return ShownObject(shown, Permission(True, "the object is new"), lines)
    permission = access.may_see_object(caller, cluster, reference(action["ref"]))
    if not permission.allowed:
        return ShownObject(hidden_action(action), permission, [])
    about = [one for one in report.body["private"] if key_of(one["ref"]) == key_of(action["ref"])]
    return ShownObject(action, permission, diff_lines(action["before"], action["after"]), about)
