"""Guards and grants: what each says of a request. Asked anew at each look, the rights behind a grant as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, prefetch_related_objects

from approvals import policy
from approvals.access.sight import is_in_the_way, private_to_judge
from approvals.gate.facts import PolicyFacts, Unknown
from approvals.gate.people import Accepted
from approvals.gate.rights import is_by_machine, objection_to, uses_account
from approvals.ledger import labels
from approvals.ledger.pivots import unknown_writes
from approvals.models import Finding, PolicyEvaluation, Report, Request, Review, Revision
from approvals.policy.document import LoadedPolicy, Validation
from approvals.policy.expression import FACTS
from approvals.selectors.pages import depending
from provisioner.expressions import ExpressionAnswer, ExpressionOutcome
from provisioner.expressions.evaluator import ask, limited
from provisioner.review.base.claims import ANY
from provisioner.review.base.messages import unjudged_fields
from provisioner.sentences import introduced, some
from provisioner.values import Action, Severity

Result = PolicyEvaluation.Result
WRITTEN_UNSEEN = "SEC-07"
_DESTRUCTIVE = (Action.DELETE, Action.REPLACE, Action.ADOPT)
# Of the evaluators' time for all guards of a request, and for all grants: what is left unasked holds, or approves not.
SECONDS = 20.0
# Of several answers, with each set of labels that the deployment had, the first of these counts (S14).
_OF_GUARDS = (Result.HOLDS, Result.ERROR, Result.PASSES, Result.NOT_SELECTED)
_OF_GRANTS = (Result.ERROR, Result.SILENT, Result.NOT_SELECTED, Result.APPROVES)
LABELS_FORGOTTEN = "the deployment had more sets of labels than are kept, and the policy asks for labels"
DESTRUCTIVE = "the request deletes, replaces or adopts objects, which only people can acknowledge"
# Said whether or not there are any: that would tell whether an object differs (S09).
ADOPTS = (
    "of the objects to be adopted it also counts findings that are shown only to people who may get these objects, and "
    "that nobody can accept"
)


def reviewed_report(request: Request) -> Report:
    """What is reviewed, without its body: that is read when a policy asks for it, and then once."""
    return request.reports.defer("body").get(round=request.round)


def guards_of(
    request: Request, report: Report, accepted: Accepted, policies: Iterable[LoadedPolicy]
) -> tuple[PolicyFacts, ...]:
    """What every guard says of what is left where the accepted findings are taken out."""
    guards = [loaded for loaded in policies if not loaded.document.is_grant]
    if not guards:
        return ()
    request.deployment.refresh_from_db(fields=["labels"])
    prefetch_related_objects([report], "findings")
    waived = {
        finding.fingerprint
        for finding in report.findings.all()
        if finding.fingerprint in accepted.fingerprints
        and not policy.why_not_waivable(rule=finding.rule, severity=finding.severity)
    }
    facts = facts_of(request, report, waived, wanted=FACTS.keys() - {"approvals"})
    facts = {**facts, "approvals": accepted.approvals}
    judge = partial(_judge_guard, report)
    said, found = _judge_each(guards, request, facts, judge, _OF_GUARDS), []
    for guard, (result, words) in zip(guards, said, strict=True):
        lost = accepted.lost if result in (Result.HOLDS, Result.ERROR) else ()
        found.append(_policy_facts(guard, result, "; ".join([words, *lost])))
    return tuple(found)


def grants_of(request: Request, report: Report, policies: Iterable[LoadedPolicy]) -> tuple[PolicyFacts, ...]:
    """What every grant says of the whole report."""
    grants = [loaded for loaded in policies if loaded.document.is_grant]
    if not grants:
        return ()
    prefetch_related_objects([report], "findings")
    facts = facts_of(request, report)
    by_policies = request.reviews.counted().filter(round=request.round, policy__isnull=False)
    given = set(by_policies.values_list("policy_id", "policy_version"))
    # Of an adopted object of somebody else an answer would tell what is private (S09).
    judge, is_asked = partial(_judge_grant, request, report), not is_destructive(report)
    answers, found = _judge_each(grants, request, facts, judge, _OF_GRANTS, is_asked=is_asked), []
    for grant, (result, words) in zip(grants, answers, strict=True):
        said = _policy_facts(grant, result, words, has_approved=(grant.key, grant.version) in given)
        if result == Result.APPROVES:
            said = replace(said, uses_account=uses_account(grant, request))
        found.append(said)
    return tuple(found)


def _policy_facts(loaded: LoadedPolicy, result: str, words: str, *, has_approved: bool = False) -> PolicyFacts:
    document = loaded.document
    return PolicyFacts(
        loaded.key, loaded.version, document.name, document.is_enforced, str(result), words, has_approved
    )


class JudgedFinding(NamedTuple):
    """What facts are made of, of a finding: its columns."""

    rule: str
    severity: str
    fingerprint: str
    is_new: bool


def facts_of(
    request: Request,
    report: Report,
    accepted: Collection[str] = (),
    *,
    wanted: Collection[str] = FACTS,
    public: Iterable[JudgedFinding] | None = None,
) -> policy.Facts:
    """The documented facts of one report that are `wanted`, without the findings `accepted` by fingerprint. `public`
    are its rows, where they were read already."""
    rows = report.findings.all() if public is None else public
    everything = [JudgedFinding(row.rule, row.severity, row.fingerprint, row.is_new) for row in rows]
    # What someone else's object holds is hidden from people who may not get it, not from policies.
    columns = itemgetter("rule", "severity", "fingerprint", "isNew")
    everything += [JudgedFinding(*columns(record)) for record in private_to_judge(report.body)]
    waived = [finding for finding in everything if finding.fingerprint in accepted]
    findings = [finding for finding in everything if finding.fingerprint not in accepted]
    new = [finding for finding in findings if finding.is_new]
    actions = report.body["plan"]["actions"]
    touched = [action for action in actions if action["action"] != Action.NONE]
    open_ones, fields = cache(partial(depending, report)), cache(partial(_unjudged, report, accepted))
    make: dict[str, Callable[[], Any]] = {
        "worst": lambda: _worst(findings),
        "worst_new": lambda: _worst(new),
        "severities": lambda: _counts(Severity, (finding.severity for finding in findings)),
        "new_severities": lambda: _counts(Severity, (finding.severity for finding in new)),
        "worst_new_proved": lambda: _worst(finding for finding in new if finding.fingerprint not in open_ones()),
        "depends_on_objects": lambda: _counts(
            Severity, (finding.severity for finding in findings if finding.fingerprint in open_ones())
        ),
        "new_depends_on_objects": lambda: _counts(
            Severity, (finding.severity for finding in new if finding.fingerprint in open_ones())
        ),
        "rules": lambda: _rules(report, findings),
        "new_rules": lambda: _rules(report, new),
        "unjudged": lambda: len(fields()),
        "unjudged_paths": lambda: sorted(set(fields())),
        "approvals": lambda: count_approvals(request),
        "written_secrets": lambda: sum(finding.rule == WRITTEN_UNSEEN for finding in findings),
        "waived": lambda: len(waived),
        "waived_severities": lambda: _counts(Severity, (finding.severity for finding in waived)),
        "waived_rules": lambda: _rules(report, waived),
        "actions": lambda: _counts(Action, (action["action"] for action in actions if not action.get("returnsAs"))),
        "kinds": lambda: sorted({_kind(action["ref"]) for action in touched}),
        "namespaces": lambda: sorted({action["ref"]["namespace"] for action in touched if action["ref"]["namespace"]}),
        "purpose": lambda: request.purpose,
        "name": lambda: request.deployment.name,
        "labels": lambda: {str(key): str(value) for key, value in request.labels.items()},
        "cluster": lambda: request.deployment.cluster.name,
        "is_first": lambda: request.from_revision_id is None,
        "requester_known": lambda: request.is_requester_known,
        "requesters": lambda: sorted(person["username"] for person in request.requesters),
        "change_reason": lambda: request.change_reason,
        "change_ticket": lambda: request.change_ticket,
        "sources": lambda: sorted(f"{pin['kind']}:{pin['reference']}" for pin in request.pins),
    }
    return {name: make[name]() for name in wanted if name in make}


def worst_new_of(report: Report) -> str:
    """The severity of its worst new finding, also of those that only who may get somebody else's object is shown."""
    hidden = [str(record["severity"]) for record in private_to_judge(report.body) if record["isNew"]]
    return min([report.worst, *hidden], key=lambda severity: Severity(severity).rank)


