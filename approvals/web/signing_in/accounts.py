"""Signing in and out, and the choice of light or dark."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import forms
from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from approvals import access, services
from approvals.clock import database_now
from approvals.errors import NotAllowed, NotFound, Refused
from approvals.models import Cluster, SignIn
from approvals.proxies import Said, Unusable
from approvals.rate_limits import PASSWORD, Attempt, client_address
from approvals.services import Browser, Proved
from approvals.services.sessions import SIGN_IN
from approvals.web.access_decorators import only_by_form
from approvals.web.errors import with_retry
from approvals.web.rendering import DENSITIES, THEME_COOKIE, THEMES, WIDTHS, caller_of, page
from provisioner.values import Identity

BACKEND = "django.contrib.auth.backends.ModelBackend"
REMEMBER_SECONDS = 365 * 86400
CLUSTER_COOKIE = "cluster"
# Where a session keeps what was proved until it is confirmed.
WAITING, WAITING_TIME = "proved", timedelta(minutes=5)
MAX_TARGET = 2000
FAILED = "The user name or password is incorrect."


class TokenForm(forms.Form):
    # Typed, not chosen: strangers are not told which clusters there are.
    cluster = forms.CharField(max_length=63, widget=forms.TextInput(attrs={"autocomplete": "on"}))
    token = forms.CharField(max_length=20_000, widget=forms.PasswordInput(attrs={"autocomplete": "off"}))


class PasswordForm(forms.Form):
    username = forms.CharField(max_length=150, widget=forms.TextInput(attrs={"autocomplete": "username"}))
    password = forms.CharField(
        max_length=4096, strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )


@require_http_methods(["GET", "POST"])
def sign_in(http: HttpRequest) -> HttpResponse:
    """With a Kubernetes token of one cluster, a proxy's word, or a local account. Each time a new session begins."""
    if http.method == "GET":
        return _form(http, _token_form(http), PasswordForm())
    if http.POST.get("with") == "token":
        return _with_token(http, TokenForm(http.POST))
    if http.POST.get("with") == "confirmation":
        return _confirmed(http)
    if http.POST.get("with") == "proxy":
        return _with_proxy(http)
    return _with_password(http, PasswordForm(http.POST))


@only_by_form
def sign_out(http: HttpRequest) -> HttpResponse:
    elsewhere = services.sign_out(sign_in_id=http.session.get(SIGN_IN))
    logout(http)
    return page(http, "signing_in/signed_out.html", {"elsewhere": elsewhere}) if elsewhere else redirect("sign-in")


@only_by_form
def choose_theme(http: HttpRequest) -> HttpResponse:
    """Remember light or dark, density and width in cookies; no known theme goes back to the browser's."""
    answer = redirect(_target(http))
    for name, offered in (("density", DENSITIES), ("width", WIDTHS)):
        if name in http.POST:
            if http.POST[name] in offered:
                _remember(answer, name, http.POST[name])
            return answer
    theme = http.POST.get("theme", "")
    if theme in THEMES:
        _remember(answer, THEME_COOKIE, theme)
    else:
        answer.delete_cookie(THEME_COOKIE)
    return answer


def _with_token(http: HttpRequest, form: TokenForm) -> HttpResponse:
    if not form.is_valid():
        return _form(http, form, PasswordForm(), status=422)
    try:
        proved = services.prove(**form.cleaned_data, address=client_address(http))
        rights = services.rights_to_tell(proved)
        if rights:
            _keep_waiting(http, proved)
            return page(
                http, "signing_in/sign_in_rights.html", {"proved": proved, "rights": rights, "next": _target(http)}
            )
        return _with_proof(http, proved)
    except Refused as refusal:
        form.add_error("token", str(refusal))
        return with_retry(_form(http, form, PasswordForm(), status=refusal.status), refusal)


def _with_proof(http: HttpRequest, proved: Proved) -> HttpResponse:
    row = services.sign_in(proved=proved, browser=browser_of(http), before=caller_of(http))
    answer = enter(http, row, _target(http))
    _remember(answer, CLUSTER_COOKIE, proved.cluster.name)
    return answer


def _confirmed(http: HttpRequest) -> HttpResponse:
    """Whoever was told what they may do comes in nevertheless, by what was proved a moment ago."""
    try:
        return _with_proof(http, _taken_waiting(http))
    except Refused as refusal:
        form = _token_form(http)
        form.cleaned_data = {}
        form.add_error(None, str(refusal))
        return _form(http, form, PasswordForm(), status=refusal.status)


def _keep_waiting(http: HttpRequest, proved: Proved) -> None:
    """In the session, which is on the server: the token itself is kept nowhere."""
    identity = proved.identity
    http.session[WAITING] = {
        "cluster": proved.cluster.pk,
        "username": identity.username,
        "uid": identity.uid,
        "groups": list(identity.groups),
        "at": proved.at.isoformat(),
    }
    http.session.cycle_key()


