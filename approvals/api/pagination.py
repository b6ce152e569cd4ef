"""Numbered pages, bounded in size, that do not shift while rows are added."""

from __future__ import annotations

import re
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Max, QuerySet
from rest_framework.exceptions import NotFound
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request as Http
from rest_framework.utils.urls import replace_query_param

from approvals.errors import InvalidQuery

WHOLE = re.compile(r"[0-9]{1,18}")
ANCHOR = "anchor"


class Pages(PageNumberPagination):
    """The links of a page carry the anchor: the newest row there was at the first page. Later ones are left out."""

    page_size = 50
    page_size_query_param = "page_size"
    page_size_query_description = "rows per page, 1 to 200; larger values count as 200"
    page_query_description = "the page number, from 1"
    max_page_size = 200
    names = ("page", "page_size", ANCHOR)

    def paginate_queryset(  # type: ignore[override]  # REST framework's also takes lists, which have no newest row
        self, queryset: QuerySet[Any], request: Http, view: Any = None
    ) -> list[Any] | None:
        given = _whole(request, ANCHOR, least=0)
        newest = queryset.order_by().aggregate(newest=Max("pk"))["newest"] or 0
        self.anchor = newest if given is None else given
        return super().paginate_queryset(queryset.filter(pk__lte=self.anchor), request, view)

    def get_page_number(self, request: Http, paginator: Paginator[Any]) -> int:
        number = _whole(request, "page", least=1) or 1
        if number > paginator.num_pages:
            raise NotFound(f"page {number} does not exist: the last page is {paginator.num_pages}")
        return number

    def get_page_size(self, request: Http) -> int:
        return min(_whole(request, "page_size", least=1) or self.page_size, self.max_page_size)

    def get_next_link(self) -> str | None:
        return self._anchored(super().get_next_link())

    def get_previous_link(self) -> str | None:
        return self._anchored(super().get_previous_link())

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        words = "as in the links `next` and `previous`: rows added after the first page are left out"
        anchor = {"name": ANCHOR, "required": False, "in": "query", "description": words, "schema": {"type": "integer"}}
        return [*super().get_schema_operation_parameters(view), anchor]

    def _anchored(self, link: str | None) -> str | None:
        return replace_query_param(link, ANCHOR, str(self.anchor)) if link else None


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
