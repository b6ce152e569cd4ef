"""Expressions of policies over facts, and which deployments a policy is for."""

from __future__ import annotations

import pytest

from approvals import policy
from approvals.policy.expression import MAX_EXPRESSION, why_not_selected
from provisioner.expressions.evaluator import ask
from tests.support.approvals.policies import FACTS


def evaluated(expression: str, facts: policy.Facts = FACTS) -> policy.ExpressionResult:
    (found,) = ask(policy.POLICY, [expression], facts)
    return policy.answer(expression, facts, policy.POLICY, found)


@pytest.mark.parametrize(
    ("expression", "is_true"),
    [
        ('worst_new == "safe" && actions["delete"] == 0', True),
        ("severities['critical'] > 0", False),
        ('"kafka" in labels.map(k, labels[k])', True),
        ('kinds.exists(k, k.endsWith(".rbac.authorization.k8s.io"))', False),
        ('name.matches("^(a+)+$")', False),
    ],
)
def test_expressions_over_facts(expression: str, is_true: bool) -> None:
    answer = evaluated(expression)
    assert (answer.is_true, answer.is_error) == (is_true, False)


@pytest.mark.parametrize(
    "expression",
    [
        'actions["replace"] == 0',
        "1 / 0 == 1",
        "[1,2,3].all(a, [1,2,3].all(b, [1,2,3].all(c, [1].all(d, a + b + c + d > 0)))) && wrong",
        "worst + 1 == 2",
        "worst",
        "",
        "x" * (MAX_EXPRESSION + 1),
    ],
    ids=["missing key", "division", "undeclared", "types", "no question", "empty", "too long"],
)
def test_promise_4_what_cannot_be_evaluated_is_an_error_and_never_true(expression: str) -> None:
    answer = evaluated(expression)
    assert (answer.is_true, answer.is_error) == (False, True)


def test_a_missing_fact_is_an_error() -> None:
    answer = evaluated("true", {key: value for key, value in FACTS.items() if key != "rules"})
    assert answer.is_error


@pytest.mark.parametrize(
    ("names", "labels", "selected"),
    [
        ([], {}, True),
        (["strim*"], {}, True),
        (["argo*"], {}, False),
        ([], {"team": "kafka"}, True),
        (["strim*"], {"team": "web"}, False),
    ],
)
def test_selectors(names: list[str], labels: dict[str, str], selected: bool) -> None:
    words = why_not_selected(names=names, labels=labels, name="strimzi", has={"team": "kafka"})
    assert (words == "") == selected
