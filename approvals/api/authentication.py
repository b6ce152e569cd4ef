"""Who calls: by a person's token (`Authorization: Bearer prq_…`), an ID token of an issuer, or a proxy's word.

Of a token made here only the SHA-256 is kept.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from drf_spectacular.authentication import SessionScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.request import Request as Http
from rest_framework.throttling import BaseThrottle

from approvals import access, instruments, services
from approvals.access import Caller, Scope
from approvals.clock import database_now
from approvals.deciding.table import KINDS
from approvals.errors import CouldNotAsk, NotAllowed, OutOfScope, TooManyAttempts
from approvals.models import ApiToken
from approvals.oidc import IssuerSilent, TokenRefused, issuer_of, verify_id_token
from approvals.proxies import Said
from approvals.proxies.identity_proxies import USER
from approvals.rate_limits import API_TOKEN, Attempt, Limit, client_address, take

# What a request is marked with whose token was counted and looked at.
TOKEN_TRIED = "is_token_tried"  # noqa: S105 - a word of ours
# Reading writes a row at most this often.
NOTED_EVERY = timedelta(minutes=1)


PERSON = Limit("rest-person", 600, 60)
ACTIONS = {
    "report": Limit("rest-report", 120, 60),
    "planned": Limit("rest-planned", 240, 60),
    "drift": Limit("rest-drift", 120, 60),
    "comparison": Limit("rest-comparison", 120, 60),
    "compared_lines": Limit("rest-compared-lines", 240, 60),
}
WRITING = Limit("rest-writing", 120, 60)
# By the name of the address: the description of the whole API is worked out anew each time.
ADDRESSES = {"api-schema": Limit("rest-schema", 20, 60)}
WORDS = "too many requests: try again in {time}"
# What decides, by (basename, action); every other write asks for a change.
DECIDING = {
    ("api-request", "reviews"),
    ("api-request", "dismiss"),
    ("api-request", "apply_at"),
    ("api-request", "run_check_again"),
    ("api-external-checks", "secret"),
    ("api-set", "review"),
    ("api-set", "approve_ring"),
    ("api-set", "take_out"),
    ("api-set", "end_order"),
    ("api-deployment", "revoke"),
    ("api-deployment", "reinstate"),
    ("api-policy", "create"),
    ("api-policy", "update"),
    ("api-policy", "destroy"),
    ("api-cluster", "switch_guard"),
    *(
        ("api-notification-target", action)
        for action in ("create", "update", "destroy", "stop", "secret", "test", "send_again")
    ),
    *((f"api-{kind.slug}", action) for kind in KINDS for action in ("create", "update", "destroy")),
    ("api-finding-exceptions", "confirm"),
}
# What writes nothing in a cluster and decides nothing: its result is read, and working it out has a quota.
READING = {("api-catalog", "compare"), ("api-policy-test", "create")}
# About the token itself: open to every token, also to one whose proof is too old.
OWN = "api-token"


class TokenAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, Caller] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != b"bearer":
            return None
        if len(words) != 2:
            raise AuthenticationFailed("expected `Authorization: Bearer <token>`")
        setattr(request._request, TOKEN_TRIED, True)
        if words[1].count(b".") == 2:
            return self._of_issuer(request, words[1])
        return self._of_token(request, words[1])

    def _of_token(self, request: Request, word: bytes) -> tuple[User, Caller]:
        """By a token that a person made here."""
        now = database_now()
        digest = hashlib.sha256(word).hexdigest()
        attempt = Attempt(API_TOKEN, client_address(request._request), digest)
        attempt.begin()
        known = ApiToken.objects.select_related("user", "grant").filter(
            digest=digest, expires_at__gt=now, user__is_active=True
        )
        token = known.first()
        if token and token.grant and services.renew_grant(token.grant):
            token = known.first()
        if token is None:
            instruments.refused_sign_ins.labels("api_token").inc()
            raise AuthenticationFailed("the token is unknown, revoked or expired")
        attempt.succeed()
        if token.ended_because:
            raise AuthenticationFailed(f"the token has ended: {token.ended_because}")
        caller = access.of_token(token)
        if not caller.proofs:
            raise AuthenticationFailed("the identity behind this token has expired: create a new token")
        if token.last_used_at is None or now - token.last_used_at > NOTED_EVERY:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.user, caller

    def _of_issuer(self, request: Request, word: bytes) -> tuple[User, Caller]:
        """By an ID token of an issuer that the operator named, for the audience that they named."""
        attempt = Attempt(API_TOKEN, client_address(request._request), hashlib.sha256(word).hexdigest())
        attempt.begin()
        try:
            text = word.decode("ascii")
            issuer = issuer_of(text, settings.PRATIQUE["OIDC_FILE"])
            if not issuer.audiences:
                raise TokenRefused("ID tokens from this issuer are not accepted here")
            caller = services.caller_of_id_token(verify_id_token(text, issuer, issuer.audiences, services.DISCOVERY))
        except (TokenRefused, NotAllowed, UnicodeDecodeError) as exc:
            instruments.refused_sign_ins.labels("id_token").inc()
            raise AuthenticationFailed(f"the ID token is refused: {exc}") from exc
        except IssuerSilent as exc:
            raise CouldNotAsk(f"the ID token could not be verified: {exc}") from exc
        attempt.succeed()
        return caller.user, caller

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class BrowserAuthentication(SessionAuthentication):
    """A browser's session, whose other proofs project.middleware has looked at."""

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        found: tuple[User, None] | None = super().authenticate(request)
        awaited = getattr(request._request, "awaited_proxy", "")
        if awaited:
            raise AuthenticationFailed(
                f"this call did not come through {awaited}, which authenticates each request of this browser "
                "session. The session is still valid, but not for this call: use an API token, or call through "
                "the proxy"
            )
        return found


