"""Saved views: an address of the inbox under a name, per person."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from approvals import services
from approvals.web.access_decorators import only_by_form, person, signed_in

# What a view keeps of an address: not the page of a list that moves.
KEPT = (*("tab", "search", "cluster", "severity", "purpose", "format", "requester", "state", "rule", "sort"),)


@only_by_form
@signed_in
def save(http: HttpRequest) -> HttpResponse:
    query = clean(http.POST.get("query", ""))
    view = services.save_view(by=person(http), name=http.POST.get("name", "").strip(), query=query)
    return redirect(f"{reverse('inbox')}?{view.query}")


@only_by_form
@signed_in
def remove(http: HttpRequest, *, view_id: int) -> HttpResponse:
    services.remove_view(by=person(http), view_id=view_id)
    return redirect("inbox")


def clean(query: str) -> str:
    """The filters of an address alone, in one order, so that the same view has the same address."""
    given = dict(parse_qsl(query))
    return urlencode([(name, given[name]) for name in KEPT if given.get(name)])


def chips(query: QueryDict) -> list[tuple[str, str, str]]:
    """(name, value, address without it) of each filter that is set."""
    kept = dict(parse_qsl(clean(query.urlencode())))
    return [
        (name, value, "?" + urlencode({key: one for key, one in kept.items() if key != name}))
        for name, value in kept.items()
        if name not in ("tab", "sort")
    ]
