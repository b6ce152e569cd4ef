"""What the page of changes reads beside the report."""

from __future__ import annotations

from django.contrib.auth.models import User

from approvals.models import Report, Request, ViewedObject


def ticks_digest(request: Request, report: Report) -> str:
    """What ticks on the objects of this report are kept under; "" while the report is not of the present round."""
    return request.subject_digest if report.round == request.round else ""


def viewed_by(*, user: User, request: Request, subject_digest: str) -> frozenset[str]:
    """The names of the objects that this person has ticked as viewed in this round."""
    if not subject_digest:
        return frozenset()
    ticked = ViewedObject.objects.filter(user=user, request=request, subject_digest=subject_digest)
    return frozenset(ticked.values_list("object", flat=True))
