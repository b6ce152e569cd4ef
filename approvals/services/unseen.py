"""Approving what one does not see: one limit for channels that do not show the report (security-rules.md S32)."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from approvals.access.sight import is_private, private_to_judge
from approvals.errors import TooSerious
from approvals.models import Report, Request, Review
from approvals.policy import OWN_RULES_PREFIX
from approvals.selectors.certainty import depending
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
    if any(map(is_private, report.body["plan"]["actions"])):
        # In the same words whatever these objects hold: not everybody who reads this may get them (S09).
        return "it adopts objects of somebody else"
    private = private_to_judge(report.body)
    rules = [*report.findings.values_list("rule", flat=True), *(one["rule"] for one in private)]
    if any(rule.startswith(OWN_RULES_PREFIX) for rule in rules):
        return "it affects Pratique itself"
    new = {Severity(report.worst), *(Severity(one["severity"]) for one in private)}
    if Severity.UNKNOWN in new or report.findings.filter(severity=Severity.UNKNOWN).exists():
        return "part of it is unknown"
    return _over_limits(report, private, min(new, key=lambda one: one.rank))


def _over_limits(report: Report, private: list[dict[str, Any]], worst: Severity) -> str:
    """What is new and worse than its limit: that of what is proved, or that of what depends on stored objects.

    `worst` is the worst of all that is new; where no finding is at hand that explains it, it counts as proved.
    """
    limit = Severity(settings.PRATIQUE["UNSEEN_SEVERITY"])
    other = Severity(settings.PRATIQUE["UNSEEN_DEPENDING_SEVERITY"] or limit)
    open_ones = depending(report)
    found = [(one.fingerprint, Severity(one.severity)) for one in report.findings.filter(is_new=True)]
    found += [(str(one.get("fingerprint")), Severity(one["severity"])) for one in private]
    depends = [severity for name, severity in found if name in open_ones]
    proved = [severity for name, severity in found if name not in open_ones]
    proved += [] if worst in depends else [worst]
    for severities, most, what in ((proved, limit, ""), (depends, other, " that depends on stored objects")):
        here = min(severities, key=lambda one: one.rank, default=Severity.SAFE)
        if here.rank < most.rank:
            return f"its worst new finding{what} is {here}, and the limit here is {most}"
    return ""


def page_of(request: Request) -> str:
    """The URL of the request's page."""
    return f"{settings.PRATIQUE['PUBLIC_URL'].rstrip('/')}/requests/{request.uid}"