def count_approvals(request: Request) -> int:
    """Those that people gave in this round: who decides asks whether they still count. What is carried over is not."""
    given = request.reviews.counted().filter(round=request.round, decision="Approve", policy=None, carries=None)
    return sum(not is_by_machine(row) for row in given.select_related("user"))


def _worst(findings: Iterable[JudgedFinding]) -> str:
    ranks = {str(severity): severity.rank for severity in Severity}
    return min((finding.severity for finding in findings), key=ranks.__getitem__, default=str(Severity.SAFE))


def _rules(report: Report, findings: Collection[JudgedFinding]) -> list[str]:
    """The rules of findings, with those that are said under another one (decision 0057): policies know them by name."""
    kept = {finding.fingerprint for finding in findings}
    kept_records = [record for record in report.body["findings"] if record["fingerprint"] in kept]
    also = {rule for record in kept_records for rule in record.get("also", ())}
    return sorted({finding.rule for finding in findings} | also)


def _unjudged(report: Report, accepted: Collection[str]) -> list[str]:
    """The fields that no rule judges, as Kind.group:path, once for each object.

    Reports from before every field was judged do not say: there it is every object that is touched, whole.
    """
    if not says_what_is_judged(report):
        actions = report.body["plan"]["actions"]
        return [f"{_kind(action['ref'])}:{ANY}" for action in actions if action["action"] != Action.NONE]
    return [
        f"{_kind(record['ref'])}:{field}"
        for record in (*report.body["findings"], *private_to_judge(report.body))
        if record["fingerprint"] not in accepted
        for field in unjudged_fields(record["rule"], record["evidence"])
    ]


