"""Deciding: the one way in for every channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from django.conf import settings
from django.db import transaction

from approvals import access, audit, lifecycle, wake
from approvals.access import Caller
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import (
    AlreadyReviewed,
    Collides,
    DigestMoved,
    InvalidInput,
    NotAllowed,
    NotFound,
    NotOpen,
    ReviewOwed,
    SelfApproval,
    Unacknowledged,
)
from approvals.gate import reviewer_checks
from approvals.gate.people import LETS_GO
from approvals.gate.remedies import MAKE_WAY
from approvals.gate.reviewer_checks import Checked
from approvals.gate.rights import may_be_own
from approvals.ledger.deciding import deciding_objects
from approvals.ledger.holds import check_apply_at, is_same_minute, keep_apply_at
from approvals.ledger.moves import locked, move
from approvals.ledger.pivots import AskedRequest, has_requested
from approvals.lifecycle import Event, State
from approvals.models import ACCEPT, AFTERWARDS, BREAK_GLASS, OBJECT, REQUEST_CHANGES, Dismissal, Request, Review
from approvals.selectors import debts
from approvals.services import waivers
from approvals.services.approval_terms import acknowledgements, check_seen, collisions, in_words, page_of
from approvals.services.waivers import Waiver

DECISIONS = ("Approve", REQUEST_CHANGES, "Deny")
MAX_REASON = 4000
MAX_NAMED = 10
NO_REASON = "give a reason: say what has to change before this can be approved"
NOTICES = {REQUEST_CHANGES: "changes_requested", BREAK_GLASS: "break_glass", ACCEPT: "reviewed", OBJECT: "reviewed"}
# Of one reviewer on one round: nobody needs more, and each is kept for ever.
MAX_REVIEWS = 20
# What a review says, and what counting it goes by.
SAID = (
    "decision",
    "subject_digest",
    "reason",
    "incident",
    "channel",
    "username",
    "uid",
    "groups",
    "acknowledges",
    "waives",
    "may_use_account",
    "may_write",
)


@dataclass(frozen=True, slots=True)
class Given:
    """What the reviewer said, and where."""

    decision: str
    subject_digest: str
    reason: str
    channel: str
    acknowledges: tuple[str, ...]
    waives: tuple[Waiver, ...]
    said_at: datetime
    incident: str = ""
    apply_at: datetime | None = None


def review(
    *,
    by: Caller,
    request_id: int,
    decision: str,
    subject_digest: str,
    reason: str,
    channel: str,
    acknowledges: Sequence[str] = (),
    waives: Sequence[Waiver] = (),
    said_at: datetime | None = None,
    apply_at: datetime | None = None,
    keep: Callable[[Review], object] | None = None,
) -> Review:
    """Record one reviewer's decision on exactly the subject that they saw, and which of its findings they accept.

    Until the verdict it may be given again: the last one counts, and the earlier one stays on record. The same once
    more gives the one that is recorded. `said_at` is when it was said, where that was before now: it does not replace
    what the reviewer has said since. `keep` is called with the review within the transaction that records it, and what
    it raises undoes that. With `apply_at` an approval says that the request is not applied before that time.

    Raises a Refused: DigestMoved where the subject is no longer that one, NotAllowed and CouldNotAsk by Kubernetes'
    answer, TooSerious where the channel does not show the report, SelfApproval, AlreadyReviewed from another account or
    MAX_REVIEWS times, Collides, Unacknowledged, UnknownFinding, NotWaivable, NotOpen, InvalidInput.
    """
    if decision not in DECISIONS:
        raise InvalidInput(f"the decision is {decision!r}; expected one of {', '.join(DECISIONS)}", field="decision")
    if decision == REQUEST_CHANGES and not reason.strip():
        raise InvalidInput(NO_REASON, field="reason")
    if len(reason) > MAX_REASON:
        raise InvalidInput(f"the reason has {len(reason)} characters; at most {MAX_REASON} are allowed", field="reason")
    if apply_at and decision != "Approve":
        raise InvalidInput("only an approval says when the request is applied", field="apply_at")
    waivers.check_words(waives, decision=decision, channel=channel)
    request = find_request(request_id)
    if apply_at and is_same_minute(apply_at, request.apply_at):
        apply_at = None  # what others chose before, and the form shows
    if apply_at:
        check_apply_at(apply_at)
    checked = reviewer_checks.with_doubt(reviewer_checks.check_reviewer(by, request), request)
    if waives:
        check_digest(request, subject_digest)
        checked = replace(checked, override=waivers.check(waives, by=by, identity=checked.identity, request=request))
    said_at = said_at or database_now()
    given = Given(
        decision, subject_digest, reason, channel, tuple(acknowledges), tuple(waives), said_at, apply_at=apply_at
    )
    return record(by, request_id, given, checked, keep or (lambda _: None))


def dismiss(*, by: Caller, request_id: int, review_id: int, reason: str, channel: str) -> Dismissal:
    """Let a request in review go on without the changes that a review asks for: the review stays on record.

    It takes `override` on the BundleDeployment, now and whenever the request is judged. Nobody dismisses what stands in
    the way of their own change (S05). Raises NotFound, NotOpen, InvalidInput, NotAllowed, CouldNotAsk, ProofTooOld,
    SelfApproval, or AlreadyReviewed where there is nothing to dismiss.
    """
    if not reason.strip():
        raise InvalidInput("give a reason for the dismissal: the reviewer and others will see it", field="reason")
    if len(reason) > MAX_REASON:
        raise InvalidInput(f"the reason has {len(reason)} characters; at most {MAX_REASON} are allowed", field="reason")
    request = find_request(request_id)
    if not Review.Channel(channel).shows_report:
        raise NotAllowed("a review is dismissed in the browser or over REST, not in chat or by a machine")
    checked = reviewer_checks.check_dismisser(by, request)
    dismissal = Dismissal(
        reason=reason.strip(),
        channel=channel,
        user=by.user,
        username=checked.identity.username,
        uid=checked.identity.uid,
        issuer=checked.issuer,
        subject=checked.subject,
        override_reason=checked.words,
    )
    return _keep_dismissal(request_id, review_id, dismissal, checked)


@transaction.atomic(durable=True)
def _keep_dismissal(request_id: int, review_id: int, dismissal: Dismissal, checked: Checked) -> Dismissal:
    request = locked(request_id)
    if request.state != State.IN_REVIEW:
        raise NotOpen(f"the request is {request.state.replace('_', ' ')}: only requests in review can be decided")
    check_not_own(request, checked.person, checked.doubt, "dismiss the review")
    review = Review.objects.judged(request).filter(pk=review_id, decision=REQUEST_CHANGES).first()
    if review is None:
        raise AlreadyReviewed("there is nothing to dismiss: its author reviewed again, or it requested no changes")
    dismissal.review, dismissal.given_at = review, database_now()
    dismissal.save()
    audit.record(
        verb="review.dismissed",
        actor=Actor(dismissal.username, dismissal.channel),
        request=request,
        facts={
            "review": review.pk,
            "reviewer": review.username,
            "decision": review.decision,
            "reason": dismissal.reason,
            "round": request.round,
            "override": dismissal.override_reason,
        },
    )
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    wake.request(request.pk)
    return dismissal


def set_apply_at(*, by: Caller, request_id: int, apply_at: datetime | None, via: str) -> Request:
    """Have a request applied at this time at the earliest, once it is approved; None: as soon as it may be.

    Whoever may approve it may say so. Raises NotFound, InvalidInput, NotAllowed, CouldNotAsk, ProofTooOld,
    SelfApproval, or NotOpen where it is neither in review nor approved any more.
    """
    if apply_at:
        check_apply_at(apply_at)
    request = find_request(request_id)
    checked = reviewer_checks.with_doubt(reviewer_checks.check_reviewer(by, request), request)
    with transaction.atomic(durable=True):
        request = locked(request_id)
        if request.state not in (State.IN_REVIEW, State.APPROVED):
            raise NotOpen(f"the request is {request.state.replace('_', ' ')}: it is not applied later any more")
        check_not_own(request, checked.person, checked.doubt, "say when it is applied")
        keep_apply_at(request, apply_at, Actor(checked.identity.username, via))
    return request


@transaction.atomic(durable=True)
def withdraw(*, by: Caller, request_id: int, reason: str, via: str) -> Request:
    """Take back a request; only one of its requesters may, who has proved now who they are on its cluster (S01)."""
    request = locked(request_id)
    access.acting_as(by, request.deployment.cluster)
    if not is_requester(request, by):
        raise NotAllowed("only its requesters can withdraw this request")
    if not lifecycle.may(State(request.state), Event.WITHDRAW):
        raise NotOpen(f"the request is {request.state}: only an open request can be withdrawn")
    return move(request, Event.WITHDRAW, actor=Actor(by.name, via), facts={"reason": reason[:MAX_REASON]})


def is_requester(request: Request, by: Caller) -> bool:
    """Whether the request was asked for by this account."""
    return by.user.pk in {person.get("user_id") for person in request.requesters}


def is_self_approval(request: AskedRequest, person: access.Person, decision: str = "Approve") -> bool:
    """Whether it would be their own change that this person lets go, and the operator forbids that (S05)."""
    return not may_be_own(decision) and has_requested(request, person)


def check_not_own(
    request: AskedRequest, person: access.Person, doubt: str, what: str, decision: str = "Approve"
) -> None:
    """Raise SelfApproval where it is their own change, or may be by this `doubt` (S05). `what` is what someone else
    must do."""
    if is_self_approval(request, person, decision):
        raise SelfApproval(f"you requested this change, so someone else must {what}")
    if doubt and settings.PRATIQUE["DOUBT_WRITERS"] and not may_be_own(decision):
        raise SelfApproval(f"you may have requested this change ({doubt}), so someone else must {what}")


def find_request(request_id: int) -> Request:
    found = Request.objects.select_related("deployment__cluster").filter(pk=request_id).first()
    if found is None:
        raise NotFound("the request does not exist")
    return found


def check_digest(request: Request, seen: str) -> None:
    if seen != request.subject_digest:
        raise DigestMoved(
            f"you reviewed {seen or 'no digest'}, but the request now has {request.subject_digest}: review it again",
            seen=seen,
            current=request.subject_digest,
        )


def check_open_to(request: Request, decision: str) -> None:
    """Raise NotOpen where it is too early or too late for this decision. What is approved and waits, such as for a
    change window, is let go by a break-glass as well."""
    if request.state != State.IN_REVIEW and (decision, request.state) != (BREAK_GLASS, State.APPROVED):
        takes = "requests in review, and approved ones that wait" if decision == BREAK_GLASS else "requests in review"
        raise NotOpen(f"the request is {request.state.replace('_', ' ')}: this decision is for {takes}")


def check_owes_nothing(request: Request, checked: Checked) -> None:
    """Raise ReviewOwed where this person broke glass before, on any cluster, and nobody has reviewed that yet."""
    for row in debts.standing().exclude(request=request):
        owing = access.person_who_reviewed(row)
        if row.request.deployment.cluster_id != request.deployment.cluster_id:
            owing = replace(owing, username="", uid="")  # which are names of that cluster alone
        if checked.person.is_same(owing):
            name = f"{row.request.deployment.name} on {row.request.deployment.cluster.name}"
            raise ReviewOwed(
                f"you broke glass for request {row.request.number} of {name}, incident {row.incident}, and nobody has "
                "reviewed that yet: ask someone who may approve there to accept it or to object",
                page=page_of(row.request),
            )


@transaction.atomic(durable=True)
def record(by: Caller, request_id: int, given: Given, checked: Checked, keep: Callable[[Review], object]) -> Review:
    request = locked(request_id)
    check_open_to(request, given.decision)
    check_digest(request, given.subject_digest)
    if given.decision in LETS_GO:
        # Of an approval in doubt the gate says whether it counts.
        what = "approve it" if given.decision == "Approve" else "break glass"
        check_not_own(request, checked.person, "", what, given.decision)
        if given.decision == "Approve":
            check_seen(request, channel=given.channel)
        met = collisions(request.reports.filter(round=request.round).first())
        if met:
            words = f"{'; '.join(met[:MAX_NAMED])}. It will not be adopted, so this request cannot be approved. "
            raise Collides(words + MAKE_WAY.format(name=request.deployment.name), objects=len(met))
        left = [each for each in acknowledgements(request) if each.name not in given.acknowledges]
        if left:
            raise Unacknowledged(
                f"an approval must acknowledge: {in_words(left)}", missing=[each.name for each in left]
            )
    if given.decision == BREAK_GLASS:
        audit.hold_chain()  # so that nobody does it twice at the same moment
        check_owes_nothing(request, checked)
    return add_review(by, request, given, checked, keep)


def add_review(
    by: Caller, request: Request, given: Given, checked: Checked, keep: Callable[[Review], object]
) -> Review:
    """Keep what was said of a locked request, in place of what the reviewer has said of this round before."""
    earlier = _find_earlier(by, request, checked, given.decision)
    review = _new_review(by, request, given, checked, earlier)
    actor = Actor(checked.identity.username, given.channel)
    if given.apply_at:
        keep_apply_at(request, given.apply_at, actor)
    # A form that was sent twice, or a message that was delivered twice, changes nothing. After a change of a rule the
    # same words are said of something else.
    is_given = earlier is not None and earlier.carries_id is None  # what is carried over was not said of this round
    is_repeated = is_given and all(getattr(earlier, name) == getattr(review, name) for name in SAID)
    if earlier and is_repeated and not deciding_objects.changed_since(request.cluster_id, earlier.given_at):
        keep(earlier)
        return earlier
    _check_may_replace(earlier, review)
    review.save()
    keep(review)
    audit.record(
        verb="review.given",
        actor=actor,
        request=request,
        facts={
            "decision": given.decision,
            "reason": given.reason,
            **({"incident": given.incident} if given.incident else {}),
            **({"deputy": checked.deputy_words} if checked.deputy_words else {}),
            "subjectDigest": given.subject_digest,
            "round": request.round,
            "acknowledges": list(given.acknowledges),
            "waives": waivers.audit_facts(given.waives, request),
            "override": checked.override,
            "signedInAs": by.name,
            **({"replaces": earlier.decision} if earlier else {}),
        },
    )
    # Where the message is lost, the sweep looks at it at once.
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    wake.request(request.pk)
    if notice := NOTICES.get(review.decision):
        wake.notice(request.pk, notice)
    return review


def _find_earlier(by: Caller, request: Request, checked: Checked, decision: str) -> Review | None:
    """The review of this round by the same reviewer that counts until now.

    A person is one vote, however many accounts and names here lead to them (S05, S12). A no is no vote that could be
    given twice: it counts also where two people only look like one.
    """
    given = request.reviews.filter(round=request.round)
    for other in given.filter(user__isnull=False).exclude(user=by.user) if decision in LETS_GO else ():
        if checked.person.is_same(access.person_who_reviewed(other)):
            name = checked.identity.username
            called = "" if other.username == name else f" and as {other.username}"
            raise AlreadyReviewed(f"{name} has already decided on this round from another account{called}")
    return given.filter(voter=_voter(by, decision)).counted().first()


def _voter(by: Caller, decision: str) -> str:
    """Who reviews a break-glass afterwards keeps the vote on the request that they gave before."""
    return f"user:{by.user.pk}{' afterwards' if decision in AFTERWARDS else ''}"


def _new_review(by: Caller, request: Request, given: Given, checked: Checked, earlier: Review | None) -> Review:
    return Review(
        request=request,
        round=request.round,
        decision=given.decision,
        subject_digest=given.subject_digest,
        reason=given.reason,
        incident=given.incident,
        channel=given.channel,
        voter=_voter(by, given.decision),
        user=by.user,
        username=checked.identity.username,
        uid=checked.identity.uid,
        groups=list(checked.identity.groups),
        issuer=checked.issuer,
        subject=checked.subject,
        acknowledges=list(given.acknowledges),
        waives=[asdict(waiver) for waiver in given.waives],
        may_use_account=checked.may_use_account,
        may_write=bool(checked.doubt),
        doubt=checked.doubt,
        access_reason=checked.words,
        deputy_words=checked.deputy_words,
        override_reason=checked.override,
        replaces=earlier,
        given_at=given.said_at,
    )


def _check_may_replace(earlier: Review | None, later: Review) -> None:
    """Raise AlreadyReviewed where the reviewer has decided since `later` was said, or too often, but for a no."""
    if earlier is None:
        return
    if earlier.given_at >= later.given_at:
        raise AlreadyReviewed(
            f"you made a later decision {Review.Channel(earlier.channel).words}: {earlier.decision}. That one counts"
        )
    is_a_no = later.decision not in LETS_GO and earlier.decision not in ("Deny", later.decision)
    given = later.request.reviews.filter(round=later.round, voter=later.voter)
    if given.count() >= MAX_REVIEWS and not is_a_no:
        raise AlreadyReviewed(
            f"you decided {MAX_REVIEWS} times on this round of the request, which is the limit. Your last "
            "decision counts"
        )
