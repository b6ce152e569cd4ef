"""Deployments: what runs, since when, and is it what was approved?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from approvals import access, services
from approvals.access import Caller, Permission
from approvals.access.questions import Kind, names
from approvals.access.sight import Sight, shown_spec, without_values
from approvals.clock import database_now
from approvals.errors import Changed, CouldNotAsk, InvalidInput, Refused
from approvals.ledger import made_values
from approvals.ledger.change_words import ChangeWords
from approvals.ledger.pivots import why_unreadable
from approvals.lifecycle import AT_WORK, OPEN, State
from approvals.models import BundleDeployment, Drift, InventoryItem, Outcome, Report, Request
from approvals.selectors import debts, followed_sources, keyset, lists
from approvals.selectors import lists as drifts
from approvals.selectors import lists as known_revisions
from approvals.selectors.change_stops import stops_of_deployment
from approvals.selectors.keyset import ListOrder
from approvals.selectors.status import statuses
from approvals.web import rendering
from approvals.web.access_decorators import (
    allowed_steps,
    linked_catalogs,
    may_create,
    of_deployment,
    only_by_form,
    person,
    readable,
    readable_or_silent,
    signed_in,
)
from approvals.web.deployments.config_editor import offered_keys
from approvals.web.deployments.install_proposal import Proposal, proposal, propose
from approvals.web.deployments.spec_form import NewForm, SpecForm, folded_yaml, initial_of
from approvals.web.rendering import page, page_of
from provisioner.values import ObjectRef

# Kubernetes is asked this often for one page; of what is left no values are shown.
MAX_ASKED = 30
MAX_DRIFTS = 50


# As Kubernetes lets a namespace be named.
NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
HISTORY = 30
MOST_OWED = 3
QUICK_SECONDS = 2
SLOW_SECONDS = 10
# What the machine is at: it moves by itself.
QUICK = frozenset({State.PREPARING, State.APPROVED, State.APPLYING, State.RESTORING, State.STALE})
WRITING = frozenset({State.APPLYING, State.RESTORING})
ROWS = 50
OBJECTS = 200
VIA = "browser"
MAX_DIGITS = 9
# About all BundleDeployments, and about this one.
ASKED_FOR_SPEC = 2


@dataclass(frozen=True, slots=True)
class ShownDrift:
    """One row; `fields` without values where `is_hidden`."""

    row: Drift
    fields: list[Mapping[str, Any]]
    is_hidden: bool


def shown_drifts(caller: Caller, deployment: BundleDeployment) -> list[ShownDrift]:
    sight = Sight(caller, deployment.cluster, limit=MAX_ASKED)
    rows = drifts.drifts(deployment=deployment, now=database_now(), may_see=sight.may_see)[:MAX_DRIFTS]
    shown = []
    for row in rows:
        tells_nothing = not row.fields and not row.server_words
        may_see = tells_nothing or bool(sight.may_see(drifts.ref_of(row)))
        fields = row.fields if may_see else [without_values(field) for field in row.fields]
        shown.append(ShownDrift(row, fields, is_hidden=not may_see))
    return shown


def with_health_words(caller: Caller, deployment: BundleDeployment, rows: Page[InventoryItem]) -> Page[InventoryItem]:
    """The rows, not saved, with what their objects say of themselves only where the viewer may get these."""
    sight = Sight(caller, deployment.cluster, limit=MAX_ASKED)
    for row in rows:
        if row.health_words and not sight.may_see(ref_of(row)):
            row.health_words = ""
    return rows


def ref_of(row: InventoryItem) -> ObjectRef:
    return ObjectRef(row.group, row.version, row.kind, row.namespace, row.name)


@require_safe
@signed_in
def show_offers(http: HttpRequest) -> HttpResponse:
    """Namespaces of the cluster, and the ServiceAccounts of the namespace that is written there."""
    named, namespace = http.GET.get("cluster", ""), http.GET.get("install_namespace", "").strip()
    cluster = next((candidate for candidate in readable(http) if candidate.name == named), None)
    facts: dict[str, object] = {"cluster": cluster, "namespace": namespace}
    if cluster:
        facts["namespaces"] = names(person(http), cluster, Kind.NAMESPACE)
        is_name = NAMESPACE.fullmatch(namespace)
        facts["accounts"] = names(person(http), cluster, Kind.ACCOUNT, namespace) if is_name else None
    return page(http, "deployments/_offers.html", facts)


def progress(http: HttpRequest, deployment: BundleDeployment) -> dict[str, Any]:
    """The facts of `deployments/_progress.html` and `deployments/_history.html`."""
    history = lists.requests_of(deployment=deployment, limit=HISTORY)
    known = statuses(history)
    latest = history[0] if history else None
    how = known[latest.pk] if latest else None
    revision = deployment.active_revision.number if deployment.active_revision else 0
    mark = f"{latest.number}-{latest.state}-{revision}" if latest else f"0-none-{revision}"
    seen = http.GET.get("seen", "")[:100]
    return {
        "deployment": deployment,
        "history": [(request, known[request.pk]) for request in history],
        "open_request": latest if latest and latest.state in OPEN else None,
        "latest": latest,
        "how": how,
        "offered": allowed_steps(http, deployment, how.steps) if how and how.is_told else [],
        "written": _written(latest) if latest and latest.state in WRITING else None,
        "health": lists.inventory_health(deployment=deployment),
        "wait_seconds": _wait_seconds(deployment, latest),
        "mark": seen or mark,
        "has_moved": bool(seen) and seen != mark,
    }


def _written(request: Request) -> dict[str, int]:
    """Objects done, failed and planned, of the step that runs."""
    step = Outcome.Step.RESTORE if request.state == State.RESTORING else Outcome.Step.APPLY
    counted = Counter(request.outcomes.filter(step=step).values_list("state", flat=True))
    report = Report.objects.filter(request=request, round=request.round).defer("body").first()
    done = sum(counted.values())
    return {
        "done": done,
        "failed": counted["failed"],
        "total": max(sum((report.actions if report else {}).values()), done),
    }


def _wait_seconds(deployment: BundleDeployment, latest: Request | None) -> int:
    """Until the fragment asks again; 0 where nothing is under way. PURE"""
    if latest and latest.state in OPEN:
        return QUICK_SECONDS if latest.state in QUICK and not latest.problem else SLOW_SECONDS
    is_settling = deployment.active_revision_id is not None and deployment.health in ("", "InProgress")
    return SLOW_SECONDS if is_settling and not deployment.gone_at else 0


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    clusters = readable(http)
    search, cluster = http.GET.get("search", "").strip()[:100], http.GET.get("cluster", "")
    rows = lists.deployments(clusters=clusters, search=search, cluster=cluster)
    window = page_of(http, rows, ListOrder.of(rows), size=ROWS)
    shown = keyset.in_order(lists.with_open_requests(rows), window.keys)
    open_requests = lists.requests_by_key(deployment.open_key for deployment in shown if deployment.open_key)
    how = statuses(open_requests.values())
    facts = {
        "window": window,
        "rows": [
            (deployment, open_requests.get(deployment.open_key), how.get(deployment.open_key)) for deployment in shown
        ],
        "search": search,
        "cluster": cluster,
        "clusters": clusters,
        "creating": may_create(http, clusters),
    }
    return page(http, "deployments/deployments.html", facts)


@require_safe
@of_deployment
def show(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    return _whole(http, deployment)


@require_safe
@of_deployment
@rendering.by_itself
def live(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    """What follows the deployment on its page, alone."""
    return page(http, "deployments/_live.html", progress(http, deployment))


@require_http_methods(["GET", "POST"])
@signed_in
def new(http: HttpRequest) -> HttpResponse:
    """Write a new BundleDeployment to the cluster as the viewer; Kubernetes decides whether they may."""
    clusters = readable_or_silent(http)
    if http.POST.keys() & {"propose", "use_namespace"}:
        found = propose(http)
        return _form(http, NewForm(clusters, initial=found.initial), None, may_create(http, clusters), found)
    proposed = proposal(http)
    form = NewForm(clusters, http.POST or None, initial=proposed.initial if proposed else None)
    if http.method == "GET" or not form.is_valid():
        return _form(http, form, None, may_create(http, clusters), proposed)
    given = form.cleaned_data
    try:
        made = services.create_deployment(
            by=person(http),
            cluster=given["cluster"],
            name=given["name"],
            spec=form.spec(),
            labels=given["labels"],
            via=VIA,
            words=form.words(),
        )
    except (InvalidInput, CouldNotAsk, Changed) as refusal:
        return _refused(_form(http, _with_error(form, refusal), None, may_create(http, clusters)), refusal)
    return redirect("deployment", cluster=made.cluster.name, name=made.name)


@require_http_methods(["GET", "POST"])
@of_deployment
def edit(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    """Change the spec in the cluster as the viewer, if it is still the one that the form was made from."""
    form = SpecForm(http.POST or None, initial=initial_of(_shown_spec(http, deployment), deployment.generation))
    may, sees = (
        access.may(person(http), deployment.cluster, verb, resource="bundledeployments", name=deployment.name)
        for verb in ("update", "get")
    )
    # Who may not get it would write what was hidden over the values.
    if http.method == "GET" or not sees.allowed or not form.is_valid():
        return _form(http, form, deployment, may if sees.allowed else sees)
    try:
        changed = services.change_deployment(
            by=person(http),
            deployment=deployment,
            spec=form.spec(deployment.spec),
            generation=form.cleaned_data["generation"],
            via=VIA,
            words=form.words(),
        )
    except (InvalidInput, CouldNotAsk) as refusal:
        return _refused(_form(http, _with_error(form, refusal), deployment, may), refusal)
    if changed.generation == form.cleaned_data["generation"]:
        messages.success(
            http, "The spec did not change, so no request was created. To fetch the sources again, use Request again."
        )
    else:
        messages.success(http, "The change was written to the cluster. Its request is being prepared.")
    return redirect("deployment", cluster=deployment.cluster.name, name=deployment.name)


@only_by_form
@of_deployment
def pause(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    """Pause with a reason, or resume."""
    is_paused, reason = http.POST.get("pause") == "yes", http.POST.get("reason", "").strip()
    if is_paused and not reason:
        return _whole(http, deployment, wrong="Give a reason for the pause: others will see it on this page.")
    services.pause_deployment(by=person(http), deployment=deployment, is_paused=is_paused, reason=reason, via=VIA)
    messages.success(http, f"{deployment.name} is {'paused' if is_paused else 'resumed'}.")
    return redirect("deployment", cluster=deployment.cluster.name, name=deployment.name)


@only_by_form
@of_deployment
def ask_again(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    """The same wish once more; the new request is where to look next."""
    before = lists.open_request(deployment=deployment)
    shown = http.POST.get("generation", "")
    generation = int(shown) if shown.isascii() and shown.isdigit() else 0
    services.ask_again(by=person(http), deployment=deployment, via=VIA, generation=generation)
    made = lists.open_request(deployment=deployment)
    if made is None:
        return redirect("deployment", cluster=deployment.cluster.name, name=deployment.name)
    if before and made.pk == before.pk:
        messages.success(http, "A new report is being prepared. Reviews of the earlier one no longer count.")
    else:
        messages.success(http, "Requested again: the sources are being fetched.")
    return redirect("request", uid=made.uid)


@only_by_form
@of_deployment
def rollback(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    """Back to the content of an earlier revision: a request like any other, from the stored bytes."""
    number = _revision_of(http)
    words = _words_of(http)
    services.rollback_deployment(by=person(http), deployment=deployment, revision=number, via=VIA, words=words)
    made = lists.open_request(deployment=deployment)
    if made is None:
        return redirect("deployment", cluster=deployment.cluster.name, name=deployment.name)
    messages.success(http, f"Rollback to revision {number} requested: its report is being prepared.")
    return redirect("request", uid=made.uid)


@only_by_form
@of_deployment
def rotate(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    """New values in place of those that the chart made up: a request like any other."""
    target = http.POST.get("target", "")
    if http.POST.get("understood") != "yes":
        return _whole(http, deployment, wrong="Confirm that you know what uses the values: nothing was requested.")
    try:
        words = _words_of(http)
        services.rotate_deployment(by=person(http), deployment=deployment, target=target, via=VIA, words=words)
    except InvalidInput as refusal:
        return _whole(http, deployment, wrong=str(refusal))
    made = lists.open_request(deployment=deployment)
    if made is None:
        return redirect("deployment", cluster=deployment.cluster.name, name=deployment.name)
    messages.success(http, "Rotation requested: its report is being prepared. The values stay until it is applied.")
    return redirect("request", uid=made.uid)


@only_by_form
@of_deployment
def revoke(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    """Mark an earlier revision as one that nobody goes back to."""
    number, reason = _revision_of(http), http.POST.get("reason", "")
    try:
        services.revoke_revision(by=person(http), deployment=deployment, revision=number, reason=reason, via=VIA)
    except InvalidInput as refusal:
        return _whole(http, deployment, wrong=str(refusal))
    messages.success(http, f"Revision {number} was revoked.")
    return redirect("deployment", cluster=deployment.cluster.name, name=deployment.name)


@only_by_form
@of_deployment
def reinstate(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    """Take that mark off again."""
    number, reason = _revision_of(http), http.POST.get("reason", "")
    services.reinstate_revision(by=person(http), deployment=deployment, revision=number, reason=reason, via=VIA)
    messages.success(http, f"Revision {number} was reinstated.")
    return redirect("deployment", cluster=deployment.cluster.name, name=deployment.name)


@only_by_form
@of_deployment
def delete(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    """Ask for deletion; its objects stay until that request is approved."""
    if http.POST.get("typed", "").strip() != deployment.name:
        return _whole(http, deployment, wrong=f"Type the name {deployment.name} to request its deletion.")
    policy = http.POST.get("policy", "")
    services.delete_deployment(by=person(http), deployment=deployment, via=VIA, policy=policy)
    messages.success(http, "Deletion requested. Its objects stay until the request is approved.")
    return redirect("deployment", cluster=deployment.cluster.name, name=deployment.name)


def _words_of(http: HttpRequest) -> ChangeWords:
    return ChangeWords.of_text(http.POST.get("change_reason", ""), http.POST.get("change_ticket", ""))


def _revision_of(http: HttpRequest) -> int:
    number = http.POST.get("revision", "")
    if not number.isdecimal() or len(number) > MAX_DIGITS:
        raise InvalidInput(f"The revision is {number[:20]!r}; expected its number.", field="revision")
    return int(number)


def _whole(http: HttpRequest, deployment: BundleDeployment, *, wrong: str = "") -> HttpResponse:
    search, wanted_health = http.GET.get("search", "").strip()[:100], http.GET.get("health", "")
    rows = lists.inventory(deployment=deployment, search=search, health=wanted_health)
    rights = {
        verb: access.may(person(http), deployment.cluster, verb, resource="bundledeployments", name=deployment.name)
        for verb in ("update", "delete", "approve")
    }
    stands = progress(http, deployment)
    open_request = stands["open_request"]
    offered = followed_sources.offered(deployment=deployment)
    facts = {
        **stands,
        "may_request_again": open_request is None or bool(why_unreadable(open_request)),
        "may_look_again": open_request is not None and open_request.state not in AT_WORK,
        "revisions": lists.revisions(deployment=deployment, limit=HISTORY),
        "rows": with_health_words(person(http), deployment, Paginator(rows, OBJECTS).get_page(http.GET.get("page"))),
        "search": search,
        "wanted_health": wanted_health,
        "rights": rights,
        "drifts": shown_drifts(person(http), deployment),
        "kept_values": sorted(made_values.kept_rows(deployment).values(), key=str),
        "rotatable_names": made_values.rotatable_names(deployment),
        "left_out": lists.left_out(deployment=deployment, limit=OBJECTS),
        "paused": lists.pause_words(deployment=deployment),
        "stops": stops_of_deployment(deployment),
        "owed": debts.owed().filter(request__deployment=deployment)[:MOST_OWED],
        "format": deployment.bundle_spec.format,
        "linked_catalogs": linked_catalogs(
            http, deployment.cluster, deployment.spec, [upgrade.catalog for upgrade in offered]
        ),
        "folded_yaml": folded_yaml(_shown_spec(http, deployment)),
        "followed": followed_sources.followed(deployment=deployment),
        "offered_upgrades": offered,
        "may_compare": bool(offered) and _may_compare(http, deployment),
        "most_per_hour": settings.PRATIQUE["SOURCE_REQUESTS_PER_HOUR"],
        "may_go_back": rights["update"].allowed and not deployment.gone_at and not deployment.deletion_requested_at,
        "restorable": set(known_revisions.restorable(deployment=deployment).values_list("number", flat=True)),
        "once_in_force": set(known_revisions.once_in_force(deployment=deployment).values_list("number", flat=True)),
        "may_revoke": rights["approve"].allowed and not deployment.gone_at,
        "wrong": wrong,
    }
    return page(http, "deployments/deployment.html", facts, status=422 if wrong else 200)


def _shown_spec(http: HttpRequest, deployment: BundleDeployment) -> dict[str, Any]:
    return shown_spec(Sight(person(http), deployment.cluster, limit=ASKED_FOR_SPEC), deployment.name, deployment.spec)


def _may_compare(http: HttpRequest, deployment: BundleDeployment) -> bool:
    """Whether the viewer may ask what would change in what it runs, and that can be compared (services.comparisons)."""
    if deployment.active_revision is None or _more_sources(deployment):
        return False
    return all(
        access.may(person(http), deployment.cluster, verb, resource="bundledeployments", name=name).allowed
        for verb, name in (("create", ""), ("get", deployment.name))
    )


def _form(
    http: HttpRequest,
    form: SpecForm,
    deployment: BundleDeployment | None,
    permission: Permission | None = None,
    proposed: Proposal | None = None,
) -> HttpResponse:
    """`permission` is whether the viewer may create a deployment anywhere, or change this one."""
    facts = {
        "form": form,
        "proposed": proposed,
        "deployment": deployment,
        "more_sources": _more_sources(deployment),
        "permission": permission,
        "offered_keys": offered_keys(http, form.format(), deployment),
    }
    return page(http, "deployments/deployment_form.html", facts, status=422 if form.is_bound else 200)


def _more_sources(deployment: BundleDeployment | None) -> int:
    return max(len(deployment.bundle_spec.sources) - 1, 0) if deployment else 0


def _refused(answer: HttpResponse, refusal: Refused) -> HttpResponse:
    """The form that was sent, with all that was typed, as the answer of this refusal."""
    answer.status_code = refusal.status
    return answer


def _with_error(form: SpecForm, refusal: Refused) -> SpecForm:
    field = str(refusal.facts.get("field", ""))
    form.add_error(field if field in form.fields else None, forms.ValidationError(str(refusal)))
    return form
