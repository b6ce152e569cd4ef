"""Ranges of versions, as OLM's bundles write them."""

from __future__ import annotations

import pytest

from provisioner.errors import InvalidRange
from provisioner.versions import range_of, release_of, version_of

RANGES = {
    "exactly": ("1.2.3", ["1.2.3", "v1.2.3", "1.2.3+build"], ["1.2.4", "1.2.3-rc.1"]),
    "two equals signs": ("==1.2.3", ["1.2.3"], ["1.2.2"]),
    "not": ("!=1.2.3", ["1.2.4"], ["1.2.3"]),
    "not, short": ("!1.2.3", ["1.2.4"], ["1.2.3"]),
    "and by a space": (">=1.2.0 <2.0.0", ["1.2.0", "1.9.9"], ["2.0.0", "1.1.9"]),
    "and by a comma": (">=1.2.0,<2.0.0", ["1.2.0"], ["2.0.0"]),
    "and by nothing": (">=1.2.0<2.0.0", ["1.2.0"], ["2.0.0"]),
    "spaces after the operator, short versions": (">= 1.2 < 2", ["1.2.0"], ["2.0.0"]),
    "a short version is any of it": ("1.36", ["1.36.0", "1.36.3"], ["1.37.0", "1.35.9"]),
    "up to a short version": ("<=v1.36", ["1.36.3", "1.2.0"], ["1.37.0"]),
    "after a short version": (">1.36", ["1.37.0"], ["1.36.3"]),
    "or": ("<1.0.0 || >3.0.0", ["0.9.0", "3.0.1"], ["1.0.0", "3.0.0"]),
    "any minor": ("1.x", ["1.0.0", "1.99.9"], ["2.0.0", "0.9.0"]),
    "any patch": ("1.2.x", ["1.2.0", "1.2.9"], ["1.3.0"]),
    "after a wildcard": (">1.2.x", ["1.3.0"], ["1.2.9"]),
    "before a wildcard": ("<1.2.x", ["1.1.9"], ["1.2.0"]),
    "up to a wildcard": ("<=1.2.x", ["1.2.9"], ["1.3.0"]),
    "two wildcards": (">=1.x <3.x", ["2.9.9"], ["3.0.0", "0.9.9"]),
    "anything": ("*", ["0.0.0", "99.0.0"], []),
    "more than anything": (">*", [], ["0.0.0", "1.0.0"]),
    "before a release": (">1.0.0-alpha", ["1.0.0-beta", "1.0.0"], ["1.0.0-alpha"]),
    "numbers are compared as numbers": (">1.0.0-rc.9", ["1.0.0-rc.10"], ["1.0.0-rc.8"]),
}


@pytest.mark.parametrize(("text", "inside", "outside"), RANGES.values(), ids=RANGES)
def test_a_range_holds_what_it_says(text: str, inside: list[str], outside: list[str]) -> None:
    wanted = range_of(text)
    assert [one for one in inside if version_of(one) not in wanted] == []
    assert [one for one in outside if version_of(one) in wanted] == []


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
        "1.x.3",
        "!=1.x",
        "~1.2",
        "^1.2",
        "٣.0.0",
    ],
)
def test_what_is_no_range_is_said(text: str) -> None:
    with pytest.raises(InvalidRange):
        range_of(text)


@pytest.mark.parametrize(
    "text", ["", "x", "1.2.3.4", "1..2", "1" * 40, "1.2.3-", "01.2.3-01", "9" * 600], ids=lambda it: it[:12]
)
def test_what_is_no_version_is_said(text: str) -> None:
    with pytest.raises(InvalidRange):
        version_of(text)


LARGEST, TOO_LARGE = "18446744073709551615", "18446744073709551616"


@pytest.mark.parametrize("text", ["20251128120000.0.0", f"{LARGEST}.{LARGEST}.{LARGEST}", f"v1.{LARGEST}"])
def test_numbers_of_64_bits_are_those_of_versions(text: str) -> None:
    assert str(version_of(text)).startswith(text.removeprefix("v"))
    assert version_of(text) in range_of(text)
    assert version_of(text).next_version("patch") > version_of(text) > version_of("0.9.9")


@pytest.mark.parametrize("text", ["{}.0.0", "1.{}.0", "1.0.{}", "{}", "{}.x", "1.{}.x", ">={}"])
def test_larger_numbers_are_refused_and_the_largest_is_named(text: str) -> None:
    range_of(text.format(LARGEST))
    with pytest.raises(InvalidRange, match=f"^{TOO_LARGE} is too large for a version, .* up to {LARGEST}$"):
        range_of(text.format(TOO_LARGE))
    with pytest.raises(InvalidRange):
        range_of(text.format("1" * 21))


def test_a_range_of_any_length_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidRange, match="at most"):
        range_of(">=1.0.0 " * 100_000)


def test_a_vendors_kubernetes_has_all_that_the_release_has() -> None:
    assert release_of(version_of("v1.36.3-gke.100")) in range_of(">=1.36.3")
