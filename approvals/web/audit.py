"""The audit: who did what, when and through what; and whether the chain is whole."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import template
from django.core.cache import cache
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from approvals import access, audit
from approvals.audit import ChainState
from approvals.errors import InvalidInput
from approvals.events.occasions import words_of
from approvals.models import AuditEntry
from approvals.selectors import keyset
from approvals.selectors.audit import AuditReader, Days, EntryFilter, audit_entries, was_ever_linked
from approvals.selectors.keyset import ListOrder
from approvals.web.access_decorators import person, readable, signed_in
from approvals.web.rendering import page, page_of
from approvals.web.tags import STATE_WORDS, facts
from provisioner.escaping import visible

# Filters of the templates of these pages.
register = template.Library()

ROWS = 50
CHANNELS = (
    *("browser", "rest", "chat", "webhook", "kubectl", "policy", "shell"),
    *("password", "token", "oidc", "issuer", "proxy", "machine", "cluster", "check"),
)
# The newest entries of the chain are walked at most this often.
CHAIN_SECONDS = 60
FILTERS = ("actor", "deployment", "via", "request", "since", "until")
MAX_EXPORTED, CHUNK = 10_000, 500
COLUMNS = (*("number", "at", "actor", "action", "verb", "via", "cluster"), *("deployment", "request", "facts", "hash"))
# As well in the full width of East Asian text, which spreadsheets of such a language take for the same.
FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@register.filter("fact_name")
def fact_words(name: str) -> str:
    """`content digest` of the fact `contentDigest`, `groups at` of `groups_at`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").lower()


@register.filter("told")
def sentence_of(entry: AuditEntry) -> str:
    """What the actor did, as it follows their name."""
    return words_of(entry.verb, entry.facts)


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    filters, reader = _filters(http), _reader(http)
    rows = _filtered_entries(reader, filters)
    window, count = page_of(http, rows, ListOrder.of(rows), size=ROWS), keyset.counted(rows)
    known: tuple[ChainState, datetime] | None = cache.get("audit-chain")
    if known is None:
        known = audit.known_state()
        cache.set("audit-chain", known, CHAIN_SECONDS)
    chain, checked_at = known
    facts = {
        "window": window,
        "rows": keyset.in_order(rows, window.keys),
        "count": f"more than {keyset.MOST_COUNTED:,}" if count is None else count,
        "filters": filters,
        "is_filtered": any(filters.values()),
        "reader": reader,
        "query": urlencode({name: value for name, value in filters.items() if value}),
        "most_exported": f"{MAX_EXPORTED:,}",
        "is_whole": count is not None and count <= MAX_EXPORTED,
        "channels": CHANNELS,
        "chain": chain,
        "checked_at": checked_at,
    }
    return page(http, "audit.html", facts)


@require_safe
@signed_in  # type: ignore[arg-type] # what is streamed is an answer, too
def export(http: HttpRequest) -> StreamingHttpResponse:
    """The newest entries that the filters leave, as a file that is written while it is read."""
    kind = http.GET.get("format", "")
    if kind not in FORMATS:
        raise InvalidInput(f"the format is {kind!r}; expected csv or jsonl", field="format")
    rows = _filtered_entries(_reader(http), _filters(http))[:MAX_EXPORTED].iterator(chunk_size=CHUNK)
    content_type, lines = FORMATS[kind]
    answer = StreamingHttpResponse(lines(rows), content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="audit.{kind}"'
    add_never_cache_headers(answer)
    return answer


def csv_lines(entries: Iterable[AuditEntry]) -> Iterator[str]:
    writer = csv.writer(Echo())
    yield writer.writerow(COLUMNS)
    for entry in entries:
        yield writer.writerow([harmless(value) for value in _columns(entry).values()])


def json_lines(entries: Iterable[AuditEntry]) -> Iterator[str]:
    for entry in entries:
        yield json.dumps({**_columns(entry), "facts": audit.public_facts(entry)}) + "\n"


def harmless(value: object) -> str:
    """A cell that no spreadsheet takes for a formula, and whose control characters are seen (S24).

    What begins like a formula gets an apostrophe, as OWASP's page "CSV Injection" has it.
    """
    text = str(value)
    is_formula = text.startswith(("\t", "\r")) or text.lstrip().startswith(FORMULA_STARTS)
    return f"'{visible(text)}" if is_formula else visible(text)


def _columns(entry: AuditEntry) -> dict[str, Any]:
    facts = json.dumps(audit.public_facts(entry), sort_keys=True)
    at = entry.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    values = (entry.number, at, entry.actor, sentence_of(entry), entry.verb, entry.via, entry.cluster)
    rest = (entry.deployment, entry.request_uid, facts, audit.public_hash(entry))
    return dict(zip(COLUMNS, (*values, *rest), strict=True))


def _filters(http: HttpRequest) -> dict[str, str]:
    given = {name: http.GET.get(name, "").strip()[:100] for name in FILTERS}
    return {**given, "request": _uid(given["request"])}


def _filtered_entries(reader: AuditReader, filters: Mapping[str, str]) -> QuerySet[AuditEntry]:
    texts = {name: filters[name] for name in ("actor", "deployment", "via", "request")}
    days = Days(_day(filters, "since"), _day(filters, "until"))
    return audit_entries(reader, EntryFilter(**texts, days=days))


def _uid(given: str) -> str:
    """As the audit has it, whatever form of it the address has; "" where it names no request."""
    try:
        return str(UUID(given)) if given else ""
    except ValueError as exc:
        raise InvalidInput(f"request is {given!r}; expected the uid of a request", field="request") from exc


def _day(filters: Mapping[str, str], name: str) -> date | None:
    if not filters[name]:
        return None
    try:
        return date.fromisoformat(filters[name])
    except ValueError as exc:
        raise InvalidInput(f"{name} is {filters[name]!r}; expected a day such as 2026-11-23", field=name) from exc


class Echo:
    """What csv.writer writes to: it hands each line back."""

    def write(self, line: str) -> str:
        return line


FORMATS = {"csv": ("text/csv; charset=utf-8", csv_lines), "jsonl": ("application/x-ndjson", json_lines)}


def _reader(http: HttpRequest) -> AuditReader:
    """Only a password makes somebody an operator (S01), and an account that was linked is several persons'."""
    caller, clusters = person(http), readable(http)
    is_local = all(proof.is_mapped for proof in caller.proofs)
    is_one_person = is_local or (access.has_proved_all(caller) and not was_ever_linked(account=caller.name))
    is_operator = is_local and (caller.user.is_staff or caller.user.is_superuser)
    return AuditReader(clusters, caller.user if is_one_person else None, is_operator)


@register.filter
def public_facts(entry: AuditEntry) -> dict[str, Any]:
    """The facts of an audit entry without what earlier versions wrote and not everybody may know."""
    return audit.public_facts(entry)


@register.filter
def public_hash(entry: AuditEntry) -> str:
    return audit.public_hash(entry)


@register.filter
def fact_value(value: Any) -> str:
    """What it is, a state as elsewhere on the pages."""
    return STATE_WORDS.get(value, value) if isinstance(value, str) else facts(value)
