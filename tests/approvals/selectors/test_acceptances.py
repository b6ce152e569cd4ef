"""Which findings are accepted, by whom and until when: what all channels show."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.models import DecidingObject, Request
from approvals.selectors.acceptances import acceptances_of, ending_exceptions, read_ending
from tests.support.approvals import world
from tests.support.approvals.exceptions import confirm, second_person, write
from tests.support.approvals.fixtures import World
from tests.support.approvals.waivers import approve, finding, report

UNTIL = datetime.fromisoformat("2026-12-31T00:00:00+00:00")
RECORD = {"name": "web", "reason": "replaced", "ticket": "SEC-1", "by": ["ada", "ben"], "fingerprints": ["f1", "f2"]}


@pytest.fixture
def request_(env: World) -> Request:
    env.kubernetes.allow("ada", "override", "strimzi")
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    found = report(Request.objects.get(), finding(1), finding(2))
    found.finding_exceptions = [{**RECORD, "until": UNTIL.isoformat()}]
    return found


def words(request: Request, number: int, now: datetime) -> dict[str, list[str]]:
    found = acceptances_of(request, number, request.reviews.all(), now)
    return {fingerprint: [one.words for one in given] for fingerprint, given in found.items()}


def test_waivers_and_exceptions_are_one_list(env: World, request_: Request) -> None:
    given = approve(request_, env.ada, "f1")
    by_exception = "Accepted until 2026-12-31 00:00 UTC by exception web (ada and ben, SEC-1): replaced"
    assert words(request_, 1, UNTIL - timedelta(seconds=1)) == {
        "f1": [f"Accepted by ada on {given.given_at:%Y-%m-%d %H:%M} UTC: known since May", by_exception],
        "f2": [by_exception],
    }


@pytest.mark.parametrize(
    ("state", "number", "now", "expected"),
    [
        ("in_review", 1, UNTIL, set()),
        ("approved", 1, UNTIL, set()),
        ("applied", 1, UNTIL + timedelta(days=9), {"f1", "f2"}),
        ("in_review", 2, UNTIL - timedelta(days=1), set()),
    ],
    ids=["ended", "ended while approved", "what counted then", "another round"],
)
def test_what_ended_is_shown_only_where_it_counted(
    env: World, request_: Request, state: str, number: int, now: datetime, expected: set[str]
) -> None:
    request_.state = state
    assert set(words(request_, number, now)) == expected


@pytest.mark.parametrize(
    ("days", "status", "spec", "is_named"),
    [
        (13, "True", {}, True),
        (15, "True", {}, False),
        (13, "False", {}, False),
        (13, "True", {"rule": ""}, False),
        (-1, "True", {}, False),
    ],
    ids=["soon", "later", "it does not count", "it cannot be read", "it ended"],
)
def test_those_that_count_and_end_soon_are_named(
    env: World, days: int, status: str, spec: dict[str, Any], is_named: bool
) -> None:
    row = confirm(env, write(env), second_person(env))
    until = (timezone.now() + timedelta(days=days)).isoformat()
    told = {"conditions": [{"type": "Ready", "status": status}]}
    DecidingObject.objects.update(spec={**row.spec, "expires": until, **spec}, status=told)
    assert [one.row.name for one in ending_exceptions(read_ending([env.cluster]), timezone.now())] == (
        ["web"] if is_named else []
    )
    assert read_ending([]) == []
