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
from approvals.errors import Refused
from approvals.models import Cluster
from approvals.web.doors import only_by_form
from approvals.web.rendering import THEME_COOKIE, THEMES, page

BACKEND = "django.contrib.auth.backends.ModelBackend"
THEME_SECONDS = 365 * 86400
FAILED = "This name and password do not fit."


class TokenForm(forms.Form):
    cluster = forms.ModelChoiceField(Cluster.objects.all(), to_field_name="name", empty_label=None)
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
        return _form(http, TokenForm(), PasswordForm())
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
        answer.set_cookie(
            THEME_COOKIE, theme, max_age=THEME_SECONDS, httponly=True, samesite="Lax", secure=settings.PRATIQUE["HTTPS"]
        )
    else:
        answer.delete_cookie(THEME_COOKIE)
    return answer


def _with_token(http: HttpRequest, form: TokenForm) -> HttpResponse:
    if not form.is_valid():
        return _form(http, form, PasswordForm(), status=422)
    try:
        user = services.sign_in_with_token(cluster=form.cleaned_data["cluster"], token=form.cleaned_data["token"])
    except Refused as refusal:
        form.add_error("token", str(refusal))
        return _form(http, form, PasswordForm(), status=refusal.status)
    return _enter(http, user)


def _with_password(http: HttpRequest, form: PasswordForm) -> HttpResponse:
    if not form.is_valid():
        return _form(http, TokenForm(), form, status=422)
    user = authenticate(http, **form.cleaned_data)
    if not isinstance(user, User):
        form.add_error(None, FAILED)
        return _form(http, TokenForm(), form, status=403)
    return _enter(http, user)


def _enter(http: HttpRequest, user: User) -> HttpResponse:
    login(http, user, backend=BACKEND)
    return redirect(_target(http))


def _target(http: HttpRequest) -> str:
    """Where the form came from, if that is a page of ours."""
    wanted = http.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={http.get_host()}, require_https=http.is_secure())
    return wanted if is_ours else "/"


def _form(http: HttpRequest, token: TokenForm, password: PasswordForm, *, status: int = 200) -> HttpResponse:
    facts = {"token_form": token, "password_form": password, "next": http.POST.get("next") or http.GET.get("next", "")}
    return page(http, "sign_in.html", facts, status=status)