def _taken_waiting(http: HttpRequest) -> Proved:
    """Raises NotFound where nothing was proved, or too long ago to be the same person at this browser."""
    kept = http.session.pop(WAITING, None)
    cluster = Cluster.objects.filter(pk=kept["cluster"]).first() if kept else None
    if kept is None or cluster is None:
        raise NotFound("sign in again: nothing was verified in this browser yet")
    at = datetime.fromisoformat(kept["at"])
    if database_now() - at > WAITING_TIME:
        raise NotFound("sign in again: more than five minutes have passed")
    return Proved(cluster, Identity(kept["username"], tuple(kept["groups"]), kept["uid"]), at)


def _with_proxy(http: HttpRequest) -> HttpResponse:
    """By the form, which no other site can send: a link signs nobody in."""
    said = proxied(http)
    try:
        if not isinstance(said, Said):
            raise NotAllowed("no proxy in front of Pratique identified you: sign in at the proxy first")
        row = services.sign_in_by_proxy(said=said, browser=browser_of(http), before=caller_of(http))
    except Refused as refusal:
        form = _token_form(http)
        form.cleaned_data = {}
        form.add_error(None, str(refusal))
        return with_retry(_form(http, form, PasswordForm(), status=refusal.status), refusal)
    return enter(http, row, _target(http))


def proxied(http: HttpRequest) -> Said | Unusable | None:
    """Who a proxy says that this is, as project.middleware has found it."""
    found: Said | Unusable | None = getattr(http, "proxied", None)
    return found


def _with_password(http: HttpRequest, form: PasswordForm) -> HttpResponse:
    if not form.is_valid():
        return _form(http, _token_form(http), form, status=422)
    if not settings.PRATIQUE["LOCAL_ACCOUNTS"]:
        raise Http404
    attempt = Attempt(PASSWORD, client_address(http), form.cleaned_data["username"])
    try:
        attempt.begin()
        user = _authenticated(http, form)
    except Refused as refusal:
        form.add_error(None, str(refusal))
        return with_retry(_form(http, _token_form(http), form, status=refusal.status), refusal)
    attempt.succeed()
    row = services.sign_in_with_password(user=user, browser=browser_of(http), before=caller_of(http))
    return enter(http, row, _target(http))


def _authenticated(http: HttpRequest, form: PasswordForm) -> User:
    """Raises NotAllowed."""
    user = authenticate(http, **form.cleaned_data)
    if not isinstance(user, User):
        raise NotAllowed(FAILED)
    return user


def enter(http: HttpRequest, row: SignIn, target: str) -> HttpResponse:
    """From here on the cookie is another one, whoever it was before."""
    login(http, row.user, backend=BACKEND)
    http.session.pop(WAITING, None)
    http.session[SIGN_IN] = row.pk
    http.session.cycle_key()
    return redirect(target)


def browser_of(http: HttpRequest) -> Browser:
    return Browser(client_address(http), http.headers.get("User-Agent", ""))


def _token_form(http: HttpRequest) -> TokenForm:
    """Empty, but for the cluster where this browser signed in last."""
    return TokenForm(initial={"cluster": http.COOKIES.get(CLUSTER_COOKIE, "")})


def _remember(answer: HttpResponse, cookie: str, value: str) -> None:
    is_secure = settings.PRATIQUE["HTTPS"]
    answer.set_cookie(cookie, value, max_age=REMEMBER_SECONDS, httponly=True, samesite="Lax", secure=is_secure)


def _target(http: HttpRequest) -> str:
    """Where the form came from, if that is a page of ours."""
    wanted = http.POST.get("next", "")
    return wanted if is_page_of_ours(http, wanted) else "/"


def is_page_of_ours(http: HttpRequest, wanted: str) -> bool:
    """Whether this is the path of a page here, and short enough to be kept until somebody has signed in."""
    if not wanted.startswith("/") or len(wanted) > MAX_TARGET:
        return False
    return url_has_allowed_host_and_scheme(wanted, allowed_hosts={http.get_host()}, require_https=http.is_secure())


def _form(http: HttpRequest, token: TokenForm, password: PasswordForm, *, status: int = 200) -> HttpResponse:
    caller = caller_of(http)
    now, limit = database_now(), access.groups_limit()
    facts = {
        "token_form": token,
        "password_form": password if settings.PRATIQUE["LOCAL_ACCOUNTS"] else None,
        "next": http.POST.get("next") or http.GET.get("next", ""),
        "too_old": [proof for proof in caller.proofs if not proof.is_fresh(now, limit)] if caller else [],
        "hours": settings.PRATIQUE["GROUPS_HOURS"],
        "proxied": proxied(http),
        "issuers": [issuer for issuer in settings.PRATIQUE["OIDC_FILE"] if issuer.client],
    }
    return page(http, "signing_in/sign_in.html", facts, status=status)
