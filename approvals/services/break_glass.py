"""Let a request go in an emergency, and the review that is owed for it afterwards (docs/operating/break-glass.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NotRequired, TypedDict, Unpack

from django.db import transaction

from approvals import access, wake
from approvals.access import Caller
from approvals.clock import database_now
from approvals.errors import InvalidInput, NotAllowed, NotOpen, SelfApproval
from approvals.gate import reviewer_checks
from approvals.gate.reviewer_checks import Checked
from approvals.ledger.moves import locked
from approvals.models import AFTERWARDS, BREAK_GLASS, OBJECT, Request, Review
from approvals.selectors import debts
from approvals.services.reviews import (
    MAX_REASON,
    Given,
    add_review,
    check_digest,
    check_not_own,
    check_open_to,
    check_owes_nothing,
    find_request,
    record,
    review,
)
from approvals.services.waivers import Waiver

MAX_INCIDENT = 200
CHANNELS = (Review.Channel.BROWSER, Review.Channel.REST, Review.Channel.KUBECTL)


class SaidOfRequest(TypedDict):
    """What every decision on a request comes with."""

    by: Caller
    request_id: int
    subject_digest: str
    reason: str
    channel: str
    said_at: NotRequired[datetime]
    keep: NotRequired[Callable[[Review], object]]


def give_review(
    *,
    decision: str,
    incident: str = "",
    acknowledges: Sequence[str] = (),
    waives: Sequence[Waiver] = (),
    apply_at: datetime | None = None,
    **said: Unpack[SaidOfRequest],
) -> Review:
    """Whatever may be said of a request, by its decision."""
    if apply_at and decision in (BREAK_GLASS, *AFTERWARDS):
        raise InvalidInput(f"only Approve takes a time to apply at; the decision is {decision}", field="apply_at")
    if decision in AFTERWARDS:
        return review_afterwards(decision=decision, **said)
    if decision == BREAK_GLASS:
        return break_glass(incident=incident, acknowledges=acknowledges, **said)
    return review(decision=decision, acknowledges=acknowledges, waives=waives, apply_at=apply_at, **said)


def break_glass(
    *,
    by: Caller,
    request_id: int,
    subject_digest: str,
    reason: str,
    incident: str,
    channel: str,
    acknowledges: Sequence[str] = (),
    said_at: datetime | None = None,
    keep: Callable[[Review], object] | None = None,
) -> Review:
    """Let the subject that they saw go without the approvals that are missing, and past what policies hold.

    It takes the verb break-glass, now and whenever the request is judged. A no of people stands, and so does all that
    the gate says of what would be applied. Raises what `review` does, and ReviewOwed.
    """
    if channel not in CHANNELS:
        raise NotAllowed("glass is broken in the browser, over REST or with kubectl, not in chat or by a machine")
    reason, incident = _checked_words(reason, "reason", MAX_REASON), _checked_words(incident, "incident", MAX_INCIDENT)
    checked = check_may_break_glass(by, find_request(request_id))
    given = Given(
        BREAK_GLASS, subject_digest, reason, channel, tuple(acknowledges), (), said_at or database_now(), incident
    )
    return record(by, request_id, given, checked, keep or (lambda _: None))


def check_may_break_glass(by: Caller, request: Request) -> Checked:
    """What Kubernetes says of who breaks glass; raises what `break_glass` does, whatever is written in its form."""
    check_open_to(request, BREAK_GLASS)
    checked = reviewer_checks.check_breaker(by, request)
    check_not_own(request, checked.person, checked.doubt, "break glass", BREAK_GLASS)
    check_owes_nothing(request, checked)
    return checked


def review_afterwards(
    *,
    by: Caller,
    request_id: int,
    decision: str,
    subject_digest: str,
    reason: str,
    channel: str,
    said_at: datetime | None = None,
    keep: Callable[[Review], object] | None = None,
) -> Review:
    """Pay the review that a break-glass owes: accept what was done, or object with a reason. It changes nothing that
    was applied.

    Whoever may approve may, but not who broke the glass, and nobody who asked for the change (S05). Raises NotOpen
    where nothing is owed, and what `review` does.
    """
    if decision not in AFTERWARDS:
        raise InvalidInput(f"the decision is {decision!r}; expected {' or '.join(AFTERWARDS)}", field="decision")
    if channel not in CHANNELS:
        raise NotAllowed("this review is given in the browser, over REST or with kubectl")
    reason = reason.strip()
    if decision == OBJECT or reason:
        reason = _checked_words(reason, "reason", MAX_REASON)
    request = find_request(request_id)
    checked = reviewer_checks.with_doubt(reviewer_checks.check_reviewer(by, request), request)
    given = Given(decision, subject_digest, reason, channel, (), (), said_at or database_now())
    return _keep_afterwards(by, request_id, given, checked, keep or (lambda _: None))


@transaction.atomic(durable=True)
def _keep_afterwards(
    by: Caller, request_id: int, given: Given, checked: Checked, keep: Callable[[Review], object]
) -> Review:
    request = locked(request_id)
    if not debts.owed().filter(request=request).exists():
        raise NotOpen("no review is owed for this request")
    check_digest(request, given.subject_digest)
    for broken in request.reviews.filter(round=request.round, decision=BREAK_GLASS):
        if broken.user_id == by.user.pk or checked.person.is_same(access.person_who_reviewed(broken)):
            raise SelfApproval("you broke the glass, so someone else must review it")
    check_not_own(request, checked.person, checked.doubt, "review it")
    request.mirrored_at = None
    request.save(update_fields=["mirrored_at"])
    wake.deployment(request.deployment_id)
    return add_review(by, request, given, checked, keep)


def _checked_words(text: str, field: str, most: int) -> str:
    words = text.replace("\0", "\ufffd").strip()
    if not words:
        raise InvalidInput(f"the {field} is missing: others will see it", field=field)
    if len(words) > most:
        raise InvalidInput(f"the {field} has {len(words)} characters; at most {most} are allowed", field=field)
    return words
