"""Who owns which field: field sets as managedFields has them, and how lists and maps are merged.

A field set is the FieldsV1 tree: `{"f:spec": {"f:replicas": {}}}`, list items as `k:{"name":"x"}` or `v:"x"`, `.` for
the item itself. A topology says of a path whether its list is a map (with which keys), a set, or atomic.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provisioner.sandbox.builtin import field_type, model_name
from provisioner.sandbox.kinds import SandboxKind

FieldSet = dict[str, Any]
Path = tuple[str, ...]
ATOMIC, SET = "atomic", "set"
# "atomic", "set", or the key fields of a list map; for a map: "atomic" or "" (granular). By the names above the place.
Topology = Callable[[tuple[str, ...], Any], Any]

_DEFAULT_KEYS = {"protocol": "TCP"}
# What is there even where nothing is set: structs of Go that are no pointers. Their coming is nobody's change.
_ALWAYS_THERE = {
    "metadata", "spec", "status", "template", "strategy", "updateStrategy", "resources", "containers", "names",
    "jobTemplate",
}  # fmt: skip


def fields_of(value: Any, topology: Topology, path: tuple[str, ...] = ()) -> FieldSet:
    """The field set of an applied value: {} is a leaf."""
    kind = topology(path, value)
    if isinstance(value, dict) and value and kind != ATOMIC:
        return {f"f:{key}": fields_of(inner, topology, (*path, key)) for key, inner in sorted(value.items())}
    if isinstance(value, list) and value and kind != ATOMIC:
        items = {}
        for item in value:
            inner = {} if kind == SET else {".": {}, **fields_of(item, topology, path)}
            items[item_key(item, kind)] = inner
        return items
    return {}


def item_key(item: Any, kind: Any) -> str:
    if kind == SET:
        return f"v:{json.dumps(item, separators=(',', ':'))}"
    keys = {key: item.get(key, _DEFAULT_KEYS.get(key)) for key in kind}
    return f"k:{json.dumps(keys, separators=(',', ':'), sort_keys=True)}"


def leaves(fields: FieldSet, above: Path = ()) -> Iterator[Path]:
    """Every path that the set holds."""
    for part, inner in fields.items():
        if part == ".":
            yield above
        elif inner:
            yield from leaves(inner, (*above, part))
        else:
            yield (*above, part)


def of_paths(paths: Iterator[Path] | list[Path] | set[Path]) -> FieldSet:
    """The tree of these paths; an item that also has fields below it keeps its own `.`."""
    made: FieldSet = {}
    for path in sorted(paths):
        node = made
        for part in path:
            node = node.setdefault(part, {})
    for path in sorted(paths):
        node = made
        for part in path:
            node = node[part]
        if node and path:
            node["."] = {}
    return made


def in_order(paths: set[Path]) -> list[Path]:
    """Paths as the API server lists them: at each level first what ends there, then what goes on."""
    return sorted(paths, key=lambda path: [(number < len(path) - 1, part) for number, part in enumerate(path)])


def lookup(value: Any, path: Path, topology: Topology, names: tuple[str, ...] = ()) -> tuple[bool, Any]:
    """(is there, value) at a path of a field set."""
    for part in path:
        if part.startswith("f:"):
            name = part[2:]
            if not isinstance(value, dict) or name not in value:
                return False, None
            value, names = value[name], (*names, name)
        else:
            kind = topology(names, value) if isinstance(value, list) else ATOMIC
            found = [item for item in value if item_key(item, kind) == part] if kind != ATOMIC else []
            if not found:
                return False, None
            value = found[0]
    return True, value


def merge(live: Any, applied: Any, topology: Topology, path: tuple[str, ...] = ()) -> Any:
    """`applied` over `live`: maps and list maps key by key, everything else as a whole."""
    kind = topology(path, applied)
    if isinstance(applied, dict) and isinstance(live, dict) and kind != ATOMIC:
        merged = dict(live)
        for key, value in applied.items():
            merged[key] = merge(live[key], value, topology, (*path, key)) if key in live else value
        return merged
    if isinstance(applied, list) and isinstance(live, list) and kind != ATOMIC:
        wanted = {item_key(item, kind): item for item in applied}
        known = {item_key(item, kind) for item in live}
        kept = [
            merge(item, wanted[item_key(item, kind)], topology, path) if item_key(item, kind) in wanted else item
            for item in live
        ]
        return kept + [item for key, item in wanted.items() if key not in known]
    return applied


def remove(value: Any, path: Path, topology: Topology, names: tuple[str, ...] = ()) -> Any:
    """`value` without what lies at `path`; maps that become empty by it stay."""
    if not path:
        return value
    part, rest = path[0], path[1:]
    if part.startswith("f:"):
        name = part[2:]
        if not isinstance(value, dict) or name not in value:
            return value
        if not rest:
            return {key: inner for key, inner in value.items() if key != name}
        return {**value, name: remove(value[name], rest, topology, (*names, name))}
    if not isinstance(value, list):
        return value
    kind = topology(names, value)
    if kind == ATOMIC:
        return value
    if not rest:
        return [item for item in value if item_key(item, kind) != part]
    return [remove(item, rest, topology, names) if item_key(item, kind) == part else item for item in value]


def changed(before: Any, after: Any, topology: Topology, path: tuple[str, ...] = (), at: Path = ()) -> set[Path]:
    """The paths of `after` whose values are not those of `before`: what an Update manager then owns.

    Where nothing was before, also the map or list itself; `before` is ABSENT then.
    """
    if before == after:
        return set()
    kind = topology(path, after)
    if not isinstance(after, dict | list) or not after or kind == ATOMIC:
        return {at} if at else set()
    found = {at} if at and not _is_there(before, path, at, topology) else set()
    if isinstance(after, dict):
        old = before if isinstance(before, dict) else {}
        for key, value in after.items():
            found |= changed(old.get(key, ABSENT), value, topology, (*path, key), (*at, f"f:{key}"))
        return found
    old_items = {item_key(item, kind): item for item in before} if isinstance(before, list) else {}
    for item in after:
        key = item_key(item, kind)
        if key not in old_items:
            found.add((*at, key))
        if kind != SET:
            found |= changed(old_items.get(key, {}), item, topology, path, (*at, key))
    return found


def _is_there(before: Any, path: tuple[str, ...], at: Path, topology: Topology) -> bool:
    if before is not ABSENT and before is not None:
        return True
    if path == ("metadata",):
        return True
    is_in_item = any(part.startswith("k:") for part in at)
    return getattr(topology, "is_typed", True) and not is_in_item and path[-1] in _ALWAYS_THERE


def words(path: Path) -> str:
    """A path as conflicts name it: `.spec.containers[name="x"].image`."""
    said = ""
    for part in path:
        if part.startswith("f:"):
            said += f".{part[2:]}"
        elif part.startswith("k:"):
            keys = json.loads(part[2:])
            said += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in sorted(keys.items())) + "]"
        else:
            said += f"[={part[2:]}]"
    return said


ABSENT = object()


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
        if name == "ports":
            return _PORTS.get(holder, ATOMIC)
        if (holder, name) in _SETS:
            return SET
        keys, holders = _LIST_MAPS.get(name, ((), ()))
        is_meant = bool(keys) and bool(holder) and (not holders or holder in holders)
        return keys if is_meant else ATOMIC
    if form in _ATOMIC_CLASSES and (holder, name) != ("V1PersistentVolumeSpec", "claimRef"):
        return ATOMIC
    return ATOMIC if (holder, name) in _ATOMIC_MAPS else ""


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
            while node.get("type") == "array":
                node = node.get("items") or {}
            more = node.get("additionalProperties")
            node = (node.get("properties") or {}).get(part) or (more if isinstance(more, dict) else {})
        while isinstance(value, dict) and node.get("type") == "array":
            node = node.get("items") or {}
        if isinstance(value, list):
            kind = node.get("x-kubernetes-list-type", ATOMIC)
            return tuple(node.get("x-kubernetes-list-map-keys", ())) if kind == "map" else kind
        return ATOMIC if node.get("x-kubernetes-map-type") == ATOMIC else ""
