"""Why policies said what they said, for one reader: only what agrees with what was decided, and nothing that is hidden."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.access.sight import ReportSight, Sight
from approvals.gate import explanation
from approvals.models import PolicyEvaluation, Report, Request
from approvals.policy import FACTS
from approvals.policy.explanation import TermValue
from approvals.policy.terms import ExpressionTerms
from approvals.selectors.pages import evaluations_of
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import look, save
from tests.support.approvals.waivers import CALM, approve, finding, report
from tests.support.approvals.world import acting


def explained(env: World, request: Request) -> list[tuple[TermValue, ...]]:
    sight = Sight(acting(env.ada), env.cluster, limit=10)
    return list(explanation.explain(evaluations_of(request), request, request.reports.get(), sight).values())


def asking(expression: str) -> list[ExpressionTerms]:
    terms = explanation.find_terms(expression)
    assert isinstance(terms, ExpressionTerms)
    return [terms]


def test_terms_leave_out_what_a_reviewer_accepted_as_the_guard_did(env: World) -> None:
    env.kubernetes.allow("ada", "override", "strimzi")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = report(Request.objects.get(), finding(1), finding(2, rule="POD-23"))
    save(env, kind="guard", expression=f"{CALM} && waived == 1")
    approve(request, env.ada, "f1")
    look(request)
    (terms,) = explained(env, request)
    assert [(term.value, term.facts) for term in terms] == [
        (False, (("worst", '"dangerous"'),)),
        (True, (("waived", "1"),)),
    ]


def test_terms_that_do_not_come_to_what_was_decided_are_not_shown(env: World, request_: Request) -> None:
    save(env, kind="guard", expression="is_first && waived == 1")
    look(request_)
    assert len(explained(env, request_)) == 1
    PolicyEvaluation.objects.update(result="passes")
    assert explained(env, request_) == []


@pytest.mark.parametrize("expression", ["worst", "wrst == 1", "(" * 3_000])
def test_S26_what_does_not_compile_any_more_is_not_explained(env: World, request_: Request, expression: str) -> None:
    policy = save(env, kind="guard", name="calm", expression="false")
    look(request_)
    type(policy).objects.update(expression=expression)
    assert all(term.value is None for terms in explained(env, request_) for term in terms)


def test_S09_every_fact_is_there_for_who_may_get_everything(env: World, request_: Request) -> None:
    report = Report.objects.get()
    report.body = {**report.body, "unjudged": 0}
    sight = ReportSight(Sight(acting(env.ada), env.cluster, limit=10), report.body)
    facts = explanation.reader_facts(
        request_, report, sight, asking(" || ".join(f"{name} == {name}" for name in FACTS))
    )
    assert facts.known.keys() == FACTS.keys()
    assert facts.hidden == {}


def test_a_reader_is_told_of_the_facts_that_the_report_does_not_have(env: World, request_: Request) -> None:
    report = Report.objects.get()
    report.body = {key: value for key, value in report.body.items() if key != "unjudged"}
    sight = ReportSight(Sight(acting(env.ada), env.cluster, limit=10), report.body)
    facts: Any = explanation.reader_facts(request_, report, sight, asking('unjudged == 0 && worst == "safe"'))
    assert (dict(facts.hidden), dict(facts.known)) == ({"unjudged": explanation.NOT_JUDGED}, {"worst": "safe"})
