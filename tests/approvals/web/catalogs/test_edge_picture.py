"""The picture of a channel: which edges are drawn, and that no line lies on another one."""

from __future__ import annotations

import itertools
import re
from typing import Any

from approvals.web.catalogs import edge_picture
from approvals.web.catalogs.edge_picture import EdgePicture, draw_edges
from tests.support.provisioner.catalogs import bundle, channel, package, read


def drawn(entries: list[dict[str, Any]], *running: str, without: tuple[str, ...] = ()) -> EdgePicture:
    versions = [one["name"].removeprefix("harbour.v") for one in entries]
    bundles = [bundle(one) for one in versions if one not in without]
    found = read(package(), *bundles, channel("stable", *entries)).packages["harbour"]
    return draw_edges(found, found.channels["stable"], running)


def entry(version: str, replaces: str = "", *skips: str, skip_range: str = "") -> dict[str, Any]:
    return {
        "name": f"harbour.v{version}",
        "replaces": f"harbour.v{replaces}" if replaces else "",
        "skips": [f"harbour.v{one}" for one in skips],
        "skipRange": skip_range,
    }


def rows(picture: EdgePicture) -> dict[str, int]:
    return {one.words: one.y for one in picture.versions}


def edges(picture: EdgePicture, kind: str = "") -> set[tuple[str, str, str]]:
    """From which version which kind of edge leads to which."""
    words = [one.words for one in picture.versions]
    found = {(words[row], str(it), words[line.at]) for line in picture.lines for row, it in line.followed.items()}
    return {one for one in found if kind in ("", one[1])}


def test_replaces_and_skips_lead_from_what_runs_to_what_may_follow() -> None:
    picture = drawn([entry("1.0.0"), entry("1.1.0", "1.0.0"), entry("2.0.0", "1.1.0", "1.0.0")])
    assert list(rows(picture)) == ["2.0.0", "1.1.0", "1.0.0"]
    assert edges(picture) == {
        ("1.0.0", "replaces", "1.1.0"),
        ("1.1.0", "replaces", "2.0.0"),
        ("1.0.0", "skips", "2.0.0"),
    }
    assert [line.is_onward for line in picture.lines] == [False, False]


def test_ranges_are_drawn_where_the_channel_ends_and_for_what_runs() -> None:
    entries = [entry(f"1.{at}.0", f"1.{at - 1}.0" if at else "", skip_range=f"<1.{at}.0") for at in range(6)]

    heads = {(f"1.{at}.0", "skipRange", "1.5.0") for at in range(4)}
    assert edges(drawn(entries), "skipRange") == heads
    onward = {("1.1.0", "skipRange", f"1.{at}.0") for at in (3, 4)}
    assert edges(drawn(entries, "harbour.v1.1.0"), "skipRange") == heads | onward


def test_what_is_not_drawn_of_ranges_is_counted() -> None:
    entries = [entry(f"1.{at}.0", f"1.{at - 1}.0" if at else "", skip_range=f"<1.{at}.0") for at in range(6)]
    pairs = {(low, high) for low in range(6) for high in range(6) if low < high}
    for running in ((), ("harbour.v1.1.0",)):
        picture = drawn(entries, *running)
        assert picture.hidden_edges == len(pairs) - len(edges(picture)) > 0
    assert drawn([entry("1.0.0"), entry("1.1.0", "1.0.0")]).hidden_edges == 0


def test_what_leads_on_from_what_runs_is_marked() -> None:
    picture = drawn([entry(f"1.{at}.0", f"1.{at - 1}.0" if at else "") for at in range(4)], "harbour.v1.1.0")
    assert {picture.versions[line.at].words for line in picture.lines if line.is_onward} == {"1.2.0"}


def test_of_several_heads_the_highest_is_called_so() -> None:
    picture = drawn([entry("1.0.0", skip_range="<1.0.0"), entry("1.1.0", skip_range="<1.1.0")])
    assert [(one.words, one.note) for one in picture.versions] == [("1.1.0", "head"), ("1.0.0", "")]


