"""The tab that tells what happened: entries as sentences, and the phases of an apply with how long they took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals.models import AuditEntry, Outcome, Request
from approvals.web.requests.activity import events, has_lost_its_worker, phases, words_of_span
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def entry(verb: str, seconds: int, **facts: Any) -> AuditEntry:
    return AuditEntry(verb=verb, at=NOON + timedelta(seconds=seconds), actor="pratique", via="machine", facts=facts)


def test_an_entry_is_a_sentence_with_how_long_it_took() -> None:
    moved = {"from": "preparing", "to": "in_review"}
    told = events(
        [
            entry("request.made", 0),
            entry("request.prepared", 65, round=1, **moved),
            entry("review.given", 70, round=2, decision="Deny", reason="not now"),
        ]
    )
    assert [(one.words, one.took, one.reason) for one in told] == [
        ("created the request", "", ""),
        ("finished the report: the request is ready for review", "1 min 5 s", ""),
        ("denied in round 2", "", "not now"),
    ]


def test_the_tab_leads_to_its_entries_in_the_audit(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    client, uid = browse(env.ada), afternoon["serious"].uid
    address = f"/audit?request={uid}"
    assert f'href="{address}"' in text_of(client.get(f"/requests/{uid}/activity"))
    found = text_of(client.get(address))
    assert f'<a href="/requests/{uid}">one request</a>' in found
    assert f"/requests/{afternoon['quiet'].uid}" not in found


def test_the_tab_tells_reviews_and_moves(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    text = " ".join(text_of(browse(env.ada).get(f"/requests/{afternoon['quiet'].uid}/activity")).split())
    assert "</span> approved" in text
    assert "“as usual”" in text


def test_the_tab_follows_what_happens_until_the_request_is_settled(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    client, request = browse(env.ada), afternoon["serious"]
    Request.objects.filter(pk=request.pk).update(state="applying")
    address = f"/requests/{request.uid}/activity/list?seen=applying"
    assert f'hx-get="{address}" hx-trigger="every 2s' in text_of(client.get(f"/requests/{request.uid}/activity"))
    first = client.get(address)
    assert "HX-Refresh" not in first.headers
    assert client.get(address, headers={"If-None-Match": first["ETag"]}).status_code == 304
    Request.objects.filter(pk=request.pk).update(state="applied")
    moved = client.get(address)
    assert moved.headers["HX-Refresh"] == "true"
    assert "hx-get" not in text_of(moved)


def test_a_phase_lasts_until_its_last_object() -> None:
    rows = [
        Outcome(step="apply", phase=phase, state=state, at=NOON + timedelta(seconds=at))
        for phase, state, at in (("crds", "done", 0), ("crds", "done", 4), ("workloads", "failed", 9))
    ]
    found = [(one.words, one.done, one.failed, one.took) for one in phases(rows)]
    assert found == [("Applied phase crds", 2, 0, "4 s"), ("Applied phase workloads", 0, 1, "5 s")]


def test_what_was_not_tried_is_not_done_and_deletions_are_told_apart() -> None:
    rows = [
        Outcome(step="apply", phase=phase, action=action, state=state, at=NOON + timedelta(seconds=at))
        for phase, action, state, at in (
            ("crds", "create", "unchanged", 0),
            ("crds", "create", "skipped", 1),
            ("", "delete", "done", 3),
            ("", "create", "done", 60),
        )
    ]
    rows.append(Outcome(step="restore", phase="crds", action="update", state="done", at=NOON + timedelta(seconds=90)))
    found = [(one.words, one.done, one.skipped, one.took) for one in phases(rows)]
    assert found == [
        ("Applied phase crds", 1, 1, "1 s"),
        ("Deleted", 1, 0, "2 s"),
        ("Applied", 1, 0, "57 s"),
        ("Restored phase crds", 1, 0, "under 1 s"),
    ]


@pytest.mark.parametrize(
    ("state", "holder", "seconds", "is_lost"),
    [
        ("applying", "w", -1, True),
        ("applying", "w", 1, False),
        ("applying", "", -1, False),
        ("approved", "w", -1, False),
    ],
    ids=["died", "at it", "given back", "nothing is written"],
)
def test_a_claim_that_has_lapsed_is_of_a_worker_that_died(state: str, holder: str, seconds: int, is_lost: bool) -> None:
    request = Request(state=state, claimed_by=holder, claimed_until=NOON + timedelta(seconds=seconds))
    assert has_lost_its_worker(request, NOON) is is_lost


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "under 1 s"), (0.2, "under 1 s"), (59, "59 s"), (60, "1 min"), (7500, "2 h 5 min"), (90_000, "1 d 1 h")],
)
def test_a_span_is_told_in_two_units(seconds: float, words: str) -> None:
    assert words_of_span(timedelta(seconds=seconds)) == words
