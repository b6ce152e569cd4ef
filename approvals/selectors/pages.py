"""What the request page shows. Query counts do not grow with the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from approvals.bundle_spec import BundleSpec
from approvals.lifecycle import State
from approvals.models import AuditEntry, PolicyEvaluation, Report, Request, Review, ViewedObject, VoidedRound
from provisioner.values import Certainty, Section, Severity, certainty_of

NOT_CHOSEN = "no version chosen"
# These stand open when the page opens.
LOUD = (Severity.CRITICAL, Severity.BREAKING, Severity.UNKNOWN)
# These are never folded away, not even where they were there before.
NEVER_FOLDED = (Severity.CRITICAL, Severity.UNKNOWN)


@dataclass(frozen=True, slots=True)
class FindingFilter:
    """Which findings of a report to list; what is "" or False leaves none out. `text` is looked for in the words, the
    rule and the object's names; `is_quiet` lists what is safe or not new."""

    text: str = ""
    section: str = ""
    severity: str = ""
    is_new: bool = False
    fingerprint: str = ""
    is_quiet: bool = False

    def takes(self, finding: Mapping[str, Any]) -> bool:
        named = (("section", self.section), ("severity", self.severity), ("fingerprint", self.fingerprint))
        if any(wish and finding[column] != wish for column, wish in named) or (self.is_new and not finding["isNew"]):
            return False
        if self.is_quiet and not is_quiet(finding):
            return False
        return self.text.casefold() in _searched(finding)


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One part of a report: its findings, worst first."""

    name: Section
    findings: list[Mapping[str, Any]]

    @property
    def to_look_at(self) -> list[Mapping[str, Any]]:
        """What is new and not safe."""
        return [finding for finding in self.findings if not is_quiet(finding)]

    @property
    def known(self) -> list[Mapping[str, Any]]:
        """What is safe or was there before, and can stay folded."""
        return [finding for finding in self.findings if is_quiet(finding)]

    @property
    def is_loud(self) -> bool:
        return any(finding["severity"] in LOUD for finding in self.to_look_at)


def report_of(request: Request) -> Report | None:
    """The report of the present round, or of the last one that has one."""
    return Report.objects.filter(request=request, round__lte=request.round).order_by("-round").first()


def sections_of(report: Report) -> list[ReportSection]:
    """The parts of a report that found something: the one with the worst new finding first."""
    made = []
    for section in Section:
        findings = [finding for finding in report.body["findings"] if finding["section"] == section]
        if findings:
            made.append(ReportSection(section, findings))
    return sorted(made, key=_rank)


def _rank(section: ReportSection) -> tuple[int, int]:
    ranks = [(Severity(finding["severity"]).rank, finding["isNew"]) for finding in section.findings]
    return min((rank for rank, is_new in ranks if is_new), default=len(Severity)), min(rank for rank, _ in ranks)


def is_quiet(finding: Mapping[str, Any]) -> bool:
    """As provisioner.review.base.grouping.is_quiet, of a record."""
    return finding["severity"] == Severity.SAFE or not finding["isNew"]


def findings_of(report: Report, wish: FindingFilter) -> list[Mapping[str, Any]]:
    """The findings that a filter takes, in the report's order: worst first, new before known."""
    return [finding for finding in report.body["findings"] if wish.takes(finding)]


def _searched(finding: Mapping[str, Any]) -> str:
    """Of a Secret only its names: whether its words hold a text may be more than the viewer is allowed to know."""
    ref = finding["ref"] or {}
    named = [ref.get(part, "") for part in ("kind", "namespace", "name")]
    is_secret = (ref.get("group"), ref.get("kind")) == ("", "Secret")
    words = [finding["rule"], *finding.get("also", ()), finding["message"], *named]
    return " ".join(named if is_secret else words).casefold()


def severity_totals(report: Report) -> list[tuple[str, int, int]]:
    """Every severity that the report found, worst first: its word, how many, how many of them new."""
    new = dict(severity_counts([finding for finding in report.body["findings"] if finding["isNew"]]))
    return [(severity, count, new.get(severity, 0)) for severity, count in severity_counts(report.body["findings"])]


def severity_counts(findings: Collection[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """How many findings there are of each severity that occurs, worst first."""
    counted = Counter(finding["severity"] for finding in findings)
    return [(str(severity), counted[severity]) for severity in Severity if counted[severity]]


def reviews_of(request: Request) -> list[Review]:
    """All reviews, those of earlier rounds too."""
    return list(
        Review.objects.filter(request=request)
        .select_related("policy", "user", "replaced_by", "carries")
        .prefetch_related("dismissals")
    )


def voided_rounds_of(request: Request) -> list[VoidedRound]:
    """The rounds whose reviews no longer count; of a request in its first round nothing is asked."""
    return list(request.voided_rounds.all()) if request.round > 1 or request.state == State.STALE else []


def evaluations_of(request: Request) -> list[PolicyEvaluation]:
    """What each policy said about the present round, each policy's latest version only."""
    rows = PolicyEvaluation.objects.filter(request=request, round=request.round).select_related("policy__cluster")
    rows = rows.defer("policy__cluster__kubeconfig")
    latest = {row.policy_id: row for row in rows.order_by("policy_version")}
    return sorted(latest.values(), key=lambda row: row.policy.name)


def timeline_of(request: Request) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(request_uid=str(request.uid)).order_by("number"))


def version_words(spec: BundleSpec, bundles: Iterable[Mapping[str, Any]] = ()) -> str:
    """What people call the version that a spec asks for: tag, short commit, file name; of its first source.

    Of a package of a catalog it is that of the bundle that was chosen, of `bundles` as a request keeps them, and what
    is asked for until then.
    """
    if not spec.sources:
        return ""
    source = spec.sources[0]
    if source.is_catalog:
        chosen = next((str(bundle["version"]) for bundle in bundles if bundle["destination"] == source.destination), "")
        return (chosen or source.version_words or NOT_CHOSEN) + _more_sources(spec)
    return source.version_words + _more_sources(spec)


def bundle_words(request: Request) -> str:
    """What the chart or operator bundle of a request calls its version; "" where it has none, or nobody knows yet."""
    return f"{request.bundle_version}{_more_sources(request.bundle_spec)}" if request.bundle_version else ""


def _more_sources(spec: BundleSpec) -> str:
    count = len(spec.sources)
    return f" +{count - 1}" if count > 1 else ""


def depending(report: Report) -> frozenset[str]:
    """The fingerprints of the findings whose severity depends on objects that nobody looked at; reads the body."""
    everything = [*report.body.get("findings", []), *report.body.get("private", [])]
    found = (
        finding for finding in everything if certainty_of(finding.get("evidence", {})) is Certainty.DEPENDS_ON_OBJECTS
    )
    return frozenset(str(finding["fingerprint"]) for finding in found)


def ticks_digest(request: Request, report: Report) -> str:
    """What ticks on the objects of this report are kept under; "" while the report is not of the present round."""
    return request.subject_digest if report.round == request.round else ""


def viewed_by(*, user: User, request: Request, subject_digest: str) -> frozenset[str]:
    """The names of the objects that this person has ticked as viewed in this round."""
    if not subject_digest:
        return frozenset()
    ticked = ViewedObject.objects.filter(user=user, request=request, subject_digest=subject_digest)
    return frozenset(ticked.values_list("object", flat=True))
