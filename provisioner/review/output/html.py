"""A report as one page of HTML that needs nothing else: no script, no request, everything escaped (S24)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from provisioner.api_groups import RBAC_GROUP
from provisioner.escaping import visible, with_names
from provisioner.review.base.difference import DiffLine, diff_lines
from provisioner.review.base.grouping import NEVER_FOLDED, Statement, in_counts, is_quiet, statements
from provisioner.review.base.messages import path_text
from provisioner.review.base.record import Mark
from provisioner.review.crds.schema_tree import SchemaPicture, crds_of, picture_of
from provisioner.review.output.entries import Entry, entries
from provisioner.review.output.evidence import EvidenceFact, facts_of, without_listed_places
from provisioner.review.output.terminal import worst_sections_first
from provisioner.review.output.workloads import run_words, workloads_in_words
from provisioner.review.preflight.findings import yaml_of
from provisioner.review.rights.account_graph import AccountGraph, account_graph, accounts_of
from provisioner.review.rules.explanations import explanations, rules_of
from provisioner.review.workloads.workload_changes import workload_changes
from provisioner.sentences import and_more
from provisioner.values import SHAPES, Action, Finding, ObjectRef, Plan, Report, Section, Severity

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(template: str, **facts: Any) -> str:
    """The text of a file in `templates` with these facts. Text of one line is `{{ text }}`.

    `{{ text|lines }}` keeps its line feeds, `{{ text|sentence }}` shows what it quotes in backticks as names, and
    `{{ text|e }}` is only escaped: for what is `visible` already.
    """
    return _environment().get_template(template).render(facts)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - takes long: with the first page

    made = Environment(
        loader=PackageLoader("provisioner.review.output"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"lines": _break_lines, "sentence": _sentence, "and_more": and_more}
    made.filters |= {"without_rbac_group": _without_rbac_group, "worse_verdicts": _worse_verdicts}
    made.globals["shapes"] = SHAPES
    return made


def _finalized(value: object) -> object:
    return value if hasattr(value, "__html__") else visible(str(value))


def _without_rbac_group(ref: str) -> str:
    """The name of a role or binding in a picture of nothing else."""
    return ref.replace(f".{RBAC_GROUP}", "", 1)


def _worse_verdicts(finding: Finding) -> str:
    """What is not safe of a finding's verdicts, in brackets."""
    asked = [f"{question} {answer}" for question, answer in sorted(finding.verdicts.items()) if answer != Severity.SAFE]
    return f" ({', '.join(asked)})" if asked else ""


def _break_lines(text: str) -> Markup:
    return escape(visible(text, keep_newlines=True))


def _sentence(text: str) -> Markup:
    return Markup(with_names(str(escape(visible(text)))))  # noqa: S704 - escaped before


MAX_ACCOUNTS = 20
MAX_CRDS = 40


@dataclass(frozen=True, slots=True)
class Pictures:
    """What is drawn of one section: accounts whose rights change and CRDs (by name) that do, the worst first.

    `left_out` is how many more there are of the one or the other.
    """

    accounts: tuple[AccountGraph, ...] = ()
    schemas: tuple[tuple[str, SchemaPicture], ...] = ()
    left_out: int = 0


def pictures_of(section: Section, report: Report, hidden: Collection[ObjectRef]) -> Pictures:
    """What can be drawn of one section; of `hidden` objects nothing is."""
    if section is Section.PERMISSIONS:
        # The ways of each account whose rights change, the worst first.
        seen = {ref.identity for ref in hidden}
        graphs = (account_graph(report, subject, hidden=seen) for subject in accounts_of(report))
        changed = [graph for graph in graphs if graph.findings or any(mark is not Mark.SAME for mark in graph.counts)]
        return Pictures(accounts=tuple(changed[:MAX_ACCOUNTS]), left_out=max(0, len(changed) - MAX_ACCOUNTS))
    if section is Section.CRDS:
        # The changed branches of each CRD that is updated, the worst first.
        shown = [crd for crd in crds_of(report) if crd.action is Action.UPDATE and crd.ref not in hidden]
        drawn = tuple((crd.ref.name, picture_of(report, crd)) for crd in shown[:MAX_CRDS])
        return Pictures(schemas=drawn, left_out=max(0, len(shown) - MAX_CRDS))
    return Pictures()


