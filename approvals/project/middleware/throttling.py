"""How often the pages and callbacks may be asked: strangers by address, people by who they are.

docs/operating/limits.md has all limits in one table. Programs with a token, and sessions at the REST API, are counted
there (approvals.api.authentication), credentials where they are tried (approvals.limits.clients).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse

from approvals.api.authentication import TOKEN_TRIED
from approvals.api.problems import CONTENT_TYPE, body_of
from approvals.errors import TooManyAttempts
from approvals.limits import Limit, client_address, take
from approvals.limits.clients import counted_as
from approvals.web import errors

API, CHAT = "/api/", "/chat/"
STRANGER = Limit("stranger", 300, 60)
PERSON = Limit("person", 600, 60)
EXPENSIVE = Limit("expensive", 60, 60)
WRITING = Limit("writing", 60, 60)
# A page of a catalog shows dozens: whoever looks through catalogs shall not use up their pages.
ICON = Limit("icon", 6000, 60)
ICON_ADDRESS = re.compile(r"/catalogs/[^/]+/[^/]+/packages/[^/]+/icon")
# They read a whole report and ask the cluster about each object in it, or search the descriptions of all catalogs.
EXPENSIVE_PAGES = {"request-report", "request-changes", "request-rights", "request-schemas", "catalog-search"}
# They compare the lines of one object.
COMPARING = Limit("comparing", 240, 60)
COMPARING_PAGES = {"request-change", "request-change-lines", "request-finding-lines", "catalog-changes-lines"}
# Answered whatever happens: whoever asks them decides whether this process lives.
FREE = {"/healthz", "/readyz"}
WORDS = "too many requests: try again in {time}"


class Throttle:
    """Middleware, below the session.

    Everybody is counted before anything else looks at the request, also where there is no such page.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, http: HttpRequest) -> HttpResponse:
        try:
            _count(http)
            answer = self._get_response(http)
            _count_untried(http)
        except TooManyAttempts as refusal:
            return _answer(http, refusal)
        return answer

    def process_view(self, http: HttpRequest, *_: object) -> HttpResponse | None:
        if http.path_info.startswith(API) or not http.user.is_authenticated:
            return None
        try:
            _count_dear(http, str(http.user.pk))
        except TooManyAttempts as refusal:
            return _answer(http, refusal)
        return None


def _count(http: HttpRequest) -> None:
    """Raises TooManyAttempts."""
    is_api = http.path_info.startswith(API)
    if http.path_info in FREE or (is_api and _has_token(http)):
        return
    if not http.user.is_authenticated:
        take(STRANGER, counted_as(client_address(http)), words=WORDS)
    elif not is_api:
        is_icon = ICON_ADDRESS.fullmatch(http.path_info) is not None
        take(ICON if is_icon else PERSON, str(http.user.pk), words=WORDS)


def _count_untried(http: HttpRequest) -> None:
    """A call that was answered before anybody looked at its token, such as one that asks for an unknown format."""
    if http.path_info.startswith(API) and _has_token(http) and not hasattr(http, TOKEN_TRIED):
        take(STRANGER, counted_as(client_address(http)), words=WORDS)


def _has_token(http: HttpRequest) -> bool:
    """A token that does not hold is counted where it is tried (approvals.api.authentication)."""
    return http.headers.get("Authorization", "").lower().startswith("bearer ")


def _count_dear(http: HttpRequest, person: str) -> None:
    """What costs more than a page: raises TooManyAttempts."""
    name = http.resolver_match.url_name or "" if http.resolver_match else ""
    if name in EXPENSIVE_PAGES:
        take(EXPENSIVE, person, words=WORDS)
    if name in COMPARING_PAGES:
        take(COMPARING, person, words=WORDS)
    if http.method == "POST":
        take(WRITING, person, words=WORDS)


def _answer(http: HttpRequest, refusal: TooManyAttempts) -> HttpResponse:
    if http.path_info.startswith((API, CHAT)):
        body = body_of(refusal.status, refusal.code, str(refusal), **refusal.facts)
        answer: HttpResponse = JsonResponse(body, status=refusal.status, content_type=CONTENT_TYPE)
        return errors.with_retry(answer, refusal)
    return errors.refused(http, refusal)
