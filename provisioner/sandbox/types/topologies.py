"""What the lists and maps of built-in kinds are to a merge: maps by keys, sets, or one value as a whole."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from provisioner.sandbox.types.builtin import field_type, model_name
from provisioner.sandbox.types.fields import ATOMIC, SET, Topology
from provisioner.sandbox.types.kinds import SandboxKind

# By the name of the field; in which classes, where others have a field of that name that is no such list.
_LIST_MAPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "conditions": (("type",), ()),
    "containers": (("name",), ("V1PodSpec",)),
    "initContainers": (("name",), ()),
    "ephemeralContainers": (("name",), ()),
    "env": (("name",), ()),
    "hostAliases": (("ip",), ()),
    "imagePullSecrets": (("name",), ("V1PodSpec",)),
    "matchConditions": (("name",), ()),
    "ownerReferences": (("uid",), ()),
    "podIPs": (("ip",), ()),
    "resourceClaims": (("name",), ("V1PodSpec",)),
    "claims": (("name",), ("V1ResourceRequirements",)),
    "schedulingGates": (("name",), ()),
    "secrets": (("name",), ("V1ServiceAccount",)),
    "topologySpreadConstraints": (("topologyKey", "whenUnsatisfiable"), ()),
    "variables": (("name",), ("V1ValidatingAdmissionPolicySpec",)),
    "volumeDevices": (("devicePath",), ()),
    "volumeMounts": (("mountPath",), ()),
    "volumes": (("name",), ("V1PodSpec",)),
    "webhooks": (("name",), ()),
    "drivers": (("name",), ("V1CSINodeSpec",)),
    "addresses": (("type",), ("V1NodeStatus",)),
}
_PORTS = {
    "V1Container": ("containerPort", "protocol"),
    "V1EphemeralContainer": ("containerPort", "protocol"),
    "V1ServiceSpec": ("port", "protocol"),
}
_SETS = {
    ("V1ObjectMeta", "finalizers"),
    ("V1Endpoint", "addresses"),
    ("V1NodeSpec", "podCIDRs"),
    ("V1ValidatingAdmissionPolicyBindingSpec", "validationActions"),
    ("V1CSIDriverSpec", "volumeLifecycleModes"),
}
_ATOMIC_MAPS = {
    ("V1PodSpec", "nodeSelector"),
    ("V1ReplicationControllerSpec", "selector"),
    ("V1ServiceSpec", "selector"),
    ("V1Scheduling", "nodeSelector"),
}
_ATOMIC_CLASSES = {
    "V1MatchResources", "V1NamedRuleWithOperations", "V1ParamKind", "V1ParamRef", "V1Variable",
    "V1CrossVersionObjectReference", "V2CrossVersionObjectReference", "V1ConfigMapKeySelector", "V1EndpointAddress",
    "CoreV1EndpointPort", "V1FileKeySelector", "V1LocalObjectReference", "V1NodeSelector", "V1NodeSelectorTerm",
    "V1ObjectFieldSelector", "V1ObjectReference", "V1ResourceFieldSelector", "V1ScopeSelector", "V1SecretKeySelector",
    "V1SecretReference", "V1TopologySelectorTerm", "V1TypedLocalObjectReference", "DiscoveryV1EndpointPort",
    "V1ServiceBackendPort", "V1RoleRef", "RbacV1Subject", "V1LabelSelector", "V1OwnerReference",
}  # fmt: skip


@functools.cache
def of_kind(kind: SandboxKind) -> Topology:
    """The topology of a built-in kind; of a custom one, only that of its metadata."""
    model = "object" if kind.is_custom else model_name(kind)

    def topology(path: tuple[str, ...], value: Any) -> Any:
        return _topology(model, path, isinstance(value, list))

    return topology


@functools.cache
def _topology(model: str, path: tuple[str, ...], is_list: bool) -> Any:
    if path[:1] == ("metadata",):
        holder, name, form = field_type("V1ObjectMeta", path[1:]) if path[1:] else ("", "metadata", "V1ObjectMeta")
    else:
        holder, name, form = field_type(model, path)
    if is_list:
        return _of_list(holder, name)
    if form in _ATOMIC_CLASSES and (holder, name) != ("V1PersistentVolumeSpec", "claimRef"):
        return ATOMIC
    return ATOMIC if (holder, name) in _ATOMIC_MAPS else ""


def _of_list(holder: str, name: str) -> Any:
    if name == "ports":
        return _PORTS.get(holder, ATOMIC)
    if (holder, name) in _SETS:
        return SET
    keys, holders = _LIST_MAPS.get(name, ((), ()))
    is_meant = bool(keys) and bool(holder) and (not holders or holder in holders)
    return keys if is_meant else ATOMIC


def of_schema(schema: Mapping[str, Any]) -> Topology:
    """The topology that a structural schema states; metadata is as everywhere."""
    return _Stated(schema)


class _Stated:
    is_typed = False  # nothing is there by itself in an object without Go structs

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def __call__(self, path: tuple[str, ...], value: Any) -> Any:
        if path[:1] == ("metadata",):
            return _topology("object", path, isinstance(value, list))
        node: Mapping[str, Any] = self._schema
        for part in path:
            node = _below(node, part)
        while isinstance(value, dict) and node.get("type") == "array":
            node = node.get("items") or {}
        if isinstance(value, list):
            kind = node.get("x-kubernetes-list-type", ATOMIC)
            return tuple(node.get("x-kubernetes-list-map-keys", ())) if kind == "map" else kind
        return ATOMIC if node.get("x-kubernetes-map-type") == ATOMIC else ""


def _below(node: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    while node.get("type") == "array":
        node = node.get("items") or {}
    known = (node.get("properties") or {}).get(part)
    if known is not None:
        return dict(known)
    more = node.get("additionalProperties")
    return more if isinstance(more, dict) else {}
