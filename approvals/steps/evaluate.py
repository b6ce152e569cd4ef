"""IN_REVIEW → APPROVED or DENIED: a verdict is given once, on what the gate says of reviews, guards and grants."""

from __future__ import annotations

import random
from collections.abc import Collection
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from approvals import access, audit, gate, wake
from approvals.audit import MACHINE, Actor
from approvals.clock import database_now
from approvals.deciding.external_checks import CheckStage
from approvals.gate import GateAnswer, GateFacts, Next, Reason, reader
from approvals.gate.deletions import WORDS
from approvals.gate.facts import PolicyFacts, Unknown, Unreviewed, value_of
from approvals.gate.people import break_glass_of, change_requests, count, is_grant, may_use_account, why_not
from approvals.gate.rules import standings
from approvals.ledger import claims, moves, rounds
from approvals.ledger.deciding import check_runs, policy_rows
from approvals.ledger.moves import locked, move
from approvals.lifecycle import Event, State
from approvals.models import Policy, Request, Review, Verdict
from approvals.policy.decide import Decision
from approvals.steps import carry_over
from approvals.steps.external_checks import ask_checks

# Rights and policies change without an event: what is not decided is looked at again, not everything at once.
LOOK_AGAIN_SECONDS = (30.0, 45.0)
# What prepare has said of the request stays until it is decided.
_OTHERS = frozenset({"unmet-constraints"})


def run(request: Request, worker: str) -> None:
    policy_rows.keep_built_in(request.deployment.cluster)
    carry_over.run(request)
    facts = reader.deciding(request)
    gate.keep(request, facts)
    _settle(request, facts, gate.judge(facts, database_now()))


@transaction.atomic(durable=True)
def _settle(request: Request, facts: GateFacts, answer: GateAnswer) -> None:
    row = locked(request.pk)
    claims.check_same_holder(row, request)
    if row.state != State.IN_REVIEW or row.round != request.round:
        return
    # Since the facts were read somebody may have reviewed it, dismissed a review, or turned out to have asked; and an
    # external check may have answered.
    judged = Review.objects.judged(row).annotate(dismissal_key=Max("dismissals"))
    given = set(judged.order_by().values_list("pk", "dismissal_key"))
    known = {(review.key, review.dismissal_key) for review in value_of(facts.reviews) or ()}
    asked = (request.subject_digest, request.requesters, request.is_requester_known)
    is_same = (row.subject_digest, row.requesters, row.is_requester_known) == asked
    if given != known or not is_same or not check_runs.are_as_read(row, value_of(facts.checks) or ()):
        wake.request(row.pk)
        return
    newly_asked = _keep_standings(row, facts)
    ask_checks(row, facts, (CheckStage.AFTER_REPORT,) if answer.next in (Next.GO, Next.WAIT) else ())
    # A policy gives no word past somebody who requests changes.
    grants = () if change_requests(value_of(facts.reviews) or ()) else value_of(facts.grants) or ()
    for policy_facts in filter(is_grant, grants):
        _approve_as(policy_facts, row)
    if answer.next == Next.REPORT_AGAIN:
        why = answer.reason
        about = {"reviewedPlan": row.plan_digest, "why": why.words}
        rounds.void(row, code=why.code, words=why.words, facts=about, remedy=why.remedy, look_again_at=None)
    elif answer.next in (Next.GO, Next.DENY):
        _give_verdict(row, facts, answer)
    elif answer.next == Next.END:
        moves.end(row, gate.refusal_of(answer))
    else:
        _keep_waiting(row, answer.reason)
        if not change_requests(value_of(facts.reviews) or ()):
            _remind(row, newly_asked)
            _tell_who_is_needed(row, facts, is_again=bool(newly_asked))


def _remind(row: Request, newly_asked: Collection[str]) -> None:
    """Tell those who are asked once more: after hours without a verdict, once in each round, and where a rule asks
    others now."""
    hours = settings.PRATIQUE["REMIND_HOURS"]
    is_late = bool(hours) and database_now() - row.changed_at >= timedelta(hours=hours)
    if newly_asked or (is_late and row.reminded_round < row.round):
        row.reminded_round = row.round if is_late else row.reminded_round
        row.save(update_fields=["reminded_round"])
        wake.notice(row.pk, "reminder")


