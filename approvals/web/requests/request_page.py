"""The first tab of a request, which answers: may this enter? And what people do to it there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from csp.decorators import csp
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from approvals import access, services
from approvals.access import Permission
from approvals.access.sight import ReportSight, SeenWorkloads, Sight, said_of, seen_workloads, show_words
from approvals.clock import database_now
from approvals.errors import InvalidInput, NotWaivable, Unacknowledged, UnknownFinding
from approvals.gate.reviewer_checks import check_reviewer
from approvals.lifecycle import SETTLED, State
from approvals.models import Outcome, Report, Request, Review, Revision
from approvals.selectors import pages
from approvals.selectors.lists import pause_words
from approvals.selectors.pages import report_of
from approvals.selectors.since_review import SinceReview, since_your_review
from approvals.selectors.status import NextStep, RequestStatus, status
from approvals.web import rendering
from approvals.web.access_decorators import allowed_steps, linked_catalogs, of_request, only_by_form, person
from approvals.web.fields import read_local_time
from approvals.web.rendering import page
from approvals.web.requests import activity, decision_form, overview
from approvals.web.requests.activity import ActivityPhase
from approvals.web.requests.decision_form import DecisionForm, ReviewHistory, Written, form_of, history_of
from approvals.web.requests.plan_view import Hooks, PlanView
from approvals.web.requests.report_file import shared_html
from approvals.web.requests.report_view import OfOthers, ReportView
from approvals.web.requests.request_tab import RequestTab, dismissal_of, open_tab, reported, sight_of
from provisioner.review.output.workloads import ImageChange, image_changes, runs_of, workloads_in_words
from provisioner.review.workloads.workload_changes import ContainerChange, WorkloadChange
from provisioner.sentences import some

OBJECTS_OF_PAGE = 100
MAX_OUTCOMES = 500
MOST_NAMED = 20
# Of so many findings about accounts at most it is asked whether the viewer may see them.
MAX_RIGHTS = 30
APPROVE_ANYWAY = "ApproveAnyway"
ASKED_AGAIN = "It cannot be applied as it stands. To approve it all the same, choose Approve anyway beside the reasons."
DENY_WITHOUT_REASON = "DenyWithoutReason"
NO_REASON = "You gave no reason for the denial. Enter one, so that the requester knows what to change."
FILE_POLICY = {"default-src": ["'none'"], "style-src": ["'unsafe-inline'"], "frame-ancestors": ["'none'"]}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a request is, in the part of its page that asks for itself again until the request is settled.

    `mark` says what the rest of the page was made from, `seen` the mark that the page in the browser has.
    """

    said: list[str]
    outcomes: list[Outcome]
    done: int
    failures: int
    failed_together: list[overview.FailedTogether]
    left_together: list[overview.FailedTogether]
    total: int
    approvals: int
    needed: int
    is_settled: bool
    is_quick: bool
    mark: str
    seen: str
    revision: Revision | None
    paused: str
    phases: list[ActivityPhase]
    has_lost_its_worker: bool

    @property
    def has_moved(self) -> bool:
        return bool(self.seen) and self.seen != self.mark


@dataclass(frozen=True, slots=True)
class Overview:
    """What a first look at the report needs, and the plan. `rows` are the first objects to which something happens,
    each with its position and when it runs as a hook; `row_count` counts all.
    """

    headline: list[str]
    totals: list[tuple[str, int, int]]
    of_others: OfOthers
    blockers: list[overview.Blocker]
    blocked_words: str
    tiles: list[overview.Tile]
    frights: list[overview.Fright]
    grids: list[overview.Grid]
    rows: list[tuple[int, Mapping[str, Any], str]]
    row_count: int
    plan_words: str
    workloads: SeenWorkloads
    workload_counts: str
    images: list[ImageChange]
    runs: list[tuple[WorkloadChange, list[str]]]
    containers: list[ContainerChange]


@dataclass(frozen=True, slots=True)
class RequestPage:
    """All that the page shows beside what every tab does. `offered` are the next steps that the viewer may take;
    `asks_again` says that an approval has to be pressed once more; `creating` is whether the viewer may create the
    deployments that `dependencies` would make, None where there are none. `afterwards` is the reason that was typed
    for a review after a break-glass, and what is `wrong` with it."""

    progress: Progress
    overview: Overview | None
    form: DecisionForm
    history: ReviewHistory
    since: SinceReview | None
    how: RequestStatus
    offered: list[NextStep]
    linked_catalogs: list[str]
    asks_again: bool
    dependencies: services.DependencyOffer | None = None
    creating: Permission | None = None
    afterwards: Mapping[str, str] = field(default_factory=dict)


@require_safe
@of_request
def show(http: HttpRequest, request: Request) -> HttpResponse:
    return show_page(http, request)


