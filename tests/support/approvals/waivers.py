"""Findings of a report, and approvals that accept some of them."""

from __future__ import annotations

from typing import Any

from approvals import services
from approvals.models import Finding, Report, Request, Review
from approvals.services.waivers import Waiver
from tests.support.approvals import world
from tests.support.approvals.world import acting

CALM = 'worst in ["safe", "notable"]'


def finding(number: int, severity: str = "dangerous", rule: str = "RB-01", **more: Any) -> dict[str, Any]:
    """A finding of a report's record, whose fingerprint is `f<number>`."""
    return {
        "rule": rule,
        "section": "permissions",
        "severity": severity,
        "message": f"finding {number}",
        "ref": None,
        "path": [],
        "evidence": {},
        "verdicts": {},
        "isNew": True,
        "fingerprint": f"f{number}",
        "serverWords": "",
        "sources": [],
        **more,
    }


def report(request: Request, *found: dict[str, Any], severities: dict[str, int] | None = None) -> Request:
    """Bring a request to review with these findings."""
    world.in_review(request)
    row = Report.objects.get(request=request, round=request.round)
    row.body = {**row.body, "findings": list(found)}
    row.severities = severities or {}
    row.save()
    for position, one in enumerate(found):
        columns = {name: one[name] for name in ("rule", "section", "severity", "message", "fingerprint")}
        Finding.objects.create(report=row, position=position, **columns)
    return request


def approve(request: Request, by: Any, *fingerprints: str, **changes: Any) -> Review:
    wish = {
        "by": acting(by),
        "request_id": request.pk,
        "decision": "Approve",
        "subject_digest": request.subject_digest,
        "reason": "read it",
        "channel": "browser",
        "waives": [Waiver(one, "known since May") for one in fingerprints],
        **changes,
    }
    return services.review(**wish)
