"""Pages by keys: whole, in order, and beside each other, whatever they are sorted by."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.models import Request
from approvals.selectors import keyset
from approvals.selectors.inbox_columns import SORTS
from approvals.selectors.keyset import BadCursor, Cursor, ListOrder, Window
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World

ROWS = 11
SIZE = 4


@pytest.fixture
def requests_(env: World) -> None:
    """Of some severities and times, each of them shared by several."""
    now = timezone.now()
    for number in range(ROWS):
        made = world.in_review(scene.asked(env.cluster, f"d{number % 4}-{number:02}", env.rita))
        changes = {"weight": number % 3, "created_at": now - timedelta(hours=number // 4)}
        Request.objects.filter(pk=made.pk).update(**changes)


def walked(order: ListOrder, start: Window, link: str) -> list[list[Any]]:
    pages, window = [list(start.keys)], start
    while text := getattr(window, link):
        window = keyset.window(
            Request.objects.all(), order, size=SIZE, cursor=Cursor.read(text, order, Request.objects.all())
        )
        pages.append(list(window.keys))
    return pages


@pytest.mark.parametrize("name", SORTS)
def test_walking_there_and_back_meets_every_row_once_in_order(requests_: None, name: str) -> None:
    order = SORTS[name].order
    whole = list(Request.objects.order_by(*order.names()).values_list("pk", flat=True))
    there = walked(order, keyset.window(Request.objects.all(), order, size=SIZE), "next")
    assert [key for page in there for key in page] == whole
    last = Cursor.read(
        keyset.window(Request.objects.all(), order, size=SIZE, skip=2 * SIZE).previous, order, Request.objects.all()
    )
    back = walked(order, keyset.window(Request.objects.all(), order, size=SIZE, cursor=last), "previous")
    assert back == there[1::-1]


def test_a_page_stays_where_it_is_while_rows_are_added_before_it(env: World, requests_: None) -> None:
    order = SORTS["newest"].order
    first = keyset.window(Request.objects.all(), order, size=SIZE)
    cursor = Cursor.read(first.next, order, Request.objects.all())
    second = keyset.window(Request.objects.all(), order, size=SIZE, cursor=cursor)
    scene.asked(env.cluster, "newer", env.rita)
    assert keyset.window(Request.objects.all(), order, size=SIZE, cursor=cursor) == second
    assert keyset.window(Request.objects.all(), order, size=SIZE).keys != first.keys


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "ä", "=" * 8, "A" * 700, encoded(None), encoded({}), encoded([]), encoded(["a"])),
        encoded(["c", "2026-01-01T00:00:00Z", 1]),
        encoded(["a", "yesterday", 1]),
        encoded(["a", None, 1]),
        encoded(["a", "2026-01-01T00:00:00Z", 10**30]),
        encoded(["a", "2026-01-01T00:00:00Z", [1]]),
        encoded(["a", "2026-01-01T00:00:00Z", "1\0"]),
        encoded(["a", "2026-01-01T00:00:00Z", 1, 1]),
    ],
)
def test_what_no_page_gave_out_is_no_cursor(db: None, text: str) -> None:
    with pytest.raises(BadCursor):
        Cursor.read(text, SORTS["newest"].order, Request.objects.all())


def test_nobody_counts_past_the_limit(requests_: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyset, "MOST_COUNTED", ROWS)
    assert keyset.counted(Request.objects.all()) == ROWS
    monkeypatch.setattr(keyset, "MOST_COUNTED", ROWS - 1)
    assert keyset.counted(Request.objects.all()) is None
