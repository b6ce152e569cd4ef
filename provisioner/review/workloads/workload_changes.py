"""What will run: the workloads that come, go or change, with their images, how many pods, access to nodes and accounts.

Pure. Of a plan that holds only what one reader may see, it tells only that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.facts import mapping
from provisioner.review.base.marks import Mark
from provisioner.review.workloads.container_changes import ContainerChange, changes_between, to_record
from provisioner.review.workloads.pod_changes import STAYING
from provisioner.review.workloads.pod_security import host_access
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.review.workloads.scale import DAEMON_SET, SCALED, autoscalers_of, is_autoscaler, replicas_of
from provisioner.sentences import number
from provisioner.values import Action, GroupKind, JsonObject, ObjectRef, Plan

# What is kept runs on, but is no part of the deployment any more.
RUNNING = STAYING | {Action.CREATE, Action.DELETE}
_JOB, _CRON_JOB = GroupKind("batch", "Job"), GroupKind("batch", "CronJob")


@dataclass(frozen=True, slots=True)
class PodRun:
    """How one object runs its pods: `scale` is how many in words, "" where it is one; `host` as `host_access` says."""

    scale: str = ""
    host: tuple[str, ...] = ()
    account: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadChange:
    """An object whose pods come, go, run anew or change. `before` and `after` are empty where it is not there."""

    ref: ObjectRef
    mark: Mark
    before: PodRun
    after: PodRun
    containers: tuple[ContainerChange, ...]
    runs_again: bool = False


def workload_changes(plan: Plan) -> list[WorkloadChange]:
    """What of the plan runs pods and comes, goes, runs anew or changes how, in the order of the plan."""
    scalers = [one for one in plan.actions if is_autoscaler(one.ref.group_kind)]
    old_scalers = [one.before for one in scalers if one.before]
    new_scalers = [one.after for one in scalers if one.after]
    found = []
    for planned in plan.actions:
        if planned.action not in RUNNING:
            continue
        old, new = (next(pod_specs((obj,)), None) if obj else None for obj in (planned.before, planned.after))
        # What is adopted is not always known.
        if not (old and new if planned.action in STAYING else old or new):
            continue
        change = WorkloadChange(
            planned.ref,
            Mark.CHANGED if old and new else Mark.NEW if new else Mark.GONE,
            _pod_run(planned.before, old, old_scalers),
            _pod_run(planned.after, new, new_scalers),
            tuple(changes_between(old, new)),
            planned.action is Action.RERUN,
        )
        if change.containers or change.before != change.after or change.runs_again:
            found.append(change)
    return found


def running_record(changes: Sequence[WorkloadChange]) -> dict[str, Any]:
    """The JSON of the changes and of their containers, as report.schema.json describes it."""
    workloads = [
        {
            "object": str(one.ref),
            "change": one.mark.name.lower(),
            "runsAgain": one.runs_again,
            "scale": {"before": one.before.scale, "after": one.after.scale},
            "hostAccess": {"before": list(one.before.host), "after": list(one.after.host)},
            "serviceAccount": {"before": one.before.account, "after": one.after.account},
        }
        for one in changes
    ]
    return {"workloads": workloads, "containers": to_record(found for one in changes for found in one.containers)}


def _pod_run(obj: JsonObject | None, pod: PodSpec | None, scalers: Iterable[JsonObject]) -> PodRun:
    return PodRun(_scale(obj, scalers), host_access(pod), pod.account) if obj and pod else PodRun()


def _scale(obj: JsonObject, scalers: Iterable[JsonObject]) -> str:
    ref, spec = ObjectRef.of(obj), mapping(obj.get("spec"))
    if ref.group_kind in SCALED:
        scaler = next(autoscalers_of(ref, scalers), None)
        return _range(scaler) if scaler else number(replicas_of(obj), "replica")
    if ref.group_kind == DAEMON_SET:
        return "one per node"
    if ref.group_kind == _CRON_JOB:
        return f"schedule {spec.get('schedule')}{', suspended' if spec.get('suspend') is True else ''}"
    parallel = spec.get("parallelism", 1) if ref.group_kind == _JOB else 1
    return "" if parallel == 1 else f"{parallel} at once"


def _range(scaler: JsonObject) -> str:
    """How many an autoscaler lets run; KEDA has names and defaults of its own."""
    spec, ref = mapping(scaler.get("spec")), ObjectRef.of(scaler)
    low = spec.get("minReplicas") or spec.get("minReplicaCount", 0 if ref.kind == "ScaledObject" else 1)
    high = spec.get("maxReplicas") or spec.get("maxReplicaCount", 100)
    return f"{low} to {high} replicas, as {ref.kind} {ref.name} decides"
