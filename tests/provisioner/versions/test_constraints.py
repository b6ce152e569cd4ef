"""Constraints on versions, as OLM v1 and Helm read them (github.com/Masterminds/semver, v3)."""

from __future__ import annotations

import pytest

from provisioner.errors import InvalidRange
from provisioner.versions import MAX_LENGTH, constraint_of, version_of


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        pytest.param("1.2.3", ["1.2.3", "1.2.3+build"], ["1.2.4", "1.2.3-rc.1"], id="exactly"),
        pytest.param("v1.33.0", ["1.33.0"], ["1.33.1"], id="with a v"),
        pytest.param("=1.2", ["1.2.0", "1.2.9"], ["1.3.0", "1.1.9"], id="a short version is all that begin so"),
        pytest.param("1", ["1.0.0", "1.99.0"], ["2.0.0", "0.9.0"], id="one number"),
        pytest.param("1.x", ["1.0.0", "1.99.0"], ["2.0.0"], id="x"),
        pytest.param("1.x.x", ["1.0.0", "1.99.0"], ["2.0.0"], id="x twice"),
        pytest.param("1.2.*", ["1.2.0", "1.2.9"], ["1.3.0"], id="star"),
        pytest.param("*", ["0.0.0", "99.0.0"], ["1.0.0-rc.1"], id="anything that was released"),
        pytest.param("!=1.2.3", ["1.2.4"], ["1.2.3"], id="not"),
        pytest.param("!=1.2.x", ["1.1.9", "1.3.0"], ["1.2.0", "1.2.9"], id="not all of a minor"),
        pytest.param(">=1.0 !=1.2.x <2", ["1.1.0", "1.3.0"], ["1.2.5", "2.0.0", "0.9.0"], id="a gap"),
        pytest.param(">1.2", ["1.3.0"], ["1.2.9"], id="after a short version"),
        pytest.param(">=1.2", ["1.2.0"], ["1.1.9"], id="from a short version"),
        pytest.param("<1.2", ["1.1.9"], ["1.2.0"], id="before a short version"),
        pytest.param("<=1.2", ["1.2.9"], ["1.3.0"], id="through a short version"),
        pytest.param("=> 1.2.0, =< 1.3.0", ["1.2.0", "1.3.0"], ["1.3.1"], id="the other way round"),
        pytest.param("~1.2.3", ["1.2.3", "1.2.9"], ["1.2.2", "1.3.0"], id="tilde"),
        pytest.param("~>1.2", ["1.2.0", "1.2.9"], ["1.3.0"], id="tilde, short"),
        pytest.param("~1", ["1.0.0", "1.9.0"], ["2.0.0"], id="tilde, one number"),
        pytest.param("~1.x", ["1.9.0"], ["2.0.0"], id="tilde with x"),
        pytest.param("^1.2.3", ["1.2.3", "1.9.0"], ["1.2.2", "2.0.0"], id="caret"),
        pytest.param("^1.2", ["1.2.0", "1.9.0"], ["1.1.9", "2.0.0"], id="caret, short"),
        pytest.param("^1", ["1.0.0", "1.9.0"], ["2.0.0"], id="caret, one number"),
        pytest.param("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0", "0.2.2"], id="caret below one"),
        pytest.param("^0.2", ["0.2.0", "0.2.9"], ["0.3.0"], id="caret below one, short"),
        pytest.param("^0.0.3", ["0.0.3"], ["0.0.4", "0.0.2"], id="caret of a patch"),
        pytest.param("^0.0", ["0.0.0", "0.0.9"], ["0.1.0"], id="caret of zeros"),
        pytest.param("^0", ["0.0.0", "0.9.0"], ["1.0.0"], id="caret of zero"),
        pytest.param("^*", ["0.0.1", "9.0.0"], [], id="caret of anything"),
        pytest.param("1.2 - 1.4", ["1.2.0", "1.4.9"], ["1.1.9", "1.5.0"], id="from through, short"),
        pytest.param("1.2.3 - 1.4.5", ["1.2.3", "1.4.5"], ["1.2.2", "1.4.6"], id="from through"),
        pytest.param("1 - 2 || 4 - 5", ["1.0.0", "2.9.0", "5.1.0"], ["3.0.0", "6.0.0"], id="from through, twice"),
        pytest.param(">=1.2.0 <2.0.0", ["1.2.0"], ["2.0.0"], id="and by a space"),
        pytest.param(">=1.2.0,<2.0.0", ["1.2.0"], ["2.0.0"], id="and by a comma"),
        pytest.param("^20251128120000.1", ["20251128120000.2.0"], ["20251128120001.0.0"], id="large numbers"),
        pytest.param("18446744073709551615.x", ["18446744073709551615.0.1"], ["1.0.0"], id="the largest number"),
        pytest.param("~1.2 || ^3.1", ["1.2.9", "3.9.0"], ["1.3.0", "3.0.9"], id="or"),
    ],
)
def test_a_constraint_takes_what_it_says(text: str, inside: list[str], outside: list[str]) -> None:
    wanted = constraint_of(text)
    assert [one for one in inside if not wanted.takes(version_of(one))] == []
    assert [one for one in outside if wanted.takes(version_of(one))] == []


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        pytest.param(">=1.2 <2", ["1.9.9"], ["2.0.0-rc.1", "1.3.0-rc.1"], id="none is named"),
        pytest.param(">=1.2.0-0 <2.0.0", ["1.3.0-rc.1", "2.0.0-rc.1"], ["2.0.0"], id="one is named"),
        pytest.param("~1.2.0-0", ["1.2.0-rc.1", "1.2.5-rc.1"], ["1.3.0-rc.1"], id="they stay within a tilde"),
        pytest.param("^1.2.0-0", ["1.3.0-rc.1"], ["2.0.0-rc.1"], id="they stay within a caret"),
        pytest.param("1.0.0-rc.1", ["1.0.0-rc.1"], ["1.0.0", "1.0.0-rc.2"], id="exactly one"),
        pytest.param("<1 || >=2.0.0-0 <3", ["0.9.0", "2.1.0-rc.1"], ["0.9.0-rc.1"], id="each alternative by itself"),
    ],
)
def test_pre_releases_are_taken_only_beside_one_that_is_named(text: str, inside: list[str], outside: list[str]) -> None:
    wanted = constraint_of(text)
    assert [one for one in inside if not wanted.takes(version_of(one)) or version_of(one) not in wanted] == []
    assert [one for one in outside if wanted.takes(version_of(one)) or version_of(one) in wanted] == []


