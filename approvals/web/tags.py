"""Filters and tags of the pages: severities, digests and JSON facts in the words and shapes that people read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django import template
from django.forms import BaseForm, BoundField
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from approvals import audit
from approvals.models import AuditEntry, Request, Review
from approvals.selectors.pages import bundle_words, version_words
from approvals.source_refs import catalogs_named, listed_sources, upgrade_policy
from approvals.web.deployments.spec import UPGRADE_WORDS
from approvals.web.requests.changes.planned import action_words
from approvals.web.requests.shown import ShownEntry, ShownFinding
from approvals.web.requests.sources import ShownSource, asked_source, shown_sources
from approvals.web.requests.waivers import AcceptedFinding, GroupWaiver, ShownWaiver, Waivers
from approvals.web.workspace.sentences import fact_words, sentence_of
from provisioner.api_groups import RBAC_GROUP
from provisioner.escaping import visible, with_names
from provisioner.render import write_quoted
from provisioner.sentences import and_more
from provisioner.values import SHAPES

register = template.Library()
register.filter(and_more)
register.filter(action_words)

STATE_WORDS = {
    "in_review": "in review",
    "not-selected": "not selected",
    "RequestChanges": "Request changes",
    "open": "differs",
    "corrected": "corrected",
}
DRIFT_WORDS = {"going": "is being deleted", "gone": "is gone", "remade": "was recreated by someone else"}
HEALTH_WORDS = {
    "": "not checked yet",
    "Current": "healthy",
    "InProgress": "in progress",
    "Failed": "failed",
    "Terminating": "being deleted",
    "NotFound": "not found",
    "Unknown": "unknown",
}
CHANNEL_WORDS = {
    **{one.value: one.words for one in Review.Channel},
    "shell": "with pratique-manage",
    "cluster": "with kubectl or another client of the cluster",
    "oidc": "with single sign-on",
    "machine": "",
}
ASKS = {"condition": "condition", "fieldValue": "field", "cel": "CEL"}
VERDICT_WORDS = {
    "api": "API server",
    "stored": "stored objects",
    "writers": "writers",
    "readers": "readers",
    "rollback": "rollback",
}
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,52}\b")
TONES = {
    "in_review": "info",
    "preparing": "info",
    "applying": "info",
    "restoring": "warn",
    "approved": "good",
    "applied": "good",
    "corrected": "good",
    "open": "bad",
    "active": "good",
    "Current": "good",
    "done": "good",
    "Approve": "good",
    "Approved": "good",
    "approves": "good",
    "passes": "good",
    "denied": "bad",
    "failed": "bad",
    "Failed": "bad",
    "RequestChanges": "warn",
    "changes requested": "warn",
    "waiting": "warn",
    "Deny": "bad",
    "Denied": "bad",
    "error": "bad",
    "stale": "warn",
    "holds": "warn",
    "InProgress": "warn",
    "Terminating": "warn",
    "Unknown": "warn",
    "NotFound": "warn",
}


@register.inclusion_tag("lists/_heads.html")
def heads(about: str, *columns: str) -> dict[str, Any]:
    """What a table lists, for who hears it, and the heads of its columns: `Read:number` for one of numbers, "" for one
    that is not there."""
    return {"about": about, "columns": [one.partition(":")[::2] for one in columns if one]}


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
    return CHANNEL_WORDS.get(word, f"through {word}" if word else "")


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
        return ", ".join(f"{key} {facts(one)}" for key, one in pairs(value))
    if not isinstance(value, list):
        return value if isinstance(value, str) else json.dumps(value)
    is_long = any(isinstance(one, list | Mapping) for one in value)
    return ("\n" if is_long else ", ").join(facts(one) for one in value)


@register.filter
def public_facts(entry: AuditEntry) -> dict[str, Any]:
    """The facts of an audit entry without what earlier versions wrote and not everybody may know."""
    return audit.public_facts(entry)


@register.filter
def public_hash(entry: AuditEntry) -> str:
    return audit.public_hash(entry)


@register.filter
def pairs(values: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """Sorted items that say something. Django's own `.items` would find a key of that name first."""
    return sorted((key, value) for key, value in (values or {}).items() if value not in ("", None, [], {}))


@register.filter
def label_words(labels: Mapping[str, str]) -> list[str]:
    """`key=value` of each label, as kubectl writes it: one without a value counts, too."""
    return [f"{key}={value}" for key, value in sorted(labels.items())]


