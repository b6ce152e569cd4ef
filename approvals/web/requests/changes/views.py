"""The page of changes: all objects, or one, or some lines of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals import services
from approvals.models import Report, Request
from approvals.selectors import changes as selectors
from approvals.selectors import pages
from approvals.web.access_decorators import of_request, only_by_form, person
from approvals.web.rendering import page
from approvals.web.requests.bar import bar_of
from approvals.web.requests.changes.planned import Planned, branches, counts, object_name, planned, taken
from approvals.web.requests.changes.shown import ShownChange, ShownChanges
from approvals.web.requests.changes.wishes import Wish, span_of, wish_of
from approvals.web.requests.overview import plan_in_words
from approvals.web.requests.viewer_options import options_of

OBJECTS_PER_PAGE = 200
# Of all objects on one page, so many are shown with their lines, and only while there is room for their lines.
MAX_DRAWN = 10
ROOM_SHOWN = 500
ROOM_COMPARED = 15_000


@require_safe
@of_request
def index(http: HttpRequest, request: Request) -> HttpResponse:
    """All objects that change, in pages; the first ones with their lines."""
    desk = _Desk(http, request)
    rows = desk.page_of(None)
    return page(http, "changes/changes.html", {**desk.facts(rows), "shown": desk.stack(rows)})


@require_safe
@of_request
def show(http: HttpRequest, request: Request, position: int) -> HttpResponse:
    """One object; without the page around it where htmx asks for it."""
    desk = _Desk(http, request)
    chosen = desk.chosen(position)
    shown = desk.sight.change(chosen, desk.wish)
    if http.headers.get("HX-Request"):
        return page(http, "changes/_lines.html", {"item": request, "wish": desk.wish, "one": shown})
    facts = {**desk.facts(desk.page_of(chosen)), **desk.neighbours(chosen), "shown": [shown], "chosen": chosen}
    return page(http, "changes/changes.html", facts)


@require_safe
@of_request
def lines(http: HttpRequest, request: Request, position: int) -> HttpResponse:
    """The rows that stand in for a gap, for htmx; who comes by the address is shown the whole page with them."""
    gap, span = (span_of(http.GET.get(name, "")) for name in ("gap", "open"))
    if gap is None or span is None:
        raise Http404
    if not http.headers.get("HX-Request"):
        address = reverse("request-change", kwargs={"uid": request.uid, "position": position})
        return redirect(f"{address}?{http.GET.urlencode()}")
    desk = _Desk(http, request)
    chosen = desk.chosen(position)
    rows = desk.sight.lines(chosen, gap, span, desk.wish)
    return page(http, "changes/_rows.html", {"item": request, "wish": desk.wish, "position": position, "rows": rows})


@only_by_form
@of_request
def viewed(http: HttpRequest, request: Request, position: int) -> HttpResponse:
    """Tick an object as viewed, or take the tick away."""
    report = _report_or_404(request)
    actions = report.body["plan"]["actions"]
    if position >= len(actions):
        raise Http404
    services.mark_viewed(
        by=person(http),
        request_id=request.pk,
        subject_digest=http.POST.get("subject_digest", ""),
        name=object_name(actions[position]["ref"]),
        is_viewed=http.POST.get("viewed") == "yes",
    )
    named = {"uid": request.uid} if http.POST.get("from") == "all" else {"uid": request.uid, "position": position}
    address = reverse("request-change" if "position" in named else "request-changes", kwargs=named)
    query = wish_of(http.GET).query
    return redirect(f"{address}{'?' if query else ''}{query}#object-{position}")


@require_safe
@of_request
def moved(http: HttpRequest, request: Request, position: int | None = None) -> HttpResponse:
    """The earlier addresses of this page."""
    if position is None:
        return redirect("request-changes", uid=request.uid, permanent=True)
    return redirect("request-change", uid=request.uid, position=position, permanent=True)


class _Desk:
    """What every one of these pages begins with: the report, the viewer's sight and wish, and the objects."""

    def __init__(self, http: HttpRequest, request: Request) -> None:
        caller = person(http)
        self.wish: Wish = wish_of(http.GET)
        self._request = request
        report = _report_or_404(request)
        self._round, self._report, self._caller = report.round, report, caller
        self._ticks = selectors.ticks_digest(request, report)
        self.sight = ShownChanges(caller, request.deployment.cluster, report)
        ticked = selectors.viewed_by(user=caller.user, request=request, subject_digest=self._ticks)
        self._records = self.sight.records()
        self._ticked = ticked
        self._objects = planned(self._records, self.sight.findings, ticked)
        self._taken = taken(self._objects, self.wish.filter)

    def chosen(self, position: int) -> Planned:
        """The object at this position, also where nothing happens to it or the filter leaves it out."""
        known = next((one for one in self._objects if one.position == position), None)
        if known is None and position < len(self._records):
            record = self._records[position][1]
            name = object_name(record["ref"])
            known = Planned(position, record, name, name in self._ticked, "")
        if known is None:
            raise Http404
        return known

    def page_of(self, chosen: Planned | None) -> Page[Planned]:
        """The page that the address asks for, else the one that the chosen object is on."""
        pages_of_objects = Paginator(self._taken, OBJECTS_PER_PAGE)
        at = self._place(chosen)
        return pages_of_objects.get_page(self.wish.page or (max(at, 0) // OBJECTS_PER_PAGE + 1))

    def neighbours(self, chosen: Planned) -> dict[str, Planned | None]:
        at = self._place(chosen)
        before = self._taken[at - 1] if at > 0 else None
        after = self._taken[at + 1] if at + 1 < len(self._taken) else None
        return {"before": before, "after": after}

    def _place(self, chosen: Planned | None) -> int:
        return next((at for at, one in enumerate(self._taken) if chosen and one.position == chosen.position), -1)

    def stack(self, objects: Sequence[Planned]) -> list[ShownChange]:
        """Each object of a page; with their lines those that are not viewed, until there is no more room."""
        found: list[ShownChange] = []
        shown = compared = drawn = 0
        for one in objects:
            is_open = not one.is_viewed and drawn < MAX_DRAWN and shown < ROOM_SHOWN and compared < ROOM_COMPARED
            change = self.sight.change(one, self.wish) if is_open else self.sight.headed(one)
            found.append(change)
            drawn += is_open
            shown += len(change.rows or ())
            compared += change.line_count
        return found

    def facts(self, rows: Page[Planned]) -> dict[str, Any]:
        reviews = pages.reviews_of(self._request)
        return {
            "item": self._request,
            "report": self._report,
            "bar": bar_of(self._caller, self._request, self._report, reviews),
            "may": options_of(self._caller, self._request, self._report, reviews),
            "wish": self.wish,
            "counts": counts(self._objects),
            "plan_words": plan_in_words(self._report.body),
            "rows": rows,
            "branches": branches(list(rows)),
            "ticks": self._ticks,
            "round": self._round,
            "chosen": None,
        }


def _report_or_404(request: Request) -> Report:
    report = pages.report_of(request)
    if report is None:
        raise Http404
    return report
