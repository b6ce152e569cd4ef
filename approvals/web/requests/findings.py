"""All findings of a report, in pages, by filters that need no script."""

from __future__ import annotations

from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from approvals.errors import DigestMoved
from approvals.models import Report, Request
from approvals.selectors import pages
from approvals.selectors.pages import FindingFilter
from approvals.web.access_decorators import of_request, person
from approvals.web.rendering import page
from approvals.web.requests.bar import bar_of
from approvals.web.requests.deciding import form_of, written_in
from approvals.web.requests.shown import ShownReport, by_cause
from provisioner.values import Section, Severity

FINDINGS_PER_PAGE = 50
MAX_SEARCHED = 200


@require_http_methods(["GET", "HEAD", "POST"])
@of_request
def index(http: HttpRequest, request: Request) -> HttpResponse:
    """By section without a filter; with one the findings that it takes, those of one page with all that is known of
    them, and the form that decides: each of them can be accepted here. Who turns the page sends what they wrote along,
    and finds it there.
    """
    written = written_in(http) if http.method == "POST" else None
    if written and (seen := http.POST.get("subject_digest", "")) != request.subject_digest:
        raise DigestMoved("the form belongs to another round of the request", seen=seen, current=request.subject_digest)
    report = pages.report_of(request)
    if report is None:
        raise Http404
    if not http.GET and written is None:
        return _by_section(http, request, report)
    wish = filter_of(http)
    found = pages.findings_of(report, wish)
    rows = Paginator(found, FINDINGS_PER_PAGE).get_page(http.GET.get("page"))
    sight = ShownReport(person(http), request.deployment.cluster, report)
    shown = [sight.finding(record, is_folded=not wish.fingerprint) for record in rows]
    reviews = pages.reviews_of(request)
    form = form_of(person(http), request, report, reviews, written)
    facts = {
        "item": request,
        "report": report,
        "bar": bar_of(person(http), request, report, reviews),
        "wish": wish,
        "rows": rows,
        "findings": shown,
        "entries": by_cause(shown),
        "unseen": sight.unseen,
        "counts": pages.severity_counts(found),
        "total": len(report.body["findings"]),
        **choices(),
        **form.facts(shown, sight),
    }
    return page(http, "findings/request_findings.html", facts)


@require_safe
@of_request
def lines(http: HttpRequest, request: Request) -> HttpResponse:
    """The affected lines of one finding, for htmx; who comes by the address is shown the finding with them."""
    wish = filter_of(http)
    if not http.headers.get("HX-Request"):
        address = reverse("request-findings", kwargs={"uid": request.uid})
        return redirect(f"{address}?{urlencode({'only': wish.fingerprint})}")
    report = pages.report_of(request)
    found = pages.findings_of(report, wish) if report and wish.fingerprint else []
    if report is None or not found:
        raise Http404
    finding = ShownReport(person(http), request.deployment.cluster, report).finding(found[0])
    return page(http, "changes/_excerpts.html", {"item": request, "finding": finding, "is_alone": True})


def _by_section(http: HttpRequest, request: Request, report: Report) -> HttpResponse:
    """What is new, the section with the worst first; what is safe or not new is one line with a link."""
    reviews = pages.reviews_of(request)
    sight = ShownReport(person(http), request.deployment.cluster, report)
    found = pages.sections_of(report)
    sections = [sight.section(section) for section in found if section.to_look_at]
    form = form_of(person(http), request, report, reviews)
    facts = {
        "item": request,
        "report": report,
        "bar": bar_of(person(http), request, report, reviews),
        "sections": sections,
        "known_counts": pages.severity_counts([one for section in found for one in section.known]),
        "unseen": sight.unseen,
        "of_others": sight.of_others(),
        "total": len(report.body["findings"]),
        "counts": pages.severity_counts(report.body["findings"]),
        **choices(),
        **form.facts((one for section in sections for one in section.in_place), sight),
    }
    return page(http, "findings/request_findings.html", facts)


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


def choices() -> dict[str, object]:
    """What the form of the filter offers."""
    return {"section_choices": [(str(one), one.heading) for one in Section], "severity_choices": [*map(str, Severity)]}
