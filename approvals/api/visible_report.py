"""A report as a caller may see it: live values only of objects that Kubernetes lets them get (S09)."""

from __future__ import annotations

from typing import Any

from approvals.access import Caller
from approvals.access.sight import Record, ReportSight, Sight
from approvals.access.workloads import seen_workloads
from approvals.models import Report, Request
from provisioner.review.base.difference import mask_secret
from provisioner.review.base.messages import unjudged_fields
from provisioner.review.base.record import finding_from
from provisioner.review.output.entries import entries_record
from provisioner.review.workloads.workload_changes import running_record

# Kubernetes is asked at most this often for one report.
MAX_ASKED = 300


def visible_report(caller: Caller, request: Request, report: Report) -> dict[str, Any]:
    """The report's record without the live values that this caller may not see, the words of the API server among them.

    A hidden object keeps its name and what is planned. `workloads` and `containers` are those of new objects and of
    those that the caller may get, as report.schema.json describes them; `containersHidden` counts the other objects
    that run pods. `entries` tell the findings by cause, made of what this caller sees
    of them.
    """
    body: dict[str, Any] = report.body
    sight = ReportSight(Sight(caller, request.deployment.cluster, limit=MAX_ASKED), body)
    actions = [_masked(sight.action(it)) for it in body["plan"]["actions"]]
    findings = [sight.finding(it) for it in body["findings"]]
    running = seen_workloads(sight, body)
    return {
        **body,
        "findings": findings,
        "entries": entries_record(map(finding_from, findings)),
        "unjudged": sum(1 for one in findings for _ in unjudged_fields(one["rule"], one["evidence"])),
        "private": sight.private(body),
        **running_record(running.changes),
        "containersHidden": running.hidden_count,
        "plan": {**body["plan"], "actions": actions},
    }


def _masked(planned: Record) -> dict[str, Any]:
    """Secrets are masked once more, whatever the writer of the report did."""
    states = {name: planned.get(name) for name in ("before", "after")}
    return {**planned, **{name: mask_secret(obj) if obj else obj for name, obj in states.items()}}
