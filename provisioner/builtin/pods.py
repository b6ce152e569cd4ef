"""What the API server refuses of pods, wherever their template stands. Source: pkg/apis/core/validation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import FieldRefusal, ObjectNode, is_number, quoted
from provisioner.builtin.containers import (
    PROBES,
    check_container,
    check_profiles,
    check_resources,
    check_system,
    check_volumes,
)

_PROFILE_OF = "container.apparmor.security.beta.kubernetes.io/"
_ON_NODES = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
MOST_NAMESERVERS, MOST_SEARCHES, LONGEST_SYSCTL = 3, 32, 253


def containers_of(pod: ObjectNode) -> list[ObjectNode]:
    return [*pod.items("initContainers"), *pod.items("containers")]


def check_template(template: ObjectNode, claims: tuple[str, ...] = ()) -> Iterator[FieldRefusal]:
    """Check a pod template, without what depends on the kind around it; `claims` are volumes that this makes."""
    meta, pod = template.at("metadata"), template.at("spec")
    yield from metadata.check_labels(meta, "labels")
    yield from metadata.check_annotations(meta)
    if pod.get("ephemeralContainers"):
        yield pod.refuse("must not be set in a template", "ephemeralContainers")
    names = {container.get("name") for container in containers_of(pod)}
    for key, value in meta.at("annotations").value.items():
        # The older way to name profiles of AppArmor.
        _, found, name = str(key).partition(_PROFILE_OF)
        is_profile = value in ("", "runtime/default", "unconfined") or str(value).startswith("localhost/")
        if found and name not in names:
            yield template.refuse(f"names no container of the pod: {quoted(name)}", "annotations", str(key))
        elif found and not is_profile:
            yield template.refuse(f"must be the name of a profile, and is {quoted(value)}", "annotations", str(key))
    yield from check_pod(pod, claims)


def check_pod(pod: ObjectNode, claims: tuple[str, ...] = ()) -> Iterator[FieldRefusal]:
    if not pod.get("containers"):
        yield pod.refuse("must hold at least one container", "containers")
    names = {str(container.get("name")) for container in pod.items("initContainers")}
    for container in pod.items("containers"):
        if container.get("name") in names:
            yield container.refuse(f"is the name of an init container, too: {quoted(container.get('name'))}", "name")
    yield from check_volumes(pod)
    # A volume that the workload makes of a claim stands for one of its name in the template.
    volumes: dict[str, Any] = {str(volume.get("name")): volume.value for volume in pod.items("volumes")}
    volumes |= {claim: {"persistentVolumeClaim": {"claimName": claim}} for claim in claims}
    yield from _check_claims_and_times(pod)
    for part in ("initContainers", "containers"):
        for container in pod.items(part):
            yield from check_container(container, volumes)
            if part == "initContainers" and container.get("restartPolicy") != "Always":
                for key in (*PROBES, "lifecycle"):
                    if container.get(key):
                        yield container.refuse("must not be set for an init container that ends", key)
    yield from _check_host_ports(pod)
    yield from _check_settings(pod)
    yield from _check_scheduling(pod)
    yield from check_system(pod)


def _check_claims_and_times(pod: ObjectNode) -> Iterator[FieldRefusal]:
    """Check what containers say that depends on the pod around them."""
    claims, grace = (
        {claim.get("name") for claim in pod.items("resourceClaims")},
        pod.get("terminationGracePeriodSeconds"),
    )
    for container in containers_of(pod):
        for claim in container.at("resources").items("claims"):
            if claim.get("name") not in claims:
                yield claim.refuse(f"names no resource claim of the pod: {quoted(claim.get('name'))}")
        for hook in ("postStart", "preStop"):
            seconds = container.get("lifecycle", hook, "sleep", "seconds")
            if is_number(seconds) and is_number(grace) and not 0 <= seconds <= grace:
                words = f"must be from 0 to terminationGracePeriodSeconds, which is {grace}, and is {seconds}"
                yield container.refuse(words, "lifecycle", hook, "sleep")
    yield from check_resources(pod.at("resources"))
    for gate in pod.items("readinessGates"):
        kind = str(gate.get("conditionType") or "")
        if not forms.is_qualified_name(kind):
            yield gate.refuse(f"must be {forms.FORMS['qualified'][1]}, and is {quoted(kind)}", "conditionType")


def _check_host_ports(pod: ObjectNode) -> Iterator[FieldRefusal]:
    taken: set[tuple[Any, ...]] = set()
    is_on_host = pod.get("hostNetwork") is True
    for part in ("initContainers", "containers"):
        for port in (port for container in pod.items(part) for port in container.items("ports")):
            host = port.get("hostPort") or (port.get("containerPort") if is_on_host else 0)
            if not host:
                continue
            if is_on_host and host != port.get("containerPort"):
                words = "must be the port of the container where the pod is on the host's network"
                yield port.refuse(words, "hostPort")
            key = (port.get("protocol") or "TCP", port.get("hostIP") or "", host)
            if key in taken and part == "containers":
                yield port.refuse(f"stands there twice: {host}", "hostPort")
            taken.add(key)


def _check_settings(pod: ObjectNode) -> Iterator[FieldRefusal]:
    if pod.get("hostPID") is True and pod.get("shareProcessNamespace") is True:
        yield pod.refuse("must not be true where hostPID is", "shareProcessNamespace")
    if pod.get("dnsPolicy") == "None" and not pod.get("dnsConfig", "nameservers"):
        yield pod.refuse("must not be empty where the policy is None", "dnsConfig", "nameservers")
    for key, most in (("nameservers", MOST_NAMESERVERS), ("searches", MOST_SEARCHES)):
        entries = pod.get("dnsConfig", key) or []
        if len(entries) > most:
            yield pod.refuse(f"must be at most {most}, and are {len(entries)}", "dnsConfig", key)
    yield from pod.check_least(1, "activeDeadlineSeconds")
    context = pod.at("securityContext")
    yield from check_profiles(context)
    names: set[str] = set()
    for sysctl in context.items("sysctls"):
        name = str(sysctl.get("name") or "")
        if len(name) > LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            yield sysctl.refuse(f"must be the name of a kernel parameter, and is {quoted(name)}", "name")
        elif name in names:
            yield sysctl.refuse(f"stands there twice: {quoted(name)}", "name")
        names.add(name)


def _check_scheduling(pod: ObjectNode) -> Iterator[FieldRefusal]:
    yield from metadata.check_labels(pod, "nodeSelector")
    for toleration in pod.items("tolerations"):
        operator = toleration.get("operator") or "Equal"
        if not toleration.get("key") and operator != "Exists":
            yield toleration.refuse("must be Exists where there is no key", "operator")
        if operator == "Exists" and toleration.get("value"):
            yield toleration.refuse("must be empty where the operator is Exists", "value")
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            yield toleration.refuse("must be NoExecute where tolerationSeconds is set", "effect")
        if operator == "Equal":
            yield from toleration.check_form("label-value", "value")
    yield from _check_affinity(pod.at("affinity"))
    seen = set()
    for constraint in pod.items("topologySpreadConstraints"):
        yield from metadata.check_selector(constraint.at("labelSelector"))
        if constraint.get("minDomains") is not None and constraint.get("whenUnsatisfiable") != "DoNotSchedule":
            yield constraint.refuse("must be set only where whenUnsatisfiable is DoNotSchedule", "minDomains")
        if constraint.get("matchLabelKeys") and constraint.get("labelSelector") is None:
            yield constraint.refuse("must not be set without a labelSelector", "matchLabelKeys")
        key = (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"))
        if key in seen:
            yield constraint.refuse("stands there twice")
        seen.add(key)


def _check_affinity(affinity: ObjectNode) -> Iterator[FieldRefusal]:
    node = affinity.at("nodeAffinity")
    terms = [*node.at(_REQUIRED).items("nodeSelectorTerms")]
    terms += [preferred.at("preference") for preferred in node.items(_PREFERRED)]
    for term in terms:
        for requirement in term.items("matchExpressions"):
            yield from metadata.check_requirement(requirement, _ON_NODES)
        for requirement in term.items("matchFields"):
            if requirement.get("key") != "metadata.name":
                yield requirement.refuse_value("must be metadata.name", "key")
    for kind in ("podAffinity", "podAntiAffinity"):
        for term in affinity.at(kind).items(_REQUIRED):
            yield from _check_pod_term(term)
        for preferred in affinity.at(kind).items(_PREFERRED):
            weight = preferred.get("weight")
            if not is_number(weight) or not 0 < weight < 101:
                yield preferred.refuse("must be from 1 to 100", "weight")
            yield from _check_pod_term(preferred.at("podAffinityTerm"))


def _check_pod_term(term: ObjectNode) -> Iterator[FieldRefusal]:
    if not term.get("topologyKey"):
        yield term.refuse("is missing", "topologyKey")
    for key in ("labelSelector", "namespaceSelector"):
        yield from metadata.check_selector(term.at(key))
