"""What the API server refuses of pods, wherever their template stands. Source: pkg/apis/core/validation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import FieldRefusal, Path, is_number, numbered, quoted
from provisioner.builtin.containers import (
    PROBES,
    check_container,
    check_resources,
    check_seccomp,
    check_system,
    check_volumes,
)
from provisioner.json_values import mapping, value_at


def check_scheduling(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    yield from metadata.check_labels(pod.get("nodeSelector"), (*path, "nodeSelector"))
    for place, toleration in numbered(pod.get("tolerations")):
        inner = (*path, "tolerations", place)
        operator = toleration.get("operator") or "Equal"
        if not toleration.get("key") and operator != "Exists":
            yield FieldRefusal((*inner, "operator"), "must be Exists where there is no key")
        if operator == "Exists" and toleration.get("value"):
            yield FieldRefusal((*inner, "value"), "must be empty where the operator is Exists")
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            yield FieldRefusal((*inner, "effect"), "must be NoExecute where tolerationSeconds is set")
        if (
            isinstance(toleration.get("value"), str)
            and operator == "Equal"
            and not forms.is_label_value(toleration["value"])
        ):
            yield FieldRefusal(
                (*inner, "value"), f"must be {forms.FORMS['label-value'][1]}, and is {quoted(toleration['value'])}"
            )
    yield from _check_affinity(mapping(pod.get("affinity")), (*path, "affinity"))
    seen = set()
    for place, one in numbered(pod.get("topologySpreadConstraints")):
        where = (*path, "topologySpreadConstraints", place)
        yield from metadata.check_selector(one.get("labelSelector"), (*where, "labelSelector"))
        if one.get("minDomains") is not None and one.get("whenUnsatisfiable") != "DoNotSchedule":
            yield FieldRefusal((*where, "minDomains"), "must be set only where whenUnsatisfiable is DoNotSchedule")
        if one.get("matchLabelKeys") and one.get("labelSelector") is None:
            yield FieldRefusal((*where, "matchLabelKeys"), "must not be set without a labelSelector")
        key = (one.get("topologyKey"), one.get("whenUnsatisfiable"))
        if key in seen:
            yield FieldRefusal(where, "stands there twice")
        seen.add(key)


_ON_NODES = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def _check_affinity(affinity: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    node = mapping(affinity.get("nodeAffinity"))
    here = (*path, "nodeAffinity")
    terms = [
        (item, (*here, _REQUIRED, "nodeSelectorTerms", position))
        for position, item in numbered(value_at(node, _REQUIRED, "nodeSelectorTerms"))
    ]
    terms += [
        (mapping(item.get("preference")), (*here, _PREFERRED, position, "preference"))
        for position, item in numbered(node.get(_PREFERRED))
    ]
    for term, inner in terms:
        for position, item in numbered(term.get("matchExpressions")):
            yield from metadata.check_requirement(item, (*inner, "matchExpressions", position), _ON_NODES)
        for position, item in numbered(term.get("matchFields")):
            if item.get("key") != "metadata.name":
                words = f"must be metadata.name, and is {quoted(item.get('key'))}"
                yield FieldRefusal((*inner, "matchFields", position, "key"), words)
    for kind in ("podAffinity", "podAntiAffinity"):
        given = mapping(affinity.get(kind))
        for place, one in numbered(given.get(_REQUIRED)):
            yield from _check_pod_term(one, (*path, kind, _REQUIRED, place))
        for place, one in numbered(given.get(_PREFERRED)):
            weight = one.get("weight")
            where = (*path, kind, _PREFERRED, place)
            if not is_number(weight) or not 0 < weight < 101:
                yield FieldRefusal((*where, "weight"), "must be from 1 to 100")
            yield from _check_pod_term(mapping(one.get("podAffinityTerm")), (*where, "podAffinityTerm"))


def _check_pod_term(term: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    if not term.get("topologyKey"):
        yield FieldRefusal((*path, "topologyKey"), "is missing")
    for key in ("labelSelector", "namespaceSelector"):
        yield from metadata.check_selector(term.get(key), (*path, key))


_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
MOST_NAMESERVERS, MOST_SEARCHES, LONGEST_SYSCTL = 3, 32, 253


def check_settings(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    if pod.get("hostPID") is True and pod.get("shareProcessNamespace") is True:
        yield FieldRefusal((*path, "shareProcessNamespace"), "must not be true where hostPID is")
    servers, searches = value_at(pod, "dnsConfig", "nameservers") or [], value_at(pod, "dnsConfig", "searches") or []
    if pod.get("dnsPolicy") == "None" and not servers:
        yield FieldRefusal((*path, "dnsConfig", "nameservers"), "must not be empty where the policy is None")
    if len(servers) > MOST_NAMESERVERS:
        yield FieldRefusal(
            (*path, "dnsConfig", "nameservers"), f"must be at most {MOST_NAMESERVERS}, and are {len(servers)}"
        )
    if len(searches) > MOST_SEARCHES:
        yield FieldRefusal(
            (*path, "dnsConfig", "searches"), f"must be at most {MOST_SEARCHES}, and are {len(searches)}"
        )
    seconds = pod.get("activeDeadlineSeconds")
    if is_number(seconds) and seconds < 1:
        yield FieldRefusal((*path, "activeDeadlineSeconds"), f"must be at least 1, and is {seconds}")
    context = mapping(pod.get("securityContext"))
    yield from check_seccomp(context, (*path, "securityContext"))
    names: set[str] = set()
    for place, sysctl in numbered(context.get("sysctls")):
        name = str(sysctl.get("name") or "")
        where = (*path, "securityContext", "sysctls", place, "name")
        if len(name) > LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            yield FieldRefusal(where, f"must be the name of a kernel parameter, and is {quoted(name)}")
        elif name in names:
            yield FieldRefusal(where, f"stands there twice: {quoted(name)}")
        names.add(name)


def check_template(template: Any, path: Path, claims: tuple[str, ...] = ()) -> Iterator[FieldRefusal]:
    """A pod template, without what depends on the kind around it; `claims` are volumes that this makes."""
    meta = mapping(value_at(template, "metadata"))
    yield from metadata.check_labels(meta.get("labels"), (*path, "metadata", "labels"))
    yield from metadata.check_annotations(meta.get("annotations"), (*path, "metadata", "annotations"))
    spec = mapping(value_at(template, "spec"))
    if spec.get("ephemeralContainers"):
        yield FieldRefusal((*path, "spec", "ephemeralContainers"), "must not be set in a template")
    # The older way to name profiles of AppArmor.
    annotations = meta.get("annotations")
    where = (*path, "annotations")
    names = {one.get("name") for part in ("initContainers", "containers") for _, one in numbered(spec.get(part))}
    for key, value in mapping(annotations).items():
        _, found, name = str(key).partition(_PROFILE_OF)
        if not found:
            continue
        is_profile = value in ("", "runtime/default", "unconfined") or str(value).startswith("localhost/")
        if name not in names:
            yield FieldRefusal((*where, str(key)), f"names no container of the pod: {quoted(name)}")
        elif not is_profile:
            yield FieldRefusal((*where, str(key)), f"must be the name of a profile, and is {quoted(value)}")
    yield from refusals(spec, (*path, "spec"), claims)


_PROFILE_OF = "container.apparmor.security.beta.kubernetes.io/"


def refusals(pod: Mapping[str, Any], path: Path, claims: tuple[str, ...] = ()) -> Iterator[FieldRefusal]:
    if not pod.get("containers"):
        yield FieldRefusal((*path, "containers"), "must hold at least one container")
    names = {str(item.get("name")) for _, item in numbered(pod.get("initContainers"))}
    for position, item in numbered(pod.get("containers")):
        if item.get("name") in names:
            yield FieldRefusal(
                (*path, "containers", position, "name"),
                f"is the name of an init container, too: {quoted(item['name'])}",
            )
    yield from check_volumes(pod, path)
    volumes: dict[str, Any] = {claim: {"persistentVolumeClaim": {"claimName": claim}} for claim in claims}
    volumes |= {
        str(volume.get("name")): volume
        for _, volume in numbered(pod.get("volumes"))
        if volume.get("name") not in volumes
    }
    yield from _check_claims_and_times(pod, path)
    for part in ("initContainers", "containers"):
        for place, container in numbered(pod.get(part)):
            where = (*path, part, place)
            yield from check_container(container, where, volumes)
            if part == "initContainers" and container.get("restartPolicy") != "Always":
                for one in (*PROBES, "lifecycle"):
                    if container.get(one):
                        yield FieldRefusal((*where, one), "must not be set for an init container that ends")
    yield from _check_host_ports(pod, path)
    yield from check_settings(pod, path)
    yield from check_scheduling(pod, path)
    yield from check_system(pod, path)


def _check_claims_and_times(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    """What containers say that depends on the pod around them."""
    claims = {claim.get("name") for _, claim in numbered(pod.get("resourceClaims"))}
    for part in ("initContainers", "containers"):
        for place, one in numbered(pod.get(part)):
            where = (*path, part, place)
            for number, claim in numbered(value_at(one, "resources", "claims")):
                if claim.get("name") not in claims:
                    words = f"names no resource claim of the pod: {quoted(claim.get('name'))}"
                    yield FieldRefusal((*where, "resources", "claims", number), words)
            grace = pod.get("terminationGracePeriodSeconds")
            for hook in ("postStart", "preStop"):
                seconds = value_at(one, "lifecycle", hook, "sleep", "seconds")
                if is_number(seconds) and is_number(grace) and not 0 <= seconds <= grace:
                    problem = f"must be from 0 to terminationGracePeriodSeconds, which is {grace}, and is {seconds}"
                    yield FieldRefusal((*where, "lifecycle", hook, "sleep"), problem)
    yield from check_resources(pod.get("resources"), (*path, "resources"))
    for place, gate in numbered(pod.get("readinessGates")):
        kind = str(gate.get("conditionType") or "")
        if not forms.is_qualified_name(kind):
            words = f"must be {forms.FORMS['qualified'][1]}, and is {quoted(kind)}"
            yield FieldRefusal((*path, "readinessGates", place, "conditionType"), words)


def _check_host_ports(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    taken: set[tuple[Any, ...]] = set()
    is_on_host = pod.get("hostNetwork") is True
    for part in ("initContainers", "containers"):
        for place, container in numbered(pod.get(part)):
            for number, port in numbered(container.get("ports")):
                where = (*path, part, place, "ports", number, "hostPort")
                host = port.get("hostPort") or (port.get("containerPort") if is_on_host else 0)
                if not host:
                    continue
                if is_on_host and host != port.get("containerPort"):
                    yield FieldRefusal(
                        where, "must be the port of the container where the pod is on the host's network"
                    )
                key = (port.get("protocol") or "TCP", port.get("hostIP") or "", host)
                if key in taken and part == "containers":
                    yield FieldRefusal(where, f"stands there twice: {host}")
                taken.add(key)
