"""What will run as one viewer may see it (S09): of objects that exist only of those that they can get.

Whether a hidden object's pods change is not told either: all hidden objects that run pods are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from approvals.access.sight import Record, ReportSight, exists, reference
from provisioner.review.base.record import action_from
from provisioner.review.workloads.pod_specs import runs_pods
from provisioner.review.workloads.workload_changes import RUNNING, WorkloadChange, is_autoscaler, workload_changes
from provisioner.values import Plan


@dataclass(frozen=True, slots=True)
class SeenWorkloads:
    """`hidden_count` is how many objects that run pods, and are to stay or go, the viewer may not get, changed or
    not."""

    changes: list[WorkloadChange]
    hidden_count: int


def seen_workloads(sight: ReportSight, body: Record) -> SeenWorkloads:
    """What of a report's record runs, in the order of the plan, without hidden objects; an autoscaler that is hidden
    says nothing of how many pods there will be."""
    seen, hidden_count = [], 0
    for one in body["plan"]["actions"]:
        kind = reference(one["ref"]).group_kind
        is_running = one["action"] in RUNNING and runs_pods(kind)
        if not (is_running or is_autoscaler(kind)):
            continue
        if not exists(one) or sight.may_see(one["ref"]):
            seen.append(action_from(one))
        else:
            hidden_count += is_running
    return SeenWorkloads(workload_changes(Plan(tuple(seen), "")), hidden_count)
