"""A report as one page of HTML that needs nothing else: no script, no request, everything escaped (S24)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from provisioner.review.base.difference import DiffLine, diff_lines
from provisioner.review.output.evidence import Fact, facts_of
from provisioner.review.output.page import rendered
from provisioner.review.output.pictures import Pictures, pictures_of
from provisioner.review.output.terminal import path_text
from provisioner.review.preflight.findings import yaml_of
from provisioner.review.rules.shown import explanations, rules_of
from provisioner.values import Action, Finding, ObjectRef, PlannedAction, Report, Section, Severity

_SHOWN = (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.DELETE)
_NEVER_FOLDED = (Severity.CRITICAL, Severity.UNKNOWN)
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
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """One section of the page. What was there before is `folded`, unless it is critical or unknown."""

    section: Section
    totals: str
    shown: tuple[_Told, ...]
    folded: tuple[_Told, ...]
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
) -> str:
    """The whole report with its differences, to print or to send.

    Of the `hidden` objects it says that they exist, and no more: neither what is planned for them nor their lines.
    `notes` are what people said of findings, by fingerprint.
    """
    return rendered(
        "report.html",
        title=title,
        policy=_POLICY,
        headline=report.headline,
        totals=_totals(report.findings),
        parts=list(_parts(report, hidden, notes or {})),
        plan=report.plan.digest,
        objects=_objects(report, hidden),
        rules=explanations(rules_of(report.findings)),
    )


def _parts(report: Report, hidden: Collection[ObjectRef], notes: Notes) -> Iterator[_Part]:
    for section in Section:
        found = report.in_section(section)
        folded = [one for one in found if not one.is_new and one.severity not in _NEVER_FOLDED]
        shown = [one for one in found if one not in folded]
        if found:
            yield _Part(
                section=section,
                totals=_totals(found),
                shown=tuple(_told(one, notes) for one in shown),
                folded=tuple(_told(one, notes) for one in folded),
                folded_totals=_totals(folded),
                pictures=pictures_of(section, report, hidden),
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
        facts=tuple(facts_of(evidence)),
    )


def _objects(report: Report, hidden: Collection[ObjectRef]) -> Iterator[_Object]:
    """One at a time: the lines of all of them together are large."""
    for planned in report.plan.actions:
        is_hidden = planned.ref in hidden
        if is_hidden or planned.action in _SHOWN:
            yield _Object(planned.ref, planned.action, () if is_hidden else _lines(planned), is_hidden)


def _lines(planned: PlannedAction) -> Iterable[DiffLine]:
    return diff_lines(planned.before, planned.after)


def _totals(findings: Iterable[Finding]) -> str:
    counted = Counter(one.severity for one in findings)
    return ", ".join(f"{counted[severity]} {severity}" for severity in Severity if counted[severity])
