"""Signing in at an OpenID Connect issuer: the way there and back, and the issuer's word that somebody has left.

django-allauth keeps the state of each sign-in in the browser's session and makes PKCE's secret. What the issuer says is
asked for, verified and bounded by `approvals.oidc`, and who that is here is decided by `services`; allauth's own
accounts, which know people by their e-mail addresses, are not used (security-rules.md S01).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from approvals import services
from approvals.errors import IssuerAway, Refused, SignInFailed
from approvals.oidc import Code, GrantRefused, Issuer, IssuerSilent, TokenRefused, exchange, verify_logout_token
from approvals.services import DISCOVERY
from approvals.web import errors
from approvals.web.access_decorators import only_by_form
from approvals.web.rendering import caller_of, page
from approvals.web.signing_in.accounts import browser_of, enter, is_page_of_ours

MAX_CODE = 4096
NOT_BEGUN_HERE = "This sign-in did not start in this browser, or started more than ten minutes ago. Sign in again."


class _Adapter(OpenIDConnectOAuth2Adapter):
    """allauth's way to an issuer of the operator's file: no issuer comes from the database or from the request."""

    state: Mapping[str, Any]

    def __init__(self, http: HttpRequest, issuer: Issuer):
        super().__init__(http, issuer.name)
        self.issuer = issuer

    @property
    def openid_config(self) -> Mapping[str, Any]:
        return DISCOVERY.document(self.issuer)

    def get_provider(self) -> OpenIDConnectProvider:
        return _Provider(self.request, self)

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        """By the operator's address of the site: what a request says of its host is not asked."""
        return str(settings.PRATIQUE["PUBLIC_URL"]).rstrip("/") + reverse("oidc-callback", args=[self.issuer.name])

    def get_access_token_data(
        self, request: HttpRequest, app: SocialApp, client: object, pkce_code_verifier: str | None = None
    ) -> NoReturn:
        """Whoever the issuer says this is, or why nobody is signed in."""
        text = request.GET.get("code", "")[:MAX_CODE]
        nonce = str(self.state.get("nonce", ""))
        code = Code(text, self.get_callback_url(request, app), pkce_code_verifier or "", nonce)
        tokens = exchange(self.issuer, DISCOVERY, code)
        wanted = str(self.state.get("next") or "")
        row = services.sign_in_with_issuer(tokens=tokens, browser=browser_of(request), before=caller_of(request))
        raise ImmediateHttpResponse(enter(request, row, wanted if is_page_of_ours(request, wanted) else "/"))


class _Provider(OpenIDConnectProvider):
    pkce_enabled_default = True

    def __init__(self, http: HttpRequest, adapter: _Adapter):
        issuer = adapter.issuer
        assert issuer.client is not None
        about = {"server_url": issuer.url, "scope": [*issuer.client.scopes]}
        app = SocialApp(provider=self.id, provider_id=issuer.name, client_id=issuer.client.id, settings=about)
        super().__init__(http, app=app)
        self._adapter = adapter

    def get_oauth2_adapter(self, request: HttpRequest) -> _Adapter:
        return self._adapter


class _Callback(OAuth2CallbackView):
    """Keeps what the session knows of this sign-in for the adapter, which verifies with it."""

    adapter: _Adapter

    def _get_state(self, request: HttpRequest, provider: OpenIDConnectProvider) -> Any:
        try:
            state = provider.unstash_redirect_state(request, request.GET.get("state", ""))
        except PermissionDenied as exc:
            raise SignInFailed(NOT_BEGUN_HERE) from exc
        self.adapter.state = state
        return state, None


