"""Filters and tags of the pages: severities, digests and JSON facts in the words and shapes that people read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from django import template
from django.forms import BaseForm, BoundField
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from approvals.clock import database_now
from approvals.deciding.approval_policies import ApprovalPolicy
from approvals.ledger.change_words import ticket_url
from approvals.lifecycle import State
from approvals.models import BREAK_GLASS, Policy, Request, Review
from approvals.models.review import VIA_WORDS
from approvals.policy.built_in import UID_PREFIX
from approvals.selectors import debts
from approvals.selectors.pages import bundle_words, version_words
from approvals.selectors.status import TONES as REQUEST_TONES
from provisioner.api_groups import RBAC_GROUP
from provisioner.escaping import visible, with_names
from provisioner.render import write_quoted
from provisioner.sentences import and_more
from provisioner.values import SHAPES

register = template.Library()
register.filter(and_more)

ACTION_WORDS = {"none": "unchanged", "orphan": "kept"}
STATE_WORDS = {
    "in_review": "in review",
    "not-selected": "not selected",
    "RequestChanges": "Request changes",
    "BreakGlass": "broke glass",
    "Accept": "accepted afterwards",
    "Object": "objected afterwards",
    "open": "differs",
    "corrected": "corrected",
}


HEALTH_WORDS = {
    "": "not checked yet",
    "Current": "healthy",
    "InProgress": "in progress",
    "Failed": "failed",
    "Terminating": "being deleted",
    "NotFound": "not found",
    "Unknown": "unknown",
}
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,52}\b")
TONES: dict[str, str] = {
    **dict.fromkeys(map(str, State), "info"),
    **REQUEST_TONES,
    "corrected": "good",
    "open": "bad",
    "active": "good",
    "Current": "good",
    "done": "good",
    "Approve": "good",
    "Approved": "good",
    "approves": "good",
    "passes": "good",
    "Failed": "bad",
    "RequestChanges": "warn",
    "BreakGlass": "bad",
    "Accept": "good",
    "Object": "bad",
    "changes requested": "warn",
    "waiting": "warn",
    "Deny": "bad",
    "Denied": "bad",
    "error": "bad",
    "holds": "warn",
    "held": "warn",
    "passed": "good",
    "pending": "warn",
    "no answer": "bad",
    "InProgress": "warn",
    "Terminating": "warn",
    "Unknown": "warn",
    "NotFound": "warn",
}


UNITS = ((86400, "day"), (3600, "h"), (60, "min"))
# What OpenShift's console colours alike: who may do what, what extends the API, what holds data.
KIND_GROUPS = {
    "rights": ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"),
    "extension": (
        *("CustomResourceDefinition", "APIService", "MutatingWebhookConfiguration"),
        *("ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    ),
    "data": ("Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "StatefulSet"),
}


@register.inclusion_tag("lists/_heads.html")
def heads(about: str, *columns: str) -> dict[str, Any]:
    """What a table lists, for who hears it, and the heads of its columns: `Read:number` for one of numbers, `End:sr`
    for one that only screen readers hear, "" for one that is not there."""
    return {"about": about, "columns": [column.partition(":")[::2] for column in columns if column]}


@register.simple_tag
def pair(head: str, value: object, css: str = "") -> SafeString:
    """A fact of a list of facts, `<dl class="pairs">`."""
    shown = format_html(' class="{}"', css) if css else ""
    return format_html("<div><dt>{}</dt><dd{}>{}</dd></div>", head, shown, value)


@register.filter
def severity(word: str) -> SafeString:
    """`▲ dangerous`, the shape hidden from screen readers."""
    shape = SHAPES.get(word, "?")
    return format_html(
        '<span class="severity severity-{}"><span class="shape" aria-hidden="true">{}</span> {}</span>',
        word if word in SHAPES else "unknown",
        shape,
        word or "not assessed yet",
    )


@register.filter
def by_channel(word: str) -> str:
    """Where a person acted, as it follows what they did: `in the browser`; "" for the service itself."""
    return VIA_WORDS.get(word, f"through {word}" if word else "")


@register.filter
def shape(word: str) -> SafeString:
    """`▲` of a severity, for where there is no room for the word, which screen readers and the pointer are told."""
    return format_html(
        '<span class="severity severity-{0}" title="{0}"><span aria-hidden="true">{1}</span>'
        '<span class="sr">{0}</span></span>',
        word if word in SHAPES else "unknown",
        SHAPES.get(word, "?"),
    )


@register.filter
def state(word: str) -> SafeString:
    """A state as a label."""
    return format_html(
        '<span class="label label-{}">{}</span>',
        TONES.get(word, "plain"),
        {**STATE_WORDS, **HEALTH_WORDS}.get(word, word),
    )


@register.filter
def short(digest: str | None) -> str:
    """The first 12 digits of a digest or commit, as people compare them."""
    algorithm, colon, value = (digest or "").rpartition(":")
    return f"{algorithm}{colon}{value[:12]}{'…' if len(value) > 12 else ''}"


@register.filter
def of_object(ref: Mapping[str, str] | None) -> str:
    """A reference of a report's record as `Kind.group namespace/name`."""
    if not ref:
        return ""
    kind = f"{ref['kind']}.{ref['group']}" if ref["group"] else ref["kind"]
    return f"{kind} {ref['namespace']}/{ref['name']}" if ref["namespace"] else f"{kind} {ref['name']}"


