"""What a draft would have said of past requests: a table of results, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.policy import POLICY
from approvals.policy.document import PolicyDocument, PolicyEffect, Validation
from approvals.policy.explanation import ReaderFacts
from approvals.policy.replay import PastRequest, Replayed, ReplayResult, count_results, replay
from approvals.policy.terms import split_terms
from provisioner.expressions.evaluator import ask
from tests.support.approvals.policies import FACTS

KNOWN = ReaderFacts(FACTS, {})
BLIND = ReaderFacts({"worst": "notable"}, {"rules": "is hidden from you"})
IN_RULES = '"IMG-01" in rules'


def replayed(expression: str, effect: PolicyEffect, facts: ReaderFacts | None = KNOWN, **more: Any) -> Replayed:
    about = {name: more.pop(name) for name in ("clusters", "names", "labels") if name in more}
    document = PolicyDocument("draft", effect, (Validation(expression),), **about)
    kept = {"label_sets": ({"team": "kafka"},), **more}
    past = PastRequest("prod", "strimzi", kept.pop("label_sets"), facts, **kept)
    (found,) = ask(POLICY, [expression], wants_program=True)
    terms = split_terms(expression, found.program)
    return replay(document, past, terms, ask(POLICY, terms.texts, facts.known) if facts else [])


@pytest.mark.parametrize(
    ("effect", "expression", "more", "result", "words"),
    [
        (PolicyEffect.GUARD, 'worst == "safe"', {}, "held", ""),
        (PolicyEffect.GUARD, 'worst == "notable"', {}, "passed", ""),
        (PolicyEffect.GUARD, 'labels["no"] == "x"', {}, "held", "could not be evaluated: the key no is not there"),
        (PolicyEffect.GRANT, 'worst == "notable"', {}, "approved", ""),
        (PolicyEffect.GRANT, 'worst == "safe"', {"obstacle": "only people"}, "silent", ""),
        (PolicyEffect.GRANT, "true", {"obstacle": "only people"}, "silent", "only people"),
        (PolicyEffect.GUARD, "true", {"clusters": ("test",)}, "not-selected", "the cluster prod is not listed"),
        (PolicyEffect.GUARD, "true", {"names": ("argo*",)}, "not-selected", "the name strimzi matches none of argo*"),
        (
            PolicyEffect.GUARD,
            "true",
            {"labels": {"team": "web"}},
            "not-selected",
            "it does not have the label team=web",
        ),
        (PolicyEffect.GUARD, IN_RULES, {"facts": BLIND}, "unknown", "rules is hidden from you"),
        (PolicyEffect.GUARD, f'{IN_RULES} || worst == "notable"', {"facts": BLIND}, "passed", ""),
        (PolicyEffect.GRANT, f'{IN_RULES} && worst == "safe"', {"facts": BLIND}, "silent", ""),
        (PolicyEffect.GRANT, "true", {"facts": None, "why_unknown": "cleared"}, "unknown", "cleared"),
    ],
)
def test_results(effect: PolicyEffect, expression: str, more: dict[str, Any], result: str, words: str) -> None:
    found = replayed(expression, effect, **more)
    assert found.result == result
    assert words in found.words


@pytest.mark.parametrize("sets", [({"team": "kafka"}, {}), None, ({"team": "kafka"}, {"team": "kafka"})])
def test_S14_what_reads_labels_is_unknown_where_the_request_had_others(sets: Any) -> None:
    (found,) = ask(POLICY, ['"team" in labels'], wants_program=True)
    terms, document = split_terms('"team" in labels', found.program), PolicyDocument("d", PolicyEffect.GUARD, ())
    past, answers = PastRequest("prod", "strimzi", sets, KNOWN), ask(POLICY, terms.texts, KNOWN.known)
    said = replay(document, past, terms, answers, reads_labels="labels" in terms.whole.reads)
    assert said.result == ("passed" if sets and sets[0] == sets[1] else "unknown")


@pytest.mark.parametrize(
    ("effect", "sets", "is_selected"),
    [
        (PolicyEffect.GUARD, ({"team": "kafka"}, {}), True),
        (PolicyEffect.GRANT, ({"team": "kafka"}, {}), False),
        (PolicyEffect.GUARD, None, True),
        (PolicyEffect.GRANT, None, False),
    ],
)
def test_S14_a_guard_selects_by_any_labels_that_a_request_had_and_a_grant_by_all(
    effect: PolicyEffect, sets: Any, *, is_selected: bool
) -> None:
    found = replayed("true", effect, labels={"team": "kafka"}, label_sets=sets)
    assert (found.result is not ReplayResult.NOT_SELECTED) == is_selected


def test_counts_name_every_result() -> None:
    counts = count_results([Replayed(ReplayResult.HELD), Replayed(ReplayResult.HELD)])
    assert counts == {"held": 2, "passed": 0, "approved": 0, "silent": 0, "not-selected": 0, "unknown": 0}