def says_what_is_judged(report: Report) -> bool:
    return "unjudged" in report.body


def _counts(closed: Any, found: Any) -> dict[str, int]:
    counted = Counter(found)
    return {str(member): counted[str(member)] for member in closed}


def _kind(ref: dict[str, str]) -> str:
    return f"{ref['kind']}.{ref['group']}" if ref["group"] else ref["kind"]


def _judge_each(
    policies: Sequence[LoadedPolicy],
    request: Request,
    facts: policy.Facts,
    judge: Callable[[LoadedPolicy, _Evaluation], tuple[Result, str]],
    order: Sequence[Result],
    *,
    is_asked: bool = True,
) -> list[tuple[Result, str]]:
    """What each policy says, as `judge` reads it. One that asks for labels is asked with every set of labels that
    counts, and the first of `order` among its answers is what it says (S14)."""
    reading = [loaded for loaded in policies if any("labels" in text for text in loaded.document.texts)]
    keys, others = {id(loaded) for loaded in reading}, labels.sets_of(request)[1:] if reading else []
    is_forgotten, found = is_asked and not labels.are_all_kept(request), list[tuple[Result, str]]()
    with limited(SECONDS):
        first = _Evaluation(policies, request, facts, is_asked=is_asked)
        rest = [_Evaluation(reading, request, {**facts, "labels": own}, is_asked=is_asked) for own in others]
        for loaded in policies:
            is_reading = id(loaded) in keys
            answers = [judge(loaded, evaluation) for evaluation in (first, *(rest if is_reading else ()))]
            if is_reading and is_forgotten and not first.why_not_selected(loaded):
                answers.append((Result.ERROR, LABELS_FORGOTTEN))
            found.append(min(answers, key=lambda answer: order.index(answer[0])))
    return found


