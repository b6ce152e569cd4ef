"""What a BundleDeploymentReview has to be before it is given to services.review. PURE: facts come in, a no goes out.

Kubernetes' answers, self-approval, digests and acknowledgements are judged there, as for every channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from approvals.admission import MARGIN, PolicyState
from provisioner.values import Identity

# Of one person on one cluster within an hour.
MAX_PER_HOUR = 60
NUL = "\0"
# A review is recorded when it is seen, within seconds. One that is older was seen late: what its reviewer has said
# meanwhile is newer.
LATE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class SaidReview:
    """What a BundleDeploymentReview says, and when the API server made it."""

    uid: str
    name: str
    generation: int
    created_at: datetime
    reviewer: Identity
    request_name: str
    deployment_name: str
    decision: str
    subject_digest: str
    round: int
    reason: str
    acknowledges: tuple[str, ...]
    apply_at: datetime | None = None
    incident: str = ""


@dataclass(frozen=True, slots=True)
class KnownRequest:
    """The request that a review names, as we know it."""

    round: int
    deployment_name: str


@dataclass(frozen=True, slots=True)
class NotCounted:
    """Why a review does not count: `code` becomes the reason of its condition, `words` are for the reviewer."""

    code: str
    words: str


def judge(said: SaidReview, request: KnownRequest | None, policies: PolicyState, made_lately: int) -> NotCounted | None:
    """None where the review may be given to services.review. `made_lately`: theirs of the last hour, this one too."""
    if refusal := unproved(said, policies):
        return refusal
    if request is None or request.deployment_name != said.deployment_name:
        words = f"BundleDeployment {said.deployment_name} has no request {said.request_name}: check the names"
        return NotCounted("not-found", words)
    if request.round != said.round:
        words = f"the request is in round {request.round}, and this review is of round {said.round}: review it again"
        return NotCounted("old-round", words)
    return too_many(said.reviewer.username) if made_lately > MAX_PER_HOUR else None


def unproved(said: SaidReview, policies: PolicyState) -> NotCounted | None:
    """Why nobody knows who made it, or it cannot even be kept."""
    who = said.reviewer
    names = (said.request_name, said.deployment_name, who.username, who.uid, *who.groups)
    if any(NUL in text for text in (*names, said.reason, said.incident, *said.acknowledges)):
        return NotCounted("invalid", "this review contains a NUL character, which is not allowed: create another one")
    seconds = int(MARGIN.total_seconds())
    again = f"Create the review again {seconds} seconds after the policies are in force, or decide in the browser"
    if policies.since is None:
        return NotCounted("unproved", f"nobody can tell who created this review: {policies.problem}. {again}")
    if said.created_at - policies.since <= MARGIN:
        since = policies.since.strftime("%Y-%m-%dT%H:%M:%SZ")
        words = f"the admission policies for reviews are known since {since} only"
        return NotCounted("unproved", f"nobody can tell who created this review: {words}. {again}")
    if said.generation != 1:
        return NotCounted("changed", "this review was changed after it was created: create another one")
    return None


def too_many(username: str) -> NotCounted:
    words = f"{username} created more than {MAX_PER_HOUR} reviews within an hour, and only {MAX_PER_HOUR} of them count"
    return NotCounted("too-many", f"{words}: wait before you create another one")
