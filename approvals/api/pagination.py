"""Pages of lists, by cursors: bounded in size, and in their place while rows are added (selectors.keyset)."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import BasePagination
from rest_framework.request import Request as Http
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from approvals.errors import InvalidQuery
from approvals.selectors import keyset
from approvals.selectors.keyset import MOST_COUNTED, BadCursor, Cursor, ListOrder, Window

WHOLE = re.compile(r"[0-9]{1,18}")
CURSOR, PAGE, PAGE_SIZE, ANCHOR = "cursor", "page", "page_size", "anchor"
# What each parameter is, for the description of the API.
PARAMETERS = {
    CURSOR: ("string", "where the page begins: from the links `next` and `previous`, not to be made by hand"),
    PAGE_SIZE: ("integer", "rows per page, 1 to 200; larger values count as 200"),
    PAGE: ("integer", "deprecated, use `next`: the page number, from 1"),
    ANCHOR: ("integer", "deprecated, with `page`: rows with a larger internal number are left out"),
}
COUNT = f"how many rows match; null for more than {MOST_COUNTED}"


class Pages(BasePagination):
    """A page has `next` and `previous`, which hold a cursor. A page that is asked for by its number still comes."""

    page_size = 50
    max_page_size = 200
    names = tuple(PARAMETERS)

    def paginate_queryset(  # type: ignore[override]  # REST framework's also takes lists, which have no keys
        self, queryset: QuerySet[Any], request: Http, view: Any = None
    ) -> list[Any]:
        self._url = request.build_absolute_uri()
        order, size = (
            ListOrder.of(queryset),
            min(_whole(request, PAGE_SIZE, least=1) or self.page_size, self.max_page_size),
        )
        number, anchor = _whole(request, PAGE, least=1) or 1, _whole(request, ANCHOR, least=0)
        cursor = _cursor(request, order, queryset)
        rows = queryset if anchor is None else queryset.filter(pk__lte=anchor)
        self._count = keyset.counted(rows)
        self._window = self._page(rows, order, size, cursor, number)
        return keyset.in_order(queryset, self._window.keys)

    def _page(self, rows: QuerySet[Any], order: ListOrder, size: int, cursor: Cursor | None, number: int) -> Window:
        if cursor or number == 1:
            return keyset.window(rows, order, size=size, cursor=cursor)
        if self._count is not None and (number - 1) * size >= self._count:
            last = max(1, -(-self._count // size))
            raise NotFound(f"page {number} does not exist: the last page is {last}")
        found = keyset.window(rows, order, size=size, skip=(number - 1) * size)
        if not found.keys:
            raise NotFound(f"page {number} does not exist")
        return found

    def get_paginated_response(self, data: Any) -> Response:
        window = self._window
        links = {"next": self._link(window.next), "previous": self._link(window.previous)}
        return Response({"count": self._count, **links, "results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "nullable": True, "format": "uri"}
        return {
            "type": "object",
            "required": ["count", "results"],
            "properties": {
                "count": {"type": "integer", "nullable": True, "description": COUNT, "example": 123},
                "next": link,
                "previous": link,
                "results": schema,
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            {"name": name, "required": False, "in": "query", "description": words, "schema": {"type": kind}}
            for name, (kind, words) in PARAMETERS.items()
        ]

    def _link(self, cursor: str) -> str | None:
        """The same address with the cursor in place of the number of before."""
        bare = self._url
        for name in (PAGE, ANCHOR):
            bare = remove_query_param(bare, name)
        return replace_query_param(bare, CURSOR, cursor) if cursor else None


def _cursor(request: Http, order: ListOrder, rows: QuerySet[Any]) -> Cursor | None:
    """Where the page begins; raises InvalidQuery for what no page of this list has given out."""
    text = request.query_params.get(CURSOR)
    if text is None:
        return None
    try:
        return Cursor.read(text, order, rows)
    except BadCursor as exc:
        raise InvalidQuery(
            f"{CURSOR} is {text[:40]!r}; expected the value from a link `next` or `previous` of this list",
            parameter=CURSOR,
        ) from exc


def _whole(request: Http, name: str, *, least: int) -> int | None:
    """The parameter as a number, None where it is not given; raises InvalidQuery where it is anything else."""
    found = request.query_params.get(name)
    if found is None:
        return None
    if not WHOLE.fullmatch(found) or int(found) < least:
        raise InvalidQuery(
            f"{name} is {found[:40]!r}; expected a whole number from {least}, of at most 18 digits", parameter=name
        )
    return int(found)