class _Evaluation:
    """What the expressions of policies come to on the same facts.

    They are asked together: a message to the evaluator takes longer than most of them do. What was not evaluated then
    is asked alone, so that no policy uses up the time of another one.
    """

    def __init__(
        self, policies: Sequence[LoadedPolicy], request: Request, facts: policy.Facts, *, is_asked: bool = True
    ):
        self.facts = facts
        self._found: dict[str, ExpressionAnswer] = {}
        self._results: dict[str, policy.ExpressionResult] = {}
        self._unselected = {id(loaded): why_not_selected(loaded, request) for loaded in policies}
        judged = [one for one in policies if is_asked and not one.problem and not self.why_not_selected(one)]
        self.ask(condition.expression for loaded in judged for condition in loaded.document.match_conditions)
        self.ask(loaded.document.expression for loaded in judged if not _judge_conditions(loaded, self)[0])

    def why_not_selected(self, loaded: LoadedPolicy) -> str:
        return self._unselected[id(loaded)]

    def ask(self, texts: Iterable[str]) -> None:
        wanted = [text for text in dict.fromkeys(texts) if text not in self._found]
        for text, answer in zip(wanted, ask(policy.POLICY, wanted, self.facts), strict=True):
            is_cut_short = answer.outcome is ExpressionOutcome.ENDED and not answer.exceeds
            self._found[text] = ask(policy.POLICY, [text], self.facts)[0] if is_cut_short else answer

    def result_of(self, text: str) -> policy.ExpressionResult:
        if text not in self._results:
            self._results[text] = policy.answer(text, self.facts, policy.POLICY, self._found[text])
        return self._results[text]


def _judge_guard(report: Report, loaded: LoadedPolicy, evaluation: _Evaluation) -> tuple[Result, str]:
    """A guard's result and its words."""
    if not_selected := evaluation.why_not_selected(loaded):
        return Result.NOT_SELECTED, not_selected
    if loaded.problem:
        return Result.ERROR, f"it cannot be read, so the requests that it might select wait: {loaded.problem}"
    not_selected, doubt = _judge_conditions(loaded, evaluation)
    if not_selected:
        return Result.NOT_SELECTED, not_selected
    document = loaded.document
    answer = evaluation.result_of(document.expression)
    if answer.is_true:
        return Result.PASSES, answer.words
    if answer.is_error:
        return Result.ERROR, introduced(document.message, answer.words)
    words = "; ".join([*_describe_failed(document.validations, answer, evaluation), *([doubt] if doubt else [])])
    # Where objects of others are to be adopted, and none is in the way that is not: then guards see nothing.
    is_stopped = any(map(is_in_the_way, report.body["plan"]["actions"]))
    adopts = report.actions.get(Action.ADOPT, 0) and not is_stopped
    return Result.HOLDS, f"{words}; {ADOPTS}" if adopts else words


def _judge_conditions(loaded: LoadedPolicy, evaluation: _Evaluation) -> tuple[str, str]:
    """Why the policy's matchConditions do not select the request, "" where they do; and what of them is in doubt.

    As in ValidatingAdmissionPolicy, one that is false counts whatever became of the others.
    """
    doubts = []
    for condition in loaded.document.match_conditions:
        said = evaluation.result_of(condition.expression)
        if said.is_error:
            doubts.append(f"its match condition {condition.name} {said.words}")
        elif not said.is_true:
            return f"its match condition {condition.name} is false", ""
    return "", "; ".join(doubts)


def _describe_failed(
    validations: tuple[Validation, ...], answer: policy.ExpressionResult, evaluation: _Evaluation
) -> list[str]:
    """The message of each validation that is not true, or its expression where it has none: what became of the parts of
    an expression is shown beside it. `answer` is of all of them."""
    if len(validations) == 1:
        return [_message_of(validations[0], evaluation.facts) or answer.words]
    evaluation.ask(validation.expression for validation in validations)
    found = []
    for validation in validations:
        said = evaluation.result_of(validation.expression)
        if said.is_error:
            found.append(introduced(_message_of(validation, evaluation.facts), said.words))
        elif not said.is_true:
            found.append(_message_of(validation, evaluation.facts) or said.words)
    return found or [answer.words]


def _message_of(validation: Validation, facts: policy.Facts) -> str:
    text = validation.message_expression
    known = {name: value for name, value in facts.items() if name in policy.MESSAGE_FACTS}
    return (policy.message_of(ask(policy.MESSAGE, [text], known)[0]) if text else "") or validation.message


