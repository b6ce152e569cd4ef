"""Pages for what went wrong: what, why, what to do, and the id under which the log tells more."""

from __future__ import annotations

import structlog
from django.http import HttpRequest, HttpResponse

from approvals.errors import DigestMoved, Refused
from approvals.web.rendering import bare, is_read, page, page_above

TITLES = {
    400: "This action is not possible",
    403: "You are not allowed to do this",
    404: "Page not found",
    409: "This has changed since you opened it",
    422: "Some input is missing or invalid",
    429: "Too many requests",
    503: "The cluster could not be asked",
}
# Where the status alone would say something else.
TITLES_BY_CODE = {"sign-in-failed": "Sign-in failed", "issuer-away": "Sign-in failed"}


def refused(http: HttpRequest, refusal: Refused) -> HttpResponse:
    """The words of a refusal, its RBAC rule if there is one, and the way back."""
    facts = {
        "title": TITLES_BY_CODE.get(refusal.code) or TITLES.get(refusal.status, TITLES[400]),
        "refusal": refusal,
        "rule": refusal.facts.get("rule", ""),
        "moved": refusal.facts if isinstance(refusal, DigestMoved) else None,
        "back": "" if is_read(http) else page_above(http),
        "request_id": request_id(),
    }
    return with_retry(page(http, "errors/refused.html", facts, status=refusal.status), refusal)


def with_retry(answer: HttpResponse, refusal: Refused) -> HttpResponse:
    """`answer`, which says in Retry-After when to come again, if the refusal knows."""
    if "retryAfter" in refusal.facts:
        answer["Retry-After"] = str(refusal.facts["retryAfter"])
    return answer


def forbidden(http: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return page(http, "errors/403.html", {"request_id": request_id()}, status=403)


def not_found(http: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return page(http, "errors/404.html", {"request_id": request_id()}, status=404)


def only_by_form(http: HttpRequest) -> HttpResponse:
    """For who follows or reloads the address of a form, such as after a refusal."""
    answer = page(http, "errors/405.html", {"back": page_above(http)}, status=405)
    answer["Allow"] = "POST"
    return answer


def failed(http: HttpRequest, status: int, title: str, advice: str, *, is_unsure: bool) -> HttpResponse:
    """A page that asks nothing of the database or of the session: they may be what failed."""
    facts = {"title": title, "advice": advice, "is_unsure": is_unsure, "request_id": request_id()}
    return HttpResponse(bare(http, "errors/failed.html", facts), status=status)


def request_id() -> str:
    """The id that the log lines of this request carry."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))
