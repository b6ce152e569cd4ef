"""The audit chain: every state change has a row, written in the same transaction (promise 7)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from approvals.clock import database_now
from approvals.events.outbox import put_event
from approvals.models import AuditCheck, AuditEntry, BundleDeployment, Request
from provisioner.cluster.drift import public_place

# Any fixed number: writers of the chain wait for each other on it (PostgreSQL only; SQLite has one writer anyway).
CHAIN_LOCK = 7_264_118
# So many entries are walked for a page; the whole chain is walked by a worker.
MAX_WALKED = 300


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it, as the audit names them, and through which door."""

    name: str
    via: str


MACHINE = Actor("pratique", "machine")

# Facts of entries that earlier versions wrote, in which words of the API server stand among ours. No entry is changed
# or counted anew for that: the chain covers what was written.
_MIXED = frozenset({"problem", "words"})
# And plain hashes, on which people could try values of specs and Secrets that they may not see (S09).
_UNSALTED = frozenset({"optionsDigest", "contentDigest", "subjectDigest"})
WITHHELD = "withheld: recorded before the cluster's own messages were stored separately"


@dataclass(frozen=True, slots=True)
class ChainState:
    is_whole: bool
    length: int
    broken_at: int | None
    words: str


def record(
    *,
    verb: str,
    actor: Actor,
    deployment: BundleDeployment | None = None,
    request: Request | None = None,
    facts: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Append one entry, with its event where it is an occasion of one. Must run inside the transaction of the change
    that it tells of.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("an audit entry belongs in the transaction of its change")
    hold_chain()
    last = AuditEntry.objects.order_by("-number").values("number", "hash").first()
    about = request.deployment if request else deployment
    entry = AuditEntry(
        number=last["number"] + 1 if last else 1,
        at=database_now(),
        verb=verb,
        actor=actor.name,
        via=actor.via,
        cluster=about.cluster.name if about else "",
        deployment=about.name if about else "",
        deployment_uid=about.uid if about else "",
        request_uid=str(request.uid) if request else "",
        facts=json.loads(json.dumps(facts or {}, default=str)),
        salt=os.urandom(32),
        previous_hash=last["hash"] if last else "",
    )
    entry.hash = entry_hash(entry)
    entry.save(force_insert=True)
    put_event(entry, request, about)
    return entry


def public_facts(entry: AuditEntry) -> dict[str, Any]:
    """The facts of an entry as everybody may know them who may read it."""
    told = {name: _public(name, value) for name, value in entry.facts.items()}
    return told if entry.salt else {name: value for name, value in told.items() if name not in _UNSALTED}


def public_hash(entry: AuditEntry) -> str:
    """Its hash, on which nobody can try what is withheld of it, or of the entries before it; "" of older ones."""
    return entry.hash if entry.salt else ""


def _public(name: str, value: Any) -> Any:
    """Of drift, earlier versions also told the names of fields that nobody approved: today they write no such name."""
    if name in _MIXED:
        return WITHHELD
    if name == "alteredByAdmission":
        return bool(value)
    if name == "fields" and isinstance(value, list):
        return [_public_field(one) if isinstance(one, dict) else one for one in value]
    return value


def _public_field(field: dict[str, Any]) -> dict[str, Any]:
    return {**field, "path": public_place(str(field.get("path", "")), str(field.get("change", "")))}


def entry_hash(entry: AuditEntry) -> str:
    """SHA-256 over the length-prefixed columns, the previous hash first and the salt, where it has one, last."""
    digest = hashlib.sha256()
    for part in (
        entry.previous_hash,
        str(entry.number),
        _instant(entry.at),
        entry.verb,
        entry.actor,
        entry.via,
        entry.cluster,
        entry.deployment,
        entry.deployment_uid,
        entry.request_uid,
        json.dumps(entry.facts, sort_keys=True, ensure_ascii=False),
        *([bytes(entry.salt).hex()] if entry.salt else []),
    ):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def verify_chain() -> ChainState:
    """Walk the whole chain; reads every row, which takes half a minute for 500,000."""
    return _walk(0)


def check_chain() -> None:
    """Walk the whole chain, and keep what was found for the pages."""
    found = verify_chain()
    told = {"length": found.length, "broken_at": found.broken_at, "at": database_now()}
    AuditCheck.objects.update_or_create(pk=1, defaults=told)


def known_state() -> tuple[ChainState, datetime]:
    """The state of the chain for a page, and since when it is known: the newest entries are walked now, and of the
    others it is what the last walk along the whole chain found.
    """
    now = database_now()
    last = AuditEntry.objects.order_by("-number").values_list("number", flat=True).first() or 0
    newest = _walk(max(0, last - MAX_WALKED))
    if not newest.is_whole or last <= MAX_WALKED:
        return newest, now
    check = AuditCheck.objects.first()
    if check is None:
        words = f"the newest {MAX_WALKED} of {last} entries; a worker has not checked the others yet"
        return ChainState(True, last, None, words), now
    if check.broken_at is not None:
        return ChainState(False, last, check.broken_at, _broken(check.broken_at)), check.at
    words = f"{check.length} of {last} entries, all that there were then, and the newest {MAX_WALKED} now"
    return ChainState(True, last, None, words), check.at


def _walk(start: int) -> ChainState:
    """Along the chain, from the entry after number `start`; the length is that of the chain up to where it ends."""
    before = AuditEntry.objects.filter(number=start).values_list("hash", flat=True).first() if start else ""
    previous, length = before or "", start
    for entry in AuditEntry.objects.filter(number__gt=start).order_by("number").iterator(chunk_size=1000):
        length += 1
        if entry.number != length or entry.previous_hash != previous or entry.hash != entry_hash(entry):
            return ChainState(False, length, entry.number, _broken(entry.number))
        previous = entry.hash
    return ChainState(True, length, None, f"{length} entries; the hash of each covers the one before")


def _broken(number: int) -> str:
    return f"the chain is broken at entry {number}"


def _instant(at: datetime) -> str:
    return at.astimezone(tz=timezone.get_fixed_timezone(0)).isoformat()


def hold_chain() -> None:
    """Wait until no other transaction appends, and let none do so before this one ends (approvals.locks)."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHAIN_LOCK])
