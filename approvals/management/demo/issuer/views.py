"""The issuer's own pages and their addresses: pick a person, and sign out of everything."""

from __future__ import annotations

import json
import logging
import time
import uuid
from typing import Any
from urllib.parse import urlencode

import jwt
import urllib3
from django.contrib.auth import login, logout
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import include, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods
from oauth2_provider.models import Application, RefreshToken
from oauth2_provider.views import ConnectDiscoveryInfoView

from approvals.management.demo.issuer import settings as about
from approvals.management.demo.issuer.claims import people, session_of

logger = logging.getLogger(__name__)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


@require_http_methods(["GET", "POST"])
def sign_in(http: HttpRequest) -> HttpResponse:
    known = people()
    wanted = http.POST.get("next") or http.GET.get("next", "")
    name = http.POST.get("person", "")
    if name in known:
        user, _ = User.objects.get_or_create(username=name)
        login(http, user, backend="django.contrib.auth.backends.ModelBackend")
        is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={http.get_host()})
        return redirect(wanted if is_ours else "home")
    return render(http, "people.html", {"people": known, "next": wanted})


@require_http_methods(["GET", "POST"])
def home(http: HttpRequest) -> HttpResponse:
    """Who is signed in here; the one button signs them out wherever they signed in with this issuer."""
    user = http.user
    if http.method == "GET" or not isinstance(user, User):
        return render(http, "home.html", {"person": user})
    session = session_of(user)
    frames = []
    if about.ISSUER_FRONT_CHANNEL:
        query = urlencode({"iss": about.ISSUER_URL, "sid": session})
        frames.append(f"{about.ISSUER_FRONT_CHANNEL}?{query}")
    if about.ISSUER_BACK_CHANNEL:
        tell(about.ISSUER_BACK_CHANNEL, user, session)
    RefreshToken.objects.filter(user=user).delete()
    logout(http)
    return render(http, "home.html", {"person": None, "frames": frames})


def tell(address: str, user: User, session: str) -> None:
    """Back-channel logout: post a signed word that this session has ended."""
    application = Application.objects.get(client_id=about.CLIENT_ID)
    now = int(time.time())
    claims: dict[str, Any] = {
        "iss": about.ISSUER_URL,
        "aud": about.CLIENT_ID,
        "sub": people().get(user.username, {}).get("sub", user.username),
        "sid": session,
        "iat": now,
        "exp": now + 120,
        "jti": str(uuid.uuid4()),
        "events": {LOGOUT_EVENT: {}},
    }
    header = {"typ": "logout+jwt", "kid": application.jwk_key.thumbprint()}
    token = jwt.encode(claims, about.SIGNING_KEY, "RS256", headers=header)
    try:
        form = urlencode({"logout_token": token})
        answer = urllib3.request("POST", address, body=form, headers=FORM, timeout=10, redirect=False)
        logger.info("sent a back-channel logout", extra={"code": answer.status})
    except urllib3.exceptions.HTTPError as exc:
        logger.warning("the back-channel logout could not be sent: %s", exc)


class DiscoveryDocument(ConnectDiscoveryInfoView):  # type: ignore[misc]  # django-oauth-toolkit has no types
    """What the issuer can do, with the two ways of signing out that it adds."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        said = json.loads(super().get(request, *args, **kwargs).content)
        names = ("frontchannel_logout_supported", "backchannel_logout_supported")
        said["revocation_endpoint"] = about.ISSUER_URL + reverse("oauth2_provider:revoke-token")
        return JsonResponse({**said, **dict.fromkeys(names, True)})


# The discovery document is at the root, where clients look for it; the rest of the toolkit is under /o/.
urlpatterns = [
    path("", home, name="home"),
    path("sign-in", sign_in, name="sign-in"),
    path(".well-known/openid-configuration", DiscoveryDocument.as_view()),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
]
