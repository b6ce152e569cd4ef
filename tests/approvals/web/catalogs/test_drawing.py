"""The picture of a channel: which edges are drawn, and that no line lies on another one."""

from __future__ import annotations

import re
from typing import Any

from approvals.web.catalogs import drawing
from approvals.web.catalogs.drawing import EdgePicture, picture_of
from tests.support.provisioner.catalogs import bundle, channel, package, read


def drawn(entries: list[dict[str, Any]], *running: str, without: tuple[str, ...] = ()) -> EdgePicture:
    versions = [one["name"].removeprefix("harbour.v") for one in entries]
    bundles = [bundle(one) for one in versions if one not in without]
    found = read(package(), *bundles, channel("stable", *entries)).packages["harbour"]
    return picture_of(found, found.channels["stable"], running)


def entry(version: str, replaces: str = "", *skips: str, skip_range: str = "") -> dict[str, Any]:
    return {
        "name": f"harbour.v{version}",
        "replaces": f"harbour.v{replaces}" if replaces else "",
        "skips": [f"harbour.v{one}" for one in skips],
        "skipRange": skip_range,
    }


def rows(picture: EdgePicture) -> dict[str, int]:
    return {one.words: one.y for one in picture.versions}


def ends(picture: EdgePicture, path: str) -> tuple[str, str]:
    """From which version an edge leads to which."""
    found = re.fullmatch(r"M(\d+) (\d+)H(\d+)V(\d+)H(\d+)", path)
    assert found
    nearest = {one.words: one.y for one in picture.versions}
    start, end = (min(nearest, key=lambda name: abs(nearest[name] - int(found[at]))) for at in (2, 4))
    return start, end


def test_replaces_and_skips_lead_from_what_runs_to_what_may_follow() -> None:
    picture = drawn([entry("1.0.0"), entry("1.1.0", "1.0.0"), entry("2.0.0", "1.1.0", "1.0.0")])
    assert list(rows(picture)) == ["2.0.0", "1.1.0", "1.0.0"]
    assert {(str(one.kind), *ends(picture, one.path)) for one in picture.edges} == {
        ("replaces", "1.0.0", "1.1.0"),
        ("replaces", "1.1.0", "2.0.0"),
        ("skips", "1.0.0", "2.0.0"),
    }
    assert len(picture.arrows) == 2


def test_ranges_are_drawn_where_the_channel_ends_and_for_what_runs() -> None:
    entries = [entry(f"1.{at}.0", f"1.{at - 1}.0" if at else "", skip_range=f"<1.{at}.0") for at in range(6)]

    def ranges(*running: str) -> set[tuple[str, str]]:
        picture = drawn(entries, *running)
        return {ends(picture, one.path) for one in picture.edges if one.kind == "skipRange"}

    heads = {(f"1.{at}.0", "1.5.0") for at in range(4)}
    assert ranges() == heads
    assert ("1.0.0", "1.4.0") in ranges("harbour.v1.0.0")
    assert ("1.3.0", "1.4.0") not in ranges("harbour.v1.4.0")


def test_of_several_heads_the_highest_is_called_so() -> None:
    picture = drawn([entry("1.0.0", skip_range="<1.0.0"), entry("1.1.0", skip_range="<1.1.0")])
    assert [(one.words, one.note) for one in picture.versions] == [("1.1.0", "head"), ("1.0.0", "")]


def test_no_line_lies_on_another_one() -> None:
    entries = [
        entry(f"1.{at}.0", f"1.{at - 1}.0" if at else "", *(f"1.{it}.0" for it in range(at - 1))) for at in range(8)
    ]
    picture = drawn(entries)
    spines: dict[int, list[tuple[int, int, int]]] = {}
    for one in picture.edges:
        _, start, beside, end, _ = map(int, re.findall(r"\d+", one.path))
        spines.setdefault(beside, []).append((min(start, end), max(start, end), end))
    for beside, lines in spines.items():
        for low, high, own in lines:
            crossed = [one for one in lines if one[2] != own and not (one[1] < low or one[0] > high)]
            assert crossed == [], beside


def test_a_circle_is_drawn_with_both_edges() -> None:
    picture = drawn([entry("1.0.0", "1.1.0"), entry("1.1.0", "1.0.0")])
    assert {ends(picture, one.path) for one in picture.edges} == {("1.0.0", "1.1.0"), ("1.1.0", "1.0.0")}


def test_what_runs_is_drawn_however_low_it_is() -> None:
    entries = [entry(f"1.{at}.0", f"1.{at - 1}.0" if at else "") for at in range(100)]
    picture = drawn(entries, "harbour.v1.2.0")
    assert [one.words for one in picture.versions if one.is_running] == ["1.2.0"]
    assert (len(picture.versions), picture.hidden_versions) == (drawing.MOST_VERSIONS, 60)


def test_lines_without_room_are_counted() -> None:
    entries = [entry(f"1.{at}.0", "", *(f"1.{it}.0" for it in range(at))) for at in range(30)]
    picture = drawn(entries)
    assert picture.hidden_lines > 0
    assert len(picture.arrows) + picture.hidden_lines == 29
    assert picture.width < 500


def test_what_leads_on_from_what_runs_has_room_before_all_others() -> None:
    entries = [entry(f"1.{at}.0", "", *(f"1.{it}.0" for it in range(at))) for at in range(30)]
    picture = drawn(entries, "harbour.v1.28.0")
    assert ("1.28.0", "1.29.0") in {ends(picture, one.path) for one in picture.edges}


def test_what_a_version_is_stands_beside_it() -> None:
    picture = drawn([entry("1.0.0"), entry("1.1.0", "1.0.0"), entry("9.9.9")], "harbour.v1.0.0", without=("9.9.9",))
    assert [(one.words, one.note) for one in picture.versions] == [
        ("1.1.0", "head"),
        ("1.0.0", "runs"),
        ("harbour.v9.9.9", "missing"),
    ]
