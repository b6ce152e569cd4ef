"""Which page of a list an address asks for: by its cursor, or, in links of before, by its number."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from approvals.selectors import keyset
from approvals.selectors.keyset import BadCursor, Cursor, ListOrder, Window

MAX_DIGITS = 6


def page_of(http: HttpRequest, rows: QuerySet[Any], order: ListOrder, *, size: int) -> Window:
    """The page that the address asks for; the first where it asks for none, or for one that is not there."""
    try:
        cursor = Cursor.read(text, order, rows) if (text := http.GET.get("cursor", "")) else None
    except BadCursor:
        cursor = None
    skip = 0 if cursor else (_number(http) - 1) * size
    found = keyset.window(rows, order, size=size, cursor=cursor, skip=skip)
    return found if found.keys or not (cursor or skip) else keyset.window(rows, order, size=size)


def _number(http: HttpRequest) -> int:
    text = http.GET.get("page", "")
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else 1
