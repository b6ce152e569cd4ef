"""Schemas, patterns and texts that are made to take all time or memory are ended, in words.

Each takes minutes, or gigabytes, without what bounds it; the bounds here are far above what a slow machine needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from provisioner import regexes
from provisioner.cluster.compare import lost
from provisioner.expressions import evaluator
from provisioner.regexes import BadRegularExpression, TooMuchWork, compiled
from provisioner.review.base.sizes import bytes_of
from provisioner.review.crds.object_fates import NOT_EVALUATED
from provisioner.schema.admission.rules import ObjectUpdate, errors_of_rules, rule_errors
from provisioner.schema.cel.rule_check import unknown_fields
from provisioner.schema.cel.runtime import MAX_EXPRESSION_CHARS
from provisioner.schema.cel.values import TOKENS, to_cel, typed_moments
from provisioner.schema.formats import CHECKS, fits
from provisioner.schema.names import kube_order
from tests.support.memory import resident_bytes
from tests.support.patience import scaled

CPU_SECONDS, MEMORY_BYTES = 5.0, 48 * 2**20
LONG = "['" + "x" * 60 + "']" + ".map(a, a + a)" * 26
SHARED = "[self.s]" + ".map(a, [a, a])" * 26
RULES = {
    "doubling text": (f"{LONG}.size() > 0", "it needs more memory than"),
    "doubling lists that are compared": (f"{SHARED} == {SHARED}", "it took longer than"),
    "doubling lists that a function reads": (f"sets.contains({SHARED}, {SHARED})", ""),
    "doubling text that is split": (f"{LONG}[0].split('').size() > 0", ""),
    "doubling text that is replaced": (f"{LONG}[0].replace('x', 'xxxxxxxxxxxxxxxx').size() > 0", ""),
    "a pattern that is too large": ("self.s.find('(\\\\\\\\pL{900}|x)') == 'a'", ""),
    "a quantity of many digits": ("isQuantity('" + "9" * 40_000 + "')", ""),
    "a version of many digits": ("semver('1.2." + "9" * 40_000 + "').patch() > 1", ""),
}


def schema(rule: str, **more: Any) -> dict[str, Any]:
    known = {"s": {"type": "string", **more}}
    return {"type": "object", "properties": known, "x-kubernetes-validations": [{"rule": rule}]}


@pytest.mark.parametrize(("rule", "words"), RULES.values(), ids=RULES)
def test_S26_a_hostile_rule_of_a_schema_is_an_error_in_words(rule: str, words: str) -> None:
    evaluator.end_children()
    before = resident_bytes()
    found = rule_errors(schema(rule), {"s": "a"}, None, None)
    assert len(found) == 1
    assert words in str(found[0])
    assert resident_bytes() - before < MEMORY_BYTES
    assert rule_errors(schema("self.s == 'a'"), {"s": "a"}, None, None) == []


def test_S26_a_hostile_rule_among_harmless_ones_over_many_objects_costs_only_its_own_answers() -> None:
    hostile = RULES["doubling text that is split"][0]
    rules = [*(f"self.s.size() > {number - 20}" for number in range(10)), hostile, *["self.s != 'b7'"] * 10]
    known = schema("true") | {"x-kubernetes-validations": [{"rule": one, "message": one[:30]} for one in rules]}
    found = errors_of_rules((known, ObjectUpdate({"s": f"b{number}"})) for number in range(100))
    for number, errors in enumerate(found):
        messages = [one.message for one in errors]
        assert sum(NOT_EVALUATED in one for one in messages) == 1
        refused = 1 if number == 7 else 0  # the same error of ten rules
        assert len(set(messages)) == 1 + refused


def test_S26_a_rule_that_a_limit_ended_is_not_judged_rather_than_refused() -> None:
    (error,) = rule_errors(schema(RULES["doubling lists that are compared"][0]), {"s": "a"}, None, None)
    assert "could not be evaluated: " in error.message


# The texts that some formats took minutes for, and those that took more digits for a number than Python reads.
TEXTS = ("1" * 20_000, " " * 20_000, "a" * 20_000, "a." * 9_000, "1-" * 9_000, '\\"' * 9_000, "9.9.9.9/" + "9" * 5_000)


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_S26_a_format_is_checked_in_a_time_that_is_linear_in_the_text(name: str) -> None:
    before = time.process_time()
    for text in (*TEXTS, "\u00b2" * 50, "\u0663" * 50, "\ud800"):
        fits(name, text)
    assert time.process_time() - before < scaled(CPU_SECONDS)


@pytest.mark.parametrize("text", ["1" * 20_000, "9" * 400 + "h", "1" * 20_000 + " parsecs"], ids=["long", "far", "odd"])
def test_S26_a_duration_of_many_digits_stays_a_text(text: str) -> None:
    before = time.process_time()
    assert to_cel(text, {"type": "string", "format": "duration"}) == text
    assert time.process_time() - before < scaled(CPU_SECONDS)


WORK: dict[str, Callable[[], object]] = {
    "quotes without an end": lambda: TOKENS.findall('\\"' * 25_000),
    "quotes without an end, with a backslash": lambda: TOKENS.findall('\\"' * 25_000 + "\\"),
    "long quotes without an end": lambda: TOKENS.findall("\\'''" * 12_000),
    "literals without an end": lambda: typed_moments('\\"' * 24_000, {"type": "object"}, is_root=True),
    "a rule that nobody compiles": lambda: typed_moments("self.a + " * MAX_EXPRESSION_CHARS, FIELDS, is_root=True),
    "chains of fields": lambda: typed_moments("self.a1+" * 6_000, FIELDS, is_root=True),
    "fields that are not there": lambda: unknown_fields("self.a1.b+" * 4_000, FIELDS, is_root=True),
    "a version of a kind": lambda: kube_order("v" + "1" * 5_000),
    "a quantity": lambda: bytes_of("9" * 5_000),
    "a quantity beyond all numbers": lambda: lost({"spec": {"a": "1e999999999"}}, {"spec": {"a": "1e999999998"}}),
}
FIELDS: dict[str, Any] = {"type": "object", "properties": {f"a{it}": {"type": "string"} for it in range(10_000)}}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_S26_what_is_read_of_a_schema_takes_a_bounded_time(work: Callable[[], object]) -> None:
    before, started = resident_bytes(), time.process_time()
    work()
    assert time.process_time() - started < scaled(CPU_SECONDS)
    assert resident_bytes() - before < MEMORY_BYTES


def test_S26_patterns_are_kept_in_bounded_memory() -> None:
    before = resident_bytes()
    for number in range(160):
        compiled(rf"(?:\pL{{12}}|x{number})").search("é" * 100)
    assert resident_bytes() - before < 160 * 2**20


def test_S26_a_large_pattern_on_a_large_text_is_not_tried() -> None:
    pattern = compiled("(.*){50}a.{900}b")
    assert pattern.search("a" * 1_000) is None
    with pytest.raises(TooMuchWork):
        pattern.search("a" * 200_000)


def test_S26_the_patterns_of_one_content_share_their_time() -> None:
    said = []
    with regexes.limited(0.5):
        for number in range(1_000):
            try:
                compiled(rf"(?:\pL{{900}}|y{number})")
            except BadRegularExpression as exc:
                said.append(str(exc))
    assert "pattern too large" in said[0]
    assert said[-1] == "the patterns of this content together take too long"
    assert compiled("a").search("a")
