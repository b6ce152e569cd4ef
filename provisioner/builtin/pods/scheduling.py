"""Which nodes a pod may run on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import FieldRefusal, Path, is_number, numbered, quoted
from provisioner.json_values import as_mapping, value_at


def of_scheduling(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    yield from metadata.of_labels(pod.get("nodeSelector"), (*path, "nodeSelector"))
    for place, one in numbered(pod.get("tolerations")):
        yield from _of_toleration(one, (*path, "tolerations", place))
    yield from _of_affinity(as_mapping(pod.get("affinity")), (*path, "affinity"))
    seen = set()
    for place, one in numbered(pod.get("topologySpreadConstraints")):
        where = (*path, "topologySpreadConstraints", place)
        yield from metadata.of_selector(one.get("labelSelector"), (*where, "labelSelector"))
        if one.get("minDomains") is not None and one.get("whenUnsatisfiable") != "DoNotSchedule":
            yield FieldRefusal((*where, "minDomains"), "must be set only where whenUnsatisfiable is DoNotSchedule")
        if one.get("matchLabelKeys") and one.get("labelSelector") is None:
            yield FieldRefusal((*where, "matchLabelKeys"), "must not be set without a labelSelector")
        key = (one.get("topologyKey"), one.get("whenUnsatisfiable"))
        if key in seen:
            yield FieldRefusal(where, "stands there twice")
        seen.add(key)


def _of_toleration(one: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    operator = one.get("operator") or "Equal"
    if not one.get("key") and operator != "Exists":
        yield FieldRefusal((*path, "operator"), "must be Exists where there is no key")
    if operator == "Exists" and one.get("value"):
        yield FieldRefusal((*path, "value"), "must be empty where the operator is Exists")
    if one.get("tolerationSeconds") is not None and one.get("effect") != "NoExecute":
        yield FieldRefusal((*path, "effect"), "must be NoExecute where tolerationSeconds is set")
    if isinstance(one.get("value"), str) and operator == "Equal" and not forms.is_label_value(one["value"]):
        yield FieldRefusal((*path, "value"), f"must be {forms.FORMS['label-value'][1]}, and is {quoted(one['value'])}")


_ON_NODES = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def _of_affinity(affinity: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    yield from _of_node_terms(as_mapping(affinity.get("nodeAffinity")), (*path, "nodeAffinity"))
    for kind in ("podAffinity", "podAntiAffinity"):
        given = as_mapping(affinity.get(kind))
        for place, one in numbered(given.get(_REQUIRED)):
            yield from _of_pod_term(one, (*path, kind, _REQUIRED, place))
        for place, one in numbered(given.get(_PREFERRED)):
            weight = one.get("weight")
            where = (*path, kind, _PREFERRED, place)
            if not is_number(weight) or not 0 < weight < 101:
                yield FieldRefusal((*where, "weight"), "must be from 1 to 100")
            yield from _of_pod_term(as_mapping(one.get("podAffinityTerm")), (*where, "podAffinityTerm"))


def _of_node_terms(node: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    terms = [
        (one, (*path, _REQUIRED, "nodeSelectorTerms", place))
        for place, one in numbered(value_at(node, _REQUIRED, "nodeSelectorTerms"))
    ]
    terms += [
        (as_mapping(one.get("preference")), (*path, _PREFERRED, place, "preference"))
        for place, one in numbered(node.get(_PREFERRED))
    ]
    for term, inner in terms:
        for place, one in numbered(term.get("matchExpressions")):
            yield from metadata.of_requirement(one, (*inner, "matchExpressions", place), _ON_NODES)
        for place, one in numbered(term.get("matchFields")):
            if one.get("key") != "metadata.name":
                words = f"must be metadata.name, and is {quoted(one.get('key'))}"
                yield FieldRefusal((*inner, "matchFields", place, "key"), words)


def _of_pod_term(term: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    if not term.get("topologyKey"):
        yield FieldRefusal((*path, "topologyKey"), "is missing")
    for key in ("labelSelector", "namespaceSelector"):
        yield from metadata.of_selector(term.get(key), (*path, key))
