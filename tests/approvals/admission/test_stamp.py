"""What the API server wrote down of who wrote a spec: read back exactly, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.admission import ANNOTATION, identity_in, stamp_for, stamp_of
from provisioner.values import Identity

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(NAMES, min_size=2, max_size=6).filter(lambda parts: parts[0]))
def test_what_is_written_is_read_back_whatever_names_hold(parts: list[str]) -> None:
    assert identity_in(stamp_for(parts)) == Identity(parts[0], tuple(parts[2:]), parts[1])


def test_groups_with_commas_and_colons_stay_apart() -> None:
    joined, apart = stamp_for(["a", "", "b,1:c"]), stamp_for(["a", "", "b", "c"])
    assert joined != apart
    assert identity_in(joined) == Identity("a", ("b,1:c",), "")


@pytest.mark.parametrize(
    "stamp",
    [
        "",
        "alice",
        "5:alice,",
        "0:,0:,",
        "5:alice,0:",
        "5:alice,0:,9:platform,",
        "5:alice,0:,7:platform,",
        "05:alice,0:,",
        "-1:alice,0:,",
        "5 :alice,0:,",
        "٥:alice,0:,",
        "5:alice,0:,x",
        "99999999:alice,0:,",
        stamp_for(["a\0b", ""]),
        stamp_for(["a" * 254, ""]),
        stamp_for(["a", "u" * 254]),
    ],
)
def test_S05_what_is_no_stamp_names_nobody(stamp: str) -> None:
    assert identity_in(stamp) is None


def test_an_object_without_annotations_has_no_stamp() -> None:
    assert stamp_of({"metadata": {}}) == stamp_of({"metadata": {"annotations": None}}) == ""
    assert stamp_of({"metadata": {"annotations": {ANNOTATION: "x"}}}) == "x"
