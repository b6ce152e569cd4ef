"""The tab of a request that tells what happened to it: rounds, reviews, and the apply with its phases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals.lifecycle import AT_WORK, SETTLED, State
from approvals.models import AuditEntry, Request
from approvals.selectors import pages
from approvals.web import following
from approvals.web.access_decorators import of_request, person
from approvals.web.following import Followed
from approvals.web.rendering import page, part_of
from approvals.web.requests import apply_log
from approvals.web.requests.bar import bar_of
from approvals.web.requests.viewer_options import options_of
from approvals.web.requests.waivers import Waivers

QUICK_SECONDS = 2
SLOW_SECONDS = 10
# What an entry's verb says, after the name of who did it. A verb that is not here is told by its own words.
SENTENCES = {
    "request.made": "created this request",
    "request.prepared": "finished the report, and the review began",
    "request.could_not_prepare": "could not prepare the report",
    "request.approve": "recorded the approval",
    "request.deny": "recorded the denial",
    "request.expire": "ended the request because nobody decided in time",
    "request.withdraw": "withdrew the request",
    "request.supersede": "ended the request because a newer one replaces it",
    "request.start": "started to apply it",
    "request.finish": "finished the apply",
    "request.fail": "stopped: the request failed",
    "request.restore": "started to restore the previous revision",
    "request.find_stale": "found that the cluster no longer matches the report",
    "request.report_again": "started a new round with a new report",
    "request.give_up": "gave up: the report had to be made too often",
    "request.labels": "took over changed labels of the deployment",
    "request.requester-known": "learned who requested it",
    "request.waits": "lets the request wait",
    "review.not_counted": "made a review with kubectl, which does not count",
    "revision.recorded": "recorded the revision",
    "revision.restored": "restored the previous revision",
    "revision.overdue": "found that the revision did not become healthy in time",
    "optional.created": "created an optional object later",
    "optional.asked": "asked again for an optional object",
}
DECISIONS = {"Approve": "approved it", "Deny": "denied it", "RequestChanges": "requested changes"}


@dataclass(frozen=True, slots=True)
class ActivityEntry:
    """One entry of the audit as a sentence; `took` is how long the state before it lasted, "" where it has none."""

    entry: AuditEntry
    words: str
    took: str

    @property
    def reason(self) -> str:
        return str(self.entry.facts.get("reason") or "")


@require_safe
@of_request
def index(http: HttpRequest, request: Request) -> HttpResponse:
    report, reviews = pages.report_of(request), pages.reviews_of(request)
    bar = bar_of(person(http), request, report, reviews)
    facts = {
        "item": request,
        "report": report,
        "bar": bar,
        "may": options_of(person(http), request, report, reviews),
        "reviews": reviews,
        "voided_rounds": pages.voided_rounds_of(request),
        "evaluations": pages.evaluations_of(request) if bar.evaluations is None else bar.evaluations,
        "waivers": Waivers(report, reviews, {}) if report else None,
        "log": _log(http, request),
        "has_decision": request.state == State.IN_REVIEW,
    }
    return page(http, "requests/activity.html", facts)


@require_safe
@of_request
@following.by_itself
def follow(http: HttpRequest, request: Request) -> HttpResponse:
    """What happened, alone. Where the request has moved, the browser loads the page again for what stands around it."""
    answer = following.again(http, _log(http, request))
    if http.GET.get("seen", "") != request.state:
        answer["HX-Refresh"] = "true"
    return answer


def _log(http: HttpRequest, request: Request) -> Followed:
    facts = {
        "item": request,
        "events": events(pages.timeline_of(request)),
        "phases": apply_log.phases(apply_log.rows_of(request)),
    }
    seconds = 0 if request.state in SETTLED else QUICK_SECONDS if request.state in AT_WORK else SLOW_SECONDS
    address = f"{reverse('request-activity-list', args=[request.uid])}?seen={request.state}"
    return Followed("log", address, seconds, part_of(http, "requests/activity/_log.html", facts))


def events(entries: Iterable[AuditEntry]) -> list[ActivityEntry]:
    """The entries in their order, each as a sentence."""
    made: list[ActivityEntry] = []
    moved_at: datetime | None = None
    for entry in entries:
        is_move = "from" in entry.facts
        took = apply_log.words_of_span(entry.at - moved_at) if is_move and moved_at else ""
        made.append(ActivityEntry(entry, _words(entry.verb, entry.facts), took))
        moved_at = entry.at if is_move or moved_at is None else moved_at
    return made


def _words(verb: str, facts: Mapping[str, object]) -> str:
    number = facts.get("round")
    in_round = f" in round {number}" if isinstance(number, int) and number > 1 else ""
    if verb == "review.given":
        return DECISIONS.get(str(facts.get("decision")), "reviewed it") + in_round
    return SENTENCES.get(verb, verb.replace(".", " ").replace("_", " ")) + in_round