@register.filter
def role_name(ref: str) -> str:
    """A role or binding as people call it: their group, which says nothing here, is left out."""
    return ref.replace(f".{RBAC_GROUP}", "", 1)


@register.filter
def field_path(path: list[str | int]) -> str:
    """`spec.versions[0].schema` of a path's keys and indexes."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


@register.filter
def facts(value: Any) -> str:
    """A fact for people: one line for each entry of a list of lists or maps, else words with commas."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {facts(item)}" for key, item in pairs(value))
    if not isinstance(value, list):
        return value if isinstance(value, str) else json.dumps(value)
    is_long = any(isinstance(item, list | Mapping) for item in value)
    return ("\n" if is_long else ", ").join(facts(item) for item in value)


@register.filter
def pairs(values: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """Sorted items that say something. Django's own `.items` would find a key of that name first."""
    return sorted((key, value) for key, value in (values or {}).items() if value not in ("", None, [], {}))


@register.filter
def label_words(labels: Mapping[str, str]) -> list[str]:
    """`key=value` of each label, as kubectl writes it: one without a value counts, too."""
    return [f"{key}={value}" for key, value in sorted(labels.items())]


@register.filter
def broken_glass(item: Request, reviews: Iterable[Review]) -> debts.BrokenGlass | None:
    """The break-glass of the present round, of all `reviews` of a request."""
    rows = (it for it in reviews if it.decision == BREAK_GLASS and it.round == item.round and not it.is_replaced)
    broken = next(rows, None)
    return debts.glass_of(broken) if broken else None


@register.filter
def ticket_link(ticket: str) -> str:
    """The address of a change ticket, "" where the operator gave none."""
    return ticket_url(ticket)


@register.filter
def version(request: Request | None, name: str) -> str:
    """The version of a request of the deployment `name`: as its bundle says, else as its source is called."""
    return (visible(bundle_words(request)) if request else "") or source_version(request, name)


@register.filter
def source_version(request: Request | None, name: str) -> str:
    """What people call the source of a request of the deployment `name`: `1.0.0` of an archive `name-1.0.0`."""
    words = visible(version_words(request.bundle_spec, request.bundles)) if request else ""
    return re.sub(rf"^{re.escape(name)}-(?=v?\d)", "", words)


@register.filter
def versions(item: Request) -> tuple[str, str]:
    """From which version to which, the first "" where nothing runs.

    By their sources where both bundles say the same of themselves: else nobody would see that they differ.
    """
    name, before = item.deployment.name, _running_before(item)
    said = version(before, name), version(item, name)
    sources = source_version(before, name), source_version(item, name)
    return sources if said[0] == said[1] and sources[0] != sources[1] else said


@register.filter
def source_change(item: Request) -> str:
    """What the sources before and after are called, for who points at the versions."""
    name = item.deployment.name
    after = "" if item.purpose == Request.Purpose.DELETE else source_version(item, name)
    return " → ".join(filter(None, (source_version(_running_before(item), name), after)))


def _running_before(item: Request) -> Request | None:
    return item.from_revision.request if item.from_revision else None


@register.filter
def verb(name: str) -> str:
    """`review given` of the audit's `review.given`."""
    return name.replace(".", " ").replace("_", " ")


@register.filter
def line_class(kind: str) -> str:
    """The CSS class of a line of a diff."""
    return {"+": " line-plus", "-": " line-minus", "@": " line-left-out"}.get(kind, "")


@register.filter
def with_namespace(manifests: str, namespace: str) -> str:
    """YAML of manifests with the namespace that they need before them."""
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    return f"{write_quoted([made])}{manifests}"


@register.filter
def health_words(health: str) -> str:
    """What a health of the cluster means, for people."""
    return HEALTH_WORDS.get(health, health)


@register.filter
def sentence(text: object) -> SafeString:
    """A sentence of a report or a refusal; what it quotes in backticks is a name."""
    return mark_safe(with_names(escape(str(text))))  # noqa: S308 - escaped here, and what with_names adds is ours


@register.filter
def digests(text: str) -> str:
    """Text whose digests are cut to the 12 digits that people compare."""
    return DIGEST.sub(r"\1…", text)


@register.filter
def wrong_fields(form: BaseForm) -> list[BoundField]:
    """The fields on the screen that have an error, in the order of the form."""
    return [field for field in form.visible_fields() if field.errors]


@register.filter
def input_of(field: BoundField) -> SafeString:
    """The input. The first wrong one of its form takes the focus, so that nobody has to look for it."""
    is_first = bool(field.errors) and wrong_fields(field.form)[0].name == field.name
    return field.as_widget(attrs={"autofocus": True} if is_first else None)


@register.filter
def action_words(action: str) -> str:
    """What people read for an action: its own name, where that says enough."""
    return ACTION_WORDS.get(action, action)


@register.filter
def ago(at: datetime | None) -> SafeString:
    """How long ago, or how far ahead, with the exact time on hover."""
    if at is None:
        return SafeString("never")
    gap = database_now() - at
    soon = "just now" if gap >= timedelta(0) else "within a minute"
    words = soon if abs(gap) < timedelta(minutes=1) else _span(gap)
    return format_html('<time datetime="{0}" title="{0}">{1}</time>', at.strftime("%Y-%m-%dT%H:%M:%SZ"), words)


@register.filter
def lasting(at: datetime) -> SafeString:
    """How long something has lasted: `for 2 min`, with the exact time on hover."""
    seconds = (database_now() - at).total_seconds()
    words = f"for {_in_units(int(seconds), spare=0)}" if seconds >= 60 else "for less than a minute"
    return format_html('<time datetime="{0}" title="since {0}">{1}</time>', at.strftime("%Y-%m-%dT%H:%M:%SZ"), words)


@register.filter
def moment(at: datetime) -> SafeString:
    """The exact time in UTC, and how long ago that is."""
    return format_html("{} UTC · {}", at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"), ago(at))


@register.filter
def ago_of(text: str) -> SafeString:
    """The same of a time as Kubernetes writes it; what is none stays as it is."""
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    return ago(at) if at and at.tzinfo else escape(text)


def _span(gap: timedelta) -> str:
    """Whole units, rounded down: what ends "in 3 h" lasts at least that long, but for a 24th of the unit.

    Thirty days that began a moment ago are 30 days, not 29.
    """
    seconds = int(abs(gap).total_seconds())
    if gap > timedelta(0):
        return f"{_in_units(seconds, spare=0)} ago"
    return f"in {_in_units(seconds, spare=24)}"


def _in_units(seconds: int, *, spare: int) -> str:
    """`seconds`, at least 60, in the largest unit of which it holds one; what lacks 1/`spare` of it counts, too."""
    for size, unit in UNITS:
        number = (seconds + (size // spare if spare else 0)) // size
        if number:
            return f"{number} {unit}{'s' if unit == 'day' and number > 1 else ''}"
    return f"{seconds // 60} min"


@register.filter
def milliseconds(number: float) -> str:
    """`0.4 ms`, `12 ms`, `3.2 s`."""
    if number >= 1000:
        return f"{number / 1000:.1f} s"
    return f"{number:.0f} ms" if number >= 1 else f"{number:.1f} ms"


try:
    _drawn: ModuleType | None = import_module("heroicons.templatetags.heroicons")
except ImportError:  # pages are whole without pictures
    _drawn = None


@register.simple_tag
@cache
def icon(name: str, css: str = "icon") -> SafeString:
    """The outline icon of this name, hidden from screen readers: words stand beside it."""
    if _drawn is None:
        return SafeString("")
    attributes: dict[str, Any] = {"class": css, "aria-hidden": "true"}
    return SafeString(_drawn.heroicon_outline(name, **attributes))


@register.filter
def kind_letters(kind: str) -> str:
    """`CM` of `ConfigMap`, `D` of `Deployment`: its capitals, at most three."""
    return "".join(letter for letter in kind if letter.isupper())[:3] or kind[:1].upper()


@register.filter
def kind_class(kind: str) -> str:
    """The CSS class of what kinds of its sort are coloured as."""
    group = next((name for name, kinds in KIND_GROUPS.items() if kind in kinds), "")
    return f" kind-{group}" if group else ""


@register.filter
def policy_url(policy: Policy) -> str:
    """The page of a policy of the service, or of what the row stands for: an ApprovalPolicy, or a built-in guard."""
    if policy.uid.startswith(UID_PREFIX):
        return f"{reverse('policies')}#built-in"
    if policy.uid and policy.cluster:
        return reverse("rule", args=[ApprovalPolicy.slug, policy.cluster.name, policy.name])
    return reverse("policy", args=[policy.name])
