"""What reviews bind to changes with each of its parts, and with nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.ledger.digests import NO_OPTION, ReviewSubject, digest_of, options_digest

SUBJECT = ReviewSubject("cluster", "deployment", "request", 1, "content", "plan", "options", "account", "salt")
PARTS = st.lists(st.text(max_size=4), max_size=4)


@given(PARTS, PARTS)
def test_no_two_lists_of_parts_have_one_digest(one: list[str], other: list[str]) -> None:
    assert (digest_of(one) == digest_of(other)) is (one == other)


def test_parts_are_not_joined() -> None:
    assert len({digest_of(parts) for parts in (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""])}) == 4


@pytest.mark.parametrize("name", [each.name for each in fields(ReviewSubject)])
def test_S03_a_review_is_about_each_part(name: str) -> None:
    other = 2 if name == "round" else "other"
    assert replace(SUBJECT, **{name: other}).digest != SUBJECT.digest


def test_S03_what_was_reviewed_before_digests_had_a_salt_keeps_its_digest() -> None:
    parts = ["cluster", "deployment", "request", "1", "content", "plan", "options", "account"]
    assert replace(SUBJECT, salt="").digest == digest_of(parts)


def test_S03_parts_that_change_places_are_another_subject() -> None:
    assert replace(SUBJECT, content_digest="plan", plan_digest="content").digest != SUBJECT.digest


@pytest.mark.parametrize("name", NO_OPTION)
def test_what_is_no_option_does_not_count(name: str) -> None:
    assert options_digest({"format": "plain", name: 3}) == options_digest({"format": "plain"})


def test_options_are_the_same_in_any_order_and_differ_by_type() -> None:
    assert options_digest({"a": 1, "b": {"c": 2, "d": 3}}) == options_digest({"b": {"d": 3, "c": 2}, "a": 1})
    differing = [{"a": 1}, {"a": "1"}, {"a": True}, {"a": None}, {}, {"a": 1.5}, {"a": [1]}]
    assert len({options_digest(spec) for spec in differing}) == len(differing)
