"""How many pods workloads run, and how many a number or a percentage of them is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.facts import mapping
from provisioner.values import GroupKind, JsonObject, ObjectRef

DEPLOYMENT = GroupKind("apps", "Deployment")
STATEFUL_SET = GroupKind("apps", "StatefulSet")
DAEMON_SET = GroupKind("apps", "DaemonSet")
SCALED = frozenset({DEPLOYMENT, STATEFUL_SET, GroupKind("apps", "ReplicaSet"), GroupKind("", "ReplicationController")})
# It sets what pods ask for, not how many there are.
SIZER = GroupKind("autoscaling.k8s.io", "VerticalPodAutoscaler")
_TARGETS = {
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): "scaleTargetRef",
    GroupKind("keda.sh", "ScaledObject"): "scaleTargetRef",
    SIZER: "targetRef",
}
_SCALER_KINDS = frozenset(one.kind for one in _TARGETS)

QUARTER = "25%"


def is_autoscaler(group_kind: GroupKind) -> bool:
    """Whether objects of this kind set the replicas of workloads."""
    return group_kind in _TARGETS and group_kind != SIZER


def replicas_of(obj: JsonObject) -> int:
    """How many pods a workload asks for; the server's default is one."""
    count = mapping(obj.get("spec")).get("replicas")
    return count if isinstance(count, int) and not isinstance(count, bool) else 1


def target_of(scaler: JsonObject) -> ObjectRef | None:
    """The workload whose replicas an autoscaler sets; None for what is no autoscaler."""
    if scaler.get("kind") not in _SCALER_KINDS:  # most objects are none
        return None
    ref, spec = ObjectRef.of(scaler), mapping(scaler.get("spec"))
    target = mapping(spec.get(_TARGETS.get(ref.group_kind, "")))
    if not target.get("name"):
        return None
    group, _, version = str(target.get("apiVersion") or "apps/v1").rpartition("/")
    return ObjectRef(group, version, str(target.get("kind") or DEPLOYMENT.kind), ref.namespace, str(target["name"]))


def autoscalers_of(ref: ObjectRef, objects: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Those among `objects` that set the replicas of a workload."""
    for other in objects:
        target = target_of(other)
        if target is not None and target.identity == ref.identity and is_autoscaler(ObjectRef.of(other).group_kind):
            yield other


def most_of(obj: JsonObject, objects: Iterable[JsonObject]) -> int:
    """How many it may run at most: as an autoscaler among `objects` lets it, else as it asks."""
    specs = (mapping(one.get("spec")) for one in autoscalers_of(ObjectRef.of(obj), objects))
    most = (spec.get("maxReplicas", spec.get("maxReplicaCount")) for spec in specs)
    return next((count for count in most if isinstance(count, int)), replicas_of(obj))


def part_of(value: object, total: int, *, up: bool) -> int | None:
    """A number, or a percentage of `total`, rounded as Kubernetes does it there; None for what is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digits = value.removesuffix("%") if isinstance(value, str) and value.endswith("%") else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 4):
        return None
    product = int(digits) * total
    return -(-product // 100) if up else product // 100


@dataclass(frozen=True, slots=True)
class Rolling:
    """How many pods a Deployment starts beside those that it should have, and how many of them it lets go meanwhile."""

    surge: int
    unavailable: int


def rolling(strategy: Mapping[str, Any], count: int) -> Rolling | None:
    """How `count` pods are replaced; None where all go first, or nobody can read it."""
    stated = mapping(strategy.get("rollingUpdate"))
    unavailable = part_of(stated.get("maxUnavailable", QUARTER), count, up=False)
    surge = part_of(stated.get("maxSurge", QUARTER), count, up=True)
    if strategy.get("type") == "Recreate" or unavailable is None or surge is None:
        return None
    return Rolling(surge, unavailable if unavailable or surge else 1)  # the server lets one go then
