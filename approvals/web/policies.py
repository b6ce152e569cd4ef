"""Policies: what each selects, asks and said lately."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from approvals import access, services
from approvals.deciding.approval_policies import ApprovalPolicy
from approvals.deciding.table import KINDS
from approvals.errors import InvalidInput
from approvals.models import Cluster, Policy
from approvals.policy import FACTS
from approvals.policy.built_in import BUILT_IN
from approvals.policy.document import COLUMNS, PolicyDocument
from approvals.policy.expression import MAX_EXPRESSION
from approvals.policy.replay import ReplayResult
from approvals.policy.templates import TEMPLATES, find_template
from approvals.selectors import keyset, lists
from approvals.selectors.keyset import ListOrder
from approvals.web.access_decorators import person, readable, signed_in
from approvals.web.fields import LabelsField, LinesField, mono
from approvals.web.rendering import note_cluster, page, page_of
from provisioner.render import write_quoted

LATELY = 50
LISTED_FIRST = (ReplayResult.HELD, ReplayResult.APPROVED, ReplayResult.UNKNOWN)
LISTED_AFTER = (ReplayResult.PASSED, ReplayResult.SILENT)


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
        if self.known is None and Policy.objects.filter(name=name, uid="").exists():
            raise forms.ValidationError("a policy with this name already exists")
        return name


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    """Policies of the service, and those of clusters that the viewer may get there."""
    clusters = readable(http)
    may_write = services.may_write_policies(by=person(http), clusters=clusters)
    shown = [it for it in clusters if access.may(person(http), it, "get", resource=ApprovalPolicy.plural).allowed]
    rows = [*lists.policies(clusters=clusters), *lists.policies_of_clusters(clusters=shown)]
    words = {guard.uid: guard.words for guard in BUILT_IN}
    built_in = [
        (guard, words[guard.uid], services.may_change_policy(by=person(http), policy=guard))
        for guard in lists.built_in_guards(clusters=clusters)
    ]
    facts = {"rows": rows, "may_write": may_write, "kinds": KINDS, "object_kind": ApprovalPolicy, "built_in": built_in}
    return page(http, "policies/policies.html", facts)


@require_POST
@signed_in
def switch_guard(http: HttpRequest, *, cluster: str, name: str) -> HttpResponse:
    """Switch a built-in guard of a cluster on or off."""
    where = next((each for each in readable(http) if each.name == cluster), None)
    if where is None:
        raise Http404
    is_active = http.POST.get("is_active") == "true"
    guard = services.switch_guard(by=person(http), cluster=where, name=name, is_active=is_active, via="browser")
    messages.success(http, f"{guard.name} is {'on' if guard.is_active else 'off'} for cluster {where.name}.")
    return redirect("policies")


@require_safe
@signed_in
def show(http: HttpRequest, *, name: str) -> HttpResponse:
    clusters = readable(http)
    policy = _find(http, clusters, name)
    facts = {
        "policy": policy,
        **latest_results(http, policy, clusters),
        "rights": services.rights_of_policy(policy),
        "may_change": services.may_change_policy(by=person(http), policy=policy),
        "document": write_quoted([_draft_of(_columns_of(policy)).to_object()]),
        "may_move": _may_create(http, policy) if policy.is_active else None,
    }
    return page(http, "policies/policy.html", facts)


@require_POST
@signed_in
def move(http: HttpRequest, *, name: str) -> HttpResponse:
    """Write the policy to its cluster, and disable it here."""
    policy = _find(http, readable(http), name)
    made = services.move_policy(by=person(http), policy=policy, via="browser")
    messages.success(http, f"{made.name} is an ApprovalPolicy of cluster {made.cluster.name} now, and disabled here.")
    return redirect("rule", slug=ApprovalPolicy.slug, cluster=made.cluster.name, name=made.name)


def latest_results(http: HttpRequest, policy: Policy, clusters: list[Cluster]) -> dict[str, Any]:
    """What a policy said lately of requests of these clusters, for `policies/_results.html`."""
    said = lists.evaluations(policy=policy, clusters=clusters)
    window = page_of(http, said, ListOrder.of(said), size=LATELY)
    return {"window": window, "evaluations": keyset.in_order(lists.with_their_requests(said), window.keys)}


def _may_create(http: HttpRequest, policy: Policy) -> access.Permission | None:
    if policy.cluster is None:
        return None
    return access.may(person(http), policy.cluster, "create", resource=ApprovalPolicy.plural, name="")


@require_http_methods(["GET", "POST"])
@signed_in
def new(http: HttpRequest) -> HttpResponse:
    """An empty form, or one that a template fills (`?template=NAME`)."""
    template = find_template(http.GET.get("template", ""))
    initial = template.document.columns() if template else {}
    return _save(http, PolicyForm(readable(http), http.POST or None, initial=initial))


@require_http_methods(["GET", "POST"])
@signed_in
def edit(http: HttpRequest, *, name: str) -> HttpResponse:
    clusters = readable(http)
    policy = _find(http, clusters, name)
    initial = {**_columns_of(policy), "is_active": policy.is_active}
    return _save(http, PolicyForm(clusters, http.POST or None, known=policy, initial=initial))


def _columns_of(policy: Policy) -> dict[str, Any]:
    return {column: getattr(policy, column) for column in ("cluster", *COLUMNS)}


def _draft_of(wish: dict[str, Any]) -> PolicyDocument:
    return PolicyDocument.of_columns({**wish, "cluster": wish["cluster"].name})


def _save(http: HttpRequest, form: PolicyForm) -> HttpResponse:
    """Keep what the form says, or try it on past requests, or show it again with what is wrong."""
    facts = {"form": form, "policy": form.known, "fact_rows": sorted(FACTS.items()), "templates": TEMPLATES}
    if "try" in http.POST and form.is_valid():
        try:
            return page(http, "policies/policy_form.html", {**facts, **_replayed(http, form.cleaned_data)})
        except InvalidInput as refusal:
            form.add_error("expression", str(refusal))
    elif http.method == "POST" and form.is_valid():
        try:
            policy = services.save_policy(by=person(http), via="browser", **form.cleaned_data)
        except InvalidInput as refusal:
            field = str(refusal.facts.get("field", ""))
            form.add_error(field if field in form.fields else None, str(refusal))
        else:
            messages.success(http, f"{policy.name} was saved as version {policy.version}.")
            return redirect("policy", name=policy.name)
    return page(http, "policies/policy_form.html", facts, status=422 if form.is_bound else 200)


def _replayed(http: HttpRequest, wish: dict[str, Any]) -> dict[str, Any]:
    """What the draft would have said of the past requests of its cluster, the ones that it would have changed first."""
    cluster = wish["cluster"]
    replay = services.replay_policy(by=person(http), document=_draft_of(wish), clusters=[cluster])
    told = [row for row in replay.rows if row.replayed.result in LISTED_FIRST]
    rest = [row for row in replay.rows if row.replayed.result in LISTED_AFTER]
    shown = [*told, *rest]
    return {"replay": replay, "shown": shown[:LATELY], "more": max(0, len(shown) - LATELY)}


def _find(http: HttpRequest, clusters: Iterable[Cluster], name: str) -> Policy:
    policy = lists.policies(clusters=list(clusters)).filter(name=name).first()
    if policy is None or policy.cluster is None:
        raise Http404
    note_cluster(http, policy.cluster)
    return policy