def test_a_build_that_is_named_is_taken_alone() -> None:
    wanted = constraint_of("=3.14.3+2")
    assert wanted.takes(version_of("3.14.3+2"))
    assert wanted.takes(version_of("3.14.3"), "2")
    assert not wanted.takes(version_of("3.14.3+1"))
    assert not wanted.takes(version_of("3.14.3"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "||",
        ">=1.0.0 ||",
        ">",
        "a.b.c",
        ">=1.0.0 and",
        "1.2.3.4",
        "-1",
        "~",
        "~~1.2",
        "٣.0.0",
        "1.2.3-",
        "1.0.0-01",
        f"1.{'1' * 21}",
    ],
)
def test_what_is_no_constraint_is_refused_with_what_it_was(text: str) -> None:
    with pytest.raises(InvalidRange, match=r"is no constraint|is no version"):
        constraint_of(text)


@pytest.mark.parametrize("text", ["{}", "1.{}.x", "^0.{}", "1 - {}"])
def test_numbers_of_more_than_64_bits_are_refused(text: str) -> None:
    constraint_of(text.format("18446744073709551615"))
    with pytest.raises(InvalidRange, match="is too large for a version"):
        constraint_of(text.format("18446744073709551616"))


def test_constraints_are_bounded() -> None:
    with pytest.raises(InvalidRange, match=f"at most {MAX_LENGTH}"):
        constraint_of(">=1.0.0 " * 100)
    for text in ("1-" + "a" * 497 + "!", "1" * MAX_LENGTH, "1.2 - " * 83, "~" * MAX_LENGTH):
        with pytest.raises(InvalidRange):
            constraint_of(text)
    assert constraint_of("1 " * 250).takes(version_of("1.2.0"))