class ProxyAuthentication(BaseAuthentication):
    """The word of a proxy in front, where the operator lets it count for the API; each call is proved by itself.

    A browser is signed in at the proxy by a cookie, so another site could have it call. So what is no read has to be
    JSON by its header, which no other site can send without asking first (CORS), and nobody answers that question here.
    """

    def authenticate(self, request: Request) -> tuple[User, Caller] | None:
        said = getattr(request._request, "proxied", None)
        if not isinstance(said, Said) or not said.proxy.is_for_api:
            return None
        _check_sender(request)
        try:
            caller = services.caller_of_proxy(said)
        except NotAllowed as exc:
            instruments.refused_sign_ins.labels("proxy").inc()
            raise AuthenticationFailed(str(exc)) from exc
        return caller.user, caller

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def _check_sender(request: Request) -> None:
    """Raises PermissionDenied for what a page of another site may have sent."""
    if request.method in SAFE_METHODS:
        return
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    is_json = request.headers.get("Content-Type", "").partition(";")[0].strip().lower() == "application/json"
    if not is_json or site not in ("same-origin", "none"):
        raise PermissionDenied(
            "a write authenticated by a proxy needs Content-Type: application/json, even without a body, and "
            "must not come from another site"
        )


class BrowserScheme(SessionScheme):  # type: ignore[no-untyped-call]  # drf-spectacular registers by subclass
    target_class = "approvals.api.authentication.BrowserAuthentication"


class ProxyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # drf-spectacular registers by subclass
    target_class = "approvals.api.authentication.ProxyAuthentication"
    name = "proxy"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        words = "set by a proxy of PRATIQUE_IDENTITY_PROXIES_FILE with api: true; ignored from anyone else"
        return {"type": "apiKey", "in": "header", "name": USER, "description": words}


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # drf-spectacular registers by subclass
    target_class = "approvals.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class _Counted(BaseThrottle):
    seconds: float | None = None

    def limit(self, request: Request, view: Any) -> Limit | None:
        raise NotImplementedError

    def allow_request(self, request: Request, view: Any) -> bool:
        limit = self.limit(request, view)
        if limit is None:
            return True
        try:
            take(limit, str(request.user.pk), words=WORDS)
        except TooManyAttempts as refusal:
            self.seconds = float(str(refusal.facts["retryAfter"]))
            return False
        return True

    def wait(self) -> float | None:
        return self.seconds


class ByPerson(_Counted):
    """All that one person asks for."""

    def limit(self, request: Request, view: Any) -> Limit | None:
        return PERSON


class ByAction(_Counted):
    """What costs more: reports, for which the cluster is asked about each object, and writes to the cluster."""

    def limit(self, request: Request, view: Any) -> Limit | None:
        if request.method not in SAFE_METHODS:
            return WRITING
        name = request.resolver_match.url_name if request.resolver_match else ""
        return ACTIONS.get(getattr(view, "action", "")) or ADDRESSES.get(name or "")


def caller_of(http: Http) -> Caller:
    """Who is asking; the permission classes let nobody else in."""
    if isinstance(http.auth, Caller):
        return http.auth
    caller = http._request.find_caller()  # type: ignore[attr-defined]  # set by project.middleware
    assert isinstance(caller, Caller)
    return caller


class InScope(BasePermission):
    """Raises OutOfScope and ProofTooOld, which say more than a no."""

    def has_permission(self, request: Http, view: Any) -> bool:
        basename = getattr(view, "basename", "")
        if basename == OWN:
            return True
        caller, needed = caller_of(request), scope_of(request, basename, getattr(view, "action", "") or "")
        if not caller.has(needed):
            given = ", ".join(sorted(caller.scopes or ()))
            words = (
                f"this token lacks the scope {needed}: it has {given}. Create one with that scope on the account page"
            )
            raise OutOfScope(words, scope=needed)
        access.check_fresh(caller)
        return True


def scope_of(request: Http, basename: str, action: str) -> str:
    if request.method in SAFE_METHODS or (basename, action) in READING:
        return Scope.READ.value
    return Scope.DECIDE.value if (basename, action) in DECIDING else Scope.REQUEST.value