def _tell_who_is_needed(row: Request, facts: GateFacts, *, is_again: bool) -> None:
    """Once in each round, after policies and rules were asked, and where a rule asks others now. Rules name groups and
    count users, as on the page."""
    is_unclear = any(isinstance(fact, Unknown) for _, fact in facts.needed())
    if (row.asked_round >= row.round and not is_again) or is_unclear or break_glass_of(facts):
        return
    found = count(facts)
    # Where the approvals are enough in number and do not do, one more person is needed.
    approvals = max(found.needed - found.approvals, 1) if found.decision == Decision.UNDECIDED else 0
    rules = [{"name": rule.name, "needed": list(rule.needed)} for rule in standings(facts) if rule.needed]
    if not approvals and not rules:
        return
    row.asked_round = row.round
    row.save(update_fields=["asked_round"])
    needs = {"approvals": approvals, "rules": rules}
    audit.record(verb="request.needs-approval", actor=MACHINE, request=row, facts={"round": row.round, "needs": needs})


def _keep_standings(row: Request, facts: GateFacts) -> set[str]:
    """Keep how ApprovalRules stand, and what FindingExceptions accept, for all who show the request. The groups that
    are asked since now, because it has waited for others."""
    rules = [one.record for one in standings(facts)]
    exceptions = [one.record for one in value_of(facts.exceptions) or () if not one.why_not]
    before, now = (
        {group for one in records for group in one.get("escalated", ())} for records in (row.approval_rules, rules)
    )
    if (row.approval_rules, row.finding_exceptions) != (rules, exceptions):
        row.approval_rules, row.finding_exceptions, row.mirrored_at = rules, exceptions, None
        row.save(update_fields=["approval_rules", "finding_exceptions", "mirrored_at"])
        wake.deployment(row.deployment_id)
    return now - before


def _give_verdict(row: Request, facts: GateFacts, answer: GateAnswer) -> None:
    verdict = "Approved" if answer.may else "Denied"
    found, free = count(facts), value_of(facts.unreviewed) or Unreviewed(False)
    is_unreviewed = answer.may and free.is_enough and found.approvals < found.needed
    broken = break_glass_of(facts) if answer.may else None
    why = f"{broken.name} broke glass; {found.words}" if broken else WORDS if is_unreviewed else found.words
    if answer.may and row.approval_rules and not broken:
        why = f"{why}, as approval rules need: {', '.join(rule['name'] for rule in row.approval_rules)}"
    if answer.may and (carried := [it for it in value_of(facts.reviews) or () if it.carried_from and not why_not(it)]):
        why = f"{why}; carried over: {', '.join(f'{it.name} of {it.carried_from}' for it in carried)}"
    Verdict.objects.create(
        request=row, round=row.round, verdict=verdict, subject_digest=row.subject_digest, given_at=database_now()
    )
    move(
        row,
        Event.APPROVE if answer.may else Event.DENY,
        actor=MACHINE,
        facts={"verdict": verdict, "why": why, "subjectDigest": row.subject_digest},
        problem="",
        problem_code="",
        look_again_at=None,
    )
    wake.notice(row.pk, "decided")


def _approve_as(said: PolicyFacts, row: Request) -> None:
    """Record the approval of a policy, unless this version of it has approved this round already."""
    policy = Policy.objects.get(pk=said.key)
    identity, voter = access.policy_identity(policy), f"policy:{policy.pk}"
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
        policy=policy,
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
        facts={"decision": "Approve", "policy": policy.name, "version": said.version, "reason": said.words},
    )


def _keep_waiting(row: Request, reason: Reason) -> None:
    """Have it looked at again, and keep why it is not decided, beyond that people have not yet; what was said of that
    before is taken back.
    """
    words, code, remedy = (reason.words, reason.code, reason.remedy) if reason.is_problem else ("", "", "")
    row.look_again_at = database_now() + timedelta(seconds=random.uniform(*LOOK_AGAIN_SECONDS))  # noqa: S311 - spreads looks over time, keeps no secret
    row.awaits = reason.awaits if reason.is_problem else ""
    changed = ["look_again_at", "awaits"]
    is_news = (row.problem, row.problem_code, row.remedy) != (words, code, remedy)
    if is_news and (words or row.problem_code not in _OTHERS):
        row.problem_since = database_now() if words else None
        row.problem, row.problem_code, row.remedy, row.mirrored_at = words, code, remedy, None
        changed += ["problem", "problem_code", "problem_since", "remedy", "mirrored_at"]
        wake.deployment(row.deployment_id)
    row.save(update_fields=changed)
