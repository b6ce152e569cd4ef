"""Which pods of a bundle the selector of a Service or of a network policy picks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from provisioner.review.base.facts import mapping
from provisioner.review.workloads.pod_specs import PodSpec
from provisioner.selectors import selects
from provisioner.values import JsonObject, ObjectRef


def pods_of_service(service: JsonObject, pods: Iterable[PodSpec]) -> list[PodSpec]:
    """The pods that a Service leads to; without a selector it leads to none."""
    selector, namespace = selector_of(service), ObjectRef.of(service).namespace
    return [
        one for one in pods if selector and one.ref.namespace == namespace and selector.items() <= one.labels.items()
    ]


def selector_of(service: JsonObject) -> Mapping[str, Any]:
    return mapping(mapping(service.get("spec")).get("selector"))


def pods_of_policy(policy: JsonObject, pods: Iterable[PodSpec]) -> list[PodSpec]:
    """The pods that a network policy is about: by an empty selector, or without one, all of its namespace."""
    selector, namespace = mapping(policy.get("spec")).get("podSelector"), ObjectRef.of(policy).namespace
    return [one for one in pods if one.ref.namespace == namespace and selects(selector, one.labels)]
