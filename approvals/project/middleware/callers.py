"""Who is asking in a browser: the session's account, as far as the session has not ended."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve
from django.utils.functional import SimpleLazyObject

from approvals import services
from approvals.access import Caller
from approvals.proxies import Said
from approvals.services.sessions import SIGN_IN

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