@require_safe
@of_request
@rendering.by_itself
def progress(http: HttpRequest, request: Request) -> HttpResponse:
    """The fragment alone. Where the state has moved since the page was made, the browser loads the page again,
    unless the viewer may be writing a reason in it: then it says what moved.
    """
    found = read_progress(sight_of(person(http), request), request, seen=http.GET.get("seen", ""))
    answer = page(http, "requests/_progress.html", {"item": request, "progress": found})
    was_open = found.seen.startswith(State.IN_REVIEW)
    may_be_writing = was_open and not request.reviews.filter(user=person(http).user).exists()
    if found.has_moved and not may_be_writing:
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
        return show_page(http, request, decision_form.written_in(http, {"reason": NO_REASON}, lacks_reason=True))
    # A denial needs nothing accepted, whatever was written before the other button was pressed.
    waives = decision_form.typed_in(http.POST) if decision == "Approve" else []
    try:
        if decision == "Approve" and digest == request.subject_digest:
            report = report_of(request)
            worst = report.worst if report else ""
            missing = decision_form.missing_for_approval(request, worst, http.POST.get("typed", ""), reason)
            if missing:
                return show_page(http, request, decision_form.written_in(http, missing))
            if report and is_open and not is_sure and overview.blockers(report.body):
                check_reviewer(person(http), request)
                return show_page(http, request, decision_form.written_in(http, {"": ASKED_AGAIN}), asks_again=True)
        services.review(
            by=person(http),
            request_id=request.pk,
            decision=decision,
            subject_digest=digest,
            reason=reason,
            channel=Review.Channel.BROWSER,
            acknowledges=decision_form.ticked(request, http.POST.getlist("acknowledges")),
            waives=waives,
            apply_at=read_local_time(http.POST, "apply_at") if decision == "Approve" else None,
        )
    except (InvalidInput, NotWaivable, Unacknowledged, UnknownFinding) as refusal:
        return show_page(
            http, request, decision_form.written_in(http, {str(refusal.facts.get("field", "")): str(refusal)})
        )
    return redirect("request", uid=request.uid)


@only_by_form
@of_request
def dismiss(http: HttpRequest, request: Request, review_id: int) -> HttpResponse:
    """Let the request go on without the changes that a review asks for."""
    reason = http.POST.get("reason", "")
    try:
        services.dismiss(
            by=person(http), request_id=request.pk, review_id=review_id, reason=reason, channel=Review.Channel.BROWSER
        )
    except InvalidInput as refusal:
        return show_page(http, request, wrong_dismissal=str(refusal))
    return redirect("request", uid=request.uid)


@only_by_form
@of_request
def apply_at(http: HttpRequest, request: Request) -> HttpResponse:
    """Change when an approved request is applied, or have it applied as soon as it may be."""
    try:
        when = read_local_time(http.POST, "apply_at")
        services.set_apply_at(by=person(http), request_id=request.pk, apply_at=when, via=Review.Channel.BROWSER)
    except InvalidInput as refusal:
        return show_page(http, request, decision_form.written_in(http, {"apply_at": str(refusal)}))
    return redirect("request", uid=request.uid)


@only_by_form
@of_request
def run_check_again(http: HttpRequest, request: Request, check: str) -> HttpResponse:
    """Ask an external check again, as somebody who may approve the request."""
    services.run_check_again(by=person(http), request_id=request.pk, name=check, via=Review.Channel.BROWSER)
    messages.success(http, f"{check} is asked again.")
    return redirect("request", uid=request.uid)


@only_by_form
@of_request
def withdraw(http: HttpRequest, request: Request) -> HttpResponse:
    services.withdraw(by=person(http), request_id=request.pk, reason=http.POST.get("reason", ""), via="browser")
    return redirect("request", uid=request.uid)


@only_by_form
@of_request
def make_dependencies(http: HttpRequest, request: Request) -> HttpResponse:
    """Make the requests that would come first, exactly those that were on the screen."""
    made = services.make_dependencies(
        by=person(http), request=request, digest=http.POST.get("plan_digest", ""), via="browser"
    )
    names = some([deployment.name for deployment in made], MOST_NAMED)
    messages.success(http, f"Created: {names}. Each is reviewed and approved like any other request.")
    return redirect("request", uid=request.uid)


@csp(FILE_POLICY)
@require_safe
@of_request
def report_file(http: HttpRequest, request: Request) -> HttpResponse:
    """The report as one file to print or to send. Its style stands in it, and nothing else may be loaded or run."""
    html = shared_html(person(http), request, reported(request))
    answer = HttpResponse(html)
    add_never_cache_headers(answer)
    return answer


