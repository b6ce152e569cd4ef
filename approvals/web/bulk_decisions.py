"""Deciding on several requests at once: each by the service and the gate of a single decision, each with its result.

Who decides here sees headlines and not reports, so that an approval has the limits of every channel that does not show
them (S22, S32), whatever was ticked. A denial needs a reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from approvals import access, services
from approvals.access import Caller
from approvals.errors import InvalidInput, Refused
from approvals.models import Request, Review
from approvals.web.access_decorators import only_by_form, person, signed_in
from approvals.web.inbox import clean
from approvals.web.rendering import page

# As many as a page of the inbox holds.
MAX_ROWS = 50


@dataclass(frozen=True, slots=True)
class Picked:
    """One ticked request. `digest` is that of the list on the screen; `refusal` is "" where none is known."""

    request: Request
    digest: str
    refusal: str = ""

    @property
    def value(self) -> str:
        return f"{self.request.uid}/{self.digest}"


@only_by_form
@signed_in
def decide(http: HttpRequest) -> HttpResponse:
    """First what would be done, and what would not; done once that is confirmed."""
    decision, reason = http.POST.get("decision", ""), http.POST.get("reason", "").strip()
    if decision not in ("Approve", "Deny"):
        raise InvalidInput("the decision must be Approve or Deny", field="decision")
    # Requests that the viewer may not read are as if they did not exist (S02).
    digests = parse_picked(http.POST.getlist("picked"))
    if len(digests) > MAX_ROWS:
        raise InvalidInput(f"{len(digests)} requests are selected; at most {MAX_ROWS} can be decided at once")
    found = Request.objects.filter(uid__in=digests).select_related("deployment__cluster")
    clusters = {request.cluster_id: request.deployment.cluster for request in found}
    may_read = {key for key, cluster in clusters.items() if access.may_read(person(http), cluster).allowed}
    known = {request.uid: request for request in found if request.cluster_id in may_read}
    rows = [Picked(known[uid], digest) for uid, digest in digests.items() if uid in known]
    wrong = _wrong(rows, decision, reason)
    is_confirmed = "confirmed" in http.POST and not wrong
    judged = [_decided(person(http), row, decision, reason) if is_confirmed else _judged(row, decision) for row in rows]
    facts = {
        "decision": decision,
        "reason": reason,
        "rows": judged,
        "possible": sum(not row.refusal for row in judged),
        "is_done": is_confirmed,
        "query": clean(http.POST.get("query", "")),
        "wrong": wrong,
    }
    return page(http, "workspace/bulk.html", facts, status=422 if wrong else 200)


def _wrong(rows: list[Picked], decision: str, reason: str) -> str:
    if not rows:
        return "No request is selected. Go back and select one or more."
    if decision == "Deny" and not reason:
        return "Enter a reason for the denials, so that the requesters know what to change."
    return ""


def parse_picked(texts: Iterable[str]) -> dict[UUID, str]:
    """The digests that were shown of requests, by their uids; what is no uid is left out."""
    found = dict[UUID, str]()
    for uid, _, digest in (text.partition("/") for text in texts):
        with suppress(ValueError):
            found[UUID(uid)] = digest[:80]
    return found


def _judged(row: Picked, decision: str) -> Picked:
    words = services.why_not_unseen(row.request) if decision == "Approve" else ""
    return Picked(row.request, row.digest, f"Review it on its own page: {words}." if words else "")


def _decided(caller: Caller, row: Picked, decision: str, reason: str) -> Picked:
    judged = _judged(row, decision)
    if judged.refusal:
        return judged
    try:
        services.review(
            by=caller,
            request_id=row.request.pk,
            decision=decision,
            subject_digest=row.digest,
            reason=reason,
            channel=Review.Channel.BROWSER,
        )
    except Refused as refusal:
        return Picked(row.request, row.digest, str(refusal))
    return row
