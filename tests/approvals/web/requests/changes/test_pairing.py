"""Lines side by side, the words that differ, and lines as HTML."""

from __future__ import annotations

import time
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.web.requests.diff_lines import MAX_WORDS, Pair, Wanted, Words, common_start, fold, side_by_side
from approvals.web.requests.diff_rows import html_of
from provisioner.escaping import visible
from provisioner.review.base.difference import DiffLine, Form


def pairs(kinds: str) -> list[tuple[int | None, int | None]]:
    lines = [DiffLine(kind, "k: 1") for kind in kinds]
    found = side_by_side(lines, fold(lines, Wanted(is_whole=True)))
    return [(one.left, one.right) for one in found if isinstance(one, Pair)]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        pytest.param(" -+ ", [(0, 0), (1, 2), (3, 3)], id="one for one"),
        pytest.param("--+", [(0, 2), (1, None)], id="two for one"),
        pytest.param("-+-+", [(0, 1), (2, 3)], id="field after field"),
        pytest.param("++", [(None, 0), (None, 1)], id="only new"),
        pytest.param("+-", [(None, 0), (1, None)], id="new before gone"),
    ],
)
def test_lines_stand_beside_those_they_became(kinds: str, expected: list[tuple[int | None, int | None]]) -> None:
    assert pairs(kinds) == expected


def marked(old: str, new: str) -> tuple[list[str], list[str]]:
    marks = Words().marks(old, new)
    return [old[a:b] for a, b in marks.old], [new[a:b] for a, b in marks.new]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("image: shop/web:1.0", "image: shop/web:1.1", (["0"], ["1"]), id="a digit"),
        pytest.param("verbs: get", "verbs: get list", ([], [" list"]), id="a word more"),
        pytest.param("replicas: 1", "wholly = different", ([], []), id="nothing in common"),
        pytest.param("", "a: b", ([], []), id="an empty line"),
    ],
)
def test_the_words_that_differ_are_marked(old: str, new: str, expected: tuple[list[str], list[str]]) -> None:
    assert marked(old, new) == expected


def test_of_lines_with_very_many_words_what_is_between_equal_ends_is_marked() -> None:
    words = "a " * MAX_WORDS
    assert marked(f"{words}old end", f"{words}new end") == (["old"], ["new"])


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_common_start_is_as_long_as_it_can_be(old: str, new: str) -> None:
    at = common_start(old, new)
    assert old[:at] == new[:at]
    assert old[at : at + 1] != new[at : at + 1] or not old[at:] or not new[at:]


@given(st.text(max_size=80), st.text(max_size=80), st.sampled_from(Form))
def test_html_holds_every_character_of_a_line_and_no_other_markup(old: str, new: str, form: Form) -> None:
    text, other = visible(old), visible(new)
    html = html_of(text, form, Words().marks(text, other).old)
    plain = html.replace("<mark>", "").replace("</mark>", "").replace("</span>", "")
    while '<span class="' in plain:
        head, _, rest = plain.partition('<span class="')
        plain = head + rest.partition('">')[2]
    assert "<" not in plain
    assert unescape(plain) == text


def test_markup_in_keys_and_values_is_text() -> None:
    html = html_of('"<script>alert(1)</script>": "<img onerror=x>"', Form.YAML)
    assert "<script" not in html
    assert "<img" not in html


def test_yaml_is_coloured_and_a_text_is_not_read_as_yaml() -> None:
    assert '<span class="nt">name</span>' in html_of("  - name: web", Form.YAML)
    assert html_of("name: web", Form.TEXT) == '<span class="s">name: web</span>'


@pytest.mark.parametrize("text", ["[" * 1_000, "a: " * 300, '"' * 999, "- " * 500, "&a *b !c " * 100, "'\\" * 500])
def test_no_line_takes_the_lexer_more_than_a_moment(text: str) -> None:
    began = time.process_time()
    html_of(text, Form.YAML)
    assert time.process_time() - began < 0.5


def test_very_unlike_lines_of_a_page_take_no_more_than_a_moment() -> None:
    words, began = Words(), time.process_time()
    for number in range(500):
        words.marks(" ".join(f"w{at % 7}" for at in range(190)), " ".join(f"w{at % 5 + number}" for at in range(190)))
    assert time.process_time() - began < 4.0
