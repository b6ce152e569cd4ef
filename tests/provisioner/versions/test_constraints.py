"""Constraints on versions, as OLM v1 and Helm read them (github.com/Masterminds/semver, v3)."""

from __future__ import annotations

import pytest

from provisioner.errors import InvalidRange
from provisioner.versions import MAX_LENGTH, constraint_of, version_of

CONSTRAINTS = {
    "exactly": ("1.2.3", ["1.2.3", "1.2.3+build"], ["1.2.4", "1.2.3-rc.1"]),
    "with a v": ("v1.33.0", ["1.33.0"], ["1.33.1"]),
    "a short version is all that begin so": ("=1.2", ["1.2.0", "1.2.9"], ["1.3.0", "1.1.9"]),
    "one number": ("1", ["1.0.0", "1.99.0"], ["2.0.0", "0.9.0"]),
    "x": ("1.x", ["1.0.0", "1.99.0"], ["2.0.0"]),
    "x twice": ("1.x.x", ["1.0.0", "1.99.0"], ["2.0.0"]),
    "star": ("1.2.*", ["1.2.0", "1.2.9"], ["1.3.0"]),
    "anything that was released": ("*", ["0.0.0", "99.0.0"], ["1.0.0-rc.1"]),
    "not": ("!=1.2.3", ["1.2.4"], ["1.2.3"]),
    "not all of a minor": ("!=1.2.x", ["1.1.9", "1.3.0"], ["1.2.0", "1.2.9"]),
    "a gap": (">=1.0 !=1.2.x <2", ["1.1.0", "1.3.0"], ["1.2.5", "2.0.0", "0.9.0"]),
    "after a short version": (">1.2", ["1.3.0"], ["1.2.9"]),
    "from a short version": (">=1.2", ["1.2.0"], ["1.1.9"]),
    "before a short version": ("<1.2", ["1.1.9"], ["1.2.0"]),
    "through a short version": ("<=1.2", ["1.2.9"], ["1.3.0"]),
    "the other way round": ("=> 1.2.0, =< 1.3.0", ["1.2.0", "1.3.0"], ["1.3.1"]),
    "tilde": ("~1.2.3", ["1.2.3", "1.2.9"], ["1.2.2", "1.3.0"]),
    "tilde, short": ("~>1.2", ["1.2.0", "1.2.9"], ["1.3.0"]),
    "tilde, one number": ("~1", ["1.0.0", "1.9.0"], ["2.0.0"]),
    "tilde with x": ("~1.x", ["1.9.0"], ["2.0.0"]),
    "caret": ("^1.2.3", ["1.2.3", "1.9.0"], ["1.2.2", "2.0.0"]),
    "caret, short": ("^1.2", ["1.2.0", "1.9.0"], ["1.1.9", "2.0.0"]),
    "caret, one number": ("^1", ["1.0.0", "1.9.0"], ["2.0.0"]),
    "caret below one": ("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0", "0.2.2"]),
    "caret below one, short": ("^0.2", ["0.2.0", "0.2.9"], ["0.3.0"]),
    "caret of a patch": ("^0.0.3", ["0.0.3"], ["0.0.4", "0.0.2"]),
    "caret of zeros": ("^0.0", ["0.0.0", "0.0.9"], ["0.1.0"]),
    "caret of zero": ("^0", ["0.0.0", "0.9.0"], ["1.0.0"]),
    "caret of anything": ("^*", ["0.0.1", "9.0.0"], []),
    "from through, short": ("1.2 - 1.4", ["1.2.0", "1.4.9"], ["1.1.9", "1.5.0"]),
    "from through": ("1.2.3 - 1.4.5", ["1.2.3", "1.4.5"], ["1.2.2", "1.4.6"]),
    "from through, twice": ("1 - 2 || 4 - 5", ["1.0.0", "2.9.0", "5.1.0"], ["3.0.0", "6.0.0"]),
    "and by a space": (">=1.2.0 <2.0.0", ["1.2.0"], ["2.0.0"]),
    "and by a comma": (">=1.2.0,<2.0.0", ["1.2.0"], ["2.0.0"]),
    "large numbers": ("^20251128120000.1", ["20251128120000.2.0"], ["20251128120001.0.0"]),
    "the largest number": ("18446744073709551615.x", ["18446744073709551615.0.1"], ["1.0.0"]),
    "or": ("~1.2 || ^3.1", ["1.2.9", "3.9.0"], ["1.3.0", "3.0.9"]),
}


@pytest.mark.parametrize(("text", "inside", "outside"), CONSTRAINTS.values(), ids=CONSTRAINTS)
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
