"""IN_REVIEW → APPROVED or DENIED: policies are asked, reviews are counted, a verdict is given once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, prefetch_related_objects
from django.utils import timezone

from approvals import access, audit, policy, wake
from approvals.access.port import connect
from approvals.audit import MACHINE, Actor
from approvals.ledger.moves import locked, move
from approvals.ledger.pivots import has_asked
from approvals.lifecycle import Event, State
from approvals.models import Finding, Policy, PolicyEvaluation, Report, Request, Review, Verdict
from approvals.policy import Ballot, Decision
from approvals.steps.reviewers import Waived, is_own, reviews_of, waived
from approvals.steps.unreviewed import WORDS, goes_along, without_review
from provisioner.expressions.evaluator import ask
from provisioner.review.record import from_record
from provisioner.values import Action, Identity, Severity

Result = PolicyEvaluation.Result
NOT_SELECTED = "its selector does not select this deployment"
HELD_BACK = "held-back"
DESTRUCTIVE = "the request deletes, replaces or adopts objects, and only people acknowledge that"
MAX_NAMED = 3


def run(request: Request, worker: str) -> None:
    report = reviewed_report(request)
    held_by = hold_back(request, report, waived(request, reviews_of(request)))
    _ask_grants(request, report)
    unreviewed = without_review(request)
    along = _goes_along(request) if unreviewed else ""
    _settle(request.pk, request.round, held_by, [] if along else unreviewed, along)


def _goes_along(request: Request) -> str:
    """Why a deletion of nothing that holds data is reviewed all the same; "" where it is not."""
    planned = from_record(request.reports.get(round=request.round).body).plan
    words = goes_along(request, connect(request.deployment.cluster), planned)
    if not words:
        return ""
    more = f" and {len(words) - MAX_NAMED} more" if words[MAX_NAMED:] else ""
    return f"it is reviewed, because no plan names what else goes: {'; '.join(words[:MAX_NAMED])}{more}"


def _ask_grants(request: Request, report: Report) -> None:
    grants = _policies(request, Policy.Kind.GRANT)
    if not grants:
        return
    prefetch_related_objects([report], "findings")
    facts = facts_of(request, report)
    for each in grants:
        result, words = _ask_grant(each, request, report, facts)
        _keep(each, request, result, words)
        if each.mode == Policy.Mode.ENFORCE and result == Result.APPROVES:
            identity = access.policy_identity(each)
            account = access.may_use_account(identity, request)
            _approve_as(each, identity, request, words, may_use_account=account.allowed)


def reviewed_report(request: Request) -> Report:
    """What is reviewed, without its body: that is read when a policy asks for it, and then once."""
    return request.reports.defer("body").get(round=request.round)


def hold_back(request: Request, report: Report, accepted: Waived) -> dict[str, str]:
    """Ask every guard and keep what each says; of those in force that hold the request back, their words by name."""
    guards = _policies(request, Policy.Kind.GUARD)
    if not guards:
        return {}
    prefetch_related_objects([report], "findings")
    facts = facts_of(request, report, accepted.fingerprints)
    holding = {}
    for each in guards:
        result, words = _ask_guard(each, request, facts)
        is_held = result in (Result.HOLDS, Result.ERROR)
        words = "; ".join([words, *accepted.lost]) if is_held else words
        _keep(each, request, result, words)
        if is_held and each.mode == Policy.Mode.ENFORCE:
            holding[each.name] = words
    return holding


def facts_of(request: Request, report: Report, accepted: Collection[str] = ()) -> policy.Facts:
    """The documented facts (approvals.policy.FACTS) of one report, without the findings `accepted` by fingerprint."""
    everything = [*report.findings.all(), *_private(report)]
    waived_ones = [finding for finding in everything if finding.fingerprint in accepted]
    findings = [finding for finding in everything if finding.fingerprint not in accepted]
    new = [finding for finding in findings if finding.is_new]
    touched = [action for action in report.body["plan"]["actions"] if action["action"] != Action.NONE]
    ranks = {str(severity): severity.rank for severity in Severity}
    return {
        "worst": min((finding.severity for finding in findings), key=ranks.__getitem__, default=str(Severity.SAFE)),
        "worst_new": min((finding.severity for finding in new), key=ranks.__getitem__, default=str(Severity.SAFE)),
        "severities": _counts(Severity, (finding.severity for finding in findings)),
        "new_severities": _counts(Severity, (finding.severity for finding in new)),
        "rules": sorted({finding.rule for finding in findings}),
        "new_rules": sorted({finding.rule for finding in new}),
        "waived": len(waived_ones),
        "waived_severities": _counts(Severity, (finding.severity for finding in waived_ones)),
        "waived_rules": sorted({finding.rule for finding in waived_ones}),
        "actions": _counts(Action, (action["action"] for action in report.body["plan"]["actions"])),
        "kinds": sorted({_kind(action["ref"]) for action in touched}),
        "namespaces": sorted({action["ref"]["namespace"] for action in touched if action["ref"]["namespace"]}),
        "purpose": request.purpose,
        "name": request.deployment.name,
        "labels": {str(key): str(value) for key, value in request.labels.items()},
        "cluster": request.deployment.cluster.name,
        "is_first": request.from_revision_id is None,
        "requester_known": request.is_requester_known,
        "requesters": sorted(person["username"] for person in request.requesters),
        "sources": sorted(f"{pin['kind']}:{pin['reference']}" for pin in request.pins),
    }


def _private(report: Report) -> list[Finding]:
    """The findings about what somebody else's object holds: hidden from people who may not get it, not from guards."""
    return [
        Finding(
            rule=one["rule"],
            section=one["section"],
            severity=one["severity"],
            message=one["message"],
            fingerprint=one["fingerprint"],
            is_new=one["isNew"],
        )
        for one in report.body["private"]
    ]


