"""IN_REVIEW → APPROVED or DENIED: a verdict is given once, on what the gate says of reviews, guards and grants."""

from __future__ import annotations

import random
from datetime import timedelta

from django.db import transaction
from django.db.models import Max

from approvals import access, audit, gate, wake
from approvals.audit import MACHINE, Actor
from approvals.clock import database_now
from approvals.gate import GateAnswer, GateFacts, Next, Reason, reader
from approvals.gate.deletions import WORDS
from approvals.gate.facts import PolicyFacts, Unreviewed, value_of
from approvals.gate.people import change_requests, count, is_grant, may_use_account
from approvals.ledger import claims, moves, rounds
from approvals.ledger.moves import locked, move
from approvals.lifecycle import Event, State
from approvals.models import Policy, Request, Review, Verdict

# Rights and policies change without an event: what is not decided is looked at again, not everything at once.
LOOK_AGAIN_SECONDS = (30.0, 45.0)
# What prepare has said of the request stays until it is decided.
_OTHERS = frozenset({"unmet-constraints"})


def run(request: Request, worker: str) -> None:
    facts = reader.deciding(request)
    gate.keep(request, facts)
    _settle(request, facts, gate.judge(facts, database_now()))


@transaction.atomic(durable=True)
def _settle(request: Request, facts: GateFacts, answer: GateAnswer) -> None:
    row = locked(request.pk)
    claims.check_same_holder(row, request)
    if row.state != State.IN_REVIEW or row.round != request.round:
        return
    if _has_changed(row, request, facts):
        wake.request(row.pk)
        return
    # A policy gives no word past somebody who requests changes.
    grants = () if change_requests(value_of(facts.reviews) or ()) else value_of(facts.grants) or ()
    for said in (one for one in grants if is_grant(one)):
        _approve_as(said, row)
    if answer.next == Next.REPORT_AGAIN:
        _report_again(row, answer.reason)
    elif answer.next in (Next.GO, Next.DENY):
        _give_verdict(row, facts, answer)
    elif answer.next == Next.END:
        moves.end(row, gate.refusal_of(answer))
    else:
        _say(row, answer)


def _has_changed(row: Request, read: Request, facts: GateFacts) -> bool:
    """Whether somebody reviewed it, dismissed a review, or turned out to have asked, since the facts were read."""
    judged = Review.objects.judged(row).annotate(dismissal_key=Max("dismissals"))
    given = judged.order_by().values_list("pk", "dismissal_key")
    known = {(one.key, one.dismissal_key) for one in value_of(facts.reviews) or ()}
    asked = (read.subject_digest, read.requesters, read.is_requester_known)
    return set(given) != known or (row.subject_digest, row.requesters, row.is_requester_known) != asked


def _give_verdict(row: Request, facts: GateFacts, answer: GateAnswer) -> None:
    verdict = "Approved" if answer.may else "Denied"
    found, free = count(facts), value_of(facts.unreviewed) or Unreviewed(False)
    is_unreviewed = answer.may and free.is_enough and found.approvals < found.needed
    Verdict.objects.create(
        request=row, round=row.round, verdict=verdict, subject_digest=row.subject_digest, given_at=database_now()
    )
    move(
        row,
        Event.APPROVE if answer.may else Event.DENY,
        actor=MACHINE,
        facts={
            "verdict": verdict,
            "why": WORDS if is_unreviewed else found.words,
            "subjectDigest": row.subject_digest,
        },
        problem="",
        problem_code="",
        look_again_at=None,
    )
    wake.notice(row.pk, "decided")


def _report_again(row: Request, why: Reason) -> None:
    facts = {"reviewedPlan": row.plan_digest, "why": why.words}
    rounds.void(row, code=why.code, words=why.words, facts=facts, remedy=why.remedy, look_again_at=None)


def _approve_as(said: PolicyFacts, row: Request) -> None:
    each = Policy.objects.get(pk=said.key)
    identity, voter = access.policy_identity(each), f"policy:{each.pk}"
    earlier = row.reviews.counted().filter(round=row.round, voter=voter).first()
    if earlier and earlier.policy_version == said.version:
        return
    Review.objects.create(
        request=row,
        round=row.round,
        decision="Approve",
        subject_digest=row.subject_digest,
        reason=said.words,
        channel=Review.Channel.POLICY,
        voter=voter,
        policy=each,
        policy_version=said.version,
        username=identity.username,
        access_reason="Kubernetes allowed this policy's identity to approve",
        may_use_account=may_use_account(said),
        replaces=earlier,
        given_at=database_now(),
    )
    audit.record(
        verb="review.given",
        actor=Actor(identity.username, "policy"),
        request=row,
        facts={"decision": "Approve", "policy": each.name, "version": said.version, "reason": said.words},
    )


def _say(row: Request, answer: GateAnswer) -> None:
    """Why it is not decided, beyond that people have not yet; what was said of that before is taken back."""
    reason = answer.reason
    words, code, remedy = (reason.words, reason.code, reason.remedy) if reason.is_problem else ("", "", "")
    row.look_again_at = database_now() + timedelta(seconds=random.uniform(*LOOK_AGAIN_SECONDS))  # noqa: S311 - keeps no secret
    row.awaits = reason.awaits if reason.is_problem else ""
    changed = ["look_again_at", "awaits"]
    is_news = (row.problem, row.problem_code, row.remedy) != (words, code, remedy)
    if is_news and (words or row.problem_code not in _OTHERS):
        row.problem_since = database_now() if words else None
        row.problem, row.problem_code, row.remedy, row.mirrored_at = words, code, remedy, None
        changed += ["problem", "problem_code", "problem_since", "remedy", "mirrored_at"]
        wake.deployment(row.deployment_id)
    row.save(update_fields=changed)
