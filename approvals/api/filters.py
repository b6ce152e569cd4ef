"""What may stand behind the `?`: known names, each once, with values that can be; else a 400 that says which."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import date
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.http import QueryDict
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import NotFound
from rest_framework.pagination import BasePagination
from rest_framework.request import Request as Http
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.utils.urls import remove_query_param, replace_query_param

from approvals.errors import InvalidQuery
from approvals.lifecycle import State
from approvals.models import AuditEntry, Request
from approvals.selectors import audit, inbox, keyset
from approvals.selectors.keyset import MOST_COUNTED, BadCursor, Cursor, ListOrder, Window
from provisioner.values import HealthState, Severity

# The longest name of anything in Kubernetes.
MAX_LENGTH = 253


A_TEXT = f"1 to {MAX_LENGTH} characters, none of them NUL"
SHAPES = {django_filters.DateFilter: "a day such as 2026-11-23", django_filters.UUIDFilter: "a uid"}
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


def query_of(shape: Serializer[Any]) -> dict[str, Any]:
    """The parameters as the shape reads them; raises InvalidQuery naming the first that it cannot."""
    if not shape.is_valid():
        name, words = next(iter(shape.errors.items()))
        raise InvalidQuery(f"{name}: {' '.join(map(str, words))}", parameter=name)
    return dict(shape.validated_data)


def check_names(query: QueryDict, known: Collection[str]) -> None:
    """Raise InvalidQuery where a parameter is none of `known`, or is given more than once."""
    words = ", ".join(sorted(known)) or "none"
    for name, values in sorted(query.lists()):
        if name not in known:
            raise InvalidQuery(
                f"unknown parameter {name[:MAX_LENGTH]!r}; expected one of: {words}",
                parameter=name[:MAX_LENGTH],
                expected=sorted(known),
            )
        if len(values) > 1:
            raise InvalidQuery(f"{name} was given {len(values)} times; expected once", parameter=name)


class Filters(DjangoFilterBackend):
    """The view's `filterset_class` narrows its list, `object_filterset_class` the search for a single object."""

    def get_filterset_class(self, view: Any, queryset: QuerySet[Any] | None = None) -> Any:
        return view.filterset_class if view.action == "list" else view.object_filterset_class

    def filter_queryset(self, request: Http, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        filterset = self.get_filterset(request, queryset, view)
        if filterset is None:
            return queryset
        for name, wanted in filterset.filters.items():
            if name in filterset.form.errors or filterset.data.get(name) == "":
                choices = [str(choice) for choice, _ in wanted.extra.get("choices", ())]
                words = f"one of {', '.join(choices)}" if choices else SHAPES.get(type(wanted), A_TEXT)
                raise InvalidQuery(
                    f"{name} is {(filterset.data[name])[:MAX_LENGTH]!r}; expected {words}",
                    parameter=name,
                    **({"expected": choices} if choices else {}),
                )
        narrowed: QuerySet[Any] = filterset.qs
        return narrowed


def _text_filter(field_name: str | None = None, **more: Any) -> django_filters.CharFilter:
    return django_filters.CharFilter(field_name=field_name, max_length=MAX_LENGTH, strip=False, **more)


def _one_of(values: Iterable[str], **more: Any) -> django_filters.ChoiceFilter:
    return django_filters.ChoiceFilter(choices=[(str(value), str(value)) for value in values], **more)


class ByCluster(django_filters.FilterSet):
    """The uid of an object is its own in one cluster only."""

    cluster = _text_filter("cluster__name")


class DeploymentFilter(ByCluster):
    name = _text_filter()
    health = _one_of(HealthState)


class LongListFilter(django_filters.FilterSet):
    """Of long tables, whose rows are found by several fields at once."""

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        found: QuerySet[Any] = super().filter_queryset(queryset)
        return keyset.by_keys_if_few(found) if any(self.form.cleaned_data.values()) else found


class RequestFilter(LongListFilter):
    cluster = _text_filter(method="with_cluster")
    deployment = _text_filter("deployment__name")
    state = _one_of(State)
    purpose = _one_of(Request.Purpose.values)
    worst = _one_of(Severity, method="with_worst")
    format = _text_filter()
    requester = _text_filter(method="with_requester")
    rule = _text_filter(method="with_rule")
    search = _text_filter(method="with_text")

    def with_cluster(self, rows: QuerySet[Request], name: str, value: str) -> QuerySet[Request]:
        return inbox.InboxFilter(cluster=value).narrow(rows)

    def with_worst(self, rows: QuerySet[Request], name: str, value: str) -> QuerySet[Request]:
        return inbox.InboxFilter(severity=value).narrow(rows)

    def with_requester(self, rows: QuerySet[Request], name: str, value: str) -> QuerySet[Request]:
        return inbox.InboxFilter(requester=value).narrow(rows)

    def with_rule(self, rows: QuerySet[Request], name: str, value: str) -> QuerySet[Request]:
        return inbox.InboxFilter(rule=value).narrow(rows)

    def with_text(self, rows: QuerySet[Request], name: str, value: str) -> QuerySet[Request]:
        return inbox.InboxFilter(text=value).narrow(rows)


class CatalogFilter(django_filters.FilterSet):
    cluster = django_filters.CharFilter("cluster__name", max_length=MAX_LENGTH)
    uid = django_filters.CharFilter("uid", max_length=MAX_LENGTH)


class AuditFilter(LongListFilter):
    actor = _text_filter()
    cluster = _text_filter()
    deployment = _text_filter()
    verb = _text_filter()
    via = _text_filter()
    request = django_filters.UUIDFilter(method="with_request")
    since = django_filters.DateFilter(method="with_since", label="The first day (UTC)")
    until = django_filters.DateFilter(method="with_until", label="The last day (UTC)")

    def with_request(self, rows: QuerySet[AuditEntry], name: str, value: UUID) -> QuerySet[AuditEntry]:
        return rows.filter(request_uid=str(value))

    def with_since(self, rows: QuerySet[AuditEntry], name: str, value: date) -> QuerySet[AuditEntry]:
        return audit.between(rows, audit.Days(since=value))

    def with_until(self, rows: QuerySet[AuditEntry], name: str, value: date) -> QuerySet[AuditEntry]:
        return audit.between(rows, audit.Days(until=value))


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
