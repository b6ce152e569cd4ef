"""A reference that moved away from what a deployment's latest request is about: a new request, or the wait for it.

The rows of those who follow it say what is to be asked (`ReferenceFollower.answer_at`), from the look on until it is
answered here. A worker that dies in between loses nothing, and who asks twice gets one request.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from approvals import audit
from approvals.audit import MACHINE
from approvals.ledger.locks import for_change, hold
from approvals.ledger.pivots.asking import ask_for_moved, hold_open
from approvals.lifecycle import State
from approvals.models import BundleDeployment, ReferenceFollower, Request, ViewedObject
from approvals.policy.following import Answer, FollowerFacts, answer_of

# What waits for a request to be settled or pinned is asked about so often: nobody says when that is.
ASK_AGAIN_SECONDS = 30


@transaction.atomic
def answer_moves(deployment_id: int) -> Request | None:
    """Make the request that a move calls for, in place of an open one that nobody has begun to review.

    None where nothing moved, where it waits for a request to be settled or pinned, and where a quota is used up.
    """
    deployment = for_change(BundleDeployment.objects.select_related("cluster").filter(pk=deployment_id)).get()
    open_requests = hold_open(deployment)
    hold(deployment.followed_references.all())
    rows = list(deployment.followed_references.select_related("reference").exclude(reference__seen=""))
    latest = latest_wish(deployment)
    answers = {
        row.pk: answer_of(_facts(deployment, row, latest, open_requests)) if _is_told(row) else Answer.NOTHING
        for row in rows
    }
    now = timezone.now()
    made = None
    is_due = Answer.ASK in answers.values()
    for row in rows:
        _note(row, answers[row.pk], now, is_due=is_due)
    if is_due and latest:
        _audit_moves(deployment, [row for row in rows if answers[row.pk] is Answer.ASK], latest)
        made = ask_for_moved(deployment, latest)
    return made


def latest_wish(deployment: BundleDeployment) -> Request | None:
    """The last request for what the spec wishes: going back to a revision does not change that."""
    return deployment.requests.filter(purpose=Request.Purpose.DEPLOY).order_by("-number").first()


def _facts(
    deployment: BundleDeployment, row: ReferenceFollower, latest: Request | None, open_requests: list[Request]
) -> FollowerFacts:
    is_leaving = bool(deployment.gone_at or deployment.deletion_requested_at)
    return FollowerFacts(
        seen=row.reference.seen,
        pin=_pin(row, latest),
        answered=row.answered,
        is_fresh=_is_fresh(row, latest),
        is_stopped=deployment.is_paused or is_leaving or deployment.waiting_since is not None,
        is_other_wished=latest is None or latest.options_digest != deployment.options_digest,
        is_pinning=latest is not None and latest.state == State.PREPARING,
        is_held=any(is_held(one) for one in open_requests),
    )


def _pin(row: ReferenceFollower, latest: Request | None) -> str:
    """Pins stand in the order of the sources."""
    pins = latest.pins if latest else []
    return str(pins[row.position].get("digest", "")) if row.position < len(pins) else ""


def _is_told(row: ReferenceFollower) -> bool:
    """Whether a look was for this deployment: who may not read a source is not told that it moved (S09)."""
    return row.answer_at is not None and not row.problem


def _is_fresh(row: ReferenceFollower, latest: Request | None) -> bool:
    """Whether the look began after the request had been pinned: an older one may have seen what was before."""
    first = latest.reports.order_by("round").first() if latest else None
    looked_at = row.reference.looked_at
    return first is None or (looked_at is not None and looked_at > first.computed_at)


def is_held(request: Request) -> bool:
    """Whether a move has to wait for this open request (S25)."""
    if request.purpose != Request.Purpose.DEPLOY or request.state not in (
        State.PREPARING,
        State.IN_REVIEW,
        State.STALE,
    ):
        return True
    return request.reviews.exists() or ViewedObject.objects.filter(request=request).exists()


def _note(row: ReferenceFollower, found: Answer, now: datetime, *, is_due: bool) -> None:
    """Keep what was answered. A request that is made is about all references as they are now."""
    is_asked = is_due or found is Answer.REMEMBER
    row.answered = row.reference.seen if is_asked else row.answered
    waits = found is Answer.WAIT and not is_due
    row.answer_at = now + timedelta(seconds=ASK_AGAIN_SECONDS) if waits else None
    row.moved_at = (row.moved_at or now) if waits else None
    row.save(update_fields=["answered", "answer_at", "moved_at"])


def _audit_moves(deployment: BundleDeployment, rows: list[ReferenceFollower], latest: Request) -> None:
    for row in rows:
        facts = {"reference": row.name, "from": _pin(row, latest), "to": row.reference.seen}
        audit.record(verb="source.moved", actor=MACHINE, deployment=deployment, facts=facts)
