"""Guards and grants: what each says of a request. Asked anew at each look, the rights behind a grant as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from django.db.models import Exists, OuterRef, Q, prefetch_related_objects

from approvals import policy
from approvals.access.sight import is_in_the_way, private_to_judge
from approvals.gate.facts import PolicyFacts, Unknown
from approvals.gate.people import Accepted
from approvals.gate.rights import objection_to, uses_account
from approvals.ledger import labels
from approvals.ledger.pivots import unknown_writes
from approvals.models import Finding, Policy, PolicyEvaluation, Report, Request, Review, Revision
from approvals.selectors.pages import depending
from provisioner.expressions.evaluator import ask
from provisioner.review.base.claims import ANY
from provisioner.review.base.messages import unjudged_fields
from provisioner.sentences import introduced, some
from provisioner.values import Action, Severity

Result = PolicyEvaluation.Result
WRITTEN_UNSEEN = "SEC-07"
NOT_SELECTED = "the deployment does not match its selector"
DESTRUCTIVE = "the request deletes, replaces or adopts objects, which only people can acknowledge"
# Said whether or not there are any: that would tell whether an object differs (S09).
ADOPTS = (
    "of the objects to be adopted it also counts findings that are shown only to people who may get these objects, and "
    "that nobody can accept"
)


def reviewed_report(request: Request) -> Report:
    """What is reviewed, without its body: that is read when a policy asks for it, and then once."""
    return request.reports.defer("body").get(round=request.round)


def guards_of(request: Request, report: Report, accepted: Accepted) -> tuple[PolicyFacts, ...]:
    """What every guard says of what is left where the accepted findings are taken out."""
    guards = _policies(request, Policy.Kind.GUARD)
    if not guards:
        return ()
    request.deployment.refresh_from_db(fields=["labels"])
    prefetch_related_objects([report], "findings")
    waivable = accepted.fingerprints & _waivable(report) if accepted.fingerprints else frozenset()
    facts = facts_of(request, report, waivable)
    found = []
    for each in guards:
        result, words = _ask_guard(each, request, report, facts)
        words = "; ".join([words, *accepted.lost]) if result in (Result.HOLDS, Result.ERROR) else words
        found.append(_said(each, result, words))
    return tuple(found)


def grants_of(request: Request, report: Report) -> tuple[PolicyFacts, ...]:
    """What every grant says of the whole report."""
    grants = _policies(request, Policy.Kind.GRANT)
    if not grants:
        return ()
    prefetch_related_objects([report], "findings")
    facts = facts_of(request, report)
    by_policies = request.reviews.counted().filter(round=request.round, policy__isnull=False)
    given = set(by_policies.values_list("policy_id", "policy_version"))
    found = [
        _said(each, *_ask_grant(each, request, report, facts), has_approved=(each.pk, each.version) in given)
        for each in grants
    ]
    return tuple(
        replace(said, uses_account=uses_account(each, request)) if said.result == Result.APPROVES else said
        for each, said in zip(grants, found, strict=True)
    )


def _said(each: Policy, result: str, words: str, *, has_approved: bool = False) -> PolicyFacts:
    is_enforced = each.mode == Policy.Mode.ENFORCE
    return PolicyFacts(each.pk, each.version, each.name, is_enforced, str(result), words, has_approved)


def _waivable(report: Report) -> frozenset[str]:
    rows = report.findings.all()
    why_not = policy.why_not_waivable
    return frozenset(one.fingerprint for one in rows if not why_not(rule=one.rule, severity=one.severity))


def facts_of(request: Request, report: Report, accepted: Collection[str] = ()) -> policy.Facts:
    """The documented facts (approvals.policy.FACTS) of one report, without the findings `accepted` by fingerprint."""
    everything = [*report.findings.all(), *_private(report)]
    waived_ones = [finding for finding in everything if finding.fingerprint in accepted]
    findings = [finding for finding in everything if finding.fingerprint not in accepted]
    new = [finding for finding in findings if finding.is_new]
    touched = [action for action in report.body["plan"]["actions"] if action["action"] != Action.NONE]
    open_ones = depending(report)
    fields = _unjudged(report, accepted)
    return {
        "worst": _worst(findings),
        "worst_new": _worst(new),
        "severities": _counts(Severity, (finding.severity for finding in findings)),
        "new_severities": _counts(Severity, (finding.severity for finding in new)),
        "worst_new_proved": _worst(finding for finding in new if finding.fingerprint not in open_ones),
        "depends_on_objects": _counts(Severity, (it.severity for it in findings if it.fingerprint in open_ones)),
        "new_depends_on_objects": _counts(Severity, (it.severity for it in new if it.fingerprint in open_ones)),
        "rules": _rules(report, findings),
        "new_rules": _rules(report, new),
        "unjudged": len(fields),
        "unjudged_paths": sorted(set(fields)),
        "written_secrets": sum(one.rule == WRITTEN_UNSEEN for one in findings),
        "waived": len(waived_ones),
        "waived_severities": _counts(Severity, (finding.severity for finding in waived_ones)),
        "waived_rules": _rules(report, waived_ones),
        "actions": _counts(
            Action, (one["action"] for one in report.body["plan"]["actions"] if not one.get("returnsAs"))
        ),
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


def _worst(findings: Iterable[Finding]) -> str:
    ranks = {str(severity): severity.rank for severity in Severity}
    return min((finding.severity for finding in findings), key=ranks.__getitem__, default=str(Severity.SAFE))


def _rules(report: Report, findings: Collection[Finding]) -> list[str]:
    """The rules of findings, with those that are said under another one (decision 0057): policies know them by name."""
    kept = {finding.fingerprint for finding in findings}
    also = {rule for one in report.body["findings"] if one["fingerprint"] in kept for rule in one.get("also", ())}
    return sorted({finding.rule for finding in findings} | also)


def _unjudged(report: Report, accepted: Collection[str]) -> list[str]:
    """The fields that no rule judges, as Kind.group:path, once for each object.

    Reports from before every field was judged do not say: there it is every object that is touched, whole.
    """
    if not _says_what_is_judged(report):
        touched = (one["ref"] for one in report.body["plan"]["actions"] if one["action"] != Action.NONE)
        return [f"{_kind(ref)}:{ANY}" for ref in touched]
    told = [*report.body["findings"], *private_to_judge(report.body)]
    found = [one for one in told if one["fingerprint"] not in accepted]
    return [f"{_kind(one['ref'])}:{field}" for one in found for field in unjudged_fields(one["rule"], one["evidence"])]


def _says_what_is_judged(report: Report) -> bool:
    return "unjudged" in report.body


def _private(report: Report) -> list[Finding]:
    """The findings about what someone else's object holds: hidden from people who may not get it, not from guards."""
    return [
        Finding(
            rule=one["rule"],
            section=one["section"],
            severity=one["severity"],
            message=one["message"],
            fingerprint=one["fingerprint"],
            is_new=one["isNew"],
        )
        for one in private_to_judge(report.body)
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


def _answer(each: Policy, facts: policy.Facts) -> policy.ExpressionResult:
    """What the policy's expression comes to. Each is asked alone, so that no other policy uses up its time."""
    (found,) = ask(policy.POLICY, [each.expression], facts)
    return policy.answer(each.expression, facts, policy.POLICY, found)


def _ask_guard(each: Policy, request: Request, report: Report, facts: policy.Facts) -> tuple[str, str]:
    """A guard's result and its words."""
    if not _is_selected(each, request):
        return Result.NOT_SELECTED, NOT_SELECTED
    answer = _answer(each, facts)
    if answer.is_true:
        return Result.PASSES, answer.words
    if answer.is_error:
        return Result.ERROR, _with_message(each, answer.words)
    words = f"{answer.words}; {ADOPTS}" if _adopts(report) else answer.words
    return Result.HOLDS, _with_message(each, words)


def _ask_grant(each: Policy, request: Request, report: Report, facts: policy.Facts) -> tuple[str, str]:
    """A grant's result and its words."""
    if not _is_selected(each, request):
        return Result.NOT_SELECTED, NOT_SELECTED
    if _is_destructive(report):
        # Not asked: of an adopted object of somebody else its answer would tell what is private (S09).
        return Result.SILENT, f"it was not evaluated: {_destruction(report)}"
    answer = _answer(each, facts)
    if answer.is_error:
        return Result.ERROR, answer.words
    if not answer.is_true:
        new = [finding for finding in report.findings.all() if finding.is_new]
        if asked := [finding for finding in new if f'"{finding.rule}"' in each.expression]:
            return Result.SILENT, f"{answer.words}; new is {_named(asked)}"
        worst = next((finding for finding in new if finding.severity == facts["worst_new"]), None)
        return Result.SILENT, f"{answer.words}; the worst new finding is {_named([worst])}" if worst else answer.words
    obstacle = _obstacle(each, request, report)
    return (Result.SILENT, f"{answer.words}, but {obstacle}") if obstacle else (Result.APPROVES, answer.words)


def _is_selected(each: Policy, request: Request) -> bool:
    """By the labels kept with the request and by today's: any are enough for a guard, a grant needs all (S14).

    Where there were more than are kept, those would have been any: a guard selects, a grant by labels does not.
    """
    if each.labels and not labels.are_all_kept(request):
        name = request.deployment.name
        return each.kind == Policy.Kind.GUARD and policy.holds_for(names=each.names, labels={}, name=name, has={})
    selects = [
        policy.holds_for(names=each.names, labels=each.labels, name=request.deployment.name, has=has)
        for has in (*request.earlier_labels, request.labels, request.deployment.labels)
    ]
    return any(selects) if each.kind == Policy.Kind.GUARD else all(selects)


def _with_message(each: Policy, words: str) -> str:
    return introduced(each.message, words)


def _obstacle(each: Policy, request: Request, report: Report) -> str:
    """Why a grant whose expression is true still may not approve; "" where it may."""
    if request.is_for_people:
        return "it follows a catalog by upgradePolicy Request, which only people can approve"
    if report.severities.get(Severity.UNKNOWN, 0):
        unknown = [finding for finding in report.findings.all() if finding.severity == Severity.UNKNOWN]
        return f"the report has unknown findings, which policies cannot approve: {_named(unknown)}"
    if not _says_what_is_judged(report):
        return "the report was made before Pratique said which fields no rule judges: start a new round"
    own = [finding for finding in report.findings.all() if finding.rule.startswith(policy.OWN_RULES_PREFIX)]
    if each.allows_known_powers and own:
        known = known_powers(request)
        own = [finding for finding in own if finding.is_new or finding.fingerprint not in known]
    if own:
        return f"the content affects Pratique itself, which only people can approve: {_named(own)}"
    if request.purpose == Request.Purpose.DELETE or _is_destructive(report):
        return _destruction(report)
    if not request.is_requester_known:
        return "the requester is unknown, so a person who may use the ServiceAccount must approve"
    if unknown_writes(request):
        return "somebody unknown wrote a part of the spec, so a person must approve"
    counts = objection_to(each, request)
    return counts.words if isinstance(counts, Unknown) else "" if counts.value.is_given else counts.value.words


def _adopts(report: Report) -> bool:
    """Whether objects of others are to be adopted, and none is in the way that is not: then guards see nothing."""
    is_stopped = any(map(is_in_the_way, report.body["plan"]["actions"]))
    return bool(report.actions.get(Action.ADOPT, 0)) and not is_stopped


def known_powers(request: Request) -> frozenset[str]:
    """The fingerprints of those findings of power over Pratique that people approved of this deployment, as they are
    now: those of the latest revision that runs or ran and that a person approved (S22)."""
    running = request.from_revision
    if running is None:
        return frozenset()
    approved = Review.objects.counted().filter(
        decision="Approve", policy=None, request=OuterRef("request"), subject_digest=OuterRef("request__subject_digest")
    )
    ran = request.deployment.revisions.filter(number__lte=running.number).exclude(state=Revision.State.FAILED)
    by_people = ran.filter(Exists(approved), revoked_at=None).select_related("request").order_by("-number").first()
    if by_people is None:
        return frozenset()
    then = _powers(reviewed_report(by_people.request))
    now = _powers(reviewed_report(request))
    return frozenset(name for name, powers in now.items() if then.get(name) == powers)


def _powers(report: Report) -> dict[str, list[str]]:
    """The powers of each finding about them, by its fingerprint."""
    found = (one for one in report.body["findings"] if one["rule"] in policy.POWER_RULES)
    return {one["fingerprint"]: list(one["evidence"].get("powers") or ()) for one in found}


def _named(findings: Iterable[Finding]) -> str:
    """Findings by rule, severity and object: those whom they concern know which holds a request."""
    told = [f"{one.rule} ({one.severity}){f' of {one.object}' if one.object else ''}" for one in findings]
    return some(list(dict.fromkeys(told)))


def _destruction(report: Report) -> str:
    """Which objects only people can acknowledge."""
    asked = (Action.DELETE, Action.REPLACE, Action.ADOPT)
    planned = [one for one in report.body["plan"]["actions"] if one["action"] in asked and not one.get("returnsAs")]
    told = [f"{one['action']} {_kind(one['ref'])} {one['ref']['name']}" for one in planned]
    return f"{DESTRUCTIVE}: {some(told)}" if told else DESTRUCTIVE


def _is_destructive(report: Report) -> bool:
    return any(report.actions.get(action, 0) for action in (Action.DELETE, Action.REPLACE, Action.ADOPT))
