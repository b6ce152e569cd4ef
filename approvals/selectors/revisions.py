"""Which revisions can be gone back to, and which are revoked."""

from __future__ import annotations

from django.db.models import QuerySet

from approvals.models import BundleDeployment, Revision

MAX_DIGITS = 9


def once_in_force(*, deployment: BundleDeployment) -> QuerySet[Revision]:
    """What was once applied whole and not given up, by number."""
    states = (Revision.State.ACTIVE, Revision.State.REPLACED)
    found = Revision.objects.filter(deployment=deployment, state__in=states)
    return found.select_related("deployment__cluster", "request").order_by("number")


def restorable(*, deployment: BundleDeployment) -> QuerySet[Revision]:
    """The revisions that can be gone back to: what was once in force, is not revoked and whose content is kept."""
    return once_in_force(deployment=deployment).filter(revoked_at=None, request__cleared_at=None)


def numbered(*, deployment: BundleDeployment, number: str) -> Revision | None:
    """The revision that was once in force and has this number, as somebody wrote it."""
    is_number = number.isdecimal() and len(number) <= MAX_DIGITS
    return once_in_force(deployment=deployment).filter(number=int(number)).first() if is_number else None


def why_not_restorable(*, deployment: BundleDeployment, number: str) -> str:
    """Why nobody can go back to that revision; "" where somebody can."""
    revision = numbered(deployment=deployment, number=number)
    if revision and revision.request.cleared_at is None:
        return revoked_words(revision)
    if revision:
        number = f"{number} (its content was removed on {revision.request.cleared_at:%Y-%m-%d})"
    there = ", ".join(str(each) for each in restorable(deployment=deployment).values_list("number", flat=True))
    return f"revision {number} cannot be rolled back to; available: {there or 'none'}"


def revoked_words(revision: Revision) -> str:
    """Who revoked it and why; "" where nobody did."""
    if revision.revoked_at is None:
        return ""
    return f"revision {revision.number} was revoked by {revision.revoked_by}: {revision.revoked_reason}"
