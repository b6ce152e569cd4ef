"""Which reviews by kubectl are given to the door of every channel."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals.admission import MARGIN, PolicyState
from approvals.kubectl_reviews.review_rules import MAX_PER_HOUR, KnownRequest, SaidReview, judge
from provisioner.values import Identity

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SAID = SaidReview(
    uid="u",
    name="mine",
    generation=1,
    created_at=NOW,
    reviewer=Identity("alice", ("platform",), "uid-alice"),
    request_name="web-2",
    deployment_name="web",
    decision="Approve",
    subject_digest="sha256:" + "a" * 64,
    round=3,
    reason="",
    acknowledges=(),
)
REQUEST = KnownRequest(round=3, deployment_name="web")
IN_FORCE = PolicyState(NOW - timedelta(minutes=5), "")


def test_a_review_of_the_present_round_under_policies_in_force_may_count() -> None:
    assert judge(SAID, REQUEST, IN_FORCE, MAX_PER_HOUR) is None


@pytest.mark.parametrize(
    ("said", "request_", "policies", "lately", "code", "words"),
    [
        ({}, REQUEST, PolicyState(None, "the policy is missing"), 1, "unproved", "the policy is missing"),
        ({}, REQUEST, PolicyState(NOW, ""), 1, "unproved", "known since 2026-11-24T12:00:00Z only"),
        ({}, REQUEST, PolicyState(NOW - MARGIN, ""), 1, "unproved", "10 seconds after"),
        ({"generation": 2}, REQUEST, IN_FORCE, 1, "changed", "create another one"),
        ({}, None, IN_FORCE, 1, "not-found", "BundleDeployment web has no request web-2"),
        ({"deployment_name": "other"}, REQUEST, IN_FORCE, 1, "not-found", "BundleDeployment other has no request"),
        ({"round": 2}, REQUEST, IN_FORCE, 1, "old-round", "in round 3, and this review is of round 2"),
        ({}, REQUEST, IN_FORCE, MAX_PER_HOUR + 1, "too-many", "more than 60 reviews within an hour"),
    ],
    ids=["no policy", "policy of now", "too new", "changed", "no request", "other deployment", "old round", "too many"],
)
def test_everything_else_is_refused_in_words(
    said: dict[str, Any], request_: KnownRequest | None, policies: PolicyState, lately: int, code: str, words: str
) -> None:
    refused = judge(replace(SAID, **said), request_, policies, lately)
    assert refused is not None
    assert refused.code == code
    assert words in refused.words


def test_a_moment_more_than_the_margin_is_enough() -> None:
    since = PolicyState(NOW - MARGIN - timedelta(microseconds=1), "")
    assert judge(SAID, REQUEST, since, 1) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"request_name": "web-\0"},
        {"deployment_name": "web\0"},
        {"reason": "a\0b"},
        {"acknowledges": ("delete \0",)},
        {"reviewer": Identity("ali\0ce")},
        {"reviewer": Identity("alice", ("plat\0form",))},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_no_database_could_keep_is_said_without_quoting_it(changed: dict[str, Any]) -> None:
    found = judge(replace(SAID, **changed), REQUEST, IN_FORCE, 1)
    assert found is not None
    assert found.code == "invalid"
    assert "\0" not in found.words
