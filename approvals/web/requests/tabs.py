"""The other tabs of a request: its findings, as a list and as pictures, its changes, and what happened to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from approvals import access, services
from approvals.access import Permission
from approvals.access.sight import HiddenWords, Sight
from approvals.errors import DigestMoved
from approvals.lifecycle import AT_WORK, SETTLED
from approvals.models import Report, Request
from approvals.selectors import pages
from approvals.selectors import pages as selectors
from approvals.selectors.pages import FindingFilter
from approvals.web import rendering
from approvals.web.access_decorators import of_request, only_by_form, person
from approvals.web.rendering import Followed, page, part_of
from approvals.web.requests import activity
from approvals.web.requests.decision_form import DecisionForm, Waivers, form_of, history_of, written_in
from approvals.web.requests.overview import plan_in_words
from approvals.web.requests.plan_view import (
    Counts,
    PhaseBranch,
    Planned,
    PlanView,
    ShownChange,
    Wish,
    branches,
    counts,
    object_name,
    planned,
    span_of,
    taken,
    wish_of,
)
from approvals.web.requests.report_file import visible_report
from approvals.web.requests.report_view import OfOthers, ReportView, ShownEntry, ShownFinding, ShownSection, by_cause
from approvals.web.requests.request_tab import open_reported_tab, open_tab, reported, sight_of
from provisioner.api_groups import RBAC_GROUP
from provisioner.review.crds.schema_tree import crds_of, picture_of
from provisioner.review.rights.account_graph import account_graph, accounts_of
from provisioner.schema.definition.crd import Crd
from provisioner.values import GroupKind, Section, Severity

FINDINGS_PER_PAGE = 50
MAX_SEARCHED = 200
SECTION_CHOICES = tuple((str(section), section.heading) for section in Section)
SEVERITY_CHOICES = tuple(map(str, Severity))
OBJECTS_PER_PAGE = 200
# Of all objects on one page, so many are shown with their lines, and only while there is room for their lines.
MAX_DRAWN = 10
ROOM_SHOWN = 500
ROOM_COMPARED = 15_000
# Between two looks at what happened, while the service works on the request and while it waits for people.
QUICK_SECONDS = 2
SLOW_SECONDS = 10
RIGHTS = (
    GroupKind("", "ServiceAccount"),
    *(GroupKind(RBAC_GROUP, kind) for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")),
)
SCHEMAS = (GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),)


@dataclass(frozen=True, slots=True)
class FindingsTab:
    """The findings of a report: by section, or those of one page that a filter (`wish`) takes."""

    form: DecisionForm
    unseen: HiddenWords
    total: int
    counts: list[tuple[str, int]]
    sections: list[ShownSection] | None = None
    known_counts: list[tuple[str, int]] = field(default_factory=list)
    of_others: OfOthers | None = None
    wish: FindingFilter | None = None
    rows: Page[Any] | None = None
    findings: list[ShownFinding] = field(default_factory=list)
    entries: list[ShownEntry] = field(default_factory=list)
    section_choices: Sequence[tuple[str, str]] = SECTION_CHOICES
    severity_choices: Sequence[str] = SEVERITY_CHOICES


@require_http_methods(["GET", "HEAD", "POST"])
@of_request
def show_findings(http: HttpRequest, request: Request) -> HttpResponse:
    """By section without a filter; with one the findings that it takes, those of one page with all that is known of
    them, and the form that decides: each of them can be accepted here. Who turns the page sends what they wrote along,
    and finds it there.
    """
    written = written_in(http) if http.method == "POST" else None
    if written and (seen := http.POST.get("subject_digest", "")) != request.subject_digest:
        raise DigestMoved("the form belongs to another round of the request", seen=seen, current=request.subject_digest)
    tab, report = open_reported_tab(person(http), request)
    view, everything = ReportView(tab.sight, report), report.body["findings"]
    if not http.GET and written is None:
        # What is new, the section with the worst first; what is safe or not new is one line with a link.
        found = pages.sections_of(report)
        sections = [view.section(section) for section in found if section.to_look_at]
        details = FindingsTab(
            form=form_of(tab, None, view, [finding for section in sections for finding in section.in_place]),
            unseen=view.unseen,
            total=len(everything),
            counts=pages.severity_counts(everything),
            sections=sections,
            known_counts=pages.severity_counts([finding for section in found for finding in section.known]),
            of_others=view.of_others(),
        )
    else:
        wish = filter_of(http)
        taken_findings = pages.findings_of(report, wish)
        rows = Paginator(taken_findings, FINDINGS_PER_PAGE).get_page(http.GET.get("page"))
        shown = [view.finding(record, is_folded=not wish.fingerprint) for record in rows]
        details = FindingsTab(
            form=form_of(tab, written, view, shown),
            unseen=view.unseen,
            total=len(everything),
            counts=pages.severity_counts(taken_findings),
            wish=wish,
            rows=rows,
            findings=shown,
            entries=by_cause(shown),
        )
    return page(http, "findings/request_findings.html", tab, details)


@require_safe
@of_request
def load_finding_lines(http: HttpRequest, request: Request) -> HttpResponse:
    """The affected lines of one finding, for htmx; who comes by the address is shown the finding with them."""
    wish = filter_of(http)
    if not http.headers.get("HX-Request"):
        address = reverse("request-findings", kwargs={"uid": request.uid})
        return redirect(f"{address}?{urlencode({'only': wish.fingerprint})}")
    report = reported(request)
    found = pages.findings_of(report, wish) if wish.fingerprint else []
    if not found:
        raise Http404
    finding = ReportView(sight_of(person(http), request), report).finding(found[0])
    return page(http, "changes/_excerpts.html", {"item": request, "finding": finding, "is_alone": True})


def filter_of(http: HttpRequest) -> FindingFilter:
    """The filter that the address asks for; a word that means nothing finds nothing."""
    asked = http.GET
    return FindingFilter(
        text=asked.get("search", "").strip()[:MAX_SEARCHED],
        section=asked.get("section", ""),
        severity=asked.get("severity", ""),
        is_new=asked.get("new") == "yes",
        fingerprint=asked.get("only", ""),
        is_quiet=asked.get("quiet") == "yes",
    )


@require_safe
@of_request
def show_rights(http: HttpRequest, request: Request) -> HttpResponse:
    """One account, `?account=`, with its bindings, roles and rules before and after; the worst of them by default."""
    tab, report = open_reported_tab(person(http), request)
    shown, hidden = visible_report(tab.caller, request.deployment.cluster, report, kinds=RIGHTS)
    by_name = {str(subject): subject for subject in accounts_of(shown)}
    name = http.GET.get("account") or next(iter(by_name), "")
    if name and name not in by_name:
        raise Http404
    seen = {ref.identity for ref in hidden}
    graph = account_graph(shown, by_name[name], hidden=seen) if name else None
    facts = {"names": list(by_name), "graph": graph, "chosen": name}
    return page(http, "pictures/request_rights.html", tab, facts)


@require_safe
@of_request
def show_schemas(http: HttpRequest, request: Request) -> HttpResponse:
    """One custom resource definition, `?crd=`, with the changed branches of each version; the worst by default."""
    tab, report = open_reported_tab(person(http), request)
    caller, cluster = tab.caller, request.deployment.cluster
    shown, hidden = visible_report(caller, cluster, report, kinds={*SCHEMAS, *_defined_kinds(report)})
    by_name = {change.ref.name: change for change in crds_of(shown)}
    name = http.GET.get("crd") or next(iter(by_name), "")
    if name and name not in by_name:
        raise Http404
    chosen = by_name.get(name)
    permission = Permission(True, "the object is new")
    if chosen and chosen.ref in hidden:
        permission = access.may_see_object(caller, cluster, chosen.ref)
    picture = picture_of(shown, chosen) if chosen and permission.allowed else None
    facts = {"names": list(by_name), "picture": picture, "chosen": name, "permission": permission, "planned": chosen}
    return page(http, "pictures/request_schemas.html", tab, facts)


def _defined_kinds(report: Report) -> Iterator[GroupKind]:
    """The kinds of the custom resources whose definitions a report plans: findings about schemas are made of them."""
    for action in report.body["plan"]["actions"]:
        ref = action["ref"]
        if GroupKind(ref["group"], ref["kind"]) in SCHEMAS:
            for definition in filter(None, (action["before"], action["after"])):
                crd = Crd(definition)
                yield GroupKind(crd.group, str(crd.names.get("kind") or ""))


@dataclass(frozen=True, slots=True)
class ChangesTab:
    """The objects of a plan. `ticks` is the digest that objects are ticked as viewed for, "" where none can be;
    `before` and `after` are the neighbours of the `chosen` object."""

    wish: Wish
    counts: Counts
    plan_words: str
    rows: Page[Planned]
    branches: list[PhaseBranch]
    ticks: str
    round: int
    shown: list[ShownChange]
    chosen: Planned | None = None
    before: Planned | None = None
    after: Planned | None = None


class PlanReader:
    """The plan of a request as its viewer may see it, and of its objects those that the address asks for."""

    def __init__(self, view: PlanView, wish: Wish, viewed: Collection[str]) -> None:
        self.view, self.wish = view, wish
        self._viewed, self._records = viewed, view.records()
        self.objects = planned(self._records, view.findings, viewed)
        self.taken = taken(self.objects, wish.filter)

    def object_at(self, position: int) -> Planned:
        """Return the object at this position, also where nothing happens to it or the filter leaves it out."""
        known = next((each for each in self.objects if each.position == position), None)
        if known is None and position < len(self._records):
            record = self._records[position][1]
            name = object_name(record["ref"])
            known = Planned(position, record, name, name in self._viewed, "")
        if known is None:
            raise Http404
        return known

    def stack(self, objects: Sequence[Planned]) -> list[ShownChange]:
        """Return each object of a page; with their lines those that are not viewed, until there is no more room."""
        found: list[ShownChange] = []
        shown = compared = drawn = 0
        for each in objects:
            is_open = not each.is_viewed and drawn < MAX_DRAWN and shown < ROOM_SHOWN and compared < ROOM_COMPARED
            change = self.view.change(each, self.wish) if is_open else self.view.headed(each)
            found.append(change)
            drawn += is_open
            shown += len(change.rows or ())
            compared += change.line_count
        return found


def read_plan(http: HttpRequest, request: Request, report: Report, sight: Sight) -> tuple[PlanReader, str]:
    """Return the plan, and the digest that its objects are ticked as viewed for."""
    ticks = selectors.ticks_digest(request, report)
    viewed = selectors.viewed_by(user=person(http).user, request=request, subject_digest=ticks)
    return PlanReader(PlanView(sight, report), wish_of(http.GET), viewed), ticks


@require_safe
@of_request
def show_changes(http: HttpRequest, request: Request, position: int | None = None) -> HttpResponse:
    """All objects that change, in pages, the first ones with their lines; or one. One without the page around it where
    htmx asks for it.
    """
    if position is not None and http.headers.get("HX-Request"):
        reader, _ = read_plan(http, request, reported(request), sight_of(person(http), request))
        shown = reader.view.change(reader.object_at(position), reader.wish)
        return page(http, "changes/_lines.html", {"item": request, "wish": reader.wish, "one": shown})
    tab, report = open_reported_tab(person(http), request)
    reader, ticks = read_plan(http, request, report, tab.sight)
    wish, chosen = reader.wish, None if position is None else reader.object_at(position)
    at = next((at for at, each in enumerate(reader.taken) if each.position == position), -1)
    # The page that the address asks for, else the one that the chosen object is on.
    rows = Paginator(reader.taken, OBJECTS_PER_PAGE).get_page(wish.page or (max(at, 0) // OBJECTS_PER_PAGE + 1))
    details = ChangesTab(
        wish=wish,
        counts=counts(reader.objects),
        plan_words=plan_in_words(report.body),
        rows=rows,
        branches=branches(list(rows)),
        ticks=ticks,
        round=report.round,
        shown=[reader.view.change(chosen, wish)] if chosen else reader.stack(list(rows)),
        chosen=chosen,
        before=reader.taken[at - 1] if chosen and at > 0 else None,
        after=reader.taken[at + 1] if chosen and at + 1 < len(reader.taken) else None,
    )
    return page(http, "changes/changes.html", tab, details)


@require_safe
@of_request
def open_gap(http: HttpRequest, request: Request, position: int) -> HttpResponse:
    """The rows that stand in for a gap, for htmx; who comes by the address is shown the whole page with them."""
    gap, span = (span_of(http.GET.get(name, "")) for name in ("gap", "open"))
    if gap is None or span is None:
        raise Http404
    if not http.headers.get("HX-Request"):
        address = reverse("request-change", kwargs={"uid": request.uid, "position": position})
        return redirect(f"{address}?{http.GET.urlencode()}")
    reader, _ = read_plan(http, request, reported(request), sight_of(person(http), request))
    rows = reader.view.lines(reader.object_at(position), gap, span, reader.wish)
    return page(http, "changes/_rows.html", {"item": request, "wish": reader.wish, "position": position, "rows": rows})


@only_by_form
@of_request
def mark_viewed(http: HttpRequest, request: Request, position: int) -> HttpResponse:
    """Tick an object as viewed, or take the tick away."""
    actions = reported(request).body["plan"]["actions"]
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
def redirect_old_address(http: HttpRequest, request: Request, position: int | None = None) -> HttpResponse:
    """The earlier addresses of this page."""
    if position is None:
        return redirect("request-changes", uid=request.uid, permanent=True)
    return redirect("request-change", uid=request.uid, position=position, permanent=True)


@require_safe
@of_request
def show_activity(http: HttpRequest, request: Request) -> HttpResponse:
    tab = open_tab(person(http), request)
    history = history_of(tab, Waivers(tab.item, tab.report, tab.reviews, {}) if tab.report else None)
    return page(http, "requests/activity.html", tab, {"history": history, "log": _log(http, request)})


@require_safe
@of_request
@rendering.by_itself
def follow_activity(http: HttpRequest, request: Request) -> HttpResponse:
    """What happened, alone. Where the request has moved, the browser loads the page again for what stands around it."""
    answer = rendering.again(http, _log(http, request))
    if http.GET.get("seen", "") != request.state:
        answer["HX-Refresh"] = "true"
    return answer


def _log(http: HttpRequest, request: Request) -> Followed:
    facts = {
        "item": request,
        "events": activity.events(pages.timeline_of(request)),
        "phases": activity.phases(activity.rows_of(request)),
    }
    seconds = 0 if request.state in SETTLED else QUICK_SECONDS if request.state in AT_WORK else SLOW_SECONDS
    address = f"{reverse('request-activity-list', args=[request.uid])}?seen={request.state}"
    return Followed("log", address, seconds, part_of(http, "requests/activity/_log.html", facts))
