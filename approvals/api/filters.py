"""What may stand behind the `?`: known names, each once, with values that can be; else a 400 that says which."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.http import QueryDict
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.request import Request as Http
from rest_framework.serializers import Serializer

from approvals.errors import InvalidQuery
from approvals.lifecycle import State
from approvals.models import AuditEntry, Request
from approvals.selectors import audit, inbox, keyset
from provisioner.values import HealthState, Severity

# The longest name of anything in Kubernetes.
MAX_LENGTH = 253


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


A_TEXT = f"1 to {MAX_LENGTH} characters, none of them NUL"
SHAPES = {django_filters.DateFilter: "a day such as 2026-11-23", django_filters.UUIDFilter: "a uid"}


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
                _refuse(name, filterset.data[name], wanted)
        narrowed: QuerySet[Any] = filterset.qs
        return narrowed


def _refuse(name: str, value: str, wanted: django_filters.Filter) -> None:
    choices = [str(choice) for choice, _ in wanted.extra.get("choices", ())]
    words = f"one of {', '.join(choices)}" if choices else SHAPES.get(type(wanted), A_TEXT)
    raise InvalidQuery(
        f"{name} is {value[:MAX_LENGTH]!r}; expected {words}",
        parameter=name,
        **({"expected": choices} if choices else {}),
    )


def _text(field_name: str | None = None, **more: Any) -> django_filters.CharFilter:
    return django_filters.CharFilter(field_name=field_name, max_length=MAX_LENGTH, strip=False, **more)


def _one_of(values: Iterable[str], **more: Any) -> django_filters.ChoiceFilter:
    return django_filters.ChoiceFilter(choices=[(str(value), str(value)) for value in values], **more)


class ByCluster(django_filters.FilterSet):
    """The uid of an object is its own in one cluster only."""

    cluster = _text("cluster__name")


class DeploymentFilter(ByCluster):
    name = _text()
    health = _one_of(HealthState)


class LongListFilter(django_filters.FilterSet):
    """Of long tables, whose rows are found by several fields at once."""

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        found: QuerySet[Any] = super().filter_queryset(queryset)
        return keyset.by_keys_if_few(found) if any(self.form.cleaned_data.values()) else found


class RequestFilter(LongListFilter):
    cluster = _text(method="with_cluster")
    deployment = _text("deployment__name")
    state = _one_of(State)
    purpose = _one_of(Request.Purpose.values)
    worst = _one_of(Severity, method="with_worst")
    format = _text()
    requester = _text(method="with_requester")
    rule = _text(method="with_rule")
    search = _text(method="with_text")

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
    actor = _text()
    cluster = _text()
    deployment = _text()
    verb = _text()
    via = _text()
    request = django_filters.UUIDFilter(method="with_request")
    since = django_filters.DateFilter(method="with_since", label="The first day (UTC)")
    until = django_filters.DateFilter(method="with_until", label="The last day (UTC)")

    def with_request(self, rows: QuerySet[AuditEntry], name: str, value: UUID) -> QuerySet[AuditEntry]:
        return rows.filter(request_uid=str(value))

    def with_since(self, rows: QuerySet[AuditEntry], name: str, value: date) -> QuerySet[AuditEntry]:
        return audit.between(rows, audit.Days(since=value))

    def with_until(self, rows: QuerySet[AuditEntry], name: str, value: date) -> QuerySet[AuditEntry]:
        return audit.between(rows, audit.Days(until=value))
