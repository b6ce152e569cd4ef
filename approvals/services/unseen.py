"""Approving what one does not see: one limit for channels that do not show the report (security-rules.md S32)."""

from __future__ import annotations

from django.conf import settings

from approvals.errors import TooSerious
from approvals.models import Request, Review
from approvals.policy import OWN_RULES_PREFIX
from provisioner.values import Severity


def check_seen(request: Request, *, channel: str) -> None:
    """Raise TooSerious unless `channel` shows the report, or the report is harmless enough to be approved unseen."""
    if Review.Channel(channel).shows_report:
        return
    why_not = why_not_unseen(request)
    if why_not:
        page = page_of(request)
        words = f"this request cannot be approved without seeing its report: {why_not}. Open {page}"
        raise TooSerious(words, page=page)


def why_not_unseen(request: Request) -> str:
    """Why the present round cannot be approved where its report is not shown; "" where it can.

    What nobody could judge is worse than every limit, and so is content that touches Pratique itself (S22).
    """
    report = request.reports.filter(round=request.round).first()
    if report is None:
        return "the report is not ready yet"
    private = report.body.get("private", [])
    rules = [*report.findings.values_list("rule", flat=True), *(one["rule"] for one in private)]
    if any(rule.startswith(OWN_RULES_PREFIX) for rule in rules):
        return "it affects Pratique itself"
    new = {Severity(report.worst), *(Severity(one["severity"]) for one in private)}
    if Severity.UNKNOWN in new or report.findings.filter(severity=Severity.UNKNOWN).exists():
        return "part of it is unknown"
    limit, worst = Severity(settings.PRATIQUE["UNSEEN_SEVERITY"]), min(new, key=lambda one: one.rank)
    if worst.rank < limit.rank:
        return f"its worst new finding is {worst}, and the limit here is {limit}"
    return ""


def page_of(request: Request) -> str:
    """The URL of the request's page."""
    return f"{settings.PRATIQUE['PUBLIC_URL'].rstrip('/')}/requests/{request.uid}"
