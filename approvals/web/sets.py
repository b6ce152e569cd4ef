"""Change sets: one change for many clusters or several deployments, compared on one page and decided by groups.

The page shows the report of one member of a group, and the service makes sure that an approval covers no member that is
not like it. What a single approval asks for is asked once for the group, and kept with the review of each member.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals import services
from approvals.errors import InvalidInput
from approvals.models import Review
from approvals.selectors.sets import SetMember, summaries
from approvals.services import ChangeSet, GroupReport
from approvals.services.sets.groups import MAX_AT_ONCE, MAX_GROUPS
from approvals.web.access_decorators import only_by_form, person, readable, signed_in
from approvals.web.bulk_decisions import parse_picked
from approvals.web.rendering import page
from approvals.web.requests import overview
from approvals.web.requests.decision_form import Tick, is_serious, ticked, ticks_of

MAX_ROWS = 100


@dataclass(frozen=True, slots=True)
class Sent:
    """What stood in the form of the group with the request `shown`, and by field what is wrong with it."""

    shown: str
    reason: str
    typed: str
    acknowledges: list[str]
    errors: Mapping[str, str]

    @property
    def wrong(self) -> str:
        """What is wrong with the whole form."""
        return self.errors.get("", "Nothing was recorded: see below what is missing.")


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """One group on the page. `members` are as many as one decision covers; `ticks` are what an approval names.

    `why_not` says why it cannot be approved here.
    """

    report: GroupReport
    members: list[SetMember]
    ticks: list[Tick]
    why_not: str
    sent: Sent | None

    @property
    def shown(self) -> SetMember:
        return self.report.group.shown

    @property
    def is_serious(self) -> bool:
        return is_serious(self.report.worst)

    @property
    def rows(self) -> tuple[SetMember, ...]:
        return self.report.group.members[:MAX_ROWS]

    @property
    def left_count(self) -> int:
        return len(self.report.group.members) - len(self.rows)


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    return page(http, "sets/sets.html", {"rows": summaries(clusters=readable(http))})


@require_safe
@signed_in
def show(http: HttpRequest, *, name: str) -> HttpResponse:
    return _show(http, services.read_set(by=person(http), clusters=readable(http), name=name))


def _show(http: HttpRequest, found: ChangeSet, sent: Sent | None = None) -> HttpResponse:
    groups = []
    for report in services.read_groups(found):
        shown = report.group.shown
        why_not = report.why_not or ("it cannot be applied as it stands" if overview.blockers(report.body) else "")
        groups.append(
            ShownGroup(
                report=report,
                members=report.group.undecided[:MAX_AT_ONCE],
                ticks=ticks_of(shown.request),
                why_not=why_not,
                sent=sent if sent and sent.shown == str(shown.request.uid) else None,
            )
        )
    facts = {
        "set": found,
        "order": services.read_order(clusters=readable(http), name=found.name),
        "groups": groups,
        "more_groups": max(0, len(found.groups) - MAX_GROUPS),
        "differing": sum(len(group.members) for group in found.groups[1:]) + len(found.alone),
        "settled": found.settled[:MAX_ROWS],
    }
    return page(http, "sets/set.html", facts, status=422 if sent else 200)


@only_by_form
@signed_in
def review(http: HttpRequest, *, name: str) -> HttpResponse:
    """One decision on the members that the form names; shown again with what is missing."""
    clusters, decision = readable(http), http.POST.get("decision", "")
    found = services.read_set(by=person(http), clusters=clusters, name=name)
    sent = Sent(
        shown=http.POST.get("shown", ""),
        reason=http.POST.get("reason", "").strip(),
        typed=http.POST.get("typed", "").strip(),
        acknowledges=http.POST.getlist("acknowledges"),
        errors={},
    )
    members = parse_picked(http.POST.getlist("member"))
    shown = next((uid for uid in members if str(uid) == sent.shown), None)
    if shown is None:
        raise InvalidInput("the request whose report was shown is not among the members: open the set again")
    report = services.read_group(found, shown)
    errors, names = _missing(sent, decision, name, report), list[str]()
    if decision == "Approve" and report:
        request = next(one.request for one in report.group.members if one.request.uid == shown)
        names = ticked(request, sent.acknowledges)
        if left := {item.name for tick in ticks_of(request) for item in tick.items}.difference(names):
            errors["acknowledges"] = f"Tick everything that an approval acknowledges: {len(left)} more to tick."
    if errors:
        wrong = Sent(sent.shown, sent.reason, sent.typed, sent.acknowledges, errors)
        return _show(http, found, wrong)
    results = services.review_set(
        by=person(http),
        clusters=clusters,
        name=name,
        decision=decision,
        shown=shown,
        members=members,
        reason=sent.reason,
        channel=Review.Channel.BROWSER,
        acknowledges=names,
    )
    done = sum(not result.refusal for result in results)
    facts = {"name": name, "decision": decision, "results": results, "done": done}
    return page(http, "sets/results.html", facts)


def _missing(sent: Sent, decision: str, name: str, report: GroupReport | None) -> dict[str, str]:
    """By field what a decision lacks: as of one request, with the name of the set for that of the deployment."""
    missing = {}
    if decision == "Deny" and not sent.reason:
        missing["reason"] = "Enter a reason for the denials, so that the requesters know what to change."
    if decision != "Approve" or report is None:
        return missing
    if overview.blockers(report.body):
        missing[""] = "It cannot be applied as it stands: review each request on its own page."
    if is_serious(report.worst) and not sent.reason:
        missing["reason"] = f"The worst finding is {report.worst}: enter why you approve it anyway."
    if is_serious(report.worst) and sent.typed != name:
        missing["typed"] = f"The worst finding is {report.worst}: type the name {name} to approve it."
    return missing