_SHOWN = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.RERUN, Action.ADOPT, Action.DELETE)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
Notes = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class _Told:
    """One finding with what is shown of it, ready to be laid out."""

    finding: Finding
    notes: tuple[str, ...]
    path: str
    verdicts: str
    yaml: str
    facts: tuple[EvidenceFact, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """Findings that say the same (`told`), and what follows from the same cause (`attached`); places stand open where
    none of them may be folded."""

    statement: Statement
    told: tuple[_Told, ...]
    attached: tuple[_Told, ...]
    is_open: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """One section of the page: what is new in it by cause, and `folded` what is safe or was there before."""

    section: Section
    totals: str
    shown: tuple[tuple[Entry, tuple[_Group, ...]], ...]
    folded: tuple[_Group, ...]
    folded_totals: str
    pictures: Pictures


@dataclass(frozen=True, slots=True)
class _Object:
    """What happens to one object; nothing but its name where it is hidden."""

    ref: ObjectRef
    action: Action
    lines: Iterable[DiffLine]
    is_hidden: bool


def as_html(
    report: Report,
    *,
    title: str,
    hidden: Collection[ObjectRef] = (),
    notes: Notes | None = None,
    sources: Iterable[str] = (),
) -> str:
    """The whole report with its differences, to print or to send.

    Of the `hidden` objects it says that they exist, and no more: neither what is planned for them nor their lines.
    `notes` are what people said of findings, by fingerprint; `sources` are what was asked for and what that
    was resolved to, a line each.
    """
    seen = tuple(planned for planned in report.plan.actions if planned.ref not in hidden)
    workloads = workload_changes(Plan(seen, report.plan.digest))
    return rendered(
        "report.html",
        title=title,
        policy=_POLICY,
        sources=list(sources),
        headline=report.headline,
        totals=_totals(report.findings),
        parts=list(_parts(report, hidden, notes or {})),
        plan=report.plan.digest,
        workloads=[(workload, ", ".join(run_words(workload))) for workload in workloads],
        workload_counts=workloads_in_words(workloads),
        objects=_objects(report, hidden),
        rules=explanations(rules_of(report.findings)),
    )


def _parts(report: Report, hidden: Collection[ObjectRef], notes: Notes) -> Iterator[_Part]:
    for section, found in worst_sections_first(report):
        folded = [finding for finding in found if is_quiet(finding)]
        yield _Part(
            section=section,
            totals=_totals(found),
            shown=tuple(
                (entry, _groups(entry.findings, notes))
                for entry in entries(finding for finding in found if not is_quiet(finding))
            ),
            folded=_groups(folded, notes),
            folded_totals=in_counts(folded),
            pictures=pictures_of(section, report, hidden),
        )


def _groups(findings: Iterable[Finding], notes: Notes) -> tuple[_Group, ...]:
    return tuple(
        _Group(
            statement=statement,
            told=tuple(_told(finding, notes) for finding in statement.findings),
            attached=tuple(_told(finding, notes) for finding in statement.attached),
            is_open=statement.first.severity in NEVER_FOLDED,
        )
        for statement in statements(findings)
    )


def _told(finding: Finding, notes: Notes) -> _Told:
    evidence = dict(finding.evidence)
    yaml = str(evidence.pop("yaml")) if yaml_of(finding) else ""
    return _Told(
        finding=finding,
        notes=tuple(notes.get(finding.fingerprint, ())),
        path=path_text(finding.path),
        verdicts=", ".join(f"{question} {answer}" for question, answer in sorted(finding.verdicts.items())),
        yaml=yaml,
        facts=tuple(facts_of(without_listed_places(evidence), finding.rule)),
    )


def _objects(report: Report, hidden: Collection[ObjectRef]) -> Iterator[_Object]:
    """One at a time: the lines of all of them together are large."""
    for planned in report.plan.actions:
        is_hidden = planned.ref in hidden
        if is_hidden or planned.action in _SHOWN:
            yield _Object(
                planned.ref, planned.action, () if is_hidden else diff_lines(planned.before, planned.after), is_hidden
            )


def _totals(findings: Iterable[Finding]) -> str:
    counted = Counter(finding.severity for finding in findings)
    return ", ".join(f"{counted[severity]} {severity}" for severity in Severity if counted[severity])
