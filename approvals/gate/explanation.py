"""Why policies say what they say of a request, for one reader: the value of each term, by facts that they may know.

Terms are evaluated when somebody looks, on the facts of that reader (S09): an expression may ask about anything, so of
what a report hides from them a term has no value. What counts was evaluated before, on everything, by `policies`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.db.models import F

from approvals import policy
from approvals.access.sight import ReportSight, Sight, exists, is_in_the_way, is_secret
from approvals.gate.policies import JudgedFinding, facts_of, is_destructive, says_what_is_judged
from approvals.models import Policy, PolicyEvaluation, Report, Request, Review
from approvals.policy.explanation import ReaderFacts, TermValue, value_terms
from approvals.policy.terms import ExpressionTerms, is_only_indexed, keep_checked, split_terms
from provisioner.expressions import ExpressionAnswer, ExpressionOutcome, ExpressionQuestion
from provisioner.expressions.evaluator import ask, ask_all, limited
from provisioner.masking import masked_value
from provisioner.values import Action

Result = PolicyEvaluation.Result
# What an expression came to, where its result says it: a silent grant may have been true.
_CAME_TO = {Result.PASSES: True, Result.HOLDS: False, Result.APPROVES: True}
SECONDS = 2.0
MAX_EXPLAINED = 100
# What of the facts is made of findings, of their rules, of what they say, and of the plan.
_RULES = frozenset({"rules", "new_rules", "waived_rules"})
_UNJUDGED = frozenset({"unjudged", "unjudged_paths"})
_FINDINGS = (
    _RULES
    | _UNJUDGED
    | {"worst", "worst_new", "worst_new_proved", "severities", "new_severities", "written_secrets"}
    | {"depends_on_objects", "new_depends_on_objects", "waived", "waived_severities"}
)
_PLAN = frozenset({"actions", "kinds", "namespaces"})
_TELLING = (Action.UPDATE, Action.NONE)
OF_OTHERS = "is hidden from you: the request adopts objects that you are not allowed to get"
OF_HIDDEN = "is hidden from you: you are not allowed to get some of the objects"
OF_SECRETS = "is hidden from you: you are not allowed to get some of the Secrets"
OF_SOURCES = "is hidden: a URL of a source may hold a key"
NOT_JUDGED = "is missing: the report was made before Pratique said which fields no rule judges"


class _NotKept(Exception):
    def __init__(self, found: ExpressionAnswer):
        super().__init__(found.words)
        self.found = found


def find_terms(expression: str) -> ExpressionTerms | ExpressionAnswer:
    """The terms of an expression, or the answer by which it did not compile."""
    try:
        return _known_terms(expression)
    except _NotKept as exc:
        return exc.found


@lru_cache(maxsize=1024)
def _known_terms(expression: str) -> ExpressionTerms:
    """An answer that another time may be another one is not kept."""
    (found,) = ask(policy.POLICY, [expression], wants_program=True)
    if found.outcome is not ExpressionOutcome.COMPILED:
        raise _NotKept(found)
    terms = split_terms(expression, found.program)
    compiled = ask(policy.POLICY, [part.text for part in terms.parts], wants_program=True)
    ended = next((each for each in compiled if each.outcome is ExpressionOutcome.ENDED), None)
    if ended:
        raise _NotKept(ended)
    return keep_checked(terms, compiled)


def reader_facts(
    request: Request,
    report: Report,
    sight: ReportSight,
    asked_by: Collection[ExpressionTerms],
    accepted: Collection[str] = (),
    public: Iterable[JudgedFinding] | None = None,
) -> ReaderFacts:
    """Those of the facts that expressions ask about which a reader may know; what is hidden is so whether or not it
    holds anything. `public` as for `facts_of`."""
    wanted = {name for terms in asked_by for name in terms.whole.reads}
    facts, hidden = facts_of(request, report, accepted, wanted=wanted, public=public), dict[str, str]()
    actions, findings = report.body["plan"]["actions"], report.body["findings"]

    def hide(names: Collection[str], words: str, is_hidden: Callable[[], bool]) -> None:
        asked = [name for name in wanted if name in names and name not in hidden]
        if asked and is_hidden():
            hidden.update(dict.fromkeys(asked, words))

    def may_see(ref: Mapping[str, Any]) -> bool:
        return bool(sight.may_see(ref))

    adopted = [action["ref"] for action in actions if action["action"] == Action.ADOPT]
    is_stopped = any(map(is_in_the_way, actions))
    hide(_FINDINGS, OF_OTHERS, lambda: not is_stopped and not all(map(may_see, adopted)))
    hide(_UNJUDGED, NOT_JUDGED, lambda: not says_what_is_judged(report))
    hide(_UNJUDGED, OF_HIDDEN, lambda: any(map(sight.why_hidden, findings)))
    secret_findings = [each for each in findings if each["ref"] and is_secret(each["ref"])]
    hide(_RULES, OF_SECRETS, lambda: any(map(sight.why_hidden, secret_findings)))
    secrets = [each for each in actions if is_secret(each["ref"]) and exists(each)]
    telling = [each["ref"] for each in secrets if each["action"] in _TELLING]
    hide(_PLAN, OF_SECRETS, lambda: not all(map(may_see, telling)))
    hide({"sources"}, OF_SOURCES, lambda: masked_value(request.pins) != request.pins)
    known = {name: facts[name] for name in wanted if name in facts and name not in hidden}
    # Whether a Secret differs is all that two of these tell. Without them no expression may ask which there are.
    if "actions" in hidden and all(is_only_indexed(terms.whole.tree, "actions") for terms in asked_by):
        known["actions"] = {name: count for name, count in facts["actions"].items() if name not in _TELLING}
    return ReaderFacts(known, hidden)


def recorded_waivers(requests: Iterable[Request]) -> dict[int, frozenset[str]]:
    """The findings that counted approvals of the present round accepted, whether or not their givers still may, and
    those that exceptions did when it was judged last; by the key of each request."""
    found = {
        request.pk: frozenset(name for one in request.finding_exceptions for name in one["fingerprints"])
        for request in requests
    }
    given = Review.objects.counted().filter(request__in=found, round=F("request__round"), decision="Approve")
    for pk, waives in given.exclude(waives=[]).values_list("request_id", "waives"):
        found[pk] |= {finding["fingerprint"] for finding in waives}
    return found


def explain(
    evaluations: Sequence[PolicyEvaluation], request: Request, report: Report | None, sight: Sight
) -> dict[int, tuple[TermValue, ...]]:
    """The terms of each policy that was evaluated and says now what it was, by the key of its evaluation.

    None of one that was not selected, was changed since, or comes to something else by the facts of this reader.
    """
    if report is None or not evaluations:
        return {}
    split = {
        each.pk: (each, found)
        for each in evaluations[:MAX_EXPLAINED]
        if each.policy.version == each.policy_version and each.result != Result.NOT_SELECTED
        if not (each.policy.kind == Policy.Kind.GRANT and is_destructive(report))  # which nobody evaluated
        if isinstance(found := find_terms(each.policy.expression), ExpressionTerms)
    }
    if not split:
        return {}
    seen = ReportSight(sight, report.body)
    asking = [terms for _, terms in split.values()]
    # A grant sees every finding.
    waived = {Policy.Kind.GUARD: recorded_waivers([request])[request.pk], Policy.Kind.GRANT: frozenset[str]()}
    kinds = {Policy.Kind(each.policy.kind) for each, _ in split.values()}
    by_kind = {kind: reader_facts(request, report, seen, asking, waived[kind]) for kind in kinds}
    questions = [
        ExpressionQuestion(policy.POLICY, text, by_kind[Policy.Kind(each.policy.kind)].known)
        for each, terms in split.values()
        for text in terms.texts
    ]
    with limited(SECONDS):
        answers = iter(ask_all(questions, seconds=SECONDS))
    told: dict[int, tuple[TermValue, ...]] = {}
    for pk, (each, terms) in split.items():
        whole, *parts = [next(answers) for _ in terms.texts]
        if not whole.is_bool or _CAME_TO.get(Result(each.result), whole.is_true) == whole.is_true:
            told[pk] = value_terms(terms, [whole, *parts], by_kind[Policy.Kind(each.policy.kind)])
    return told
