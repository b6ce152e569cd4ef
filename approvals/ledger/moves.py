"""Moving a request along the transition table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from approvals import audit, lifecycle, wake
from approvals.audit import MACHINE, Actor
from approvals.clock import database_now
from approvals.errors import CHANGED
from approvals.ledger import made_values
from approvals.lifecycle import Event
from approvals.locks import for_change
from approvals.models import BundleDeployment, Request
from provisioner.errors import DigestMismatch, PratiqueError, TryLater
from provisioner.review.base.record import ref_record

_MOVED = ("state", "changed_at", "settled_at", "worker_deaths", "awaits", "problem_since")


def locked(request_id: int) -> Request:
    """The row, locked until the transaction ends; raises Request.DoesNotExist."""
    return (
        for_change(Request.objects.filter(pk=request_id))
        .select_related("deployment__cluster", "content", "from_revision")
        .get()
    )


def both_locked(request: Request) -> tuple[BundleDeployment, Request]:
    """The deployment and its request, locked in the order that locks names."""
    deployment = for_change(BundleDeployment.objects.filter(pk=request.deployment_id)).get()
    return deployment, locked(request.pk)


def move(
    request: Request, event: Event, *, actor: Actor, facts: Mapping[str, Any] | None = None, **changes: Any
) -> Request:
    """Move a locked row by `event`, setting `changes` with it; raises lifecycle.IllegalMove."""
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("a move needs the row's lock, so a transaction")
    now = database_now()
    before = request.state
    request.state = lifecycle.move(lifecycle.State(request.state), event)
    request.changed_at = now
    request.settled_at = now if request.state in lifecycle.SETTLED else None
    # What workers died of (ledger.claims), and what was waited for, was of the step that is over now.
    request.worker_deaths, request.awaits, request.problem_since = 0, "", None
    if "problem" in changes:
        changes.setdefault("server_words", [])  # what was said of another problem
        changes.setdefault("remedy", "")
        changes |= made_values.words_of_problem(request, changes["problem"], changes["server_words"])
    if facts and "why" in facts:
        facts = {**facts, "why": made_values.without_values(request.deployment_id, facts["why"])}
    for name, value in changes.items():
        setattr(request, name, value)
    request.save(update_fields=[*_MOVED, *changes])
    audit.record(
        verb=f"request.{event}",
        actor=actor,
        request=request,
        facts={"from": before, "to": request.state, "round": request.round, **(facts or {})},
    )
    wake.request(request.pk)
    wake.deployment(request.deployment_id)
    return request


def is_end(error: PratiqueError) -> bool:
    """Whether an error ends a request that is approved and has not begun: the gate said so, or what is stored is not
    what was approved. What else a step could not find out is waited for.
    """
    is_answer = bool(getattr(error, "remedy", "")) or isinstance(error, DigestMismatch)
    return is_answer and not isinstance(error, TryLater)


def remedy_of(error: PratiqueError, name: str) -> str:
    """Who can do what about it, where that is known; `name` is the deployment's."""
    known = str(getattr(error, "remedy", ""))
    return CHANGED.format(name=name) if not known and isinstance(error, DigestMismatch) else known


def said_of(error: PratiqueError, name: str) -> dict[str, Any]:
    """The columns of a request that fails of this: what people are told, and what the API server said of it."""
    said = getattr(error, "said", ())
    return {
        "problem": str(error),
        "problem_code": error.code,
        "remedy": remedy_of(error, name),
        "server_words": [{"ref": ref_record(ref), "words": words} for ref, words in said],
    }


def end(row: Request, error: PratiqueError) -> None:
    """End a locked request that is in review or approved: nothing of it was written, and it may be asked for anew."""
    facts = {"code": error.code, "why": str(error)}
    move(row, Event.GIVE_UP, actor=MACHINE, facts=facts, look_again_at=None, **said_of(error, row.deployment.name))