def _judge_grant(request: Request, report: Report, loaded: LoadedPolicy, evaluation: _Evaluation) -> tuple[Result, str]:
    """A grant's result and its words."""
    if not_selected := evaluation.why_not_selected(loaded):
        return Result.NOT_SELECTED, not_selected
    if loaded.problem:
        return Result.ERROR, f"it cannot be read, so it approves nothing: {loaded.problem}"
    if is_destructive(report):
        return Result.SILENT, f"it was not evaluated: {_destruction(report)}"
    not_selected, doubt = _judge_conditions(loaded, evaluation)
    if not_selected or doubt:
        return (Result.NOT_SELECTED if not_selected else Result.ERROR), not_selected or doubt
    expression = loaded.document.expression
    answer = evaluation.result_of(expression)
    if answer.is_error:
        return Result.ERROR, answer.words
    if not answer.is_true:
        new = [finding for finding in report.findings.all() if finding.is_new]
        if asked := [finding for finding in new if f'"{finding.rule}"' in expression]:
            return Result.SILENT, f"{answer.words}; new is {_name_findings(asked)}"
        worst = next((finding for finding in new if finding.severity == evaluation.facts["worst_new"]), None)
        return (
            Result.SILENT,
            f"{answer.words}; the worst new finding is {_name_findings([worst])}" if worst else answer.words,
        )
    obstacle = _find_obstacle(loaded, request, report)
    return (Result.SILENT, f"{answer.words}, but {obstacle}") if obstacle else (Result.APPROVES, answer.words)


def why_not_selected(loaded: LoadedPolicy, request: Request) -> str:
    """By the labels kept with the request and by today's; "" where it is selected (S14)."""
    deployment, kept = request.deployment, [*request.earlier_labels, request.labels, request.deployment.labels]
    sets = kept if labels.are_all_kept(request) else None
    return loaded.document.why_not_selected(cluster=deployment.cluster.name, name=deployment.name, label_sets=sets)


def _find_obstacle(loaded: LoadedPolicy, request: Request, report: Report) -> str:
    """Why a grant whose expression is true still may not approve; "" where it may."""
    allows = loaded.document.allows_known_powers
    words, findings = find_obstacle_for_all(request, report, allows_known_powers=allows)
    if words:
        return f"{words}: {_name_findings(findings)}" if findings else words
    counts = objection_to(loaded, request)
    return counts.words if isinstance(counts, Unknown) else "" if counts.value.is_given else counts.value.words


def find_obstacle_for_all(
    request: Request, report: Report, *, allows_known_powers: bool
) -> tuple[str, Collection[Finding]]:
    """Why no grant may approve a request, whoever wrote it; ("", []) where one may. With the findings that hold it."""
    if request.is_for_people:
        return "it follows a catalog by upgradePolicy Request, which only people can approve", []
    if report.severities.get(Severity.UNKNOWN, 0):
        unknown = [finding for finding in report.findings.all() if finding.severity == Severity.UNKNOWN]
        return "the report has unknown findings, which policies cannot approve", unknown
    if not says_what_is_judged(report):
        return "the report was made before Pratique said which fields no rule judges: start a new round", []
    own = [finding for finding in report.findings.all() if finding.rule.startswith(policy.OWN_RULES_PREFIX)]
    if allows_known_powers and own:
        known = known_powers(request)
        own = [finding for finding in own if finding.is_new or finding.fingerprint not in known]
    if own:
        return "the content affects Pratique itself, which only people can approve", own
    if request.purpose == Request.Purpose.DELETE or is_destructive(report):
        return _destruction(report), []
    if not request.is_requester_known:
        return "the requester is unknown, so a person who may use the ServiceAccount must approve", []
    if unknown_writes(request):
        return "somebody unknown wrote a part of the spec, so a person must approve", []
    return "", []


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
    found = (finding for finding in report.body["findings"] if finding["rule"] in policy.POWER_RULES)
    return {finding["fingerprint"]: list(finding["evidence"].get("powers") or ()) for finding in found}


def _name_findings(findings: Iterable[Finding]) -> str:
    """Findings by rule, severity and object: those whom they concern know which holds a request."""
    named = [f"{each.rule} ({each.severity}){f' of {each.object}' if each.object else ''}" for each in findings]
    return some(list(dict.fromkeys(named)))


def _destruction(report: Report) -> str:
    """Which objects only people can acknowledge."""
    named = [
        f"{planned['action']} {_kind(planned['ref'])} {planned['ref']['name']}"
        for planned in report.body["plan"]["actions"]
        if planned["action"] in _DESTRUCTIVE and not planned.get("returnsAs")
    ]
    return f"{DESTRUCTIVE}: {some(named)}" if named else DESTRUCTIVE


def is_destructive(report: Report) -> bool:
    return any(report.actions.get(action, 0) for action in _DESTRUCTIVE)
