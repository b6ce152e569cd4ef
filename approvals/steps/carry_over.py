"""IN_REVIEW, before anything is judged: people's approvals of the same risk are carried over from earlier rounds, and
from requests that expired or were withdrawn (decision 0100, security-rules.md S51).

Each becomes a review of the present round that names the one which it carries. The gate asks again each time whether it
counts; here it is only found out, once in a round, whether the report says nothing that its author had not approved.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, Q

from approvals import access, audit, store, wake
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.deciding.approval_rules import ApprovalRule
from approvals.deciding.same_risk import EarlierReview, is_covered, last_approvals, new_rules
from approvals.gate import reader, reviewed_report
from approvals.gate.facts import RuleFacts, Unknown
from approvals.gate.reviewer_checks import doubt_of
from approvals.gate.rights import is_by_machine, may_be_own
from approvals.gate.rule_facts import oldest_carried
from approvals.gate.rules import why_not_carried
from approvals.ledger import claims
from approvals.ledger.moves import locked
from approvals.ledger.pivots import has_requested
from approvals.lifecycle import State
from approvals.models import DecidingObject, Report, Request, Review, VoidedRound
from provisioner.errors import PratiqueError

# What ended without an outcome, so that the next request may be the same one again.
WITHOUT_OUTCOME = (State.EXPIRED, State.WITHDRAWN)
# Of earlier rounds and requests together: where there are more, nothing is carried over.
MOST_REVIEWS = 100
# What reviewers are told beside the report, which a later request has to have as well.
_TOLD = (
    *("purpose", "from_revision_id", "to_revision_id", "pins", "bundles", "chart_values", "patches", "requirements"),
    *("change_reason", "change_ticket"),
)
# Of the approval: what is accepted with it, a waiver, is for its own round (decision 0014).
_COPIED = (
    *("decision", "reason", "channel", "voter", "user", "username", "uid", "groups", "issuer", "subject"),
    *("acknowledges", "may_use_account", "access_reason", "given_at", "deputy_words"),
)
OTHERWISE = "what would be applied, or what the report says of it, is not the same or less"


def run(request: Request) -> None:
    """Carry over what can be, unless that was done for this round, or no rule of the cluster does so."""
    is_first = (request.number, request.round) == (1, 1)
    if is_first or request.carry_over.get("round") == request.round or not _is_allowed(request):
        return
    earlier, now = _read_earlier(request), database_now()
    facts = [_facts_of(review, apply_at) for review, apply_at in earlier]
    found = last_approvals(facts, now) if len(facts) <= MOST_REVIEWS else {}
    report = reviewed_report(request)
    rules = reader.read_rules(request, report, None)
    if isinstance(rules, Unknown):
        return  # the next look may know them
    present = list(request.reviews.filter(round=request.round))
    told, carried = list[dict[str, Any]](), list[Review]()
    for review in (review for review, _ in earlier if review.pk in found):
        made = found[review.pk] or _carry(review, request, report, rules.value, [*present, *carried])
        carried += [made] if isinstance(made, Review) else []
        about = {"name": review.username, "number": review.request.number, "round": review.round}
        why_not = made if isinstance(made, str) else ""
        told.append({**about, "at": review.given_at.isoformat(), "why_not": why_not})
    _keep(request, told, carried, {review.pk for review in present})


def _is_allowed(request: Request) -> bool:
    rules = DecidingObject.objects.filter(cluster=request.cluster_id, kind=ApprovalRule.kind, gone_at=None)
    return rules.filter(spec__carryOver=True).exists()


def _read_earlier(request: Request) -> list[tuple[Review, datetime | None]]:
    """What was said in earlier rounds, and of the requests right before this one that ended without an outcome; each
    with when its round was to be applied at the earliest."""
    before = Request.objects.filter(deployment=request.deployment_id, number__lt=request.number)
    last = before.exclude(state__in=WITHOUT_OUTCOME).aggregate(last=Max("number"))["last"] or 0
    rounds = Q(request=request, round__lt=request.round)
    requests = Q(
        request__deployment=request.deployment_id, request__number__gt=last, request__number__lt=request.number
    )
    rows = Review.objects.filter(rounds | requests, carries=None).select_related("request__content", "user")
    reviews = list(rows.order_by("given_at", "pk")[: MOST_REVIEWS + 1])
    ended = VoidedRound.objects.filter(request__in={one.request_id for one in reviews})
    voided = {(one.request_id, one.round): one.apply_at for one in ended}
    return [(one, voided.get((one.request_id, one.round), one.request.apply_at)) for one in reviews]


def _facts_of(review: Review, apply_at: datetime | None) -> EarlierReview:
    is_persons = not review.policy_id and not is_by_machine(review)
    return EarlierReview(review.pk, review.voter, review.decision, review.given_at, is_persons, apply_at)


def _carry(
    review: Review, request: Request, report: Report, rules: tuple[RuleFacts, ...], present: list[Review]
) -> Review | str:
    """The review of this round that carries an approval over, or why there is none."""
    person = access.person_who_reviewed(review)
    if why := why_not_carried(review.given_at, rules, oldest_carried(request)):
        return why
    if has_requested(request, person) and not may_be_own(review.decision):
        return "they requested this change"
    if any(person.is_same(access.person_who_reviewed(other)) for other in present):
        return "they have reviewed this round"
    identity = access.last_known_of(review.user, request.deployment.cluster) if review.user else None
    if identity is None or (identity.username, identity.uid) != (review.username, review.uid):
        return "nobody is known by their name any more"
    if why := _why_otherwise(review, request, report):
        return why
    doubt = doubt_of(identity, request)
    return Review(
        **{name: getattr(review, name) for name in _COPIED},
        request=request,
        round=request.round,
        subject_digest=request.subject_digest,
        may_write=bool(doubt),
        doubt=doubt,
        carries=review,
    )


def _why_otherwise(review: Review, request: Request, report: Report) -> str:
    """Why the request is not what this person approved, or has more; "" where it is the same or less.

    What they approved is proved by the digest that their review is bound to: it is computed again, of the content, the
    options and the account of now.
    """
    before = review.request
    approved = Report.objects.filter(request=before, round=review.round).first()
    if before.content is None or request.content is None or approved is None:
        return OTHERWISE
    try:
        is_same = store.is_same(request.content, before.content)
    except PratiqueError as exc:
        return f"the stored content cannot be compared: {exc.code}"
    subject = replace(
        reader.subject_of(before, content_digest=before.content.digest),
        round=review.round,
        plan_digest=approved.body["plan"]["digest"],
        options_digest=request.options_digest,
        service_account_uid=request.service_account_uid,
    )
    if not is_same or subject.digest != review.subject_digest:
        return OTHERWISE
    if any(getattr(request, name) != getattr(before, name) for name in _TOLD):
        return OTHERWISE
    if is_covered(report.exact_body, approved.exact_body):
        return ""
    rules = new_rules(report.body, approved.body)
    return f"{OTHERWISE}; new: {', '.join(rules)}" if rules else OTHERWISE


@transaction.atomic(durable=True)
def _keep(request: Request, told: list[dict[str, Any]], carried: list[Review], known: set[int]) -> None:
    """Write it down, unless somebody reviewed it, or turned out to have asked, since it was read."""
    row = locked(request.pk)
    claims.check_same_holder(row, request)
    asked = (request.state, request.round, request.subject_digest, request.requesters, request.is_requester_known)
    is_same = (row.state, row.round, row.subject_digest, row.requesters, row.is_requester_known) == asked
    if not is_same or {*row.reviews.filter(round=row.round).values_list("pk", flat=True)} != known:
        wake.request(row.pk)
        return
    for review in carried:
        review.save()
        assert review.carries is not None
        facts = {
            "reviewer": review.username,
            "fromRequest": review.carries.request.number,
            "fromRound": review.carries.round,
            "givenAt": review.given_at.isoformat(),
            "carriedDigest": review.carries.subject_digest,
            "subjectDigest": review.subject_digest,
            "round": row.round,
        }
        audit.record(verb="review.carried", actor=MACHINE, request=row, facts=facts)
    row.carry_over = request.carry_over = {"round": row.round, "approvals": told}
    row.mirrored_at = None
    row.save(update_fields=["carry_over", "mirrored_at"])
    if told:
        wake.notice(row.pk, "carried")
    wake.deployment(row.deployment_id)
