"""The tab that tells what happened: entries as sentences, and the phases of an apply with how long they took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from approvals.lifecycle import Event
from approvals.models import AuditEntry, Request
from approvals.web.requests.activity import SENTENCES, events
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
        ("created this request", "", ""),
        ("finished the report, and the review began", "1 min 5 s", ""),
        ("denied it in round 2", "", "not now"),
    ]


def test_every_move_of_a_request_has_its_sentence() -> None:
    assert {f"request.{event}" for event in Event} <= set(SENTENCES)


def test_the_tab_leads_to_its_entries_in_the_audit(here: World, afternoon: dict[str, Any], browse: Browse) -> None:
    client, uid = browse(here.ada), afternoon["serious"].uid
    address = f"/audit?request={uid}"
    assert f'href="{address}"' in text_of(client.get(f"/requests/{uid}/activity"))
    found = text_of(client.get(address))
    assert f'<a href="/requests/{uid}">one request</a>' in found
    assert f"/requests/{afternoon['quiet'].uid}" not in found


def test_the_tab_tells_reviews_and_moves(here: World, afternoon: dict[str, Any], browse: Browse) -> None:
    text = " ".join(text_of(browse(here.ada).get(f"/requests/{afternoon['quiet'].uid}/activity")).split())
    assert "approved it" in text
    assert "“as usual”" in text


def test_the_tab_follows_what_happens_until_the_request_is_settled(
    here: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    client, request = browse(here.ada), afternoon["serious"]
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
