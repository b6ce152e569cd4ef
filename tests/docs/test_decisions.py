"""Decisions: each number once, none left out, and each record with its three parts."""

from __future__ import annotations

from docs.generators import decisions


def test_numbers_are_used_once_and_none_is_left_out() -> None:
    numbers = sorted(int(it.number) for it in decisions.records())
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 50


def test_each_record_says_what_was_asked_what_was_decided_and_what_follows() -> None:
    for record in decisions.records():
        places = [record.text.find(f"**{part}**") for part in decisions.PARTS]
        assert -1 not in places, f"{record.number} lacks a part"
        assert places == sorted(places), f"{record.number} has its parts in another order"
