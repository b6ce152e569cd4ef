"""The wait of an approved request for a change window or its `apply_at`: it does not expire of it (decision 0092)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from approvals import audit, wake
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import InvalidInput
from approvals.ledger.moves import locked
from approvals.models import Request

# However long it is held, an approval is acted on within so many days of it, or expires.
MOST_DAYS = 31
NOT_HELD: dict[str, Any] = {"held_from": None, "held_until": None, "apply_at": None, "apply_at_by": ""}


@transaction.atomic(durable=True)
def note_hold(request: Request, *, is_held: bool, until: datetime | None) -> None:
    """Keep since when and until when an approved request is held, as far as is known, and when it expires of that."""
    now = database_now()
    if not is_held and (request.held_from is None or (request.held_until or now) < now):
        return
    row = locked(request.pk)
    if (row.state, row.round) != (request.state, request.round):
        return
    if is_held:
        if row.held_from is None:
            row.held_from = now
        elif row.held_until and row.held_until < now:
            row.held_from += now - row.held_until  # it was open in between: what it was held before is kept
        row.held_until = until
    else:
        row.held_until = min(now, row.held_until or now)
    row.expires_at = expiry_of(row)
    row.mirrored_at = row.mirrored_at if row.expires_at == request.expires_at else None
    row.save(update_fields=["held_from", "held_until", "expires_at", "mirrored_at"])
    request.held_from, request.held_until, request.expires_at = row.held_from, row.held_until, row.expires_at


def expiry_of(row: Request) -> datetime:
    """The usual hours from when it was made, or from the next opening; no later than MOST_DAYS after the approval."""
    hours = timedelta(hours=settings.PRATIQUE["REQUEST_HOURS"])
    usual = row.created_at + hours
    if row.held_from is None:
        return usual
    approved_at = row.verdicts.filter(round=row.round).aggregate(at=Max("given_at"))["at"] or row.held_from
    last = approved_at + timedelta(days=MOST_DAYS)
    return max(usual, min(last, row.held_until + hours) if row.held_until else last)


def check_apply_at(apply_at: datetime) -> None:
    """Raise InvalidInput unless it is a time that is to come, and for which an approval may wait."""
    now = database_now()
    if not now < apply_at <= now + timedelta(days=MOST_DAYS):
        words = f"it is to be applied at {apply_at:%Y-%m-%d %H:%M} UTC; expected a time in the next {MOST_DAYS} days"
        raise InvalidInput(words, field="apply_at")


def is_same_minute(one: datetime, other: datetime | None) -> bool:
    """Forms show no seconds."""
    return other is not None and one.replace(second=0, microsecond=0) == other.replace(second=0, microsecond=0)


def keep_apply_at(row: Request, apply_at: datetime | None, actor: Actor) -> None:
    """Write to a locked row when it is applied at the earliest, and have it looked at."""
    if row.apply_at == apply_at:
        return
    row.apply_at, row.apply_at_by = apply_at, actor.name if apply_at else ""
    row.look_again_at = row.mirrored_at = None
    row.save(update_fields=["apply_at", "apply_at_by", "look_again_at", "mirrored_at"])
    facts = {"applyAt": apply_at.isoformat() if apply_at else None, "round": row.round}
    audit.record(verb="request.apply_at", actor=actor, request=row, facts=facts)
    wake.request(row.pk)
    wake.deployment(row.deployment_id)


def end_hold(row: Request, now: datetime) -> dict[str, Any]:
    """What changes in a row whose approval no longer counts: it is reviewed again within the usual hours."""
    hours = timedelta(hours=settings.PRATIQUE["REQUEST_HOURS"])
    return {**NOT_HELD, **({"expires_at": min(row.expires_at, now + hours)} if row.held_from else {})}
