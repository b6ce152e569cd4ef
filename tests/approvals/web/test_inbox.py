"""The inbox: what needs the viewer, and filters that nobody foresaw."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.api.serializers import requests as serializers
from approvals.models import Request
from approvals.selectors.inbox_columns import Column, Sort
from approvals.selectors.keyset import ListOrder
from approvals.web import inbox
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of

WHY_NOT = ("you already decided", "you requested it", "you are not allowed to approve it")


def test_needs_me_leaves_out_what_was_decided_or_asked_by_the_viewer(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    env.kubernetes.allow("rita", "approve")
    ada, rita = text_of(browse(env.ada).get("/")), text_of(browse(env.rita).get("/"))
    assert ("harbour" in ada, "buoy" in ada, "tugboat" in ada) == (True, True, False)
    assert "No request needs your decision" in rita


def test_needs_me_holds_what_may_be_approved_by_name_only(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    env.kubernetes.allow("bert", "get")
    env.kubernetes.allow("bert", "approve", "buoy")
    text = text_of(browse(env.bert).get("/"))
    assert ("buoy" in text, "harbour" in text) == (True, False)


def test_a_row_says_why_one_cannot_decide_on_it(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    """Rita asked for all of them; ada has approved one; bert may look, and decide on another one."""
    env.kubernetes.allow("rita", "approve")
    env.kubernetes.allow("bert", "get")
    env.kubernetes.allow("bert", "approve", "buoy")
    said = {
        person: [words in text_of(browse(who).get("/?tab=open")) for words in WHY_NOT]
        for person, who in (("ada", env.ada), ("rita", env.rita), ("bert", env.bert))
    }
    assert said == {"ada": [True, False, False], "rita": [False, True, False], "bert": [False, False, True]}


class PurposeColumn(Column):
    heading = "Purpose"
    cell = "{{ item.purpose|upper }} by {{ row.request.number }}"
    sorts = {"purpose": Sort("By purpose", ListOrder(("purpose", "pk")))}
    rest_name = "purpose"


def test_a_column_is_one_class(
    env: World, afternoon: dict[str, Any], browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = PurposeColumn()
    monkeypatch.setattr(inbox, "COLUMNS", (*inbox.COLUMNS, column))
    monkeypatch.setattr(inbox, "SORTS", {**inbox.SORTS, **column.sorts})
    monkeypatch.setattr(serializers, "REST_COLUMNS", {**serializers.REST_COLUMNS, column.rest_name: column})
    client = browse(env.ada)
    text = text_of(client.get("/?tab=open&sort=purpose"))
    assert '<th scope="col">Purpose</th>' in text
    assert "DEPLOY by 1" in text
    assert '<option value="purpose" selected>By purpose</option>' in text
    assert {row["purpose"] for row in client.get("/api/v1/requests").json()["results"]} == {"deploy"}


def test_a_row_says_why_it_is_there(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    text = text_of(browse(env.ada).get("/"))
    assert "Requests in review that you are allowed to decide" in text
    assert text.count("you can decide") == text.count('href="/requests/')
    states = {"preparing": "the report is being prepared", "approved": "waiting to be applied"}
    for state, words in states.items():
        Request.objects.filter(pk=afternoon["serious"].pk).update(state=state)
        assert words in text_of(browse(env.ada).get("/?tab=open"))


@pytest.mark.parametrize(
    ("tab", "words"),
    [
        ("needs-me", "No request needs your decision"),
        ("open", "No open requests"),
        ("applying", "No request is being applied"),
        ("decided", "No decided requests"),
    ],
)
def test_an_empty_tab_says_what_it_lists_and_where_to_go(tab: str, words: str, env: World, browse: Browse) -> None:
    text = text_of(browse(env.ada).get(f"/?tab={tab}"))
    assert words in text
    assert "Show all requests" in text


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("tab=nonsense", 200),
        ("page=999", 200),
        ("page=x", 200),
        ("cluster=nowhere", 200),
        ("search=%01'%22", 200),
        ("search=%00'%22", 422),
        ("tab=all&page=-1", 200),
    ],
)
def test_the_inbox_survives_any_query(
    query: str, status: int, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    assert browse(env.ada).get(f"/?{query}").status_code == status
