"""Signing in and out, and the choice of light or dark."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from approvals import services
from approvals.errors import NotAllowed, Refused
from approvals.limits import PASSWORD, Attempt, client_address
from approvals.web.doors import only_by_form
from approvals.web.errors import with_retry
from approvals.web.rendering import THEME_COOKIE, THEMES, page

BACKEND = "django.contrib.auth.backends.ModelBackend"
REMEMBER_SECONDS = 365 * 86400
CLUSTER_COOKIE = "cluster"
FAILED = "This name and password do not fit."


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
    """With a Kubernetes token of one cluster, or with a local account. Either way a new session begins."""
    if http.method == "GET":
        return _form(http, _token_form(http), PasswordForm())
    if http.POST.get("with") == "token":
        return _with_token(http, TokenForm(http.POST))
    return _with_password(http, PasswordForm(http.POST))


@only_by_form
def sign_out(http: HttpRequest) -> HttpResponse:
    logout(http)
    return redirect("sign-in")


@only_by_form
def choose_theme(http: HttpRequest) -> HttpResponse:
    """Remember light or dark in a cookie; anything else goes back to what the browser prefers."""
    answer = redirect(_target(http))
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
        user = services.sign_in_with_token(**form.cleaned_data, address=client_address(http))
    except Refused as refusal:
        form.add_error("token", str(refusal))
        return with_retry(_form(http, form, PasswordForm(), status=refusal.status), refusal)
    answer = _enter(http, user)
    _remember(answer, CLUSTER_COOKIE, form.cleaned_data["cluster"])
    return answer


def _with_password(http: HttpRequest, form: PasswordForm) -> HttpResponse:
    if not form.is_valid():
        return _form(http, _token_form(http), form, status=422)
    attempt = Attempt(PASSWORD, client_address(http), form.cleaned_data["username"])
    try:
        attempt.begin()
        user = _authenticated(http, form)
    except Refused as refusal:
        form.add_error(None, str(refusal))
        return with_retry(_form(http, _token_form(http), form, status=refusal.status), refusal)
    attempt.succeed()
    return _enter(http, user)


def _authenticated(http: HttpRequest, form: PasswordForm) -> User:
    """Raises NotAllowed."""
    user = authenticate(http, **form.cleaned_data)
    if not isinstance(user, User):
        raise NotAllowed(FAILED)
    return user


def _enter(http: HttpRequest, user: User) -> HttpResponse:
    login(http, user, backend=BACKEND)
    return redirect(_target(http))


def _token_form(http: HttpRequest) -> TokenForm:
    """Empty, but for the cluster where this browser signed in last."""
    return TokenForm(initial={"cluster": http.COOKIES.get(CLUSTER_COOKIE, "")})


def _remember(answer: HttpResponse, cookie: str, value: str) -> None:
    is_secure = settings.PRATIQUE["HTTPS"]
    answer.set_cookie(cookie, value, max_age=REMEMBER_SECONDS, httponly=True, samesite="Lax", secure=is_secure)


def _target(http: HttpRequest) -> str:
    """Where the form came from, if that is a page of ours."""
    wanted = http.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={http.get_host()}, require_https=http.is_secure())
    return wanted if is_ours else "/"


def _form(http: HttpRequest, token: TokenForm, password: PasswordForm, *, status: int = 200) -> HttpResponse:
    facts = {"token_form": token, "password_form": password, "next": http.POST.get("next") or http.GET.get("next", "")}
    return page(http, "sign_in.html", facts, status=status)
