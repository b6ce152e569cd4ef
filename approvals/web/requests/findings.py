"""All findings of a report, in pages, by filters that need no script."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from approvals.errors import DigestMoved
from approvals.models import Request
from approvals.selectors import pages
from approvals.selectors.pages import FindingFilter
from approvals.web.access_decorators import of_request, person
from approvals.web.rendering import page
from approvals.web.requests.deciding import form_of, written_in
from approvals.web.requests.shown import WORDS, ShownReport
from provisioner.values import Section, Severity

FINDINGS_PER_PAGE = 50
MAX_SEARCHED = 200


@require_http_methods(["GET", "HEAD", "POST"])
@of_request
def index(http: HttpRequest, request: Request) -> HttpResponse:
    """The findings that the filter takes, those of one page with all that is known of them, and the form that decides:
    each of them can be accepted here. Who turns the page sends what they wrote along, and finds it there.
    """
    written = written_in(http) if http.method == "POST" else None
    if written and (seen := http.POST.get("subject_digest", "")) != request.subject_digest:
        raise DigestMoved("the form belongs to another round of the request", seen=seen, current=request.subject_digest)
    report = pages.report_of(request)
    if report is None:
        raise Http404
    wish = filter_of(http)
    found = pages.findings_of(report, wish)
    rows = Paginator(found, FINDINGS_PER_PAGE).get_page(http.GET.get("page"))
    sight = ShownReport(person(http), request.deployment.cluster, report)
    shown = [sight.finding(record) for record in rows]
    form = form_of(person(http), request, report, pages.reviews_of(request), written)
    facts = {
        "item": request,
        "wish": wish,
        "rows": rows,
        "findings": shown,
        "counts": pages.severity_counts(found),
        "total": len(report.body["findings"]),
        **choices(),
        **form.facts(shown, sight),
    }
    return page(http, "request_findings.html", facts)


def filter_of(http: HttpRequest) -> FindingFilter:
    """The filter that the address asks for; a word that means nothing finds nothing."""
    asked = http.GET
    return FindingFilter(
        text=asked.get("search", "").strip()[:MAX_SEARCHED],
        section=asked.get("section", ""),
        severity=asked.get("severity", ""),
        is_new=asked.get("new") == "yes",
        fingerprint=asked.get("only", ""),
    )


def choices() -> dict[str, object]:
    """What the form of the filter offers."""
    return {"section_choices": [(str(one), WORDS[one]) for one in Section], "severity_choices": [*map(str, Severity)]}
