"""Me: as whom I act where, what I am signed in with, my tokens, and my chat accounts."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from approvals import access, services
from approvals.access import ActingAs, Caller, Permission, Proof, Scope
from approvals.clock import database_now
from approvals.errors import Refused
from approvals.models import Cluster
from approvals.rate_limits import client_address
from approvals.selectors import account as shown
from approvals.web.access_decorators import only_by_form, person, signed_in
from approvals.web.errors import with_retry
from approvals.web.rendering import page

SCOPES = (
    (Scope.READ, "Read requests and reports"),
    (Scope.REQUEST, "Request changes, pause and withdraw"),
    (Scope.DECIDE, "Approve, deny and revoke"),
)


class ApiTokenForm(forms.Form):
    """Offers the clusters that the caller has proved, and not too long ago."""

    name = forms.CharField(max_length=100, help_text="What the token is for.")
    days = forms.IntegerField(min_value=1, initial=30, label="Days until it expires")
    scopes = forms.MultipleChoiceField(
        choices=SCOPES, initial=[Scope.READ], widget=forms.CheckboxSelectMultiple, label="Scopes"
    )
    clusters = forms.ModelMultipleChoiceField(
        queryset=Cluster.objects.none(), widget=forms.CheckboxSelectMultiple, label="On clusters"
    )

    def __init__(self, caller: Caller, data: Any = None) -> None:
        super().__init__(data, auto_id="token_%s")
        most = settings.PRATIQUE["TOKEN_DAYS"]
        self.fields["days"].initial = min(30, most)
        self.fields["days"].help_text = f"At most {most}."
        clusters = self.fields["clusters"]
        assert isinstance(clusters, forms.ModelMultipleChoiceField)
        proved = [proof.cluster_id for proof in caller.proofs]
        clusters.queryset = Cluster.objects.filter(pk__in=proved).order_by("name")
        clusters.initial = proved if len(proved) == 1 else []


class LinkForm(forms.Form):
    code = forms.CharField(
        max_length=40,
        help_text="The bot shows this code. It is valid for ten minutes.",
        widget=forms.TextInput(attrs={"class": "mono"}),
    )


class IdentityForm(forms.Form):
    cluster = forms.CharField(max_length=63)
    token = forms.CharField(max_length=20_000, widget=forms.PasswordInput(attrs={"autocomplete": "off"}))


@require_safe
@signed_in
def show(http: HttpRequest) -> HttpResponse:
    return _whole(http)


@only_by_form
@signed_in
def create_token(http: HttpRequest) -> HttpResponse:
    """Make a token; this answer is the only place where its text is ever shown."""
    access.check_fresh(person(http))
    form = ApiTokenForm(person(http), http.POST)
    if not form.is_valid():
        return _whole(http, token_form=form, status=422)
    try:
        _, text = services.create_api_token(by=person(http), **form.cleaned_data)
    except Refused as refusal:
        return _with_error(http, form, refusal, "token_form")
    return _whole(http, token_text=text)


@only_by_form
@signed_in
def revoke_token(http: HttpRequest, *, token_id: int) -> HttpResponse:
    services.revoke_api_token(by=person(http), token_id=token_id)
    messages.success(http, "The token was revoked.")
    return redirect("me")


@only_by_form
@signed_in
def link(http: HttpRequest) -> HttpResponse:
    """Bind the chat account that was shown this code to the viewer."""
    form = LinkForm(http.POST, auto_id="link_%s")
    if not form.is_valid():
        return _whole(http, link_form=form, status=422)
    access.check_fresh(person(http))
    try:
        linked = services.link_chat_account(by=person(http), code=form.cleaned_data["code"])
    except Refused as refusal:
        return _with_error(http, form, refusal, "link_form")
    messages.success(http, f"{linked} was linked: its decisions count as yours.")
    return redirect("me")


@only_by_form
@signed_in
def unlink(http: HttpRequest, *, account_id: int) -> HttpResponse:
    services.unlink_chat_account(by=person(http), account_id=account_id)
    messages.success(http, "The chat account was unlinked.")
    return redirect("me")


@only_by_form
@signed_in
def link_identity(http: HttpRequest) -> HttpResponse:
    """Prove a second identity in the session that has proved the first: both are this account from then on."""
    access.check_fresh(person(http))
    form = IdentityForm(http.POST, auto_id="identity_%s")
    if not form.is_valid():
        return _whole(http, identity_form=form, status=422)
    try:
        proved = services.prove(**form.cleaned_data, address=client_address(http))
        row = services.link_identity(by=person(http), proved=proved)
    except Refused as refusal:
        return _with_error(http, form, refusal, "identity_form")
    messages.success(http, f"The identity {row.username} on cluster {proved.cluster.name} was linked to your account.")
    return redirect("me")


@only_by_form
@signed_in
def unlink_identity(http: HttpRequest, *, identity_id: int) -> HttpResponse:
    row = services.unlink_identity(by=person(http), identity_id=identity_id)
    messages.success(http, f"The identity {row.username} on cluster {row.cluster.name} was unlinked.")
    return redirect("me")


@only_by_form
@signed_in
def end_session(http: HttpRequest, *, sign_in_id: int) -> HttpResponse:
    is_this = sign_in_id == person(http).holder_id
    services.end_session(by=person(http), sign_in_id=sign_in_id)
    if is_this:
        logout(http)
        return redirect("sign-in")
    messages.success(http, "The session was ended.")
    return redirect("me")


@only_by_form
@signed_in
def end_others(http: HttpRequest) -> HttpResponse:
    ended = services.end_other_sessions(by=person(http))
    messages.success(http, f"{ended} other sessions were ended." if ended != 1 else "One other session was ended.")
    return redirect("me")


def _with_error(http: HttpRequest, form: forms.Form, refusal: Refused, name: str) -> HttpResponse:
    field = str(refusal.facts.get("field", ""))
    form.add_error(field if field in form.fields else None, str(refusal))
    return with_retry(_whole(http, status=refusal.status, **{name: form}), refusal)


def _whole(http: HttpRequest, *, status: int = 200, **more: Any) -> HttpResponse:
    caller = person(http)
    sessions, tokens = services.sharing_identity(caller)
    facts = {
        "proofs": _proofs(caller),
        "is_linked": caller.user.kubernetes_identities.count() > 1 and not _is_mapped(caller),
        "elsewhere": shown.other_identities(user=caller.user, but=caller.identity_ids),
        "sessions": shown.with_devices(sessions),
        "this_session": caller.holder_id,
        "tokens": shown.with_scopes(tokens),
        "accounts": shown.chat_accounts(user=caller.user),
        "token_form": ApiTokenForm(caller) if caller.proofs else None,
        "link_form": LinkForm(auto_id="link_%s"),
        "identity_form": None if _is_mapped(caller) else IdentityForm(auto_id="identity_%s"),
        "hours": settings.PRATIQUE["GROUPS_HOURS"],
        "idle_minutes": settings.PRATIQUE["SESSION_IDLE_MINUTES"],
        **more,
    }
    return page(http, "signing_in/me.html", facts, status=status)


def _is_mapped(caller: Caller) -> bool:
    return not caller.proofs or any(proof.is_mapped for proof in caller.proofs)


def _proofs(caller: Caller) -> list[tuple[Proof, ActingAs, Permission]]:
    shown = access.acting_of(caller, None, database_now()).identities
    return [
        (proof, identity, _may_approve(caller, proof)) for proof, identity in zip(caller.proofs, shown, strict=True)
    ]


def _may_approve(caller: Caller, proof: Proof) -> Permission:
    cluster = Cluster.objects.get(pk=proof.cluster_id)
    return access.may(caller, cluster, "approve", resource="bundledeployments")
