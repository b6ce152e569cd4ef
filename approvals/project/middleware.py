"""What every request passes through: headers of proxies, the log line, who is signed in, and rate limits.

Headers of proxies are believed from trusted ones only, and removed otherwise. The log holds no query strings: one-time
codes and signed addresses come in there. docs/operating/limits.md has all limits in one table; tokens are counted in
approvals.api.throttling, credentials in approvals.rate_limits.credentials.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.signals import user_login_failed
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.urls import Resolver404, resolve
from django.utils.functional import SimpleLazyObject

from approvals import instruments, proxies, services
from approvals.access import Caller
from approvals.api.authentication import TOKEN_TRIED
from approvals.api.problems import CONTENT_TYPE, body_of
from approvals.errors import TooManyAttempts
from approvals.proxies import Said
from approvals.rate_limits import Limit, client_address, clients, take
from approvals.rate_limits.clients import counted_as
from approvals.services.sessions import SIGN_IN
from approvals.web import errors

# Beside X-Forwarded-Proto, which Django reads (settings.SECURE_PROXY_SSL_HEADER): nothing of ours reads these.
UNUSED = ("HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PORT", "HTTP_X_FORWARDED_SSL", "HTTP_FORWARDED", "HTTP_X_REAL_IP")

MACHINES = {"/healthz", "/readyz", "/metrics"}


class Forwarding:
    """The outermost middleware: all others may read the headers that it leaves."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, http: HttpRequest) -> HttpResponseBase:
        is_secure = clients.is_secure(http)
        # `http.proxied`: who a proxy says that this is (Said, Unusable or None). Nobody else reads it from the headers.
        known: proxies.IdentityProxies = settings.PRATIQUE["IDENTITY_PROXIES_FILE"]
        http.proxied = proxies.said_in(http.META, clients.peer_of(http), known)  # type: ignore[attr-defined] # requests carry such facts
        proxies.drop(http.META, known)
        # Probes and scrapes come from few clients, as they should.
        if http.path_info not in MACHINES:
            clients.note(http)
        for name in (clients.PROTO, *UNUSED):
            http.META.pop(name, None)
        if is_secure:
            http.META[clients.PROTO] = "https"
        if clients.peer_of(http) not in clients.trusted():
            http.META.pop(clients.FOR, None)
        return self._get_response(http)


logger = logging.getLogger(__name__)
MAX_PATH = 300
MAX_AGENT = 200
# Asked every few seconds by machines: of interest where they fail.
FREQUENT = frozenset({"healthz", "readyz", "metrics"})


class RequestLog:
    """The outermost middleware: what the others refuse is told as well."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, http: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        # Never the caller's own id: two of the same would mix up who did what.
        with structlog.contextvars.bound_contextvars(request_id=str(uuid.uuid4())):
            answer = self._get_response(http)
            seconds = time.perf_counter() - began
            view = view_of(http)
            method = instruments.method_label(http.method)
            instruments.http_requests.labels(view, method, str(answer.status_code)).inc()
            instruments.http_seconds.labels(view).observe(seconds)
            facts: dict[str, Any] = {
                "method": method,
                "path": http.path[:MAX_PATH],
                "view": view,
                "status": answer.status_code,
                "milliseconds": round(seconds * 1000, 1),
                "user_id": user_id_of(http),
                "client": client_address(http),
                "user_agent": http.headers.get("User-Agent", "")[:MAX_AGENT],
            }
            level = logging.DEBUG if view in FREQUENT and answer.status_code < 400 else logging.INFO
            logger.log(level, "request answered", extra=facts)
        return answer


def view_of(http: HttpRequest) -> str:
    """The name of the view that answered, as a label; "other" where none did."""
    match = http.resolver_match
    name = match.view_name.replace(":", "_") if match and match.view_name else ""
    return instruments.code_label(name)


def user_id_of(http: HttpRequest) -> int | None:
    """The number of the signed-in user; None where nobody asked who it is, and nobody is asked here."""
    for user in (http.__dict__.get("user"), http.__dict__.get("_cached_user")):
        if type(user) is User:
            return user.pk
    return None


def _count_refused(sender: object, **_: object) -> None:
    instruments.refused_sign_ins.labels("password").inc()


# Every form that takes a password says so here, the admin site's too.
user_login_failed.connect(_count_refused, dispatch_uid="approvals.refused_sign_ins")


# For programs: operators have these go past a proxy that signs people in, so that it says nothing of them. A session
# that needs its word counts for nothing there, and does not end.
PAST_PROXIES = ("/api/", "/chat/")


class Callers:
    """Middleware, below Django's own: `http.find_caller`, and `http.user`, a stranger without one. Both are lazy.

    After either, `http.awaited_proxy` names the proxy whose word the session lacks, if that is why there is nobody.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, http: HttpRequest) -> HttpResponse:
        known = SimpleLazyObject(lambda: _Known(http))
        http.find_caller = lambda: known.caller  # type: ignore[attr-defined] # requests carry such facts
        http.user = SimpleLazyObject(lambda: known.user)  # type: ignore[assignment] # as Django's own does
        return self._get_response(http)