def _counts(closed: Any, found: Any) -> dict[str, int]:
    counted = Counter(found)
    return {str(member): counted[str(member)] for member in closed}


def _kind(ref: dict[str, str]) -> str:
    return f"{ref['kind']}.{ref['group']}" if ref["group"] else ref["kind"]


def _policies(request: Request, kind: str) -> list[Policy]:
    here = Q(cluster=None) | Q(cluster=request.deployment.cluster)
    return list(
        Policy.objects.filter(here, is_active=True, kind=kind).prefetch_related("author", "editor").order_by("name")
    )


def _answer(each: Policy, facts: policy.Facts) -> policy.Answer:
    """What the policy's expression comes to. Each is asked alone, so that no other policy uses up its time."""
    (found,) = ask(policy.POLICY, [each.expression], facts)
    return policy.answer(each.expression, facts, policy.POLICY, found)


def _ask_guard(each: Policy, request: Request, facts: policy.Facts) -> tuple[str, str]:
    """A guard's result and its words."""
    if not _is_selected(each, request):
        return Result.NOT_SELECTED, NOT_SELECTED
    answer = _answer(each, facts)
    if answer.is_true:
        return Result.PASSES, answer.words
    return (Result.ERROR if answer.is_error else Result.HOLDS), _with_message(each, answer.words)


def _ask_grant(each: Policy, request: Request, report: Report, facts: policy.Facts) -> tuple[str, str]:
    """A grant's result and its words."""
    if not _is_selected(each, request):
        return Result.NOT_SELECTED, NOT_SELECTED
    if _is_destructive(report):
        # Not asked: of an adopted object of somebody else its answer would tell what is private (S09).
        return Result.SILENT, f"it was not asked: {DESTRUCTIVE}"
    answer = _answer(each, facts)
    if answer.is_error:
        return Result.ERROR, answer.words
    if not answer.is_true:
        return Result.SILENT, answer.words
    obstacle = _obstacle(each, request, report)
    return (Result.SILENT, f"{answer.words}, but {obstacle}") if obstacle else (Result.APPROVES, answer.words)


def _is_selected(each: Policy, request: Request) -> bool:
    """By the labels kept with the request and by today's: any are enough for a guard, a grant needs all (S14)."""
    selects = [
        policy.holds_for(names=each.names, labels=each.labels, name=request.deployment.name, has=labels)
        for labels in (*request.earlier_labels, request.labels, request.deployment.labels)
    ]
    return any(selects) if each.kind == Policy.Kind.GUARD else all(selects)


def _with_message(each: Policy, words: str) -> str:
    return f"{each.message}: {words}" if each.message else words


def _obstacle(each: Policy, request: Request, report: Report) -> str:
    """Why a grant whose expression is true still may not approve; "" where it may."""
    if report.severities.get(Severity.UNKNOWN, 0):
        return "the report has unknown findings, and no policy approves those"
    if any(finding.rule.startswith(policy.OWN_RULES_PREFIX) for finding in report.findings.all()):
        return "the content touches Pratique itself, which only people approve"
    if request.purpose == Request.Purpose.DELETE or _is_destructive(report):
        return DESTRUCTIVE
    if not request.is_requester_known:
        return "nobody knows who asked, so a person who may use the ServiceAccount has to approve"
    return objection_to(each, request)


def objection_to(each: Policy, request: Request) -> str:
    """Why this policy's word may not count for this request, asked of Kubernetes anew; "" where it may."""
    return _own_wish(each, request) or _rights_of(each, request)


