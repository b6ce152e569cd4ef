"""The order of a change set: a form that makes one, and what lets the set go on sooner."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from approvals import services
from approvals.deciding.rings import OnFailure
from approvals.errors import InvalidInput, NotFound
from approvals.lifecycle import SUPERSEDABLE
from approvals.models import Cluster, Request
from approvals.selectors.sets import members_of
from approvals.services.sets.rollouts import MOST_MEMBERS
from approvals.web.access_decorators import only_by_form, person, readable, signed_in
from approvals.web.fields import YamlField, mono
from approvals.web.rendering import page

EXAMPLE = """\
- {name: canary, clusters: [staging-*], soakMinutes: 60, requiresApproval: true}
- {name: rest}"""
FAILURES = (
    (OnFailure.STOP, "The others there stop"),
    (OnFailure.PUT_BACK, "The others there stop, and their previous revisions are restored"),
)


class OrderForm(forms.Form):
    """`choices` are the deployments with an open request that the viewer may read."""

    name = forms.CharField(
        label="Name of the set", max_length=63, widget=forms.TextInput(attrs=mono()), help_text="Such as spring-2.1."
    )
    members = forms.MultipleChoiceField(label="Deployments with an open request", widget=forms.CheckboxSelectMultiple)
    rings = YamlField(
        label="Rings, the first one first",
        example=EXAMPLE,
        is_list=True,
        rows=6,
        help_text="A list in YAML. Each ring has a name, and clusters (names or globs) or matchLabels of clusters; one "
        "without either takes every cluster that is left. soakMinutes and requiresApproval hold back the next ring.",
    )
    on_failure = forms.ChoiceField(label="If a deployment fails on a cluster", choices=FAILURES)

    def __init__(self, clusters: Collection[Cluster], *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        waiting = Request.objects.filter(cluster__in=list(clusters), state__in=SUPERSEDABLE)
        places = waiting.order_by("cluster__name", "deployment__name").values_list("cluster__name", "deployment__name")
        shown = ["/".join(place) for place in places[:MOST_MEMBERS]]
        self.fields["members"].choices = [(place, place) for place in shown]  # type: ignore[attr-defined] # the stubs know a Field here only
        self.fields["rings"].required = True


@require_http_methods(["GET", "POST"])
@signed_in
def new(http: HttpRequest) -> HttpResponse:
    """With `?name=` of a set that has a label, its members are ticked."""
    clusters, name = readable(http), http.GET.get("name", "")
    labelled = members_of(name, clusters=clusters, user=person(http).user) if name else []
    ticked = [f"{one.cluster.name}/{one.request.deployment.name}" for one in labelled]
    form = OrderForm(clusters, http.POST or None, initial={"name": name, "members": ticked})
    if http.method == "POST" and form.is_valid():
        said = form.cleaned_data
        pairs = [(cluster, deployment) for cluster, _, deployment in (one.partition("/") for one in said["members"])]
        wish = {**said, "members": pairs}
        try:
            made = services.make_order(by=person(http), clusters=clusters, via="browser", **wish)
        except (InvalidInput, NotFound) as refusal:
            field = str(refusal.facts.get("field", "members"))
            form.add_error(field if field in form.fields else None, str(refusal))
        else:
            messages.success(http, f"Set {made.name} has its order.")
            return redirect("set", name=made.name)
    return page(http, "sets/order_form.html", {"form": form}, status=422 if form.errors else 200)


@only_by_form
@signed_in
def change(http: HttpRequest, *, name: str) -> HttpResponse:
    """Approve what follows a ring, take a deployment out, or end the order."""
    said, clusters = http.POST, readable(http)
    if services.read_order(clusters=clusters, name=name) is None:
        raise NotFound(f"there is no set {name[:63]} with an order on the clusters that you can read")
    reason = said.get("reason", "").strip()
    about: dict[str, Any] = {"by": person(http), "clusters": clusters, "name": name, "reason": reason}
    match said.get("do"):
        case "approve":
            ring, version = said.get("ring", ""), said.get("version", "")
            services.approve_ring(**about, ring=ring, version=version, channel="browser")
            done = f"The ring after {ring} is approved."
        case "take-out":
            cluster, _, deployment = said.get("member", "").partition("/")
            services.take_out(**about, cluster=cluster, deployment=deployment, via="browser")
            done = f"{deployment} on {cluster} is no longer in the order."
        case "end":
            services.end_order(**about, via="browser")
            done = "The order has ended: each member is applied as soon as it is approved."
        case other:
            raise InvalidInput(f"the action is {str(other)[:40]!r}; expected approve, take-out or end", field="do")
    messages.success(http, done)
    return redirect("set", name=name)