@register.filter
def version(request: Request | None, name: str) -> str:
    """The version of a request of the deployment `name`: as its bundle says, else as its source is called."""
    return (visible(bundle_words(request)) if request else "") or source_version(request, name)


@register.filter
def source_version(request: Request | None, name: str) -> str:
    """What people call the source of a request of the deployment `name`: `1.0.0` of an archive `name-1.0.0`."""
    words = visible(version_words(request.spec, request.bundles)) if request else ""
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
def verdict(question: str) -> str:
    """Whom a verdict of a custom resource definition is about."""
    return VERDICT_WORDS.get(question, question)


@register.filter
def told(entry: AuditEntry) -> str:
    """What the actor of an entry of the audit did, as it follows their name."""
    return sentence_of(entry)


@register.filter
def fact_name(name: str) -> str:
    """What a fact of an entry of the audit is called."""
    return fact_words(name)


@register.filter
def fact_value(value: Any) -> str:
    """What it is, a state as elsewhere on the pages."""
    return STATE_WORDS.get(value, value) if isinstance(value, str) else facts(value)


@register.filter
def verb(name: str) -> str:
    """`review given` of the audit's `review.given`."""
    return name.replace(".", " ").replace("_", " ")


@register.filter
def line_class(kind: str) -> str:
    """The CSS class of a line of a diff."""
    return {"+": " line-plus", "-": " line-minus", "@": " line-left-out"}.get(kind, "")


@register.filter
def source_words(source: Mapping[str, Any]) -> str:
    """The source of a Catalog in one line."""
    return asked_source(source).words


@register.filter
def without_place(words: str, source: Mapping[str, Any]) -> str:
    """What is said of the source of a Catalog, without where it is, which stands beside it."""
    place = asked_source(source).place
    return words.removeprefix(f"{place}: ") if place else words


@register.filter
def sources_asked(spec: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], ShownSource]]:
    """The sources of a spec, each as it is written and in words."""
    namespace = str(spec.get("installNamespace") or "")
    return [(one, asked_source(one, namespace)) for one in listed_sources(spec)]


@register.filter
def sources_of(item: Request) -> list[ShownSource]:
    """What a request asks for, and what that was resolved to."""
    return shown_sources(item)


@register.filter
def upgrade_words(spec: Mapping[str, Any]) -> tuple[str, str] | None:
    """The `upgradePolicy` that counts and what it means; None for a spec that names no catalog."""
    policy = upgrade_policy(spec)
    return (policy, UPGRADE_WORDS[policy]) if catalogs_named(spec) else None


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
def drift_words(kind: str) -> str:
    """What happened to an object, for people."""
    return DRIFT_WORDS.get(kind, "was changed" if kind == "changed" else "got fields from other managers")


@register.filter
def check_words(entry: object) -> str:
    """What one entry of `spec.healthChecks` asks, whatever its shape."""
    if not isinstance(entry, Mapping):
        return str(entry)
    place = "/".join(str(entry[key]) for key in ("namespace", "name") if entry.get(key))
    asked = next((name for name in ASKS if isinstance(entry.get(name), Mapping)), "")
    what = ", ".join(f"{key}: {value}" for key, value in entry[asked].items()) if asked else "nothing"
    return f"{entry.get('kind')} {place}".strip() + f": {ASKS.get(asked, 'asks for')} {what}"


@register.filter
def sentence(text: object) -> SafeString:
    """A sentence of a report or a refusal; what it quotes in backticks is a name."""
    return mark_safe(with_names(escape(str(text))))  # noqa: S308 - escaped here, and what with_names adds is ours


@register.filter
def waiver_of(finding: ShownFinding, waivers: Waivers) -> ShownWaiver:
    """Who accepted a finding, and whether the viewer may."""
    return waivers.of(finding)


@register.filter
def waiver_of_entry(entry: ShownEntry, waivers: Waivers | None) -> GroupWaiver | None:
    """The field that accepts all findings of an entry together."""
    return waivers.of_group(entry.findings) if waivers and waivers.may else None


@register.filter
def waived_in(review: Review, waivers: Waivers | None) -> list[AcceptedFinding]:
    """The findings that a review accepts."""
    return waivers.given_in(review) if waivers else []


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
