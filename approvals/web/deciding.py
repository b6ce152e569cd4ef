"""Objects that say how requests are decided: a list for each kind, one of them with what it holds now, and its form."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from approvals import access, services
from approvals.access import Permission
from approvals.clock import database_now
from approvals.deciding.approval_policies import ApprovalPolicy
from approvals.deciding.approval_rules import ApprovalRule
from approvals.deciding.change_windows import ChangeWindow
from approvals.deciding.external_checks import ExternalCheck
from approvals.deciding.finding_exceptions import FindingException
from approvals.deciding.kinds import DecidingKind, FormField
from approvals.deciding.selector import SEVERITIES
from approvals.deciding.table import BY_SLUG, KINDS
from approvals.errors import Changed, InvalidInput, NotAsExpected
from approvals.ledger.deciding.confirmations import people_behind, ready_state
from approvals.ledger.deciding.deciding_objects import count_due
from approvals.lifecycle import State
from approvals.models import CheckSecret, Cluster, DecidingObject, Request
from approvals.policy import FACTS
from approvals.policy.expression import MAX_EXPRESSION
from approvals.web.access_decorators import person, readable, signed_in
from approvals.web.fields import LabelsField, LinesField, YamlField, mono
from approvals.web.policies import latest_results
from approvals.web.rendering import note_cluster, page
from provisioner.render import write

# So many open requests are looked through for those that an object selects.
MOST_REQUESTS = 500
CHANGED = (
    "Someone changed this object after you opened the form. Your input is kept. The current definition is below; save "
    "again to replace it."
)
# By its place in the selector, as `kind.form` by its place in the spec.
SELECTOR_FIELDS = {
    "names": LinesField(help_text="Names or globs of deployments, one per line. If empty, all."),
    "matchLabels": LabelsField(
        label="Labels", help_text="key=value labels that a deployment must have, one per line. If empty, any."
    ),
    "formats": LinesField(help_text="Formats, such as helm, one per line. If empty, any."),
    "sourceHosts": LinesField(
        label="Source hosts", help_text="Hosts or globs that a source comes from. If empty, any."
    ),
    "packages": LinesField(help_text="Packages of catalogs, by name or glob. If empty, any."),
    "minSeverity": forms.ChoiceField(
        label="Minimum severity",
        required=False,
        choices=[("", "any"), *((one, f"{one} or worse") for one in SEVERITIES)],
        help_text="Of the worst new finding.",
    ),
}


class DecidingForm(forms.Form):
    """What all kinds have, with the fields of one kind in their order."""

    name = forms.CharField(max_length=253, widget=forms.TextInput(attrs=mono()))
    cluster = forms.ModelChoiceField(Cluster.objects.none(), to_field_name="name", empty_label=None)
    version = forms.CharField(required=False, widget=forms.HiddenInput)
    description = forms.CharField(required=False, max_length=1000, help_text="What it is for.")
    when = forms.CharField(required=False, max_length=MAX_EXPRESSION, widget=forms.Textarea(attrs=mono(rows=3)))

    def __init__(
        self,
        kind: type[DecidingKind],
        clusters: list[Cluster],
        *args: Any,
        known: DecidingObject | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.kind, self.known = kind, known
        choices = Cluster.objects.filter(pk__in=[cluster.pk for cluster in clusters])
        self.fields["cluster"].queryset = choices  # type: ignore[attr-defined] # the stubs know a Field here only
        for name in ("name", "cluster"):
            self.fields[name].disabled = known is not None
        self.fields |= {part: deepcopy(SELECTOR_FIELDS[part]) for part in kind.selector_parts}
        if not kind.has_when:
            del self.fields["when"]
        for field in kind.form:
            self.fields[field.path] = _field(field)
        if_unknown = f"If it cannot be evaluated, {kind.if_unknown}."
        if kind.has_when:
            self.fields["when"].help_text = f"A CEL expression that must be true. {if_unknown}"
        if not kind.has_description:
            del self.fields["description"]
        first = ("name", "cluster", "version", "description", *(field.path for field in kind.form))
        self.order_fields((*first, *kind.selector_parts))
        self.wide = [self[name] for name in first if name in self.fields and name != "version"]
        self.narrowing = [self[name] for name in self.fields if name not in first]
        self.is_narrowed = any(field.value() or field.errors for field in self.narrowing)

    def spec(self) -> dict[str, Any]:
        """What was typed, as a spec; of the object as it was, what the form does not show stays."""
        said, kind = self.cleaned_data, self.kind
        kept = dict(self.known.spec) if self.known else {}
        selector = {**(kept.get(kind.selector_place) or {}), **{part: said[part] for part in kind.selector_parts}}
        typed = {
            "description": said.get("description"),
            kind.selector_place: {k: it for k, it in selector.items() if it},
        }
        typed |= {"when": said["when"]} if kind.has_when else {}
        typed |= {field.path: said[field.path] or None if field.is_flag else said[field.path] for field in kind.form}
        return {key: value for key, value in {**kept, **typed}.items() if value not in ("", None, {}, [])}


def _field(field: FormField) -> forms.Field:
    about: dict[str, Any] = {"label": field.label, "help_text": field.help, "initial": field.initial}
    if field.is_yaml:
        made: forms.Field = YamlField(example=field.example, is_list=True, rows=field.rows, **about)
        made.required = field.is_required
        return made
    if field.is_list:
        boxes = forms.CheckboxSelectMultiple()
        return forms.MultipleChoiceField(choices=field.choices, required=field.is_required, widget=boxes, **about)
    if field.is_flag:
        return forms.BooleanField(required=False, **about)
    if field.choices:
        return forms.ChoiceField(choices=field.choices, required=field.is_required, **about)
    if field.is_number:
        return forms.IntegerField(required=field.is_required, **about)
    widget = forms.Textarea(attrs=mono(rows=field.rows)) if field.rows else forms.TextInput(attrs=mono())
    return forms.CharField(required=field.is_required, widget=widget, max_length=MAX_EXPRESSION, **about)


def initial_of(row: DecidingObject, kind: type[DecidingKind]) -> dict[str, Any]:
    selector = row.spec.get(kind.selector_place) or {}
    said = {part: selector.get(part) for part in kind.selector_parts}
    said |= {name: row.spec.get(name) for name in ("description", "when", *(field.path for field in kind.form))}
    about = {"name": row.name, "cluster": row.cluster, "version": row.version}
    return {**said, **about}


@require_safe
@signed_in
def index(http: HttpRequest, *, slug: str) -> HttpResponse:
    kind = _kind(slug)
    answers = {cluster: _may(http, cluster, "get", kind) for cluster in readable(http)}
    shown, now = [cluster for cluster, answer in answers.items() if answer.allowed], database_now()
    rows = DecidingObject.objects.filter(kind=kind.kind, gone_at=None, cluster__in=shown).select_related("cluster")
    facts = {
        "kind": kind,
        "kinds": KINDS,
        "rows": [
            (row, *_read(row, kind), ready_state(row, now))
            for row in rows.prefetch_related("confirmations").order_by("cluster__name", "name")
        ],
        "calendars": shown if kind is ChangeWindow else [],
        "hidden": [(cluster, answer) for cluster, answer in answers.items() if not answer.allowed],
        "may_write": not kind.written_by and any(_may(http, cluster, "create", kind).allowed for cluster in shown),
    }
    return page(http, "deciding/rules.html", facts)


@require_safe
@signed_in
def show(http: HttpRequest, *, slug: str, cluster: str, name: str) -> HttpResponse:
    return _show(http, *_find(http, slug, cluster, name))


@require_POST
@signed_in
def make_secret(http: HttpRequest, *, slug: str, cluster: str, name: str) -> HttpResponse:
    """Make the secret that signs events for an external check, and show it this once."""
    kind, row = _find(http, slug, cluster, name)
    if kind is not ExternalCheck:
        raise Http404
    text = services.make_check_secret(by=person(http), cluster=row.cluster, name=row.name, via="browser")
    return _show(http, kind, row, secret_text=text)


def _show(http: HttpRequest, kind: type[DecidingKind], row: DecidingObject, secret_text: str = "") -> HttpResponse:
    parsed, state = _read(row, kind)
    verbs = ("update", "delete", *(["approve"] if kind.needs_people else []))
    facts = {
        "kind": kind,
        "row": row,
        "parsed": parsed,
        "state": state,
        "spec_text": write(row.spec),
        "ready": ready_state(row, database_now()),
        "secret_text": secret_text,
        "rights": {verb: _may(http, row.cluster, verb, kind, row.name) for verb in verbs},
        "left": count_due(row.cluster) if row.cluster in readable(http) else {},
    }
    return page(http, "deciding/rule.html", facts | _facts_of_kind(http, kind, row))


def _facts_of_kind(http: HttpRequest, kind: type[DecidingKind], row: DecidingObject) -> dict[str, Any]:
    """What one kind alone shows: what became of requests of its cluster that the viewer may read, or its secret."""
    clusters = [cluster for cluster in readable(http) if cluster == row.cluster]
    if kind is ApprovalPolicy:
        policy, rights = services.describe_object(row)
        return {"is_policy": True, "policy_rights": rights, **latest_results(http, policy, clusters)}
    if kind is ExternalCheck:
        secrets = CheckSecret.objects.filter(cluster=row.cluster, check_uid=row.uid)
        return {"is_check": True, "secret": secrets.first()}
    waiting = Request.objects.filter(cluster__in=clusters, state=State.IN_REVIEW).select_related("deployment")
    kept = ("uid", "number", "approval_rules", "finding_exceptions", "deployment__name")
    shown = waiting.only(*kept).order_by("pk")[:MOST_REQUESTS]
    if kind is ApprovalRule:
        found = [(request, record) for request in shown for record in request.approval_rules]
        return {"is_rule": True, "selected": [each for each in found if each[1]["name"] == row.name]}
    if kind is FindingException:
        found = [(request, record) for request in shown for record in request.finding_exceptions]
        accepting = [(each, len(it["fingerprints"])) for each, it in found if it["name"] == row.name]
        viewer = [access.person_of(person(http), cluster) for cluster in clusters]
        has_agreed = any(one.is_same(other) for one in viewer for other in people_behind(row))
        return {"accepting": accepting, "has_agreed": has_agreed}
    return {}


@require_http_methods(["GET", "POST"])
@signed_in
def new(http: HttpRequest, *, slug: str) -> HttpResponse:
    kind = _kind(slug)
    if kind.written_by:
        raise Http404
    return _save(http, DecidingForm(kind, readable(http), http.POST or None))


@require_http_methods(["GET", "POST"])
@signed_in
def edit(http: HttpRequest, *, slug: str, cluster: str, name: str) -> HttpResponse:
    kind, row = _find(http, slug, cluster, name)
    if kind.written_by:
        raise Http404
    form = DecidingForm(kind, [row.cluster], http.POST or None, known=row, initial=initial_of(row, kind))
    return _save(http, form)


@require_POST
@signed_in
def delete(http: HttpRequest, *, slug: str, cluster: str, name: str) -> HttpResponse:
    kind, row = _find(http, slug, cluster, name)
    version = http.POST.get("version", "")
    services.delete_object(
        by=person(http), cluster=row.cluster, kind=kind, name=row.name, version=version, via="browser"
    )
    messages.success(http, f"{row.name} was deleted.")
    return redirect("rules", slug=kind.slug)


@require_POST
@signed_in
def confirm(http: HttpRequest, *, slug: str, cluster: str, name: str) -> HttpResponse:
    """Stand behind the object as the page showed it."""
    kind, row = _find(http, slug, cluster, name)
    version = http.POST.get("version", "")
    services.confirm_object(
        by=person(http), cluster=row.cluster, kind=kind, name=row.name, version=version, via="browser"
    )
    messages.success(http, f"You confirmed {row.name}.")
    return redirect("rule", slug=kind.slug, cluster=row.cluster.name, name=row.name)


def _save(http: HttpRequest, form: DecidingForm) -> HttpResponse:
    """Write what the form says, as the viewer, or show it again with what is wrong."""
    kind, known, current = form.kind, form.known, ""
    if http.method == "POST" and form.is_valid():
        said = form.cleaned_data
        about: dict[str, Any] = {"by": person(http), "kind": kind, "spec": form.spec(), "via": "browser"}
        about |= {"cluster": said["cluster"], "name": said["name"]}
        try:
            version = {"version": said["version"]} if known else {}
            row = (services.change_object if known else services.create_object)(**about, **version)
        except (InvalidInput, Changed) as refusal:
            form.add_error(_field_of(form, str(refusal.facts.get("field", ""))), str(refusal))
        except NotAsExpected as refusal:
            known = DecidingObject.objects.select_related("cluster").get(pk=known.pk) if known else None
            typed = http.POST.copy()
            typed["version"] = str(refusal.facts["current"])
            form = DecidingForm(kind, [said["cluster"]], typed, known=known, initial=form.initial)
            form.add_error(None, CHANGED)
            current = write(known.spec) if known else ""
        else:
            messages.success(http, f"{row.name} was saved.")
            return redirect("rule", slug=kind.slug, cluster=row.cluster.name, name=row.name)
    facts = {"form": form, "kind": kind, "row": known, "current": current, "fact_rows": sorted(FACTS.items())}
    return page(http, "deciding/rule_form.html", facts, status=422 if form.is_bound else 200)


def _field_of(form: DecidingForm, place: str) -> str | None:
    """The field of the form for a place such as `spec.selector.names[0]` or `spec.rrule`; None where there is none."""
    names = place.replace("[", ".").split(".")
    name = names[1] if len(names) > 1 else place
    if name == form.kind.selector_place and len(names) > 2:
        name = names[2]
    return name if name in form.fields else None


def _kind(slug: str) -> type[DecidingKind]:
    if slug not in BY_SLUG:
        raise Http404
    return BY_SLUG[slug]


def _find(http: HttpRequest, slug: str, cluster: str, name: str) -> tuple[type[DecidingKind], DecidingObject]:
    """Refused where the viewer may not get an object of this name there, whether there is one or not; whoever may read
    nothing of the cluster is not told that there is such a cluster."""
    kind, where = _kind(slug), Cluster.objects.filter(name=cluster).first()
    answer = _may(http, where, "get", kind, name) if where else None
    if where is None or answer is None or not (answer.allowed or where in readable(http)):
        raise Http404
    answer.check()
    row = get_object_or_404(DecidingObject, kind=kind.kind, cluster=where, name=name, gone_at=None)
    note_cluster(http, where)
    return kind, row


def _may(http: HttpRequest, cluster: Cluster, verb: str, kind: type[DecidingKind], name: str = "") -> Permission:
    return access.may(person(http), cluster, verb, resource=kind.plural, name=name)


def _read(row: DecidingObject, kind: type[DecidingKind]) -> tuple[DecidingKind | Mapping[str, str], str]:
    """What it says, or the problem, and what it does now."""
    parsed, problem = kind.read(row.spec)
    return (parsed, parsed.state(database_now())) if parsed else ({"problem": problem}, "")
