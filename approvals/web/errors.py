"""Pages for what went wrong: what, why, what to do, and the id under which the log tells more."""

from __future__ import annotations

import structlog
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from approvals.errors import DigestMoved, Refused
from approvals.web.rendering import page

UNAVAILABLE = 503
READS = ("GET", "HEAD")
TITLES = {
    400: "This cannot be done",
    403: "You may not do this",
    404: "There is no such page",
    409: "This has changed since you opened it",
    422: "Something is missing or wrong",
    429: "Too many at once",
    503: "The cluster could not be asked",
}


def refused(http: HttpRequest, refusal: Refused) -> HttpResponse:
    """The words of a refusal, its RBAC rule if there is one, and the way back."""
    facts = {
        "title": TITLES.get(refusal.status, TITLES[400]),
        "refusal": refusal,
        "rule": refusal.facts.get("rule", ""),
        "moved": refusal.facts if isinstance(refusal, DigestMoved) else None,
        "back": http.path.removesuffix(http.path.rsplit("/", 1)[-1]).rstrip("/") if http.method == "POST" else "",
        "request_id": request_id(),
    }
    return page(http, "refused.html", facts, status=refusal.status)


def forbidden(http: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return page(http, "403.html", {"request_id": request_id()}, status=403)


def not_found(http: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return page(http, "404.html", {"request_id": request_id()}, status=404)


def failed(http: HttpRequest, status: int) -> HttpResponse:
    """500, or 503 where the database is away. Nothing is asked of it or of the session here."""
    facts = {"request_id": request_id(), "is_away": status == UNAVAILABLE, "was_read": http.method in READS}
    return HttpResponse(render_to_string("500.html", facts), status=status)


def request_id() -> str:
    """The id that the log lines of this request carry."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))
