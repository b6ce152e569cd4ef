"""Notification targets: where events are sent to, and what became of each."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from approvals.deciding.selector import SEVERITIES
from approvals.errors import Changed, InvalidInput, NotAllowed
from approvals.events.kinds.table import TARGET_KINDS, shown_address
from approvals.events.occasions import CHOSEN_TYPES, brief_type
from approvals.ledger.notifications import latest_deliveries
from approvals.models import NotificationDelivery, NotificationTarget
from approvals.services.notifications import targets
from approvals.web.access_decorators import person, signed_in
from approvals.web.fields import LabelsField, LinesField, mono
from approvals.web.rendering import Followed, again, page, part_of

LATELY = 50
# While something is on its way.
SECONDS = 2
VIA = "browser"


class TargetForm(forms.Form):
    name = forms.CharField(max_length=63, widget=forms.TextInput(attrs=mono()))
    kind = forms.ChoiceField(choices=[(kind.name, kind.words) for kind in TARGET_KINDS.values()])
    address = forms.CharField(
        max_length=500,
        widget=forms.TextInput(attrs=mono()),
        help_text="What the kind needs, as listed above. Of an address that is stored, no secret part is shown.",
    )
    event_types = forms.MultipleChoiceField(
        label="Events, all if none is ticked",
        required=False,
        choices=[(str(one), brief_type(one)) for one in CHOSEN_TYPES],
        widget=forms.CheckboxSelectMultiple,
    )
    clusters = LinesField(
        label="Clusters",
        help_text="Names or globs, one per line. If empty, all on which you may approve every BundleDeployment.",
    )
    labels = LabelsField(
        label="Labels", help_text="key=value labels that a deployment must have, one per line. If empty, any."
    )
    min_severity = forms.ChoiceField(
        label="Least severity",
        required=False,
        choices=[("", "any"), *((one, f"{one} or worse") for one in SEVERITIES)],
        help_text="Of the worst new finding of a request. Other events have none, and are sent.",
    )
    is_active = forms.BooleanField(label="Active", required=False, initial=True)
    version = forms.IntegerField(initial=0, min_value=0, widget=forms.HiddenInput)

    def __init__(self, *args: Any, known: NotificationTarget | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["name"].disabled = known is not None


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    rows = targets.visible_targets(by=person(http))
    last = latest_deliveries(rows)
    facts = {
        "rows": [(row, shown_address(row), last.get(row.pk)) for row in rows],
        "others": [(row, targets.host_of(row)) for row in targets.stoppable_targets(by=person(http))],
        "may_write": bool(targets.seen_clusters(by=person(http))),
    }
    return page(http, "notifications/targets.html", facts)


@require_safe
@signed_in
def show(http: HttpRequest, *, name: str) -> HttpResponse:
    return _show(http, targets.find_target(by=person(http), name=name))


@require_safe
@signed_in
def deliveries(http: HttpRequest, *, name: str) -> HttpResponse:
    """What was sent lately, for the page that is open."""
    return again(http, _deliveries(http, targets.find_target(by=person(http), name=name)))


@require_http_methods(["GET", "POST"])
@signed_in
def new(http: HttpRequest) -> HttpResponse:
    return _save(http, None)


@require_http_methods(["GET", "POST"])
@signed_in
def edit(http: HttpRequest, *, name: str) -> HttpResponse:
    return _save(http, targets.find_target(by=person(http), name=name))


@require_POST
@signed_in
def stop(http: HttpRequest, *, name: str) -> HttpResponse:
    target = targets.find_target(by=person(http), name=name, to_stop=True)
    targets.stop_target(by=person(http), target=target, via=VIA)
    messages.success(http, f"{name} is no longer told of your clusters.")
    return redirect("notifications")


@require_POST
@signed_in
def delete(http: HttpRequest, *, name: str) -> HttpResponse:
    target = targets.find_target(by=person(http), name=name)
    targets.delete_target(by=person(http), target=target, via=VIA)
    messages.success(http, f"{name} was deleted.")
    return redirect("notifications")


@require_POST
@signed_in
def make_secret(http: HttpRequest, *, name: str) -> HttpResponse:
    """Make the secret that signs its events, and show it this once."""
    target = targets.find_target(by=person(http), name=name)
    text = targets.make_target_secret(by=person(http), target=target, via=VIA)
    return _show(http, target, secret_text=text)


@require_POST
@signed_in
def send_test(http: HttpRequest, *, name: str) -> HttpResponse:
    target = targets.find_target(by=person(http), name=name)
    targets.send_test(by=person(http), target=target, via=VIA)
    messages.success(http, "A test is on its way: below you see what comes of it.")
    return redirect("notification", name=name)


@require_POST
@signed_in
def send_again(http: HttpRequest, *, name: str, delivery_id: int) -> HttpResponse:
    """Have an event sent that was given up."""
    target = targets.find_target(by=person(http), name=name)
    targets.send_again(by=person(http), target=target, delivery_id=delivery_id, via=VIA)
    messages.success(http, "It is sent again: below you see what comes of it.")
    return redirect("notification", name=name)


def _save(http: HttpRequest, known: NotificationTarget | None) -> HttpResponse:
    """Keep what the form says, or show it again with what is wrong; a new target is shown with its secret."""
    columns = ("name", "kind", "address", "event_types", "clusters", "labels", "min_severity", "is_active", "version")
    initial = {column: getattr(known, column) for column in columns} if known else {}
    initial |= {"address": shown_address(known)} if known else {}
    form = TargetForm(http.POST or None, known=known, initial=initial)
    if http.method == "POST" and form.is_valid():
        try:
            target, secret = targets.save_target(by=person(http), via=VIA, **form.cleaned_data)
        except (InvalidInput, Changed, NotAllowed) as refusal:
            field = str(refusal.facts.get("field", ""))
            form.add_error(field if field in form.fields else None, str(refusal))
        else:
            if secret:
                return _show(http, target, secret_text=secret)
            messages.success(http, f"{target.name} was saved.")
            return redirect("notification", name=target.name)
    facts = {"form": form, "target": known, "kinds": TARGET_KINDS.values()}
    return page(http, "notifications/target_form.html", facts, status=422 if form.is_bound else 200)


def _show(http: HttpRequest, target: NotificationTarget, secret_text: str = "") -> HttpResponse:
    types = [brief_type(one) for one in CHOSEN_TYPES if one in target.event_types]
    facts = {
        "target": target,
        "address": shown_address(target),
        "signs": TARGET_KINDS[target.kind].signs,
        "types": types,
        "secret_text": secret_text,
        "deliveries": _deliveries(http, target),
    }
    return page(http, "notifications/target.html", facts)


def _deliveries(http: HttpRequest, target: NotificationTarget) -> Followed:
    rows = NotificationDelivery.objects.filter(target=target).select_related("event").order_by("-pk")
    latest, dead = list(rows[:LATELY]), list(rows.filter(dead_at__isnull=False)[:LATELY])
    facts = {
        "target": target,
        "latest": [(row, brief_type(row.event.type)) for row in latest],
        "dead": [(row, brief_type(row.event.type)) for row in dead],
    }
    body = part_of(http, "notifications/_deliveries.html", facts)
    is_under_way = target.is_active and any(row.send_at for row in latest)
    address = reverse("notification-deliveries", args=[target.name])
    return Followed("deliveries", address, SECONDS if is_under_way else 0, body)
