"""The request page: may this enter?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from csp.decorators import csp
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from approvals import access, services
from approvals.access.sight import ReportSight, Sight, said_of, show_words
from approvals.access.workloads import seen_workloads
from approvals.clock import database_now
from approvals.errors import InvalidInput, NotWaivable, Unacknowledged, UnknownFinding
from approvals.gate.reviewer_checks import check_reviewer
from approvals.lifecycle import SETTLED, State
from approvals.models import Outcome, Report, Request, Review
from approvals.selectors import pages
from approvals.selectors.lists import pause_words
from approvals.selectors.since_review import SinceReview, since_your_review
from approvals.selectors.status import RequestStatus, status
from approvals.web import following
from approvals.web.access_decorators import linked_catalogs, of_request, only_by_form, person
from approvals.web.rendering import page
from approvals.web.requests import apply_log, overview, viewer_options
from approvals.web.requests.bar import bar_of
from approvals.web.requests.changes.planned import Hooks
from approvals.web.requests.changes.shown import ShownChanges
from approvals.web.requests.deciding import DecisionForm, Written, form_of, written_in
from approvals.web.requests.grid import grids
from approvals.web.requests.sharing import shared_html
from approvals.web.requests.shown import MAX_ASKED, ShownReport
from approvals.web.requests.waivers import typed_in
from provisioner.review.output.workloads import image_changes, runs_of, workloads_in_words

OBJECTS_OF_PAGE = 100
MAX_OUTCOMES = 500
APPROVE_ANYWAY = "ApproveAnyway"
ASKED_AGAIN = "It cannot be applied as it stands. To approve it all the same, choose Approve anyway beside the reasons."
DENY_WITHOUT_REASON = "DenyWithoutReason"
NO_REASON = "You gave no reason for the denial. Enter one, so that the requester knows what to change."
FILE_POLICY = {"default-src": ["'none'"], "style-src": ["'unsafe-inline'"], "frame-ancestors": ["'none'"]}


@require_safe
@of_request
def show(http: HttpRequest, request: Request) -> HttpResponse:
    return _whole(http, request)


@require_safe
@of_request
@following.by_itself
def progress(http: HttpRequest, request: Request) -> HttpResponse:
    """The fragment alone. Where the state has moved since the page was made, the browser loads the page again,
    unless the viewer may be writing a reason in it: then it says what moved.
    """
    seen = http.GET.get("seen", "")
    has_moved = bool(seen) and seen != _mark(request)
    answer = page(http, "requests/_progress.html", {**_progress(http, request), "has_moved": has_moved, "seen": seen})
    may_be_writing = seen.startswith(State.IN_REVIEW) and not request.reviews.filter(user=person(http).user).exists()
    if has_moved and not may_be_writing:
        answer["HX-Refresh"] = "true"
    return answer


@only_by_form
@of_request
def review(http: HttpRequest, request: Request) -> HttpResponse:
    """Take a decision on the digest that was on the screen.

    A denial without a reason is asked about once, and so is an approval of what cannot be applied as it stands.
    """
    reason, decision = http.POST.get("reason", "").strip(), http.POST.get("decision", "")
    digest = http.POST.get("subject_digest", "")
    may_lack_reason = decision == DENY_WITHOUT_REASON
    is_sure = decision == APPROVE_ANYWAY
    decision = "Deny" if may_lack_reason else "Approve" if is_sure else decision
    is_open = request.state == State.IN_REVIEW and digest == request.subject_digest
    if decision == "Deny" and not reason and not may_lack_reason and is_open:
        check_reviewer(person(http), request)
        return _whole(http, request, written_in(http, {"reason": NO_REASON}, lacks_reason=True))
    # A denial needs nothing accepted, whatever was written before the other button was pressed.
    waives = typed_in(http.POST) if decision == "Approve" else []
    try:
        if decision == "Approve" and digest == request.subject_digest:
            report = pages.report_of(request)
            worst = report.worst if report else ""
            missing = viewer_options.missing_for_approval(request, worst, http.POST.get("typed", ""), reason)
            if missing:
                return _whole(http, request, written_in(http, missing))
            if report and is_open and not is_sure and overview.blockers(report.body):
                check_reviewer(person(http), request)
                return _whole(http, request, written_in(http, {"": ASKED_AGAIN}), asks_again=True)
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
        return _whole(http, request, written_in(http, {str(refusal.facts.get("field", "")): str(refusal)}))
    return redirect("request", uid=request.uid)


@only_by_form
@of_request
def dismiss(http: HttpRequest, request: Request, review_id: int) -> HttpResponse:
    """Let the request go on without the changes that a review asks for."""
    reason = http.POST.get("reason", "")
    try:
        services.dismiss(
            by=person(http),
            request_id=request.pk,
            review_id=review_id,
            reason=reason,
            channel=Review.Channel.BROWSER,
        )
    except InvalidInput as refusal:
        return _whole(http, request, wrong_dismissal=str(refusal))
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


def _whole(
    http: HttpRequest,
    request: Request,
    written: Written | None = None,
    *,
    asks_again: bool = False,
    wrong_dismissal: str = "",
) -> HttpResponse:
    report = pages.report_of(request)
    reviews = list(pages.reviews_of(request))
    form = form_of(person(http), request, report, reviews, written)
    bar = bar_of(person(http), request, report, reviews)
    facts = {
        "item": request,
        "report": report,
        "reviews": reviews,
        "dismissal": viewer_options.dismissal_of(person(http), request, reviews),
        "wrong_dismissal": wrong_dismissal,
        "since": _since(http, request),
        "voided_rounds": pages.voided_rounds_of(request),
        "evaluations": pages.evaluations_of(request) if bar.evaluations is None else bar.evaluations,
        "bar": bar,
        "asks_again": asks_again,
        "linked_catalogs": linked_catalogs(http, request.deployment.cluster, request.spec),
        "totals": pages.severity_totals(report) if report else [],
        **_progress(http, request),
        **_report(http, request, report, form),
        **_standing(http, request, bar.how or status(request)),
    }
    return page(http, "requests/request.html", facts, status=422 if written or wrong_dismissal else 200)


def _standing(http: HttpRequest, request: Request, how: RequestStatus) -> dict[str, Any]:
    """How the request stands, and of the next steps those that the viewer may take."""
    deployment = request.deployment
    verbs = {step.verb for step in how.steps if step.verb}
    may = {
        verb: access.may(person(http), deployment.cluster, verb, resource="bundledeployments", name=deployment.name)
        for verb in sorted(verbs)
    }
    return {"how": how, "offered": [one for one in how.steps if not one.verb or may[one.verb].allowed]}


def _since(http: HttpRequest, request: Request) -> SinceReview | None:
    sight = Sight(person(http), request.deployment.cluster, limit=MAX_ASKED)
    return since_your_review(request=request, user=person(http).user, sight_of=partial(ReportSight, sight))


def _report(http: HttpRequest, request: Request, report: Report | None, form: DecisionForm) -> dict[str, Any]:
    """What a first look needs, the plan, and the form beside them."""
    if report is None:
        return {"headline": [], "rows": [], "row_count": 0, **form.facts((), None)}
    sight = ShownReport(person(http), request.deployment.cluster, report)
    stopping = overview.blockers(report.body, sight)
    whole_sight = ReportSight(Sight(person(http), request.deployment.cluster, limit=MAX_ASKED), report.body)
    running = seen_workloads(whole_sight, report.body)
    rows = _rows(ShownChanges(person(http), request.deployment.cluster, report), report.body["findings"])
    # What is said of accounts is asked of Kubernetes one by one: only what says which rights come and go.
    of_rights = [one for one in report.body["findings"] if overview.tells_of_rights(one)]
    seen = [record for record in of_rights[:MAX_ASKED] if sight.may_show(record)]
    return {
        # Its last sentence counts findings, which stand beside it with their shapes.
        "headline": sight.headline()[:-1],
        "of_others": sight.of_others(),
        "blockers": stopping,
        "blocked_words": overview.blocked_words(stopping),
        "tiles": overview.tiles(report.body),
        "frights": overview.frights(seen),
        "grids": grids(seen),
        "rows": rows[:OBJECTS_OF_PAGE],
        "row_count": len(rows),
        "plan_words": overview.plan_in_words(report.body),
        "workloads": running,
        "workload_counts": workloads_in_words(running.changes),
        "images": image_changes(running.changes),
        "runs": runs_of(running.changes),
        "containers": [one for workload in running.changes for one in workload.containers],
        **form.facts((), sight),
    }


def _rows(shown: ShownChanges, findings: Iterable[Mapping[str, Any]]) -> list[tuple[int, Mapping[str, Any], str]]:
    """Every planned action that does something, with its position in the plan, as this viewer may know it, and when it
    runs as a hook. A stored Secret that is hidden is a row, whatever happens to it.
    """
    hooks = Hooks(findings)
    written = [(at, one) for at, one in shown.records() if one["action"] != "none" or one["problem"]]
    return [(at, one, hooks.words_of(one)) for at, one in written]


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
        "failed_together": overview.failed_together(one for one in outcomes if one.step == step),
        "left_together": overview.left_together(one for one in outcomes if one.step == step),
        "total": max(sum((report.actions if report else {}).values()), sum(counted.values())),
        "approvals": approvals,
        "needed": settings.PRATIQUE["APPROVALS_NEEDED"],
        "is_settled": request.state in SETTLED,
        # Somebody has decided: what comes of it comes within seconds.
        "is_quick": request.state != State.IN_REVIEW or approvals > 0,
        "mark": _mark(request),
        "revision": getattr(request, "revision", None),
        "paused": pause_words(deployment=request.deployment),
        "phases": apply_log.phases(apply_log.rows_of(request)) if counted else [],
        "has_lost_its_worker": apply_log.has_lost_its_worker(request, database_now()),
    }


def _mark(request: Request) -> str:
    return f"{request.state}-{request.round}"


def _report_or_404(request: Request) -> Report:
    report = pages.report_of(request)
    if report is None:
        raise Http404
    return report