def is_by_itself(http: HttpRequest) -> bool:
    """Whether a page that is open asks for what has happened, and nobody may be in front of it."""
    try:
        match = http.resolver_match or resolve(http.path_info)  # limits ask who it is before the view is known
    except Resolver404:
        return False
    return bool(getattr(match.func, "is_by_itself", False))


class _Known:
    """Read once a request."""

    def __init__(self, http: HttpRequest) -> None:
        self.user: User | AnonymousUser = AnonymousUser()
        self.caller: Caller | None = None
        user = get_user(http)
        if isinstance(user, User):
            self._find(http, user)
        http._cached_user = self.user  # type: ignore[attr-defined] # where Django keeps it, and the log looks

    def _find(self, http: HttpRequest, user: User) -> None:
        sign_in_id = http.session.get(SIGN_IN)
        said = getattr(http, "proxied", None)
        if said is None and http.path_info.startswith(PAST_PROXIES):
            title = services.awaited_proxy(user=user, sign_in_id=sign_in_id)
            http.awaited_proxy = title  # type: ignore[attr-defined] # the REST API's authentication reads it
            if title:
                return
        word = said if isinstance(said, Said) else None
        is_there = not is_by_itself(http)
        self.caller = services.caller_of(user=user, sign_in_id=sign_in_id, said=word, is_there=is_there)
        if self.caller:
            self.user = self.caller.user
        else:
            http.session.flush()


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
            _count_request(http)
            answer = self._get_response(http)
            # A call that was answered before anybody looked at its token, such as one that asks for an unknown format.
            if http.path_info.startswith(API) and _has_token(http) and not hasattr(http, TOKEN_TRIED):
                take(STRANGER, counted_as(client_address(http)), words=WORDS)
        except TooManyAttempts as refusal:
            return _answer_refusal(http, refusal)
        return answer

    def process_view(self, http: HttpRequest, *_: object) -> HttpResponse | None:
        if http.path_info.startswith(API) or not http.user.is_authenticated:
            return None
        try:
            person = str(http.user.pk)
            name = http.resolver_match.url_name or "" if http.resolver_match else ""
            if name in EXPENSIVE_PAGES:
                take(EXPENSIVE, person, words=WORDS)
            if name in COMPARING_PAGES:
                take(COMPARING, person, words=WORDS)
            if http.method == "POST":
                take(WRITING, person, words=WORDS)
        except TooManyAttempts as refusal:
            return _answer_refusal(http, refusal)
        return None


def _count_request(http: HttpRequest) -> None:
    """Raises TooManyAttempts."""
    is_api = http.path_info.startswith(API)
    if http.path_info in FREE or (is_api and _has_token(http)):
        return
    if not http.user.is_authenticated:
        take(STRANGER, counted_as(client_address(http)), words=WORDS)
    elif not is_api:
        is_icon = ICON_ADDRESS.fullmatch(http.path_info) is not None
        take(ICON if is_icon else PERSON, str(http.user.pk), words=WORDS)


def _has_token(http: HttpRequest) -> bool:
    """A token that does not hold is counted where it is tried (approvals.api.authentication)."""
    return http.headers.get("Authorization", "").lower().startswith("bearer ")


def _answer_refusal(http: HttpRequest, refusal: TooManyAttempts) -> HttpResponse:
    if http.path_info.startswith((API, CHAT)):
        body = body_of(refusal.status, refusal.code, str(refusal), **refusal.facts)
        answer: HttpResponse = JsonResponse(body, status=refusal.status, content_type=CONTENT_TYPE)
        return errors.with_retry(answer, refusal)
    return errors.refused(http, refusal)
