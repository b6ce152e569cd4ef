"""Fields that the API server sets where an object leaves them out: defaults, which everybody can tell, and choices.

A choice, such as the address of a Service, is known to people who may get the object, and to checks that ask for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from provisioner.builtin import defaulted
from provisioner.review.base.facts import mapping
from provisioner.schema.fields import is_same
from provisioner.values import GroupKind, JsonObject, PlannedAction

_Path = tuple[str, ...]
_NAMESPACE = GroupKind("", "Namespace")
_NAME = "kubernetes.io/metadata.name"
_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
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
# The same in each object that leaves them out.
_ALWAYS: Mapping[GroupKind, Mapping[_Path, Any]] = {
    _NAMESPACE: {("spec", "finalizers"): ["kubernetes"]},
    _CRD: {
        ("spec", "conversion"): {"strategy": "None"},
        ("metadata", "finalizers"): ["customresourcecleanup.apiextensions.k8s.io"],
    },
}


def as_wished(planned: PlannedAction, wished: PlannedAction | None) -> PlannedAction:
    """`planned` as the bundles of before and now have it, `wished`, where the server holds only what it makes of these.

    Else without what the server chose for it.
    """
    paths = _CHOSEN.get(planned.ref.group_kind, ())
    if wished is None:
        before, after = (body and _without(body, {}, paths) for body in (planned.before, planned.after))
        return replace(planned, before=before, after=after)
    old, new = wished.before if wished.before is not None else wished.after, wished.after
    before, after = (
        body and _without(body, own or {}, paths) for body, own in ((planned.before, old), (planned.after, new))
    )
    if _is_made_of(before, old, planned.ref.group_kind) and _is_made_of(after, new, planned.ref.group_kind):
        before, after = before and old, after and new
    return replace(planned, before=before, after=after)


def holds_choices(planned: PlannedAction, wished: PlannedAction | None) -> bool:
    """Whether the server chose something for the object, as it is or will be."""
    paths = _CHOSEN.get(planned.ref.group_kind, ())
    sides = ((planned.before, wished and wished.before), (planned.after, wished and wished.after))
    return any(body is not None and _without(body, own or {}, paths) is not body for body, own in sides)


def is_as_wished(planned: PlannedAction, wished: PlannedAction) -> bool:
    """Whether the server holds, and will hold, only what it makes of the bundles."""
    shown = as_wished(planned, wished)
    old = wished.before if wished.before is not None else wished.after
    return all(one is None or one is own for one, own in ((shown.before, old), (shown.after, wished.after)))


def _is_made_of(body: JsonObject | None, own: JsonObject | None, kind: GroupKind) -> bool:
    if body is None or own is None or is_same(body, own):
        return body is None or own is not None
    made = defaulted(own)
    always = dict(_ALWAYS.get(kind, {}))
    if kind == _NAMESPACE:
        name = mapping(own.get("metadata")).get("name")
        always["metadata", "labels"] = {_NAME: name, **mapping(mapping(own.get("metadata")).get("labels"))}
    for (part, field), value in always.items():
        held = made.setdefault(part, {})
        if not isinstance(held, dict):  # a form that no server would take
            return False
        held[field] = value if (part, field) == ("metadata", "labels") else held.get(field, value)
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
        made = [_without_one(item, mine, rest) for item, mine in zip(value, known, strict=True)]
        return value if all(one is item for one, item in zip(made, value, strict=True)) else made
    if not isinstance(value, Mapping) or step not in value:
        return value
    mine = own.get(step) if isinstance(own, Mapping) else None
    if rest:
        inner = _without_one(value[step], mine, rest)
        if inner is value[step]:
            return value
        return {key: inner if key == step else item for key, item in value.items() if key != step or inner != {}}
    return value if mine is not None else {key: item for key, item in value.items() if key != step}
