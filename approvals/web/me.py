"""Me: who Kubernetes says I am, my tokens, and my chat accounts."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from approvals import access, services
from approvals.access import Permission
from approvals.errors import InvalidInput
from approvals.models import KubernetesIdentity
from approvals.selectors import lists
from approvals.services.identity import MAX_TOKEN_DAYS
from approvals.web.doors import only_by_form, person, signed_in
from approvals.web.rendering import page


class TokenForm(forms.Form):
    name = forms.CharField(max_length=100, help_text="What it is for.")
    days = forms.IntegerField(min_value=1, max_value=MAX_TOKEN_DAYS, initial=30, label="Good for days")


class LinkForm(forms.Form):
    code = forms.CharField(
        max_length=40, help_text="The bot shows it for ten minutes.", widget=forms.TextInput(attrs={"class": "mono"})
    )


@require_safe
@signed_in
def show(http: HttpRequest) -> HttpResponse:
    return _whole(http)


@only_by_form
@signed_in
def create_token(http: HttpRequest) -> HttpResponse:
    """Make a token; this answer is the only place where its text is ever shown."""
    form = TokenForm(http.POST, auto_id="token_%s")
    if not form.is_valid():
        return _whole(http, token_form=form, status=422)
    _, text = services.create_api_token(user=person(http), **form.cleaned_data)
    return _whole(http, token_text=text)


@only_by_form
@signed_in
def revoke_token(http: HttpRequest, *, token_id: int) -> HttpResponse:
    services.revoke_api_token(user=person(http), token_id=token_id)
    messages.success(http, "The token is revoked.")
    return redirect("me")


@only_by_form
@signed_in
def link(http: HttpRequest) -> HttpResponse:
    """Bind the chat account that was shown this code to the viewer."""
    form = LinkForm(http.POST, auto_id="link_%s")
    if not form.is_valid():
        return _whole(http, link_form=form, status=422)
    try:
        account = services.link_chat_account(user=person(http), code=form.cleaned_data["code"])
    except InvalidInput as refusal:
        form.add_error("code", str(refusal))
        return _whole(http, link_form=form, status=422)
    messages.success(http, f"{account} is linked: what it decides, you decide.")
    return redirect("me")


@only_by_form
@signed_in
def unlink(http: HttpRequest, *, account_id: int) -> HttpResponse:
    services.unlink_chat_account(user=person(http), account_id=account_id)
    messages.success(http, "The chat account is unlinked.")
    return redirect("me")


def _whole(http: HttpRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    user = person(http)
    facts = {
        "identities": [(identity, _may_approve(http, identity)) for identity in lists.identities(user=user)],
        "tokens": lists.api_tokens(user=user),
        "accounts": lists.chat_accounts(user=user),
        "token_form": TokenForm(auto_id="token_%s"),
        "link_form": LinkForm(auto_id="link_%s"),
        **more,
    }
    return page(http, "me.html", facts, status=status)


def _may_approve(http: HttpRequest, identity: KubernetesIdentity) -> Permission:
    return access.may(person(http), identity.cluster, "approve", resource="bundledeployments")
