"""Expressions split at their `&&` and `||`: every text against what the tree says, however it is written."""

from __future__ import annotations

import pytest

from approvals.policy import POLICY
from approvals.policy.explanation import ReaderFacts, TermValue, show_fact, value_terms
from approvals.policy.terms import MAX_TERMS, ExpressionTerms, keep_checked, split_terms
from provisioner.expressions.evaluator import ask
from tests.support.approvals.policies import FACTS


def terms_of(text: str) -> ExpressionTerms:
    (found,) = ask(POLICY, [text], wants_program=True)
    terms = split_terms(text, found.program)
    return keep_checked(terms, ask(POLICY, [part.text for part in terms.parts], wants_program=True))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("is_first", ["is_first"]),
        ('worst == "a&&b(" && is_first', ['worst == "a&&b("', "is_first"]),
        (
            'unjudged == 0 || (is_first && (waived > 1 || "é||" in rules))',
            ["unjudged == 0", "is_first", "waived > 1", '"é||" in rules'],
        ),
        ("!(is_first || unjudged == 1) && !requester_known", ["is_first", "unjudged == 1", "!requester_known"]),
        ("((is_first) && ((unjudged == 1)))", ["(is_first)", "((unjudged == 1))"]),
        (
            "(is_first ? waived > 1 && true : false) && rules.all(r, r != name && r != '(')",
            ["(is_first ? waived > 1 && true : false)", "rules.all(r, r != name && r != '(')"],
        ),
        (r"name.matches(r'\(') && name.matches('\\(\'') && '''(''' != name", [r"name.matches(r'\(')"]),
        ("is_first // && worst\n  && unjudged == 1", ["is_first // && worst", "unjudged == 1"]),
        ("(is_first && waived > 1) // )", ["(is_first && waived > 1) // )"]),
        (" && ".join(["is_first"] * (MAX_TERMS + 1)), [" && ".join(["is_first"] * (MAX_TERMS + 1))]),
    ],
    ids=["one", "in a text", "nested", "negated", "parentheses", "ternary", "raw", "comment", "not splittable", "many"],
)
def test_an_expression_is_split_where_its_tree_is(text: str, parts: list[str]) -> None:
    assert [part.text for part in terms_of(text).parts][: len(parts)] == parts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("is_first && waived > 1 && unjudged == 1", "is_first and waived > 1 and unjudged == 1"),
        ("is_first && (waived > 1 || unjudged == 1) && true", "is_first and (waived > 1 or unjudged == 1) and true"),
        ("!(is_first && waived > 1) || true", "not (is_first and waived > 1) or true"),
        (
            "(is_first || true) && !(waived > 1 || !(true && false))",
            "(is_first or true) and not (waived > 1 or not (true and false))",
        ),
    ],
)
def test_the_terms_say_how_they_are_joined(text: str, words: str) -> None:
    assert " ".join(f"{part.before}{part.text}{part.after}" for part in terms_of(text).parts) == words


def test_a_part_that_is_not_what_stands_in_the_tree_leaves_the_expression_whole() -> None:
    terms = split_terms(*(text := "is_first && unjudged == 1", ask(POLICY, [text], wants_program=True)[0].program))
    others = ask(POLICY, ["is_first", "unjudged == 2"], wants_program=True)
    assert keep_checked(terms, others).parts == (terms.whole,)


def test_what_an_expression_reads_are_facts_and_not_its_own_names() -> None:
    text = 'rules.exists(worst, worst == name) && labels["x"] == cluster && [1].all(n, n > waived)'
    assert terms_of(text).whole.reads == ("cluster", "labels", "name", "rules", "waived")


def test_each_term_says_its_value_with_the_facts_that_it_reads() -> None:
    terms = terms_of('worst == "safe" || unjudged == 1 && labels["no"] == "x"')
    values = value_terms(terms, ask(POLICY, terms.texts, FACTS), ReaderFacts(FACTS, {}))
    assert values == (
        TermValue('worst == "safe"', False, "", (("worst", '"notable"'),)),
        TermValue("unjudged == 1", True, "", (("unjudged", "1"),), "or (", ""),
        TermValue(
            'labels["no"] == "x"', None, "the key no is not there", (("labels", '{team: "kafka"}'),), "and ", ")"
        ),
    )


def test_S09_a_term_that_reads_what_is_hidden_has_no_value_and_shows_none() -> None:
    known = {name: value for name, value in FACTS.items() if name != "rules"}
    terms = terms_of('"IMG-01" in rules && unjudged == 1')
    values = value_terms(terms, ask(POLICY, terms.texts, known), ReaderFacts(known, {"rules": "is hidden from you"}))
    assert values[0] == TermValue('"IMG-01" in rules', None, "rules is hidden from you", ())
    assert values[1].value is True


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"critical": 0, "notable": 2}, "{notable: 2}"),
        ({}, "{}"),
        (["a", "b"], '["a", "b"]'),
        (list("abcdefghijkl"), '["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] and 2 more entries'),
        ("x" * 300, f'"{"x" * 199}…'),
        (False, "false"),
    ],
)
def test_facts_are_shown_short(value: object, text: str) -> None:
    assert show_fact(value) == text