def show_page(
    http: HttpRequest,
    request: Request,
    written: Written | None = None,
    *,
    asks_again: bool = False,
    wrong_dismissal: str = "",
    afterwards: Mapping[str, str] | None = None,
) -> HttpResponse:
    """The whole page; with what was `written` in its form where that was refused."""
    caller, deployment = person(http), request.deployment
    tab = open_tab(caller, request)
    view = ReportView(tab.sight, tab.report) if tab.report else None
    form = form_of(tab, written, view)
    dismissal = dismissal_of(caller, request, tab.reviews)
    how = tab.bar.how or status(request)
    dependencies = services.find_dependencies(by=caller, request=request)
    creating = (
        access.may(caller, deployment.cluster, "create", resource="bundledeployments")
        if dependencies and dependencies.deployments
        else None
    )
    found = RequestPage(
        progress=read_progress(tab.sight, request),
        overview=read_overview(tab, tab.report, view) if tab.report and view else None,
        form=form,
        history=replace(history_of(tab, form.waivers), dismissal=dismissal, wrong_dismissal=wrong_dismissal),
        since=since_your_review(request=request, user=caller.user, sight_of=partial(ReportSight, tab.sight)),
        how=how,
        offered=allowed_steps(http, deployment, how.steps),
        linked_catalogs=linked_catalogs(
            http, deployment.cluster, request.spec, [str(bundle["catalog"]) for bundle in request.bundles]
        ),
        asks_again=asks_again,
        dependencies=dependencies,
        creating=creating,
        afterwards=afterwards or {},
    )
    is_refused = written or wrong_dismissal or afterwards
    return page(http, "requests/request.html", tab, found, status=422 if is_refused else 200)


def read_overview(tab: RequestTab, report: Report, view: ReportView) -> Overview:
    body = report.body
    blockers = overview.blockers(body, view)
    running = seen_workloads(view.wide_sight, body)
    # What is said of accounts is asked of Kubernetes one by one: only what says which rights come and go.
    of_rights = [finding for finding in body["findings"] if overview.tells_of_rights(finding)]
    seen = [finding for finding in of_rights[:MAX_RIGHTS] if view.may_show(finding)]
    # A stored Secret that is hidden is a row, whatever happens to it.
    hooks = Hooks(body["findings"])
    rows = [
        (position, action, hooks.words_of(action))
        for position, action in PlanView(tab.sight, report).records()
        if action["action"] != "none" or action["problem"]
    ]
    return Overview(
        # Its last sentence counts findings, which stand beside it with their shapes.
        headline=view.headline()[:-1],
        totals=pages.severity_totals(report),
        of_others=view.of_others(),
        blockers=blockers,
        blocked_words=overview.blocked_words(blockers),
        tiles=overview.tiles(body),
        frights=overview.frights(seen),
        grids=overview.grids(seen),
        rows=rows[:OBJECTS_OF_PAGE],
        row_count=len(rows),
        plan_words=overview.plan_in_words(body),
        workloads=running,
        workload_counts=workloads_in_words(running.changes),
        images=image_changes(running.changes),
        runs=runs_of(running.changes),
        containers=[container for workload in running.changes for container in workload.containers],
    )


def read_progress(sight: Sight, request: Request, *, seen: str = "") -> Progress:
    outcomes = [show_words(sight, outcome) for outcome in request.outcomes.order_by("-position")[:MAX_OUTCOMES]]
    step = Outcome.Step.RESTORE if request.state == State.RESTORING else Outcome.Step.APPLY
    of_step = [outcome for outcome in outcomes if outcome.step == step]
    counted = Counter(request.outcomes.filter(step=step).values_list("state", flat=True))
    approvals = request.reviews.counted().filter(round=request.round, decision="Approve", policy=None).count()
    report = Report.objects.filter(request=request, round=request.round).defer("body").first()
    return Progress(
        said=said_of(sight, request) if request.problem else [],
        outcomes=outcomes,
        done=counted.total(),
        failures=counted["failed"],
        failed_together=overview.failed_together(of_step),
        left_together=overview.left_together(of_step),
        total=max(sum((report.actions if report else {}).values()), counted.total()),
        approvals=approvals,
        needed=settings.PRATIQUE["APPROVALS_NEEDED"],
        is_settled=request.state in SETTLED,
        # Somebody has decided: what comes of it comes within seconds.
        is_quick=request.state != State.IN_REVIEW or approvals > 0,
        mark=f"{request.state}-{request.round}",
        seen=seen,
        revision=getattr(request, "revision", None),
        paused=pause_words(deployment=request.deployment),
        phases=activity.phases(activity.rows_of(request)) if counted else [],
        has_lost_its_worker=activity.has_lost_its_worker(request, database_now()),
    )
