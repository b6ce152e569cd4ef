"""What was reviewed, as it was stored, and proved to be that (promise 1)."""

from __future__ import annotations

from approvals import store
from approvals.gate import Approved
from approvals.models import Request
from provisioner.cluster.plan.content_plan import plan_digest
from provisioner.errors import DigestMismatch
from provisioner.review.base.record import from_record
from provisioner.values import Content, Plan


def load(request: Request) -> Approved:
    """Content and plan of the round that was reviewed; DigestMismatch where either is not the reviewed one."""
    return Approved(_approved_content(request), approved_plan(request))


def approved_plan(request: Request) -> Plan:
    """The plan of the round that was reviewed, as it was stored; DigestMismatch where it is not the reviewed one."""
    report = request.reports.get(round=request.round)
    plan = from_record(report.body).plan
    # Over the actions themselves: what the record says of its digest proves nothing about them.
    found = plan_digest(plan.actions)
    if not found == plan.digest == request.plan_digest:
        raise DigestMismatch(f"the stored plan has digest {found}, but {request.plan_digest} was reviewed")
    return plan


def _approved_content(request: Request) -> Content:
    """The reviewed bytes, hashed again (promise 1)."""
    assert request.content is not None  # a database constraint: nothing is approved without a subject
    return store.get(request.content, fetched_by=request)
