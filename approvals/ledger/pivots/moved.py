"""A reference that moved away from what a deployment's latest request is about: a new request, or the wait for it.

The rows of those who follow it say what is to be asked (`ReferenceFollower.answer_at`), from the look on until it is
answered here. A worker that dies in between loses nothing, and who asks twice gets one request.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from approvals import audit
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.ledger.pivots.asking import ask_for_moved, hold_open
from approvals.lifecycle import State
from approvals.locks import for_change, hold
from approvals.models import BundleDeployment, ReferenceFollower, Request, ViewedObject
from approvals.policy.following import RATE_SECONDS, Answer, FollowerFacts, WishFacts, answer_of, rest_of

# What waits for a request to be settled or pinned is asked about so often: nobody says when that is.
ASK_AGAIN_SECONDS = 30


@dataclass(frozen=True, slots=True)
class DeploymentWish:
    """A locked deployment with what all its references are judged by; `rests_until` as `policy.following.rest_of`."""

    deployment: BundleDeployment
    latest: Request | None
    open_requests: list[Request]
    rests_until: datetime | None

    @property
    def is_held(self) -> bool:
        return any(is_held(one) for one in self.open_requests)

    @property
    def is_pinning(self) -> bool:
        return self.latest is not None and self.latest.state == State.PREPARING

    @property
    def facts(self) -> WishFacts:
        deployment, latest = self.deployment, self.latest
        is_leaving = bool(deployment.gone_at or deployment.deletion_requested_at)
        return WishFacts(
            is_stopped=deployment.is_paused or is_leaving or deployment.waiting_since is not None,
            is_other_wished=latest is None or latest.options_digest != deployment.options_digest,
            is_pinning=self.is_pinning,
            is_held=self.is_held,
            is_too_soon=self.rests_until is not None,
        )


@transaction.atomic
def answer_moves(deployment_id: int) -> Request | None:
    """Make the request that a move calls for, in place of an open one that nobody has begun to review.

    None where nothing moved, where it waits for a request to be settled or pinned or moves too often, and where a quota
    is used up.
    """
    deployment = for_change(BundleDeployment.objects.select_related("cluster").filter(pk=deployment_id)).get()
    now = database_now()
    wish = wish_of(deployment, now)
    hold(deployment.followed_references.all())
    rows = list(deployment.followed_references.select_related("reference").exclude(reference__seen=""))
    answers = {row.pk: answer_of(_facts(wish, row), wish.facts) if _is_told(row) else Answer.NOTHING for row in rows}
    made = None
    is_due = Answer.ASK in answers.values()
    for row in rows:
        _note(row, answers[row.pk], wish, now, is_due=is_due)
    if is_due and wish.latest:
        _audit_moves(deployment, [row for row in rows if answers[row.pk] is Answer.ASK], wish.latest)
        made = ask_for_moved(deployment, wish.latest)
    return made


def wish_of(deployment: BundleDeployment, now: datetime) -> DeploymentWish:
    """Of a locked deployment; locks its open request."""
    return DeploymentWish(deployment, latest_wish(deployment), hold_open(deployment), _rests_until(deployment, now))


def latest_wish(deployment: BundleDeployment) -> Request | None:
    """The last request for what the spec wishes: going back to a revision does not change that."""
    return deployment.requests.filter(purpose=Request.Purpose.DEPLOY).order_by("-number").first()


def _rests_until(deployment: BundleDeployment, now: datetime) -> datetime | None:
    made = deployment.requests.filter(is_unattended=True, created_at__gt=now - timedelta(seconds=RATE_SECONDS))
    latest_first = made.order_by("-created_at").values_list("created_at", flat=True)
    return rest_of(list(latest_first), most=settings.PRATIQUE["SOURCE_REQUESTS_PER_HOUR"], now=now)


def _facts(wish: DeploymentWish, row: ReferenceFollower) -> FollowerFacts:
    return FollowerFacts(
        seen=row.reference.seen,
        pin=_pin(row, wish.latest),
        answered=row.answered,
        is_fresh=_is_fresh(row, wish.latest),
    )


def _pin(row: ReferenceFollower, latest: Request | None) -> str:
    """Pins stand in the order of the sources."""
    pins = latest.pins if latest else []
    return str(pins[row.position].get("digest", "")) if row.position < len(pins) else ""


def _is_told(row: ReferenceFollower) -> bool:
    """Whether a look was for this deployment: who may not read a source is not told that it moved (S09)."""
    return row.answer_at is not None and not row.problem


def _is_fresh(row: ReferenceFollower, latest: Request | None) -> bool:
    """Whether the look began after the request had been pinned, or had failed: an older one may have seen what was
    before."""
    if latest is None:
        return True
    first = latest.reports.order_by("round").first()
    pinned_at = first.computed_at if first else latest.changed_at
    looked_at = row.reference.looked_at
    return looked_at is not None and looked_at > pinned_at


def is_held(request: Request) -> bool:
    """Whether a move has to wait for this open request (S25)."""
    if request.purpose != Request.Purpose.DEPLOY or request.state not in (
        State.PREPARING,
        State.IN_REVIEW,
        State.STALE,
    ):
        return True
    return request.reviews.exists() or ViewedObject.objects.filter(request=request).exists()


def _note(row: ReferenceFollower, found: Answer, wish: DeploymentWish, now: datetime, *, is_due: bool) -> None:
    """Keep what was answered. A request that is made is about all references as they are now."""
    is_asked = is_due or found is Answer.REMEMBER
    row.answered = row.reference.seen if is_asked else row.answered
    waits = found is Answer.WAIT and not is_due
    has_moved = waits and not wish.is_pinning
    row.rests_until = wish.rests_until if has_moved and not wish.is_held else None
    row.answer_at = (row.rests_until or now + timedelta(seconds=ASK_AGAIN_SECONDS)) if waits else None
    row.moved_at = (row.moved_at or now) if has_moved else None
    row.save(update_fields=["answered", "answer_at", "moved_at", "rests_until"])


def _audit_moves(deployment: BundleDeployment, rows: list[ReferenceFollower], latest: Request) -> None:
    for row in rows:
        facts = {"reference": row.name, "from": _pin(row, latest), "to": row.reference.seen}
        audit.record(verb="source.moved", actor=MACHINE, deployment=deployment, facts=facts)
