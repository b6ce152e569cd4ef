"""Moving a request along the transition table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from approvals import audit, lifecycle, wake
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.lifecycle import Event
from approvals.locks import for_change
from approvals.models import BundleDeployment, Request

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
    request: Request,
    event: Event,
    *,
    actor: Actor,
    facts: Mapping[str, Any] | None = None,
    **changes: Any,
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
