"""Fields that the API server sets where an object leaves them out: defaults, which everybody can tell, and choices.

A choice, such as the address of a Service, is known to people who may get the object, and to checks that ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_
from typing import Any

from provisioner.builtin import defaulted
from provisioner.schema.fields import is_same
from provisioner.values import GroupKind, JsonObject, PlannedAction

_Path = tuple[str, ...]
# Taken out of an object where its manifest does not set them.
_CHOSEN: Mapping[GroupKind, tuple[_Path, ...]] = {
    GroupKind("", "Service"): (
        *(("spec", name) for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")),
        *(("spec", name) for name in ("healthCheckNodePort", "allocateLoadBalancerNodePorts")),
        ("spec", "ports", "*", "nodePort"),
    ),
    GroupKind("", "PersistentVolumeClaim"): (("spec", "volumeName"),),
    GroupKind("apps", "Deployment"): (("metadata", "annotations", "deployment.kubernetes.io/revision"),),
}
# What each object has that leaves them out, made of the object.
_ALWAYS: Mapping[GroupKind, Mapping[_Path, Callable[[JsonObject], Any]]] = {
    GroupKind("", "Namespace"): {
        ("spec", "finalizers"): lambda _: ["kubernetes"],
        ("metadata", "labels", "kubernetes.io/metadata.name"): lambda own: own["metadata"]["name"],
    },
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): {
        ("spec", "conversion"): lambda _: {"strategy": "None"},
        ("metadata", "finalizers"): lambda _: ["customresourcecleanup.apiextensions.k8s.io"],
    },
}


def as_wished(planned: PlannedAction, wished: PlannedAction | None) -> PlannedAction:
    """`planned` as the bundles of before and now have it, `wished`, where the server holds only what it makes of these.

    Else without what the server chose for it.
    """
    kind = planned.ref.group_kind
    old, new = wished_sides(wished) if wished else (None, None)
    before, after = (
        body and _without(body, own or {}, _CHOSEN.get(kind, ()))
        for body, own in ((planned.before, old), (planned.after, new))
    )
    if _is_made_of(before, old, kind) and _is_made_of(after, new, kind):
        before, after = before and old, after and new
    return replace(planned, before=before, after=after)


def wished_sides(wished: PlannedAction) -> tuple[JsonObject | None, JsonObject | None]:
    """An object in the bundles of before and now; what is new there is taken to have been so."""
    return wished.before if wished.before is not None else wished.after, wished.after


def holds_choices(planned: PlannedAction, wished: PlannedAction | None) -> bool:
    """Whether the server chose something for the object, as it is or will be."""
    paths = _CHOSEN.get(planned.ref.group_kind, ())
    sides = ((planned.before, wished and wished.before), (planned.after, wished and wished.after))
    return any(body is not None and _without(body, own or {}, paths) is not body for body, own in sides)


def is_as_wished(planned: PlannedAction, wished: PlannedAction) -> bool:
    """Whether the server holds, and will hold, only what it makes of the bundles."""
    shown = as_wished(planned, wished)
    sides = zip((shown.before, shown.after), wished_sides(wished), strict=True)
    return all(body is None or body is own for body, own in sides)


def _is_made_of(body: JsonObject | None, own: JsonObject | None, kind: GroupKind) -> bool:
    """Whether the server stores `own` as `body`: the same, or with what each server fills in."""
    if body is None or own is None or is_same(body, own):
        return body is None or own is not None
    made = defaulted(own)
    for (*above, last), value in _ALWAYS.get(kind, {}).items():
        holder = made
        for step in above:
            if holder.get(step) is None:
                holder[step] = {}
            holder = holder[step]
            if not isinstance(holder, dict):  # a form that no server would take
                return False
        holder.setdefault(last, value(own))
    return is_same(body, made)


def _without(body: JsonObject, own: JsonObject, paths: tuple[_Path, ...]) -> JsonObject:
    for path in paths:
        body = _without_one(body, own, path)
    return body


def _without_one(value: Any, own: Any, path: _Path) -> Any:
    """`value` without the field at `path` that `own` does not set; itself where there is none."""
    step, rest = path[0], path[1:]
    if step == "*" and isinstance(value, list):
        known = own if isinstance(own, list) and len(own) == len(value) else [None] * len(value)
        kept = [_without_one(item, own_item, rest) for item, own_item in zip(value, known, strict=True)]
        return value if all(map(is_, kept, value)) else kept
    if not isinstance(value, Mapping) or step not in value:
        return value
    own_inner = own.get(step) if isinstance(own, Mapping) else None
    if rest:
        inner = _without_one(value[step], own_inner, rest)
        if inner is value[step]:
            return value
        return {key: inner if key == step else item for key, item in value.items() if key != step or inner != {}}
    return value if own_inner is not None else {key: item for key, item in value.items() if key != step}
