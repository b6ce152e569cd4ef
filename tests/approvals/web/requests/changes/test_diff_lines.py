"""Lines side by side, at which of them findings stand, and which are shown at first."""

from __future__ import annotations

import time
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.web.requests.diff_lines import (
    CHUNK,
    LARGE_OBJECT,
    MAX_OPEN,
    MAX_SHOWN,
    MAX_WORDS,
    WINDOW,
    FoldedLines,
    LinePlaces,
    Pair,
    Wanted,
    Words,
    changes,
    common_start,
    fold,
    opened,
    side_by_side,
)
from approvals.web.requests.diff_rows import html_of
from provisioner.escaping import visible
from provisioner.review.base.difference import DiffLine, Form, all_lines
from tests.support.provisioner.contents import an_object, config_map
from tests.support.provisioner.example_crd import TEXT, crd


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


NAME = "Deployment shop/web"


def deployment(*containers: dict[str, Any]) -> dict[str, Any]:
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"template": {"spec": {"containers": [*containers]}}})


WEB, OLD = {"name": "web", "image": "shop/web:1"}, {"name": "old", "image": "shop/old:1"}
BEFORE, AFTER = deployment(OLD, WEB), deployment({**WEB, "image": "shop/web:2"}, {"name": "new"})
CONTAINERS = ["spec", "template", "spec", "containers"]


def stands_at(path: list[Any], evidence: dict[str, Any] | None = None, sides: Any = (BEFORE, AFTER)) -> list[str]:
    lines = all_lines(*sides)
    found = LinePlaces(*sides, lines).lines_of({"path": path, "evidence": evidence or {}}, NAME)
    return [f"{lines[at].kind} {lines[at].text.strip()}" for at in found]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param([*CONTAINERS, 0, "image"], ["+ image: shop/web:2"], id="a field, by the number of its item"),
        pytest.param([*CONTAINERS, "web", "image"], ["+ image: shop/web:2"], id="a field, by the name of its item"),
        pytest.param([*CONTAINERS, "new"], ["+ - name: new"], id="an item"),
        pytest.param([*CONTAINERS, "old"], ["- - name: old"], id="an item that goes"),
        pytest.param([*CONTAINERS, "old", "image"], ["- image: shop/old:1"], id="a field of an item that goes"),
        pytest.param(["spec", "template"], ["  template:"], id="a field around others"),
        pytest.param([*CONTAINERS, 0, "securityContext"], ["  - name: web"], id="what is missing stands at its item"),
        pytest.param(["status", "x"], [], id="nowhere"),
        pytest.param([], [], id="without a path"),
    ],
)
def test_a_finding_stands_at_the_line_that_its_path_names(path: list[Any], expected: list[str]) -> None:
    assert stands_at(path) == expected


def test_a_finding_of_several_places_stands_at_each_of_this_object() -> None:
    places = [
        {"object": NAME, "path": [*CONTAINERS, "web", "image"], "version": ""},
        {"object": NAME, "path": [*CONTAINERS, "new"], "version": ""},
        {"object": "Deployment shop/other", "path": ["spec"], "version": ""},
    ]
    assert stands_at([], {"all_places": places}) == ["+ image: shop/web:2", "+ - name: new"]


def test_a_path_of_a_custom_resource_stands_in_the_schema_of_its_version() -> None:
    sides = (crd({"a": TEXT}, "v1", "v2"), crd({"a": {"type": "integer"}}, "v1", "v2"))
    lines = all_lines(*sides)
    (at,) = LinePlaces(*sides, lines).lines_of({"path": ["spec", "a"], "evidence": {"version": "v2"}}, "CRD ships")
    assert lines[at].text.strip() == "a:"
    assert lines[at].path[:3] == ("spec", "versions", 1)


FIELDS = {f"field{number}": {"type": "object", "properties": {"a": TEXT, "b": TEXT}} for number in range(200)}


def covered(rows: list[int | FoldedLines]) -> list[int]:
    return [at for row in rows for at in ([row] if isinstance(row, int) else range(row.first, row.last))]


def gaps(rows: list[int | FoldedLines]) -> list[FoldedLines]:
    return [row for row in rows if isinstance(row, FoldedLines)]


@given(st.lists(st.sampled_from(" +-"), max_size=200), st.lists(st.tuples(st.integers(0, 250), st.integers(0, 250))))
def test_every_line_is_shown_or_in_one_gap(kinds: list[str], spans: list[tuple[int, int]]) -> None:
    lines = [DiffLine(kind, f"{'  ' * (at % 5)}k{at}: 1") for at, kind in enumerate(kinds)]
    rows = fold(lines, Wanted(opened=tuple(spans)))
    assert covered(rows) == list(range(len(lines)))


