"""Targets and events of tests, as rows."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from approvals import audit
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.events.signed_post import make_secret
from approvals.models import BundleDeployment, NotificationTarget, Request


def target_row(address: str, name: str = "hook", **more: Any) -> NotificationTarget:
    """A target that is told of everything on cluster prod."""
    now = database_now()
    columns = {"kind": "webhook", "granted": ["prod"], "secret": make_secret(), "created_at": now, "changed_at": now}
    return NotificationTarget.objects.create(name=name, address=address, **{**columns, **more})


def happened(verb: str, *, request: Request | None = None, deployment: BundleDeployment | None = None) -> int:
    """The number of an entry about it, and so of its event."""
    facts = {"object": "ConfigMap n/a"} if verb.startswith("drift.") else {}
    with transaction.atomic():
        return audit.record(verb=verb, actor=MACHINE, request=request, deployment=deployment, facts=facts).number
