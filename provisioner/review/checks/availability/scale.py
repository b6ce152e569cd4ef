"""How many pods workloads run, and how many a number or a percentage of them is."""

from __future__ import annotations

from collections.abc import Iterable

from provisioner.review.base.facts import mapping
from provisioner.values import GroupKind, JsonObject, ObjectRef

DEPLOYMENT = GroupKind("apps", "Deployment")
STATEFUL_SET = GroupKind("apps", "StatefulSet")
DAEMON_SET = GroupKind("apps", "DaemonSet")
SCALED = frozenset({DEPLOYMENT, STATEFUL_SET, GroupKind("apps", "ReplicaSet"), GroupKind("", "ReplicationController")})
_AUTOSCALER = GroupKind("autoscaling", "HorizontalPodAutoscaler")


def replicas_of(obj: JsonObject) -> int:
    """How many pods a workload asks for; the server's default is one."""
    count = mapping(obj.get("spec")).get("replicas")
    return count if isinstance(count, int) and not isinstance(count, bool) else 1


def most_of(obj: JsonObject, objects: Iterable[JsonObject]) -> int:
    """How many it may run at most: as an autoscaler among `objects` lets it, else as it asks."""
    ref = ObjectRef.of(obj)
    for other in objects:
        if ObjectRef.of(other).group_kind == _AUTOSCALER and ObjectRef.of(other).namespace == ref.namespace:
            spec = mapping(other.get("spec"))
            target, most = mapping(spec.get("scaleTargetRef")), spec.get("maxReplicas")
            if (target.get("kind"), target.get("name")) == (ref.kind, ref.name) and isinstance(most, int):
                return most
    return replicas_of(obj)


def part_of(value: object, total: int, *, up: bool) -> int | None:
    """A number, or a percentage of `total`, rounded as Kubernetes does it there; None for what is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digits = value.removesuffix("%") if isinstance(value, str) and value.endswith("%") else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 4):
        return None
    product = int(digits) * total
    return -(-product // 100) if up else product // 100