@only_by_form
def leave(http: HttpRequest, *, name: str) -> HttpResponse:
    """Begin a sign-in: a page that takes the browser to the issuer.

    A page, not a redirect: the site's Content-Security-Policy lets forms lead nowhere else.
    """
    issuer = _issuer(name)
    adapter = _Adapter(http, issuer)
    nonce = secrets.token_urlsafe(32)
    more = {"nonce": nonce, "prompt": "select_account"} if http.POST.get("as") == "other" else {"nonce": nonce}
    wanted = http.POST.get("next", "")
    # The session keeps it, a stranger's too.
    wanted = wanted if is_page_of_ours(http, wanted) else ""
    try:
        answer = adapter.get_provider().redirect(http, process="login", next_url=wanted, auth_params=more, nonce=nonce)
    except IssuerSilent as exc:
        return errors.refused(http, IssuerAway(f"No answer from {issuer.title}: {exc}. Try again in a minute."))
    return page(http, "signing_in/leaving.html", {"address": answer.url, "title": issuer.title})


@require_GET
def come_back(http: HttpRequest, *, name: str) -> HttpResponse:
    """The issuer has sent the browser back: with a code, or with the reason why there is none."""
    issuer = _issuer(name)
    try:
        # Only an answer of this issuer's counts (RFC 9207), against a mix-up of issuers.
        said = http.GET.get("iss")
        promised = DISCOVERY.document(issuer).get("authorization_response_iss_parameter_supported") is True
        if (said is not None and said != issuer.url) or (said is None and promised):
            raise SignInFailed(f"The answer does not come from {issuer.title}. Sign in again.")
        if "error" in http.GET or "code" not in http.GET:
            words = "you cancelled it" if http.GET.get("error") == "access_denied" else "it sent no code"
            raise SignInFailed(f"You were not signed in at {issuer.title}: {words}.")
        answer: HttpResponse = _Callback.adapter_view(_Adapter(http, issuer))(http)
    except IssuerSilent as exc:
        refusal: Refused = IssuerAway(f"No answer from {issuer.title}: {exc}. Try again in a minute.")
    except (GrantRefused, TokenRefused) as exc:
        refusal = SignInFailed(f"You could not be signed in at {issuer.title}: {exc}. Sign in again.")
    except Refused as exc:
        refusal = exc
    else:
        return answer
    return errors.refused(http, refusal)


@csrf_exempt
@require_POST
def back_channel(http: HttpRequest, *, name: str) -> HttpResponse:
    """The issuer says by itself that a session or a person is signed out there; its signature is the proof."""
    issuer = _issuer(name)
    assert issuer.client is not None
    try:
        token = http.POST.get("logout_token", "")
        subject, session = verify_logout_token(token, issuer, issuer.client.id, DISCOVERY)
    except (TokenRefused, IssuerSilent) as exc:
        return HttpResponse(str(exc), status=400, content_type="text/plain")
    services.end_sessions_of_issuer(issuer, subject=subject, session=session)
    answer = HttpResponse(status=200)
    answer["Cache-Control"] = "no-store"
    return answer


@require_GET
def front_channel(http: HttpRequest, *, name: str) -> HttpResponse:
    """The issuer has the browser open this where somebody signs out there: in a frame, so without our cookie.

    `sid` is known to the issuer, to the browser and to us; whoever knows it may end that session. Source: OpenID
    Connect Front-Channel Logout 1.0.
    """
    issuer = _issuer(name)
    session = http.GET.get("sid", "")
    if not session or "\0" in session or http.GET.get("iss") != issuer.url:
        return HttpResponse("expected iss and sid of this issuer", status=400, content_type="text/plain")
    services.end_sessions_of_issuer(issuer, subject="", session=session)
    answer = HttpResponse("Signed out.", content_type="text/plain")
    answer["Cache-Control"] = "no-store"
    parts = urlsplit(issuer.url)
    framed_by = {"frame-ancestors": [f"{parts.scheme}://{parts.netloc}"]}
    answer._csp_replace = framed_by  # type: ignore[attr-defined]  # django-csp's middleware looks for it
    answer.xframe_options_exempt = True
    return answer


def _issuer(name: str) -> Issuer:
    issuer: Issuer | None = settings.PRATIQUE["OIDC_FILE"].named(name)
    if issuer is None or issuer.client is None:
        raise Http404
    return issuer
