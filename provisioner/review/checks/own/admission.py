"""Admission that reaches into the namespaces of Pratique and of the control plane: whoever runs it runs as them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.rbac import CONTROL_PLANE
from provisioner.review.base.facts import Listing, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.checks.network.webhook_reach import (
    NAME_LABEL,
    has_resource,
    namespace_labels,
    sees_namespace,
    sees_writes,
)
from provisioner.review.checks.network.webhooks import webhooks_of
from provisioner.review.checks.own.advice import advice_of
from provisioner.values import Content, Finding, GroupKind, ObjectRef, Section, Severity

_REACHES = ReviewRule("OWN-PRATIQUE-06", Section.WEBHOOKS, Severity.CRITICAL)
_WEBHOOKS = frozenset(
    {
        GroupKind(ADMISSION_GROUP, "MutatingWebhookConfiguration"),
        GroupKind(ADMISSION_GROUP, "ValidatingWebhookConfiguration"),
    }
)
_POLICY = GroupKind(ADMISSION_GROUP, "MutatingAdmissionPolicy")
NAMESPACES = Listing("", "v1", "Namespace", metadata_only=True)
# Who changes these decides what runs there, with what, and whom it meets. Who only sees Secrets has their values.
_ALTERED: Mapping[str, tuple[str, ...]] = {
    "": (
        "pods",
        "pods/ephemeralcontainers",
        "podtemplates",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "serviceaccounts",
        "persistentvolumeclaims",
        "services",
        "endpoints",
    ),
    "apps": ("deployments", "daemonsets", "statefulsets", "replicasets", "controllerrevisions"),
    "batch": ("jobs", "cronjobs"),
    "discovery.k8s.io": ("endpointslices",),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
}
_TRAFFIC = frozenset({"services", "endpoints", "endpointslices", "ingresses", "networkpolicies"})
_SEEN: Mapping[str, tuple[str, ...]] = {"": ("secrets",)}


@dataclass(frozen=True, slots=True)
class _Admission:
    """One webhook, or a policy without such a name; `limits` holds its rules and its namespaceSelector."""

    ref: ObjectRef
    path: tuple[str | int, ...]
    webhook: str | None
    limits: Mapping[str, Any]
    rules: list[Mapping[str, Any]]
    is_mutating: bool


def wants_namespaces(content: Content) -> bool:
    """Whether the bundle has admission that may reach into namespaces, so that their labels are to be read."""
    return any(one.ref.group_kind in _WEBHOOKS or one.ref.group_kind == _POLICY for one in content.manifests)


def of_admission(state: StateFacts) -> Iterator[Finding]:
    """Webhooks and policies that change what runs in our namespaces, or see the Secrets there."""
    places = sorted({state.around.own_namespace, CONTROL_PLANE})
    for one in _admissions(state):
        reached = [place for place in places if _lets_in(one.limits, place, state)]
        resources = _reached(one)
        if reached and resources:
            changes = "leads-elsewhere" if set(resources) <= _TRAFFIC else "runs"
            yield _REACHES.finding(
                changes if one.is_mutating else "reads-secrets",
                one.ref,
                where=one.path,
                key=[*reached, *resources],
                webhook=one.webhook,
                namespaces=reached,
                resources=resources,
                advice=advice_of(_REACHES),
            )


def _admissions(state: StateFacts) -> Iterator[_Admission]:
    for webhook in webhooks_of(state.objects):
        yield _Admission(webhook.ref, webhook.path, webhook.name, webhook.body, webhook.rules(), webhook.is_mutating)
    for ref, obj in state.named:
        if ref.group_kind == _POLICY:
            limits = mapping(mapping(obj.get("spec")).get("matchConstraints"))
            path = ("spec", "matchConstraints")
            yield _Admission(ref, path, None, limits, maps(limits.get("resourceRules")), is_mutating=True)


def _reached(one: _Admission) -> list[str]:
    """The resources of the table whose writes it is asked about; conditions and objectSelectors are not counted on."""
    table = _ALTERED if one.is_mutating else _SEEN
    found: set[str] = set()
    for rule in one.rules:
        if not sees_writes(rule) or str(rule.get("scope") or "*") == "Cluster":
            continue
        groups, wide = set(map(str, items(rule.get("apiGroups")))), set(map(str, items(rule.get("resources"))))
        for group, names in table.items():
            if group in groups or "*" in groups:
                found |= {name for name in names if any(has_resource(each, name) for each in wide)}
    return sorted(found)


def _lets_in(limits: Mapping[str, Any], place: str, state: StateFacts) -> bool:
    """Whether its namespaceSelector lets in objects of `place`; where its labels are not known, what they could be."""
    labels = _labels(place, state)
    if labels is not None:
        return sees_namespace(limits, labels)
    selector = mapping(limits.get("namespaceSelector"))
    exact = {key: value for key, value in mapping(selector.get("matchLabels")).items() if key == NAME_LABEL}
    terms = [one for one in maps(selector.get("matchExpressions")) if one.get("key") == NAME_LABEL]
    known = {"namespaceSelector": {"matchLabels": exact, "matchExpressions": terms}}
    return sees_namespace(known, {NAME_LABEL: place})


def _labels(place: str, state: StateFacts) -> dict[str, Any] | None:
    """The labels of a namespace as they will be; None where a cluster is there and did not say."""
    if state.is_offline:
        return namespace_labels(state, place)
    read = state.around.lists.get(NAMESPACES)
    live = [one for one in (read.objects if read else ()) if mapping(one.get("metadata")).get("name") == place]
    if not live and not (read and read.is_whole):
        return None
    labels = mapping(mapping(live[0].get("metadata")).get("labels")) if live else {}
    return {**labels, **namespace_labels(state, place)}