def test_a_removed_version_of_a_definition_is_its_first_line_and_a_gap() -> None:
    lines = all_lines(crd(FIELDS, "v1", "v1beta1"), crd(FIELDS, "v1"))
    rows = fold(lines, Wanted())
    shown = [lines[row].text.strip() for row in rows if isinstance(row, int) and lines[row].kind == "-"]
    assert shown == ["- name: v1beta1"]
    (gone,) = [gap for gap in gaps(rows) if gap.removed]
    assert gone.kind == "removed"
    assert gone.removed > 1_000


def test_of_a_large_new_object_its_upper_levels_are_shown() -> None:
    lines = all_lines(None, crd(FIELDS))
    rows = fold(lines, Wanted())
    shown = [row for row in rows if isinstance(row, int)]
    assert len(shown) <= LARGE_OBJECT
    assert {"kind: CustomResourceDefinition", "versions:"} <= {lines[row].text.strip() for row in shown}
    assert covered(rows) == list(range(len(lines)))


def test_a_gap_opens_in_steps_until_nothing_is_left_out() -> None:
    lines = all_lines(crd(FIELDS, "v1", "v1beta1"), crd(FIELDS, "v1"))
    (left,) = [gap for gap in gaps(fold(lines, Wanted())) if gap.removed]
    first, last, seen, steps = left.first, left.last, [], 0
    while left:
        part = left.parts[0]
        rows = opened(lines, (left.first, left.last), (part.first, part.last))
        seen += [row for row in rows if isinstance(row, int)]
        left, steps = next(iter(gaps(rows)), None), steps + 1  # type: ignore[assignment] # None ends it
    assert seen == list(range(first, last))
    assert steps == -(-(last - first) // CHUNK)


def test_both_ends_of_a_gap_open_and_leave_the_rest() -> None:
    lines = [DiffLine(" ", f"k{at}: 1", (f"k{at}",), at + 1, at + 1) for at in range(100)]
    rows = opened(lines, (10, 90), (70, 90))
    assert [(gap.first, gap.last) for gap in gaps(rows)] == [(10, 70)]
    assert covered(rows) == list(range(10, 90))


@pytest.mark.parametrize("spans", [((-5, 3),), ((50, 10),), ((0, 10**7),), ((10**6, 10**7),)])
def test_spans_that_mean_nothing_open_nothing_else(spans: Any) -> None:
    lines = all_lines(config_map(a="1"), config_map(a="2"))
    assert covered(fold(lines, Wanted(opened=spans))) == list(range(len(lines)))
    assert covered(opened(lines, (0, len(lines)), spans[0])) == list(range(len(lines)))


def test_not_even_an_address_that_opens_everything_shows_more_than_fits() -> None:
    lines = all_lines(None, config_map(text="\n".join(map(str, range(50_000)))))
    spans = tuple((at, at + CHUNK) for at in range(0, 40 * CHUNK, CHUNK))
    rows = fold(lines, Wanted(opened=spans, noted=frozenset(range(20_000, 30_000)), around=frozenset({49_000})))
    assert sum(1 for row in rows if isinstance(row, int)) <= MAX_SHOWN + MAX_OPEN + 2 * WINDOW + 1
    assert 49_000 in rows


def test_a_line_that_an_address_names_is_shown_whatever_is_folded() -> None:
    lines = all_lines(crd(FIELDS, "v1", "v1beta1"), crd(FIELDS, "v1"))
    (gone,) = [gap for gap in gaps(fold(lines, Wanted())) if gap.removed]
    named = gone.first + 700
    assert named in fold(lines, Wanted(around=frozenset({named})))


def test_a_hundred_thousand_changed_lines_are_folded_in_a_moment() -> None:
    old, new = ("\n".join(f"{word} {number}" for number in range(50_000)) for word in ("old", "new"))
    began = time.process_time()
    lines = all_lines(config_map(text=old), config_map(text=new))
    rows = fold(lines, Wanted())
    assert time.process_time() - began < 4.0
    assert sum(1 for row in rows if isinstance(row, int)) <= MAX_SHOWN
    assert sum(gap.changed for gap in gaps(rows)) >= 99_000


def test_a_change_begins_where_lines_begin_to_differ() -> None:
    lines = [DiffLine(kind, "k: 1") for kind in " -+ +  -"]
    assert changes(lines, fold(lines, Wanted())) == [1, 4, 7]
