"""Who may see what a finding is made of reads its own words, in its line and in the headline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.review.base.facts import ReviewRule
from provisioner.review.base.record import from_record, to_record
from provisioner.review.output.headline import in_own_words, own_headline, with_own_words, without_withholding
from provisioner.review.output.terminal import as_text
from provisioner.review.visibility.finding_views import describe_without_values
from provisioner.values import Finding, ObjectRef, Plan, Report, Section, Severity

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