def _own_wish(each: Policy, request: Request) -> str:
    """Who writes what a policy approves does not have it approve their own change (S05)."""
    if settings.PRATIQUE["SELF_APPROVAL"]:
        return ""
    for user, recorded in ((each.author, each.author_known_as), (each.editor, each.editor_known_as)):
        known_as = (access.person_of_account(user, request.deployment.cluster), access.person_recorded(recorded))
        if any(has_asked(request, person) for person in known_as):
            return f"its author or editor {user.get_username()} asked for this change"
    return ""


def _is_destructive(report: Report) -> bool:
    return any(report.actions.get(action, 0) for action in (Action.DELETE, Action.REPLACE, Action.ADOPT))


def _rights_of(each: Policy, request: Request) -> str:
    """The policy stands on its own identity, which must hold `approve` here by now (S13).

    Who wrote it was asked when they saved it: that they leave does not stop it.
    """
    question = access.approval_of(request.deployment)
    own = access.ask_for(access.policy_identity(each), request.deployment.cluster, question, fresh=True)
    return "" if own.allowed else own.words


@transaction.atomic(durable=True)
def _keep(each: Policy, request: Request, result: str, words: str) -> None:
    PolicyEvaluation.objects.update_or_create(
        request=request,
        round=request.round,
        policy=each,
        policy_version=each.version,
        defaults={"result": result, "words": words, "at": timezone.now()},
    )


@transaction.atomic(durable=True)
def _approve_as(each: Policy, identity: Identity, request: Request, words: str, *, may_use_account: bool) -> None:
    row = locked(request.pk)
    if row.state != State.IN_REVIEW or row.round != request.round:
        return
    try:
        with transaction.atomic():
            Review.objects.create(
                request=row,
                round=row.round,
                decision="Approve",
                subject_digest=row.subject_digest,
                reason=words,
                channel=Review.Channel.POLICY,
                voter=f"policy:{each.pk}",
                policy=each,
                policy_version=each.version,
                username=identity.username,
                access_reason="Kubernetes allowed this policy's identity to approve",
                may_use_account=may_use_account,
                given_at=timezone.now(),
            )
    except IntegrityError:
        return
    audit.record(
        verb="review.given",
        actor=Actor(identity.username, "policy"),
        request=row,
        facts={"decision": "Approve", "policy": each.name, "version": each.version, "reason": words},
    )


@transaction.atomic(durable=True)
def _settle(
    request_id: int, round_number: int, held_by: Mapping[str, str], unreviewed: list[Ballot], along: str
) -> None:
    row = locked(request_id)
    if row.state != State.IN_REVIEW or row.round != round_number:
        return
    reviews = row.reviews.filter(round=round_number, subject_digest=row.subject_digest).select_related("policy")
    tally = policy.decide(
        [*unreviewed, *(ballot_of(review, row) for review in reviews)],
        needed=settings.PRATIQUE["APPROVALS_NEEDED"],
        held_by=held_by,
        is_requester_known=row.is_requester_known,
        too_old=access.no_longer_current(row.requesters, row.deployment.cluster),
    )
    if tally.decision == Decision.UNDECIDED:
        _say(row, tally.obstacle or along)
        return
    verdict = "Approved" if tally.decision == Decision.APPROVED else "Denied"
    is_unreviewed = bool(unreviewed) and verdict == "Approved" and tally.approvals < tally.needed
    Verdict.objects.create(
        request=row, round=row.round, verdict=verdict, subject_digest=row.subject_digest, given_at=timezone.now()
    )
    move(
        row,
        Event.APPROVE if verdict == "Approved" else Event.DENY,
        actor=MACHINE,
        facts={"verdict": verdict, "why": WORDS if is_unreviewed else tally.words, "subjectDigest": row.subject_digest},
        problem="",
        problem_code="",
        look_again_at=None,
    )
    wake.notice(row.pk, "decided")


def _say(row: Request, obstacle: str) -> None:
    """Why enough approvals are not enough; "" takes back what was said of that before, and nothing else."""
    is_ours = row.problem_code in ("", HELD_BACK)
    if row.problem != obstacle and (obstacle or is_ours):
        row.problem, row.problem_code, row.mirrored_at = obstacle, HELD_BACK if obstacle else "", None
        row.save(update_fields=["problem", "problem_code", "mirrored_at"])


def ballot_of(review: Review, request: Request, *, counts: bool = True) -> Ballot:
    """`counts`: what else is known. Who turned out to have asked after approving does not count (S05)."""
    return Ballot(
        review.decision,
        review.policy_id is not None,
        counts and not is_own(review, request) and not _is_outdated(review),
        review.may_use_account,
        review.may_write and settings.PRATIQUE["DOUBT_WRITERS"] and not settings.PRATIQUE["SELF_APPROVAL"],
    )


def _is_outdated(review: Review) -> bool:
    """Whether a policy's review is of a version that is no longer in force (S13)."""
    each = review.policy
    if each is None:
        return False
    return not each.is_active or each.mode != Policy.Mode.ENFORCE or each.version != review.policy_version
