"""How the branches, tags and URLs that a deployment follows stand: when each was looked at, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import prefetch_related_objects

from approvals.models import BundleDeployment, ReferenceFollower


@dataclass(frozen=True, slots=True)
class FollowedReference:
    """One source of a deployment that may move. `interval_seconds` is 0 where it is not looked at.

    `problem` says why it could not be looked at since `problem_since`. `moved_at`: since when it differs from what the
    latest request is about. The next one is made when the open one is settled; where it moved too often, not before
    `rests_until`.
    """

    position: int
    name: str
    kind: str
    interval_seconds: int
    looked_at: datetime | None
    next_look_at: datetime | None
    problem: str
    problem_code: str
    problem_since: datetime | None
    moved_at: datetime | None
    rests_until: datetime | None = None

    @property
    def interval_words(self) -> str:
        """As specs write it: 1h30m."""
        minutes, seconds = divmod(self.interval_seconds, 60)
        hours, minutes = divmod(minutes, 60)
        parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
        return "".join(f"{count}{unit}" for count, unit in parts if count)


def followed(*, deployment: BundleDeployment) -> list[FollowedReference]:
    """In the order of the sources; what is pinned is not there."""
    prefetch_related_objects([deployment], "followed_references__reference")
    return [_one(row, is_paused=deployment.is_paused) for row in deployment.followed_references.all()]


def _one(row: ReferenceFollower, *, is_paused: bool) -> FollowedReference:
    reference, own = row.reference, bool(row.problem)
    seconds = 0 if is_paused else row.effective_seconds
    return FollowedReference(
        position=row.position,
        name=row.name,
        kind=reference.kind,
        interval_seconds=seconds,
        looked_at=reference.looked_at,
        next_look_at=reference.look_at if seconds else None,
        problem=row.problem or reference.problem,
        problem_code=NOT_READABLE if own else reference.problem_code,
        problem_since=row.problem_since if own else reference.problem_since,
        moved_at=row.moved_at,
        rests_until=row.rests_until,
    )


# Of a look that was not for this deployment, because who asks for it may not read the source.
NOT_READABLE = "forbidden"
