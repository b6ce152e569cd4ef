"""Which APIs the bundle speaks: whether this cluster serves them, and for how long Kubernetes will.

Discovery is the truth about this cluster; the table only says what a later version of Kubernetes takes away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from provisioner.api_groups import ADMISSION_GROUP, RBAC_GROUP
from provisioner.rbac import BUILT_IN_RESOURCES
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, maps, said
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_NOT_SERVED = ReviewRule("API-01", Section.OBJECTS, Severity.BREAKING)
_NOT_KNOWN = ReviewRule("API-01", Section.OBJECTS, Severity.UNKNOWN)
_REMOVED_NEXT = ReviewRule("API-02", Section.OBJECTS, Severity.DANGEROUS)
_REMOVED_LATER = ReviewRule("API-03", Section.OBJECTS, Severity.SAFE)
_NOT_STABLE = ReviewRule("API-04", Section.OBJECTS, Severity.DANGEROUS)
_OLD_INSIDE = ReviewRule("API-05", Section.OBJECTS, Severity.DANGEROUS)

_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_MINOR = re.compile(r"v?1\.(\d{1,9})(?!\d)")
# Groups of Kubernetes of which a server may serve nothing. What else ends with k8s.io comes with CRDs.
_OFF_BY_DEFAULT = frozenset({"internal.apiserver.k8s.io", "resource.k8s.io", "storagemigration.k8s.io"})
_UNSTABLE = re.compile(r"v\d+(alpha|beta)\d+")


@dataclass(frozen=True, slots=True)
class _Removal:
    """The minor version of Kubernetes in which an API is gone, and what takes its place."""

    minor: int
    instead: str


# Kubernetes' deprecation guide, by (group, version); "" as kind is every kind of it.
_REMOVALS: dict[tuple[str, str, str], _Removal] = {
    ("extensions", "v1beta1", "Ingress"): _Removal(22, "networking.k8s.io/v1"),
    ("extensions", "v1beta1", "NetworkPolicy"): _Removal(16, "networking.k8s.io/v1"),
    ("extensions", "v1beta1", "PodSecurityPolicy"): _Removal(16, "Pod Security Admission"),
    ("extensions", "v1beta1", ""): _Removal(16, "apps/v1"),
    ("apps", "v1beta1", ""): _Removal(16, "apps/v1"),
    ("apps", "v1beta2", ""): _Removal(16, "apps/v1"),
    (ADMISSION_GROUP, "v1beta1", "MutatingWebhookConfiguration"): _Removal(22, f"{ADMISSION_GROUP}/v1"),
    (ADMISSION_GROUP, "v1beta1", "ValidatingWebhookConfiguration"): _Removal(22, f"{ADMISSION_GROUP}/v1"),
    (ADMISSION_GROUP, "v1alpha1", "ValidatingAdmissionPolicy"): _Removal(33, f"{ADMISSION_GROUP}/v1"),
    (ADMISSION_GROUP, "v1alpha1", "ValidatingAdmissionPolicyBinding"): _Removal(33, f"{ADMISSION_GROUP}/v1"),
    (ADMISSION_GROUP, "v1beta1", "ValidatingAdmissionPolicy"): _Removal(34, f"{ADMISSION_GROUP}/v1"),
    (ADMISSION_GROUP, "v1beta1", "ValidatingAdmissionPolicyBinding"): _Removal(34, f"{ADMISSION_GROUP}/v1"),
    ("apiextensions.k8s.io", "v1beta1", ""): _Removal(22, "apiextensions.k8s.io/v1"),
    ("apiregistration.k8s.io", "v1beta1", ""): _Removal(22, "apiregistration.k8s.io/v1"),
    ("authentication.k8s.io", "v1beta1", "TokenReview"): _Removal(22, "authentication.k8s.io/v1"),
    ("authorization.k8s.io", "v1beta1", ""): _Removal(22, "authorization.k8s.io/v1"),
    ("autoscaling", "v2beta1", ""): _Removal(25, "autoscaling/v2"),
    ("autoscaling", "v2beta2", ""): _Removal(26, "autoscaling/v2"),
    ("batch", "v1beta1", ""): _Removal(25, "batch/v1"),
    ("certificates.k8s.io", "v1beta1", "CertificateSigningRequest"): _Removal(22, "certificates.k8s.io/v1"),
    ("coordination.k8s.io", "v1beta1", "Lease"): _Removal(22, "coordination.k8s.io/v1"),
    ("discovery.k8s.io", "v1beta1", ""): _Removal(25, "discovery.k8s.io/v1"),
    ("events.k8s.io", "v1beta1", ""): _Removal(25, "events.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta1", ""): _Removal(26, "flowcontrol.apiserver.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta2", ""): _Removal(29, "flowcontrol.apiserver.k8s.io/v1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta3", ""): _Removal(32, "flowcontrol.apiserver.k8s.io/v1"),
    ("networking.k8s.io", "v1beta1", "Ingress"): _Removal(22, "networking.k8s.io/v1"),
    ("networking.k8s.io", "v1beta1", "IngressClass"): _Removal(22, "networking.k8s.io/v1"),
    ("node.k8s.io", "v1beta1", ""): _Removal(25, "node.k8s.io/v1"),
    ("policy", "v1beta1", "PodDisruptionBudget"): _Removal(25, "policy/v1"),
    ("policy", "v1beta1", "PodSecurityPolicy"): _Removal(25, "Pod Security Admission"),
    (RBAC_GROUP, "v1alpha1", ""): _Removal(22, f"{RBAC_GROUP}/v1"),
    (RBAC_GROUP, "v1beta1", ""): _Removal(22, f"{RBAC_GROUP}/v1"),
    ("resource.k8s.io", "v1alpha3", "DeviceClass"): _Removal(34, "resource.k8s.io/v1"),
    ("resource.k8s.io", "v1alpha3", "ResourceClaim"): _Removal(34, "resource.k8s.io/v1"),
    ("resource.k8s.io", "v1alpha3", "ResourceClaimTemplate"): _Removal(34, "resource.k8s.io/v1"),
    ("resource.k8s.io", "v1alpha3", "ResourceSlice"): _Removal(34, "resource.k8s.io/v1"),
    ("scheduling.k8s.io", "v1beta1", ""): _Removal(22, "scheduling.k8s.io/v1"),
    ("storage.k8s.io", "v1beta1", "CSIStorageCapacity"): _Removal(27, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1beta1", "CSIDriver"): _Removal(22, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1beta1", "CSINode"): _Removal(22, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1beta1", "StorageClass"): _Removal(22, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1beta1", "VolumeAttachment"): _Removal(22, "storage.k8s.io/v1"),
    ("storage.k8s.io", "v1alpha1", "VolumeAttributesClass"): _Removal(35, "storage.k8s.io/v1"),
    ("storagemigration.k8s.io", "v1alpha1", ""): _Removal(35, "storagemigration.k8s.io/v1beta1"),
}


def removal_of(group: str, version: str, kind: str) -> _Removal | None:
    """When Kubernetes takes an API of its own away, None where that is not known to happen."""
    return _REMOVALS.get((group, version, kind)) or _REMOVALS.get((group, version, ""))


def _changes(facts: Facts) -> Iterator[Finding]:
    """Kinds that nobody serves. What the plan met already stands there as its obstacle (PRE-07)."""
    brought = brought_kinds(facts.state())
    for planned in facts.plan.actions:
        ref = planned.ref
        if planned.problem or planned.action in {Action.DELETE, Action.NONE} or facts.is_offline:
            continue
        if (ref.group, ref.version, ref.kind) in brought:
            continue
        served = facts.around.serves(ref.group, ref.version, ref.kind)
        if served is False:
            message = f"{said(ref)}: the cluster serves no {ref.kind} in {ref.api_version}, and the bundle brings none"
            yield _NOT_SERVED.at(ref, message, key=ref.api_version)
        elif served is None and facts.around.kinds is not None:
            message = (
                f"{said(ref)}: whether the cluster serves {ref.api_version} is not known, its server did not answer"
            )
            yield _NOT_KNOWN.at(ref, message, key=ref.api_version)


def brought_kinds(state: StateFacts) -> set[tuple[str, str, str]]:
    """(group, version, kind) of what the CRDs of the bundle serve."""
    found = set()
    for ref, obj in state.named:
        if ref.group_kind == _CRD:
            spec = mapping(obj.get("spec"))
            kind = str(mapping(spec.get("names")).get("kind") or "")
            served = (one for one in maps(spec.get("versions")) if one.get("served"))
            found |= {(str(spec.get("group")), str(one.get("name")), kind) for one in served}
    return found


def _standing(state: StateFacts) -> Iterator[Finding]:
    match = _MINOR.match(state.around.version)
    minor = int(match.group(1)) if match else None
    for ref, obj in state.named:
        yield from _of_age(ref, minor)
        yield from _of_mentions(ref, obj)


def _of_age(ref: ObjectRef, minor: int | None) -> Iterator[Finding]:
    removal = removal_of(ref.group, ref.version, ref.kind)
    if removal is None:
        is_of_kubernetes = ref.group in BUILT_IN_RESOURCES or ref.group in _OFF_BY_DEFAULT
        if is_of_kubernetes and _UNSTABLE.fullmatch(ref.version):
            message = f"{said(ref)} uses {ref.api_version}, which clusters serve only where somebody switches it on"
            yield _NOT_STABLE.at(ref, message, key=ref.api_version)
        return
    evidence = {"api": ref.api_version, "removedIn": f"1.{removal.minor}", "instead": removal.instead}
    words = f"{said(ref)} uses {ref.api_version}, which Kubernetes 1.{removal.minor} no longer has"
    rule = _REMOVED_LATER if minor is not None and removal.minor > minor + 1 else _REMOVED_NEXT
    yield rule.at(ref, f"{words}; use {removal.instead}", evidence=evidence, key=ref.api_version)


def _of_mentions(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    """APIs that are gone, inside rules of webhooks and targets of autoscalers: they select or find nothing."""
    spec = mapping(obj.get("spec"))
    target = mapping(spec.get("scaleTargetRef"))
    named: list[tuple[tuple[str, ...], str, str]]
    named = [(("spec", "scaleTargetRef"), str(target.get("apiVersion") or ""), str(target.get("kind") or ""))]
    for index, webhook in enumerate(maps(obj.get("webhooks")) if ref.group == ADMISSION_GROUP else []):
        for rule in maps(webhook.get("rules")):
            groups, versions = items(rule.get("apiGroups")), items(rule.get("apiVersions"))
            if len(versions) == 1 and webhook.get("matchPolicy") == "Exact":
                named += [(("webhooks", str(index), "rules"), f"{group}/{versions[0]}", "") for group in groups]
    for path, api_version, kind in named:
        group, _, version = api_version.rpartition("/")
        removal = removal_of(group, version, kind)
        if removal is not None:
            message = f"{said(ref)} names {api_version}, which Kubernetes 1.{removal.minor} no longer has"
            yield _OLD_INSIDE.at(ref, message, path=path, evidence={"api": api_version}, key=[*path, api_version])


CHECK = Check("apis", changes=_changes, standing=_standing)
