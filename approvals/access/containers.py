"""What changes in containers as one viewer may see it (S09): of stored objects only of those that they can get.

Whether a hidden object's containers change is not told either: all hidden objects that run pods are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from approvals.access.sight import Record, ReportSight, exists, reference
from provisioner.review.base.record import action_from
from provisioner.review.workloads.container_changes import ContainerChange, container_changes
from provisioner.review.workloads.pod_changes import STAYING
from provisioner.review.workloads.pod_specs import runs_pods
from provisioner.values import Plan


@dataclass(frozen=True, slots=True)
class SeenContainers:
    """`hidden_count` is how many objects that stay and run pods the viewer may not get, changed or not."""

    changes: list[ContainerChange]
    hidden_count: int


def seen_containers(sight: ReportSight, body: Record) -> SeenContainers:
    """The containers that change in a report's record, in the order of the plan, without those of hidden objects."""
    running = [one for one in body["plan"]["actions"] if _may_hold_changes(one)]
    seen = [one for one in running if not exists(one) or sight.may_see(one["ref"])]
    return SeenContainers(container_changes(Plan(tuple(map(action_from, seen)), "")), len(running) - len(seen))


def _may_hold_changes(action: dict[str, Any]) -> bool:
    return action["action"] in STAYING and runs_pods(reference(action["ref"]).group_kind)
