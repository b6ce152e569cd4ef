"""Inclusion of regular languages, held against RE2 itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.regexes import BadRegularExpression
from provisioner.schema.formats import matches
from provisioner.schema.inclusion.languages import inclusion

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DURATION = r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+"


LANGUAGES = {
    "searched, not matched whole": ("abc", "bc", True, None),
    "anchors bind closer than alternatives": ("^a|b$", "^(a|b)$", False, "aa"),
    "empty text": ("^$", "^ *$", True, None),
    "a dot is no newline": ("", "^.*$", False, "\n"),
    "with the flag it is": ("", "(?s)^.*$", True, None),
    "counted": ("^a{2,3}$", "^a{1,5}$", True, None),
    "two ways to say it": ("^(a|b)*$", "^[ab]*$", True, None),
    "case": ("(?i)^ab$", "^ab$", False, "Ab"),
    "classes with names": (r"^\d+$", r"^[[:digit:]]+$", True, None),
    "categories": (r"^\p{Lu}$", r"^\p{L}$", True, None),
    "quoted": (r"^\Qa.b\E$", r"^a\.b$", True, None),
    "other anchors": (r"\Aa\z", "^a$", True, None),
    "braces that count nothing": ("^a{,3}$", "^a\\{,3\\}$", True, None),
    "label and name": (f"^{LABEL}$", rf"^{LABEL}(\.{LABEL})*$", True, None),
    "durations": (f"^{DURATION}$", f"^(0|{DURATION})$", True, None),
}


@pytest.mark.parametrize(("inner", "outer", "holds", "counterexample"), LANGUAGES.values(), ids=LANGUAGES)
def test_a_language_is_in_another_or_a_text_shows_that_it_is_not(
    inner: str, outer: str, holds: bool, counterexample: str | None
) -> None:
    found = inclusion(inner, outer)
    assert (found.holds, found.counterexample is None) == (holds, counterexample is None)
    if found.counterexample is not None and counterexample is not None:
        assert len(found.counterexample) == len(counterexample)
        assert matches(inner, found.counterexample)
        assert not matches(outer, found.counterexample)


@pytest.mark.parametrize(
    ("shortest", "longest", "holds"),
    [(0, math.inf, False), (3, math.inf, True), (0, 2, False), (0, 0, False), (4, 9, True)],
)
def test_only_texts_of_the_lengths_asked_for_count(shortest: int, longest: float, holds: bool) -> None:
    assert inclusion("^a*$", "^a{3,}$", shortest, longest).holds is holds


@pytest.mark.parametrize(
    "pattern",
    [
        r"\ba",
        "(?m)^a$",
        "(",
        "a)",
        "[a",
        "a**",
        "a{2000}",
        "(?=a)",
        r"\p{Nonsense}",
        "(" * 500 + ")" * 500,
        "((a{1000}){1000})",
    ],
    ids=lambda it: it[:8],
)
def test_what_cannot_be_read_is_not_decided(pattern: str) -> None:
    assert inclusion(pattern, "^b$").holds is None
    assert inclusion("^b$", pattern).holds is None


def test_a_search_that_takes_too_long_is_given_up() -> None:
    assert inclusion("^(a|b)*a(a|b){18}$", "^(a|b)*b(a|b){18}$|^(a|b)*a(a|b){18}$").holds in (None, True)
    assert inclusion("^[ab]*$", "^(a|b)*a(a|b){18}$|^(a|b)*b(a|b){18}$|^[ab]{0,18}$").holds is None


PIECES = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", "(a|b)", "(ab)?", "a*", "b+", "a{1,2}", "^", "$", "(?i:A)", "\\w"]
)
PATTERNS = st.lists(PIECES, max_size=5).map("".join)
TEXTS = st.lists(st.text("abAB\n1", max_size=6), min_size=8, max_size=30)


@settings(deadline=None, max_examples=400)
@given(PATTERNS, PATTERNS, TEXTS)
def test_re2_agrees(inner: str, outer: str, texts: list[str]) -> None:
    try:
        found = inclusion(inner, outer)
        if found.counterexample is not None:
            assert matches(inner, found.counterexample)
            assert not matches(outer, found.counterexample)
        assert found.holds is not None
        assert not found.holds or all(matches(outer, text) for text in texts if matches(inner, text))
    except BadRegularExpression:
        return
