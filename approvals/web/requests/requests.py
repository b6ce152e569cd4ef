"""The request page: may this enter?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from csp.decorators import csp
from django.conf import settings
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from approvals import services
from approvals.access.sight import Sight, is_private, said_of, show_words
from approvals.errors import InvalidInput, NotWaivable, Unacknowledged, UnknownFinding
from approvals.gate.doors import check_reviewer
from approvals.lifecycle import SETTLED, State
from approvals.models import Outcome, Report, Request, Review
from approvals.selectors import pages
from approvals.selectors.lists import pause_words
from approvals.web.access_decorators import of_request, only_by_form, person
from approvals.web.rendering import page
from approvals.web.requests import findings, viewer_options
from approvals.web.requests.deciding import DecisionForm, Written, form_of, written_in
from approvals.web.requests.sharing import shared_html
from approvals.web.requests.shown import MAX_ASKED, ShownReport
from approvals.web.requests.shown import show_object as sight_of
from approvals.web.requests.waivers import typed_in

OBJECTS_OF_PAGE = 100
OBJECTS_PER_PAGE = 200
MAX_OUTCOMES = 500
DENY_WITHOUT_REASON = "DenyWithoutReason"
NO_REASON = "You gave no reason for the denial. Enter one, so that the requester knows what to change."
FILE_POLICY = {"default-src": ["'none'"], "style-src": ["'unsafe-inline'"], "frame-ancestors": ["'none'"]}


@require_safe
@of_request
def show(http: HttpRequest, request: Request) -> HttpResponse:
    return _whole(http, request)


@require_safe
@of_request
def progress(http: HttpRequest, request: Request) -> HttpResponse:
    """The fragment alone. Where the state has moved since the page was made, the browser loads the page again,
    unless the viewer may be writing a reason in it: then it says what moved.
    """
    seen = http.GET.get("seen", "")
    has_moved = bool(seen) and seen != _mark(request)
    answer = page(http, "_progress.html", {**_progress(http, request), "has_moved": has_moved, "seen": seen})
    may_be_writing = seen.startswith(State.IN_REVIEW) and not request.reviews.filter(user=person(http).user).exists()
    if has_moved and not may_be_writing:
        answer["HX-Refresh"] = "true"
    return answer


@only_by_form
@of_request
def review(http: HttpRequest, request: Request) -> HttpResponse:
    """Take a decision on the digest that was on the screen. A denial without a reason is asked about once."""
    reason, decision = http.POST.get("reason", "").strip(), http.POST.get("decision", "")
    digest = http.POST.get("subject_digest", "")
    may_lack_reason = decision == DENY_WITHOUT_REASON
    decision = "Deny" if may_lack_reason else decision
    is_open = request.state == State.IN_REVIEW and digest == request.subject_digest
    if decision == "Deny" and not reason and not may_lack_reason and is_open:
        check_reviewer(person(http), request)
        return _whole(http, request, written_in(http, NO_REASON, lacks_reason=True))
    # A denial needs nothing accepted, whatever was written before the other button was pressed.
    waives = typed_in(http.POST) if decision == "Approve" else []
    try:
        if decision == "Approve" and digest == request.subject_digest:
            report = pages.report_of(request)
            viewer_options.check_typed(request, report.worst if report else "", http.POST.get("typed", ""), reason)
        services.review(
            by=person(http),
            request_id=request.pk,
            decision=decision,
            subject_digest=digest,
            reason=reason,
            channel=Review.Channel.BROWSER,
            acknowledges=viewer_options.ticked(request, http.POST.getlist("acknowledges")),
            waives=waives,
        )
    except (InvalidInput, NotWaivable, Unacknowledged, UnknownFinding) as refusal:
        return _whole(http, request, written_in(http, str(refusal)))
    return redirect("request", uid=request.uid)


@only_by_form
@of_request
def withdraw(http: HttpRequest, request: Request) -> HttpResponse:
    services.withdraw(by=person(http), request_id=request.pk, reason=http.POST.get("reason", ""), via="browser")
    return redirect("request", uid=request.uid)


@csp(FILE_POLICY)
@require_safe
@of_request
def report_file(http: HttpRequest, request: Request) -> HttpResponse:
    """The report as one file to print or to send. Its style stands in it, and nothing else may be loaded or run."""
    html = shared_html(person(http), request, _report_or_404(request))
    answer = HttpResponse(html)
    add_never_cache_headers(answer)
    return answer


@require_safe
@of_request
def objects(http: HttpRequest, request: Request) -> HttpResponse:
    """All planned objects, in pages."""
    rows = _rows(_report_or_404(request))
    facts = {"item": request, "rows": Paginator(rows, OBJECTS_PER_PAGE).get_page(http.GET.get("page"))}
    return page(http, "request_objects.html", facts)


@require_safe
@of_request
def show_object(http: HttpRequest, request: Request, position: int) -> HttpResponse:
    """What changes in one object; the lines alone where htmx asks for them."""
    report = _report_or_404(request)
    actions = report.body["plan"]["actions"]
    if position >= len(actions):
        raise Http404
    shown = sight_of(person(http), request.deployment.cluster, report, actions[position])
    is_fragment = bool(http.headers.get("HX-Request"))
    template = "_object.html" if is_fragment else "request_object.html"
    return page(http, template, {"item": request, "shown": shown})


def _whole(http: HttpRequest, request: Request, written: Written | None = None) -> HttpResponse:
    report = pages.report_of(request)
    reviews = list(pages.reviews_of(request))
    form = form_of(person(http), request, report, reviews, written)
    facts = {
        "item": request,
        "report": report,
        "reviews": reviews,
        "voided_rounds": pages.voided_rounds_of(request),
        "evaluations": pages.evaluations_of(request),
        "timeline": pages.timeline_of(request),
        "totals": pages.severity_totals(report) if report else [],
        **findings.choices(),
        **_progress(http, request),
        **_report(http, request, report, form),
    }
    return page(http, "request.html", facts, status=422 if written else 200)


def _report(http: HttpRequest, request: Request, report: Report | None, form: DecisionForm) -> dict[str, Any]:
    """The sections and the plan, and the form beside them."""
    if report is None:
        return {"sections": [], "rows": [], "row_count": 0, **form.facts((), None)}
    sight = ShownReport(person(http), request.deployment.cluster, report)
    sections = [sight.section(section) for section in pages.sections_of(report)]
    rows = _rows(report)
    return {
        "sections": sections,
        "rows": rows[:OBJECTS_OF_PAGE],
        "row_count": len(rows),
        "unchanged": report.actions.get("none", 0),
        **form.facts((one for section in sections for one in (*section.findings, *section.known)), sight),
    }


def _rows(report: Report) -> list[tuple[int, Mapping[str, Any]]]:
    """Every planned action that does something, with its position in the plan, as everybody may know it."""
    numbered = enumerate(_public(one) for one in report.body["plan"]["actions"])
    return [(position, action) for position, action in numbered if action["action"] != "none" or action["problem"]]


def _public(action: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**action, "problem": "", "isProved": True} if is_private(action) else action


def _progress(http: HttpRequest, request: Request) -> dict[str, Any]:
    sight = Sight(person(http), request.deployment.cluster, limit=MAX_ASKED)
    outcomes = [show_words(sight, one) for one in request.outcomes.order_by("-position")[:MAX_OUTCOMES]]
    step = Outcome.Step.RESTORE if request.state == State.RESTORING else Outcome.Step.APPLY
    counted = Counter(request.outcomes.filter(step=step).values_list("state", flat=True))
    approvals = request.reviews.counted().filter(round=request.round, decision="Approve", policy=None).count()
    report = Report.objects.filter(request=request, round=request.round).defer("body").first()
    return {
        "item": request,
        "said": said_of(sight, request) if request.problem else [],
        "outcomes": outcomes,
        "done": sum(counted.values()),
        "failures": counted["failed"],
        "total": max(sum((report.actions if report else {}).values()), sum(counted.values())),
        "approvals": approvals,
        "needed": settings.PRATIQUE["APPROVALS_NEEDED"],
        "is_settled": request.state in SETTLED,
        # Somebody has decided: what comes of it comes within seconds.
        "is_quick": request.state != State.IN_REVIEW or approvals > 0,
        "mark": _mark(request),
        "revision": getattr(request, "revision", None),
        "paused": pause_words(deployment=request.deployment),
    }


def _mark(request: Request) -> str:
    return f"{request.state}-{request.round}"


def _report_or_404(request: Request) -> Report:
    report = pages.report_of(request)
    if report is None:
        raise Http404
    return report
