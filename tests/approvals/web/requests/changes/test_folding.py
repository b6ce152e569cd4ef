"""Which lines are shown at first, and that all others can be had."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.web.requests.diff_lines import (
    CHUNK,
    LARGE_OBJECT,
    MAX_OPEN,
    MAX_SHOWN,
    WINDOW,
    FoldedLines,
    Wanted,
    changes,
    fold,
    opened,
)
from provisioner.review.base.difference import DiffLine, all_lines
from tests.support.provisioner.contents import config_map
from tests.support.provisioner.ships import TEXT, crd

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
