"""No name, however long, takes the worst new thing from the top of the page."""

from __future__ import annotations

import pytest

from provisioner.review.base.facts import Rule
from provisioner.review.checks.own.advice import LIMIT_RIGHTS, OWN_ACCOUNT
from provisioner.review.output.headline import MAX_CHARACTERS, MAX_WHOLE, headline
from provisioner.values import Action, ObjectRef, Plan, PlannedAction, Section, Severity

RULE = Rule("RB-11", Section.PERMISSIONS, Severity.CRITICAL)


@pytest.mark.parametrize(
    "name", ["n" * 253, "n" * 10_000, "n " * 5_000, "a-b." * 63], ids=["longest", "longer", "words", "dots"]
)
def test_a_long_name_leaves_room_for_what_happens(name: str) -> None:
    found = RULE.at(ObjectRef("", "v1", "ServiceAccount", "shop", name), f"`shop/{name}` can read every Secret")
    first = headline([found], Plan((), ""))[0]
    assert len(first) <= MAX_CHARACTERS + 1
    assert first.startswith(("`shop/n", "`shop/a"))
    assert first.endswith("can read every Secret.")


def test_a_sentence_that_fits_stays_as_it_is() -> None:
    found = RULE.at(None, f"`shop/{'n' * 100}` can read every Secret")
    assert headline([found], Plan((), ""))[0] == f"{found.message}."


MANY = "; ".join(f"write into the namespace team-{number}" for number in range(20))


@pytest.mark.parametrize("severity", [Severity.CRITICAL, Severity.UNKNOWN])
def test_S24_what_is_critical_or_unknown_is_said_to_its_end(severity: Severity) -> None:
    found = Rule("RB-11", Section.PERMISSIONS, severity).at(None, f"`shop/app` can {MANY}")
    assert headline([found], Plan((), ""))[0] == f"{found.message}."


def test_what_is_less_than_that_is_cut_and_shows_it() -> None:
    found = Rule("RB-11", Section.PERMISSIONS, Severity.DANGEROUS).at(None, f"`shop/app` can {MANY}")
    first = headline([found], Plan((), ""))[0]
    assert len(first) <= MAX_CHARACTERS + 1
    assert first.endswith("….")


def test_no_text_makes_a_sentence_without_end() -> None:
    found = RULE.at(None, "words " * 100_000)
    assert len(headline([found], Plan((), ""))[0]) <= MAX_WHOLE + 1


@pytest.mark.parametrize("advice", [LIMIT_RIGHTS, OWN_ACCOUNT])
def test_a_headline_tells_facts_and_leaves_advice_to_the_finding(advice: str) -> None:
    found = RULE.at(None, f"`shop/app` can bypass the approvals of Pratique: read the Secrets. {advice}")
    expected = "`shop/app` can bypass the approvals of Pratique: read the Secrets."
    assert headline([found], Plan((), ""))[0] == expected


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        pytest.param([], "No object changes.", id="nothing"),
        pytest.param([Action.NONE] * 3, "No object changes.", id="nothing but known objects"),
        pytest.param([Action.CREATE] * 27, "27 objects to create.", id="only new ones"),
        pytest.param([Action.DELETE], "1 object to delete.", id="one goes"),
        pytest.param(
            [Action.UPDATE, Action.REPLACE, Action.CREATE, Action.DELETE, Action.DELETE],
            "2 objects to change, 1 to create, 2 to delete.",
            id="all at once",
        ),
    ],
)
def test_the_plan_is_told_in_numbers(actions: list[Action], words: str) -> None:
    planned = tuple(
        PlannedAction(ObjectRef("", "v1", "ConfigMap", "shop", f"c{number}"), action)
        for number, action in enumerate(actions)
    )
    assert headline([], Plan(planned, ""))[0] == words
