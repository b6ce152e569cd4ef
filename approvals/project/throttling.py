"""How often the pages and callbacks may be asked: strangers by address, people by who they are."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse

from approvals.api.problems import CONTENT_TYPE, body_of
from approvals.errors import TooManyAttempts
from approvals.limits import Limit, client_address, take
from approvals.limits.addresses import counted_as
from approvals.web import errors

API, CHAT = "/api/", "/chat/"
STRANGER = Limit("stranger", 300, 60)
PERSON = Limit("person", 600, 60)
EXPENSIVE = Limit("expensive", 60, 60)
WRITING = Limit("writing", 60, 60)
# They read a whole report and ask the cluster about each object in it.
EXPENSIVE_PAGES = {"request-report", "request-objects", "request-object", "request-rights", "request-schemas"}
# Answered whatever happens: whoever asks them decides whether this process lives.
FREE = {"/healthz", "/readyz"}
WORDS = "too many requests came from you"


class Throttle:
    """Middleware, below the session. Programs with a token are counted by the REST API (approvals.api.throttling).

    Strangers are counted before anything else looks at the request, also where there is no such page.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, http: HttpRequest) -> HttpResponse:
        try:
            if not _is_counted_elsewhere(http) and not http.user.is_authenticated:
                take(STRANGER, counted_as(client_address(http)), words=WORDS)
        except TooManyAttempts as refusal:
            return _answer(http, refusal)
        return self._get_response(http)

    def process_view(self, http: HttpRequest, *_: object) -> HttpResponse | None:
        if http.path_info.startswith(API) or http.path_info in FREE or not http.user.is_authenticated:
            return None
        try:
            _count(http, str(http.user.pk))
        except TooManyAttempts as refusal:
            return _answer(http, refusal)
        return None


def _is_counted_elsewhere(http: HttpRequest) -> bool:
    """A token that does not hold is counted where it is tried (approvals.api.authentication)."""
    has_token = http.headers.get("Authorization", "").lower().startswith("bearer ")
    return http.path_info in FREE or (http.path_info.startswith(API) and has_token)


def _count(http: HttpRequest, person: str) -> None:
    name = http.resolver_match.url_name or "" if http.resolver_match else ""
    take(PERSON, person, words=WORDS)
    if name in EXPENSIVE_PAGES:
        take(EXPENSIVE, person, words=WORDS)
    if http.method == "POST":
        take(WRITING, person, words=WORDS)


def _answer(http: HttpRequest, refusal: TooManyAttempts) -> HttpResponse:
    if http.path_info.startswith((API, CHAT)):
        body = body_of(refusal.status, refusal.code, str(refusal), **refusal.facts)
        answer: HttpResponse = JsonResponse(body, status=refusal.status, content_type=CONTENT_TYPE)
        return errors.with_retry(answer, refusal)
    return errors.refused(http, refusal)
