"""Every rule about CRDs answers the five questions, and is as bad as its worst answer for server, objects and writers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import provisioner.review
from provisioner.review.base.facts import ReviewRule
from provisioner.values import Section, Severity

QUESTIONS = {"api", "stored", "writers", "readers", "rollback"}
# Of going back and of how much was looked at a reviewer has to know, though neither makes the change a worse one.
GRADED_APART = {"LIV-06", "LIV-07"}


def rules() -> Iterator[ReviewRule]:
    for module in pkgutil.walk_packages(provisioner.review.__path__, "provisioner.review."):
        for one in vars(importlib.import_module(module.name)).values():
            if isinstance(one, ReviewRule) and one.section is Section.CRDS:
                yield one


RULES = list(rules())


def test_the_rules_about_crds_are_found() -> None:
    assert {"CRD-00", "CRD-07", "CRD-08", "CRD-09", "CRD-19"} <= {one.id for one in RULES}
    assert {f"LIV-0{number}" for number in range(1, 8)} <= {one.id for one in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda one: f"{one.id} {one.severity}")
def test_a_rule_about_crds_answers_all_five_questions(rule: ReviewRule) -> None:
    assert set(rule.verdicts) == QUESTIONS
    worst = min((rule.verdicts[one] for one in ("api", "stored", "writers")), key=lambda it: it.rank)
    assert rule.id in GRADED_APART or rule.severity is worst
    assert set(rule.at(None, "words").verdicts) == QUESTIONS


def test_a_rule_without_an_answer_gives_none() -> None:
    assert ReviewRule("A-01", Section.OBJECTS, Severity.SAFE).at(None, "words").verdicts == {}
