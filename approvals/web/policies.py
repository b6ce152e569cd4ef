"""Policies: what each selects, asks and said lately."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from approvals import services
from approvals.deciding.table import KINDS
from approvals.errors import InvalidInput
from approvals.models import Cluster, Policy
from approvals.policy import FACTS
from approvals.policy.expression import MAX_EXPRESSION
from approvals.selectors import keyset, lists
from approvals.selectors.keyset import ListOrder
from approvals.web.access_decorators import person, readable, signed_in
from approvals.web.fields import LabelsField, LinesField, mono
from approvals.web.rendering import note_cluster, page, page_of

LATELY = 50


class PolicyForm(forms.Form):
    name = forms.CharField(max_length=63, widget=forms.TextInput(attrs=mono()))
    cluster = forms.ModelChoiceField(Cluster.objects.none(), to_field_name="name", empty_label=None)
    kind = forms.ChoiceField(
        choices=[("guard", "guard: holds a request back unless true"), ("grant", "grant: approves a request if true")]
    )
    mode = forms.ChoiceField(choices=[("dry-run", "dry run: only records what it would do"), ("enforce", "enforce")])
    names = LinesField(label="Names", help_text="Names or globs of deployments, one per line. If empty, all.")
    labels = LabelsField(
        label="Labels", help_text="key=value labels that a deployment must have, one per line. If empty, any."
    )
    expression = forms.CharField(max_length=MAX_EXPRESSION, widget=forms.Textarea(attrs=mono(rows=5)))
    message = forms.CharField(required=False, max_length=1000, help_text="Shown when the guard holds a request back.")
    allows_known_powers = forms.BooleanField(
        label="Allow known powers",
        required=False,
        help_text="For grants: also approve content with power over Pratique, if people have approved the same power "
        "of this deployment. The upgrade of an operator that may read all Secrets needs this.",
    )
    is_active = forms.BooleanField(label="Active", required=False, initial=True)

    def __init__(self, clusters: Iterable[Cluster], *args: Any, known: Policy | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.known = known
        choices = Cluster.objects.filter(pk__in=[cluster.pk for cluster in clusters])
        self.fields["cluster"].queryset = choices  # type: ignore[attr-defined] # the stubs know a Field here only
        self.fields["name"].disabled = known is not None

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if self.known is None and Policy.objects.filter(name=name).exists():
            raise forms.ValidationError("a policy with this name already exists")
        return name


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    clusters = readable(http)
    may_write = services.may_write_policies(by=person(http), clusters=clusters)
    return page(
        http,
        "policies/policies.html",
        {"rows": lists.policies(clusters=clusters), "may_write": may_write, "kinds": KINDS},
    )


@require_safe
@signed_in
def show(http: HttpRequest, *, name: str) -> HttpResponse:
    clusters = readable(http)
    policy = _find(http, clusters, name)
    said = lists.evaluations(policy=policy, clusters=clusters)
    window = page_of(http, said, ListOrder.of(said), size=LATELY)
    facts = {
        "policy": policy,
        "window": window,
        "evaluations": keyset.in_order(lists.with_their_requests(said), window.keys),
        "rights": services.rights_of_policy(policy),
        "may_change": services.may_change_policy(by=person(http), policy=policy),
    }
    return page(http, "policies/policy.html", facts)


@require_http_methods(["GET", "POST"])
@signed_in
def new(http: HttpRequest) -> HttpResponse:
    return _save(http, PolicyForm(readable(http), http.POST or None))


@require_http_methods(["GET", "POST"])
@signed_in
def edit(http: HttpRequest, *, name: str) -> HttpResponse:
    clusters = readable(http)
    policy = _find(http, clusters, name)
    fields = ("name", "kind", "mode", "names", "labels", "expression", "message", "allows_known_powers", "is_active")
    initial = {**{field: getattr(policy, field) for field in fields}, "cluster": policy.cluster}
    return _save(http, PolicyForm(clusters, http.POST or None, known=policy, initial=initial))


def _save(http: HttpRequest, form: PolicyForm) -> HttpResponse:
    """Keep what the form says, or show it again with what is wrong."""
    if http.method == "POST" and form.is_valid():
        try:
            policy = services.save_policy(by=person(http), via="browser", **form.cleaned_data)
        except InvalidInput as refusal:
            field = str(refusal.facts.get("field", ""))
            form.add_error(field if field in form.fields else None, str(refusal))
        else:
            messages.success(http, f"{policy.name} was saved as version {policy.version}.")
            return redirect("policy", name=policy.name)
    facts = {"form": form, "policy": form.known, "fact_rows": sorted(FACTS.items())}
    return page(http, "policies/policy_form.html", facts, status=422 if form.is_bound else 200)


def _find(http: HttpRequest, clusters: Iterable[Cluster], name: str) -> Policy:
    policy = lists.policies(clusters=list(clusters)).filter(name=name).first()
    if policy is None or policy.cluster is None:
        raise Http404
    note_cluster(http, policy.cluster)
    return policy
