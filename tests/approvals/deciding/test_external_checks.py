"""How the answers of external checks stand, and what of a spec is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from approvals.deciding.external_checks import COUNTS_FOR, CheckOutcome, ExternalCheck, SelectedCheck, is_address
from approvals.deciding.spec_fields import UnreadableObject
from tests.support.approvals.gate_facts import NOW, URL, check

SECOND = timedelta(seconds=1)


def changed(selected: SelectedCheck, **run: Any) -> SelectedCheck:
    assert selected.run
    return replace(selected, run=replace(selected.run, **run))


def test_a_check_is_mandatory_and_asked_after_the_report_unless_it_says_otherwise() -> None:
    found = ExternalCheck.parse({"url": URL})
    assert found.summary == "Mandatory, AfterReport: checks.example.com answers within 600 seconds"
    found = ExternalCheck.parse(
        {"url": URL, "stage": "BeforeApply", "enforcement": "Advisory", "timeoutSeconds": 30, "when": "size(rules) > 0"}
    )
    assert (found.summary, found.when) == (
        "Advisory, BeforeApply: checks.example.com answers within 30 seconds",
        "size(rules) > 0",
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec.url is missing"),
        ({"url": "ftp://x.example"}, "spec.url is no plain URL"),
        ({"url": "https://"}, "spec.url is no plain URL"),
        ({"url": "https://user:key@x.example/"}, "spec.url is no plain URL"),
        ({"url": "https://@x.example/"}, "spec.url is no plain URL"),
        ({"url": "https://x.example/?key=secret"}, "spec.url is no plain URL"),
        ({"url": "https://x.example/#a"}, "spec.url is no plain URL"),
        ({"url": "https://x.example/a b"}, "spec.url is no plain URL"),
        ({"url": "https://x.example\\@y.example/"}, "spec.url is no plain URL"),
        ({"url": "https://x.example:port/"}, "spec.url is no plain URL"),
        ({"url": "https://[::1/"}, "spec.url is no plain URL"),
        ({"url": "https://ex\u0430mple.com/"}, "spec.url is no plain URL"),
        ({"url": f"https://x.example/{'a' * 500}"}, "a text of at most 500 characters"),
        ({"url": URL, "stage": "Later"}, "spec.stage is 'Later'"),
        ({"url": URL, "enforcement": "Soft"}, "spec.enforcement is 'Soft'"),
        ({"url": URL, "timeoutSeconds": 9}, "a whole number from 10 to 86400"),
        ({"url": URL, "timeoutSeconds": True}, "a whole number from 10 to 86400"),
        ({"url": URL, "secret": "whsec_"}, "which this version of Pratique does not know"),
    ],
)
def test_what_is_no_check_is_refused_with_its_place(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(UnreadableObject) as refused:
        ExternalCheck.parse(spec)
    assert words in str(refused.value)


def test_S49_no_answer_undoes_a_graver_one() -> None:
    found = {
        (later, earlier) for later, earlier in product(CheckOutcome, ["", *CheckOutcome]) if later.may_follow(earlier)
    }
    assert found == {
        ("pending", ""),
        ("passed", ""),
        ("failed", ""),
        ("passed", "pending"),
        ("failed", "pending"),
        ("failed", "passed"),
    }


TIME_OVER = NOW + timedelta(minutes=9)


@pytest.mark.parametrize(
    ("selected", "at", "state", "words"),
    [
        (
            check(),
            NOW,
            "waiting",
            "it was asked at 2026-11-23 08:59:00 UTC and has not answered yet; it has until 09:09:00",
        ),
        (check(), TIME_OVER - SECOND, "waiting", "has not answered yet"),
        (check(), TIME_OVER, "no answer", "did not answer within 600 s"),
        (
            changed(check(), is_delivered=False, problem="unreachable"),
            TIME_OVER,
            "no answer",
            "not delivered (unreachable)",
        ),
        (
            changed(check("pending"), message="see CHG-7"),
            NOW,
            "pending",
            "it answered pending: see CHG-7; it has until",
        ),
        (check("pending"), TIME_OVER, "no answer", "did not answer within 600 s; it answered pending"),
        (changed(check("failed"), message="no ticket"), NOW, "failed", "it answered failed: no ticket"),
        (check("failed"), TIME_OVER, "failed", "it answered failed"),
        (check("passed"), TIME_OVER + timedelta(days=3), "passed", "it answered passed"),
        (check("passed", stage="BeforeApply"), NOW + COUNTS_FOR - SECOND, "passed", "it answered passed"),
        (check("passed", stage="BeforeApply"), NOW + COUNTS_FOR, "not asked", "once the request is approved"),
        (check("failed", stage="BeforeApply"), NOW + COUNTS_FOR, "failed", "it answered failed"),
        (check("passed", url=f"{URL}/other"), NOW, "not asked", "it will be asked in a moment"),
        (replace(check(), run=None), NOW, "not asked", "it will be asked in a moment"),
        (replace(check(), run=None, has_secret=False), NOW, "no secret", "it has no signing secret"),
        (SelectedCheck("tickets", "u", problem="spec.url is missing"), NOW, "unreadable", "spec.url is missing"),
        (replace(check("passed"), note="`x` could not be evaluated"), NOW, "passed", "could not be evaluated"),
    ],
)
def test_how_a_check_stands(selected: SelectedCheck, at: Any, state: str, words: str) -> None:
    result = selected.result(at)
    assert (result.state, words in result.words) == (state, True), result.words
    assert result.holds == (state != "passed")
    assert selected.is_due(at) == (state == "not asked")


def test_an_advisory_check_holds_nothing() -> None:
    for outcome in ("", *CheckOutcome):
        result = check(outcome, enforcement="Advisory").result(NOW)
        assert not result.holds
        assert result.record["since"] is not None


@pytest.mark.parametrize(
    "text", ["http://x.example/", "javascript:alert(1)", "https://a@b.example/", "//x.example", ""]
)
def test_a_link_that_is_no_https_url_is_none(text: str) -> None:
    assert not is_address(text, "https")
    assert is_address("https://x.example/tickets?id=7", "https")
