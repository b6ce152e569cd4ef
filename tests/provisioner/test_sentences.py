"""Numbers and lists in sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import approvals
import provisioner
from provisioner.sentences import and_more, first_line, number, some, some_phrases, unescaped, verb


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 objects are concerned"),
        (1, "1 object is concerned"),
        (2, "2 objects are concerned"),
        (1204, "1,204 objects are concerned"),
    ],
)
def test_a_number_agrees_with_its_noun_and_verb(count: int, words: str) -> None:
    assert f"{number(count, 'object')} {verb(count, 'are')} concerned" == words


@pytest.mark.parametrize(
    ("several", "one"), [("have", "has"), ("do", "does"), ("go", "goes"), ("lose", "loses"), ("are", "is")]
)
def test_a_verb_has_its_form_for_one(several: str, one: str) -> None:
    assert (verb(1, several), verb(2, several)) == (one, several)


def test_the_first_of_many_names_are_said_and_the_rest_counted() -> None:
    assert some([f"n{index}" for index in range(1300)]) == "n0, n1, n2 and 1,297 more"
    assert some(["a", "b", "c"]) == "a, b, c"


def test_names_that_are_not_at_hand_are_counted_too() -> None:
    assert some(["a", "b"], 2, total=5) == "a, b and 3 more"
    assert some(["a", "b"], 1, noun="fields") == "a and 1 more field"


def test_phrases_are_told_apart_by_semicolons() -> None:
    assert some_phrases(["get pods, nodes", "list secrets"]) == "get pods, nodes; list secrets"
    assert some_phrases(["get pods, nodes", "list secrets"], 1) == "get pods, nodes; and 1 more"
    assert some_phrases(["a"], 1, total=1300) == "a; and 1,299 more"
    assert some_phrases([]) == ""


def test_nothing_is_said_of_none_left() -> None:
    assert [and_more(left) for left in (-1, 0, 1)] == ["", "", "and 1 more"]


def test_only_one_place_says_how_many_more_there_are() -> None:
    roots = [Path(str(package.__file__)).parent for package in (provisioner, approvals)]
    texts = {str(path.relative_to(root.parent)): path.read_text() for root in roots for path in root.rglob("*.py")}
    assert [name for name, text in texts.items() if re.search(r"\band \{[^}]*\} more", text)] == [
        "provisioner/sentences.py"
    ]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ('Invalid value: {"a":"\\u003cb\\u003e \\u0026"}', 'Invalid value: {"a":"<b> &"}'),
        ('"\\\\u003c"', '"\\\\u003c"'),
        ('"\\\\\\u003c"', '"\\\\<"'),
        ("\\u00e9", "\\u00e9"),
    ],
)
def test_what_go_escapes_for_browsers_is_shown_as_it_is(words: str, shown: str) -> None:
    """An escaped backslash before it makes it a text that holds `u003c` itself."""
    assert unescaped(words) == shown


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("no right; this would allow it:\nkind: Role", "no right"),
        ("these are missing:\n- a", "these are missing"),
        ("all of it: here \nand more", "all of it: here"),
        ("", ""),
    ],
)
def test_the_first_line_leaves_out_what_introduces_the_next(text: str, line: str) -> None:
    assert first_line(text) == line
