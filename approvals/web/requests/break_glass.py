"""The page that asks whether somebody really wants to break glass, and the review afterwards."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from approvals import services
from approvals.errors import DigestMoved, InvalidInput, Refused, Unacknowledged
from approvals.models import BREAK_GLASS, Request, Review
from approvals.web.access_decorators import of_request, only_by_form, person
from approvals.web.rendering import page
from approvals.web.requests.request_page import show_page

CHANNEL = Review.Channel.BROWSER
WORDS = ("incident", "reason")


@require_http_methods(["GET", "POST"])
@of_request
def show(http: HttpRequest, request: Request) -> HttpResponse:
    """What is skipped and what is not, to whoever may; a refusal says why not."""
    typed = {name: http.POST.get(name, "") for name in WORDS}
    ticked, wrong = http.POST.getlist("acknowledges"), ""
    if http.method == "POST":
        try:
            if http.POST.get("typed", "").strip() != request.deployment.name:
                raise InvalidInput(f"type the name {request.deployment.name} to confirm", field="typed")
            services.give_review(
                by=person(http),
                request_id=request.pk,
                decision=BREAK_GLASS,
                subject_digest=http.POST.get("subject_digest", ""),
                channel=CHANNEL,
                acknowledges=ticked,
                reason=typed["reason"],
                incident=typed["incident"],
            )
            return redirect("request", uid=request.uid)
        except (InvalidInput, Unacknowledged, DigestMoved) as refusal:
            wrong = str(refusal)
            request.refresh_from_db()
    why_not: Refused | None = None
    try:
        services.check_may_break_glass(person(http), request)
    except Refused as refusal:
        why_not = refusal
    facts = {
        "item": request,
        "hours": settings.PRATIQUE["REVIEW_OWED_HOURS"],
        "why_not": str(why_not or ""),
        "rule": why_not.facts.get("rule", "") if why_not else "",
        "acknowledgements": [] if why_not else services.acknowledgements(request),
        "ticked": ticked,
        "wrong": wrong,
        **typed,
    }
    return page(http, "requests/break_glass.html", facts, status=422 if wrong else 200)


@only_by_form
@of_request
def review_afterwards(http: HttpRequest, request: Request) -> HttpResponse:
    """Accept or object; what is wrong is said at the form with what was typed."""
    reason = http.POST.get("reason", "")
    try:
        services.give_review(
            by=person(http),
            request_id=request.pk,
            decision=http.POST.get("decision", ""),
            subject_digest=http.POST.get("subject_digest", ""),
            reason=reason,
            channel=CHANNEL,
        )
    except InvalidInput as refusal:
        return show_page(http, request, afterwards={"wrong": str(refusal), "reason": reason})
    return redirect("request", uid=request.uid)
