"""No name, however long, takes the worst new thing from the top of the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.review.base.facts import ReviewRule
from provisioner.review.base.record import from_record, to_record
from provisioner.review.output.headline import (
    MAX_CHARACTERS,
    MAX_SENTENCES,
    MAX_WHOLE,
    headline,
    in_own_words,
    own_headline,
    with_own_words,
    without_withholding,
)
from provisioner.review.output.terminal import as_text
from provisioner.review.visibility.finding_views import describe_without_values
from provisioner.values import Action, Finding, ObjectRef, Plan, PlannedAction, Report, Section, Severity

RULE = ReviewRule("RB-11", Section.PERMISSIONS, Severity.CRITICAL)


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
    found = ReviewRule("RB-11", Section.PERMISSIONS, severity).at(None, f"`shop/app` can {MANY}")
    assert headline([found], Plan((), ""))[0] == f"{found.message}."


def test_what_is_less_than_that_is_cut_and_shows_it() -> None:
    found = ReviewRule("RB-11", Section.PERMISSIONS, Severity.DANGEROUS).at(None, f"`shop/app` can {MANY}")
    first = headline([found], Plan((), ""))[0]
    assert len(first) <= MAX_CHARACTERS + 1
    assert first.endswith("….")
    assert headline([replace(found, message="stops; " * 40)], Plan((), ""))[0].endswith("stops ….")


def test_no_text_makes_a_sentence_without_end() -> None:
    found = RULE.at(None, "words " * 100_000)
    assert len(headline([found], Plan((), ""))[0]) <= MAX_WHOLE + 1


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


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        (0, "3 objects to create, 1 to delete."),
        (1, "3 objects to create (1 as a hook), 1 to delete."),
        (2, "3 objects to create (2 as hooks), 1 to delete."),
        (3, "3 objects to create as hooks, 1 to delete."),
    ],
)
def test_what_runs_as_a_hook_is_counted_apart(hooks: int, words: str) -> None:
    refs = [ObjectRef("batch", "v1", "Job", "shop", f"j{number}") for number in range(4)]
    actions = [Action.CREATE] * 3 + [Action.DELETE]
    made = Plan(tuple(map(PlannedAction, refs, actions)), "")
    assert headline([], made, hooks={ref.identity for ref in refs[:hooks]})[0] == words


def test_a_hook_that_is_not_created_is_not_counted_as_created() -> None:
    refs = [ObjectRef("batch", "v1", "Job", "shop", f"j{number}") for number in range(3)]
    made = Plan(tuple(map(PlannedAction, refs, [Action.CREATE, Action.RERUN, Action.CREATE])), "")
    found = headline([], made, hooks={ref.identity for ref in refs[:2]})
    assert found[0] == "2 objects to create (1 as a hook), 1 to run again as a hook."


OUTAGE = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.BREAKING)


def outages(count: int) -> list[Finding]:
    return [OUTAGE.at(None, f"Deployment shop/{at} stops") for at in range(count)]


def harms(count: int, severity: Severity) -> list[Finding]:
    return [ReviewRule("RB-11", Section.PERMISSIONS, severity).at(None, f"harm {at}") for at in range(count)]


@pytest.mark.parametrize(
    ("found", "place", "words"),
    [
        pytest.param(outages(1), 0, "Availability: Deployment shop/0 stops.", id="alone"),
        pytest.param(outages(3), 0, "Availability: Deployment shop/0 stops, and 2 more.", id="several"),
        pytest.param(
            [*harms(9, Severity.CRITICAL), *outages(2)],
            2,
            "Availability: Deployment shop/0 stops, and 1 more.",
            id="after what is worse",
        ),
        pytest.param(
            [*outages(1), *harms(9, Severity.DANGEROUS)],
            0,
            "Availability: Deployment shop/0 stops.",
            id="before what is less",
        ),
    ],
)
def test_outages_have_one_sentence_that_is_always_there(found: list[Finding], place: int, words: str) -> None:
    said = headline(found, Plan((), ""))
    assert said[place] == words
    assert len(said) <= MAX_SENTENCES


def test_an_outage_that_is_unknown_or_no_longer_new_is_said_as_all_others() -> None:
    unknown = ReviewRule("SEC-04", Section.AVAILABILITY, Severity.UNKNOWN).at(None, "Whether it is there is not known")
    assert headline([unknown], Plan((), ""))[0] == "Whether it is there is not known."
    known = replace(outages(1)[0], is_new=False)
    assert headline([known], Plan((), ""))[0] == "No new risk. Already the case: Deployment shop/0 stops."


WEB = ObjectRef("apps", "v1", "Deployment", "shop", "web")
REASON = 'admission webhook "images.example.com" denied the request: no digest'
REFUSED = replace(
    ReviewRule("PRE-09", Section.PREFLIGHT, Severity.BREAKING).at(
        WEB, "Cannot create Deployment shop/web: the API server refuses it"
    ),
    server_words=REASON,
)
OWN = "2 Order objects are refused with any next write, as v1: shop/a, shop/b"
BARE = ReviewRule("LIV-01", Section.CRDS, Severity.BREAKING).at(WEB, OWN)
WITHHELD = replace(BARE, message=describe_without_values(BARE), server_words=OWN, is_withheld=True)
PUBLIC = ("Something is refused.", "1 object to create.", "Findings: 2 breaking.")


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        pytest.param(REFUSED, f"{REFUSED.message}: {REASON}", id="the server adds to ours"),
        pytest.param(WITHHELD, OWN, id="ours were kept apart"),
        pytest.param(BARE, OWN, id="nothing was kept apart"),
        pytest.param(replace(WITHHELD, server_words=""), WITHHELD.message, id="hidden from this reader"),
    ],
)
def test_a_finding_says_what_its_check_or_the_server_said(finding: Finding, words: str) -> None:
    told = with_own_words(finding)
    assert (told.message, told.server_words if words != told.message else "") == (words, "")


def test_the_headline_has_the_reason_and_the_totals_of_everybody() -> None:
    told = own_headline([with_own_words(REFUSED), with_own_words(WITHHELD)], PUBLIC, Plan((), ""))
    assert any(REASON in one for one in told)
    assert any(OWN in one for one in told)
    assert told[-2:] == PUBLIC[-2:]


def test_a_report_for_its_reader_says_no_word_of_withholding() -> None:
    report = in_own_words(Report(PUBLIC, (REFUSED, WITHHELD), Plan((), "")))
    text = " ".join(as_text(report).split())
    assert OWN in text
    assert "shown to people who may get" not in text
    assert f"the API server refuses it: {REASON}" in text
    assert f"the cluster says: {REASON}" in text


def test_what_the_server_said_stays_beside_our_words_where_nothing_was_withheld() -> None:
    assert without_withholding(REFUSED) == REFUSED
    assert without_withholding(WITHHELD).message == OWN


def test_that_words_are_withheld_is_kept_in_a_record() -> None:
    report = Report(PUBLIC, (WITHHELD,), Plan((), ""))
    (kept,) = from_record(to_record(report)).findings
    assert kept.is_withheld
    assert "withheld" not in to_record(Report(PUBLIC, (BARE,), Plan((), "")))["findings"][0]
