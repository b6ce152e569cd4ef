"""No name, however long, takes the worst new thing from the top of the page."""

from __future__ import annotations

import pytest

from provisioner.review.facts import Rule
from provisioner.review.headline import MAX_CHARACTERS, headline
from provisioner.values import ObjectRef, Plan, Section, Severity

RULE = Rule("RB-11", Section.PERMISSIONS, Severity.CRITICAL)


@pytest.mark.parametrize(
    "name", ["n" * 253, "n" * 10_000, "n " * 5_000, "a-b." * 63], ids=["longest", "longer", "words", "dots"]
)
def test_a_long_name_leaves_room_for_what_happens(name: str) -> None:
    found = RULE.at(ObjectRef("", "v1", "ServiceAccount", "shop", name), f"`shop/{name}` can read every Secret")
    first = headline([found], Plan((), ""))[0]
    assert len(first) <= MAX_CHARACTERS + 1
    assert first.startswith(("`shop/n", "`shop/a"))
    assert ("can read every Secret" in first) is (" " not in name)


def test_a_sentence_that_fits_stays_as_it_is() -> None:
    found = RULE.at(None, f"`shop/{'n' * 100}` can read every Secret")
    assert headline([found], Plan((), ""))[0] == f"{found.message}."