def test_no_line_lies_on_another_one() -> None:
    entries = [
        entry(f"1.{at}.0", f"1.{at - 1}.0" if at else "", *(f"1.{it}.0" for it in range(at - 1))) for at in range(8)
    ]
    picture = drawn(entries)
    uprights: list[tuple[int, int, int, int]] = []
    for line in picture.lines:
        found = [re.fullmatch(r"M(\d+) (\d+)V(\d+)", one.path) for one in line.strokes]
        reach = [[int(one[part]) for part in (1, 2, 3)] for one in found if one]
        uprights += [(line.at, x, min(start, end), max(start, end)) for x, start, end in reach]
    assert uprights
    for at, x, low, high in uprights:
        beside = [one for one in uprights if one[0] != at and one[1] == x]
        assert [one for one in beside if not (one[3] < low or one[2] > high)] == []


def test_each_way_to_follow_is_drawn_as_far_as_it_reaches() -> None:
    picture = drawn(
        [entry("1.0.0"), entry("1.1.0"), entry("1.2.0"), entry("1.3.0", "1.2.0", "1.1.0", skip_range="<1.1.0")]
    )
    (line,) = picture.lines
    upright = [(str(one.kind), *map(int, re.findall(r"\d+", one.path)[1:])) for one in line.strokes if "V" in one.path]
    assert [kind for kind, *_ in upright] == ["replaces", "skips", "skipRange"]
    assert all(before[2] == after[1] for before, after in itertools.pairwise(upright))


def test_a_circle_is_drawn_with_both_edges() -> None:
    picture = drawn([entry("1.0.0", "1.1.0"), entry("1.1.0", "1.0.0")])
    assert edges(picture) == {("1.0.0", "replaces", "1.1.0"), ("1.1.0", "replaces", "1.0.0")}


def test_what_runs_is_drawn_however_low_it_is() -> None:
    entries = [entry(f"1.{at}.0", f"1.{at - 1}.0" if at else "") for at in range(100)]
    picture = drawn(entries, "harbour.v1.2.0")
    assert [one.words for one in picture.versions if one.is_running] == ["1.2.0"]
    assert (len(picture.versions), picture.hidden_versions) == (edge_picture.MOST_VERSIONS, 60)


def test_lines_without_room_are_counted() -> None:
    entries = [entry(f"1.{at}.0", "", *(f"1.{it}.0" for it in range(at))) for at in range(30)]
    picture = drawn(entries)
    assert picture.hidden_lines > 0
    assert picture.hidden_edges == 29 * 30 // 2 - len(edges(picture))
    assert len(picture.lines) + picture.hidden_lines == 29
    assert picture.width < 500


def test_what_leads_to_the_head_has_room_before_all_others() -> None:
    entries = [entry(f"1.{at}.0", "", *(f"1.{it}.0" for it in range(at))) for at in range(30)]
    assert ("1.28.0", "skips", "1.29.0") in edges(drawn(entries))


def test_a_bundle_that_is_there_and_cannot_be_used_is_not_called_missing() -> None:
    unusable = {**bundle("One"), "name": "harbour.v2.0.0"}
    listed = channel("stable", entry("1.0.0"), entry("2.0.0", "1.0.0"), entry("3.0.0"))
    found = read(package(), bundle("1.0.0"), unusable, listed).packages["harbour"]
    picture = draw_edges(found, found.channels["stable"], ())
    notes = {one.words: one.note for one in picture.versions}
    lacks = [notes[f"harbour.v{one}"].partition(",")[0] for one in ("2.0.0", "3.0.0")]
    assert lacks == ["unusable", "missing"]


def test_what_a_version_is_stands_beside_it() -> None:
    picture = drawn([entry("1.0.0"), entry("1.1.0", "1.0.0"), entry("9.9.9")], "harbour.v1.0.0", without=("9.9.9",))
    assert [(one.words, one.note) for one in picture.versions] == [
        ("1.1.0", "head"),
        ("1.0.0", "runs"),
        ("harbour.v9.9.9", "missing"),
    ]
