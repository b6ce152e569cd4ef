"""What workloads ask of their namespaces, in the words of quotas: requests.cpu, pods, count/jobs.batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from provisioner.builtin import quantity
from provisioner.rbac import plural_of
from provisioner.review.base.facts import StateFacts, mapping, maps
from provisioner.review.checks.governance.amounts import Amounts
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import DAEMON_SET, SCALED, most_of
from provisioner.values import GroupKind, JsonObject, ObjectRef

_CLAIM = GroupKind("", "PersistentVolumeClaim")
_SERVICE = GroupKind("", "Service")
# What quotas count by a short name, beside `count/`.
_SHORT = frozenset(
    {"configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services"}
)
_RESERVED = frozenset({"cpu", "memory", "ephemeral-storage"})


def demanded(state: StateFacts, namespace: str) -> Amounts:
    """The least that runs there if all of the bundle runs. Of Jobs nobody knows how many run at a time: one pod each.

    Of a DaemonSet it is one pod too, for how many nodes there are is not known here.
    """
    found: dict[str, Decimal] = defaultdict(Decimal)
    bodies = {ref.identity: obj for ref, obj in state.named if ref.namespace == namespace}
    for pod in pod_specs(state.objects):
        if pod.ref.identity in bodies:
            count = _pods(pod, bodies[pod.ref.identity], state.objects)
            _add(found, {"pods": Decimal(1), **_of_pod(pod.body)}, count)
    for obj in bodies.values():
        _add(found, _of_object(obj), 1)
    return dict(found)


def _add(found: dict[str, Decimal], amounts: Amounts, times: int) -> None:
    for name, amount in amounts.items():
        found[name] += amount * times


def _pods(pod: PodSpec, obj: JsonObject, objects: Iterable[JsonObject]) -> int:
    if pod.ref.kind == "PodTemplate":
        return 0
    if pod.ref.group_kind in SCALED and pod.ref.group_kind != DAEMON_SET:
        return most_of(obj, objects)
    return 1


def _of_pod(spec: Mapping[str, Any]) -> Amounts:
    """What a pod reserves: all its containers together, or an init container that asks for more; and the overhead."""
    found: dict[str, Decimal] = {}
    for part in ("requests", "limits"):
        together: dict[str, Decimal] = defaultdict(Decimal)
        alone: dict[str, Decimal] = defaultdict(Decimal)
        for container in maps(spec.get("containers")):
            _add(together, dict(reserved(container, part)), 1)
        for container in maps(spec.get("initContainers")):
            amounts = dict(reserved(container, part))
            if container.get("restartPolicy") == "Always":
                _add(together, amounts, 1)
            else:
                alone.update({name: max(amount, alone[name]) for name, amount in amounts.items()})
        overhead = {name: value for name, raw in mapping(spec.get("overhead")).items() if (value := quantity(raw))}
        for name in {*together, *alone}:
            found[f"{part}.{name}"] = max(together[name], alone[name]) + overhead.get(name, Decimal())
    return found | {name: found[f"requests.{name}"] for name in _RESERVED if f"requests.{name}" in found}


def reserved(container: Mapping[str, Any], part: str) -> Iterator[tuple[str, Decimal]]:
    """What a container requests, or what it is limited to; a request that is not there is what its limit says."""
    resources = mapping(container.get("resources"))
    limits = mapping(resources.get("limits"))
    stated = limits if part == "limits" else {**limits, **mapping(resources.get("requests"))}
    for name, raw in stated.items():
        amount = quantity(raw)
        if amount is not None:
            yield str(name), amount


def _of_object(obj: JsonObject) -> Amounts:
    """What an object counts for by itself."""
    ref, spec = ObjectRef.of(obj), mapping(obj.get("spec"))
    plural = plural_of(ref.kind)
    found = {f"count/{plural}.{ref.group}" if ref.group else f"count/{plural}": Decimal(1)}
    if not ref.group and plural in _SHORT:
        found[plural] = Decimal(1)
    if ref.group_kind == _CLAIM:
        asked = quantity(mapping(mapping(spec.get("resources")).get("requests")).get("storage"))
        found |= {"requests.storage": asked} if asked is not None else {}
    if ref.group_kind == _SERVICE and spec.get("type") in ("LoadBalancer", "NodePort"):
        found["services.nodeports"] = Decimal(len(maps(spec.get("ports"))))
        found |= {"services.loadbalancers": Decimal(1)} if spec.get("type") == "LoadBalancer" else {}
    return found
