"""Approving what one does not see: one limit for channels that do not show the report (security-rules.md S32)."""

from __future__ import annotations

from django.conf import settings

from approvals.errors import TooSerious
from approvals.gate.unseen_limits import why_not_unseen
from approvals.models import Request, Review


def check_seen(request: Request, *, channel: str) -> None:
    """Raise TooSerious unless `channel` shows the report, or the report is harmless enough to be approved unseen."""
    if Review.Channel(channel).shows_report:
        return
    why_not = why_not_unseen(request, names_deletions=channel == Review.Channel.KUBECTL)
    if why_not:
        page = page_of(request)
        words = f"this request cannot be approved without seeing its report: {why_not}. Open {page}"
        raise TooSerious(words, page=page)


def page_of(request: Request) -> str:
    """The URL of the request's page."""
    return f"{settings.PRATIQUE['PUBLIC_URL'].rstrip('/')}/requests/{request.uid}"
