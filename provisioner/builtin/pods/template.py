"""A pod as a whole, wherever its template stands: what its parts must agree on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import FieldRefusal, Path, is_number, numbered, quoted
from provisioner.builtin.pods.containers import of_container
from provisioner.builtin.pods.handlers import PROBES
from provisioner.builtin.pods.resources import of_resources
from provisioner.builtin.pods.scheduling import of_scheduling
from provisioner.builtin.pods.security import of_system
from provisioner.builtin.pods.settings import of_settings
from provisioner.builtin.pods.volumes import of_volumes
from provisioner.json_values import as_mapping, value_at


def refusals_of_template(template: Any, path: Path, claims: tuple[str, ...] = ()) -> Iterator[FieldRefusal]:
    """A pod template, without what depends on the kind around it; `claims` are volumes that this makes."""
    meta = as_mapping(value_at(template, "metadata"))
    yield from metadata.of_labels(meta.get("labels"), (*path, "metadata", "labels"))
    yield from metadata.of_annotations(meta.get("annotations"), (*path, "metadata", "annotations"))
    spec = as_mapping(value_at(template, "spec"))
    if spec.get("ephemeralContainers"):
        yield FieldRefusal((*path, "spec", "ephemeralContainers"), "must not be set in a template")
    yield from _of_profiles(meta.get("annotations"), spec, (*path, "annotations"))
    yield from refusals(spec, (*path, "spec"), claims)


_PROFILE_OF = "container.apparmor.security.beta.kubernetes.io/"


def _of_profiles(annotations: Any, pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    """The older way to name profiles of AppArmor."""
    names = {one.get("name") for part in ("initContainers", "containers") for _, one in numbered(pod.get(part))}
    for key, value in as_mapping(annotations).items():
        _, found, name = str(key).partition(_PROFILE_OF)
        if not found:
            continue
        is_profile = value in ("", "runtime/default", "unconfined") or str(value).startswith("localhost/")
        if name not in names:
            yield FieldRefusal((*path, str(key)), f"names no container of the pod: {quoted(name)}")
        elif not is_profile:
            yield FieldRefusal((*path, str(key)), f"must be the name of a profile, and is {quoted(value)}")


def refusals(pod: Mapping[str, Any], path: Path, claims: tuple[str, ...] = ()) -> Iterator[FieldRefusal]:
    if not pod.get("containers"):
        yield FieldRefusal((*path, "containers"), "must hold at least one container")
    yield from _of_names(pod, path)
    yield from of_volumes(pod, path)
    volumes: dict[str, Any] = {one: {"persistentVolumeClaim": {"claimName": one}} for one in claims}
    volumes |= {str(one.get("name")): one for _, one in numbered(pod.get("volumes")) if one.get("name") not in volumes}
    yield from _of_claims_and_times(pod, path)
    for part in ("initContainers", "containers"):
        for place, container in numbered(pod.get(part)):
            where = (*path, part, place)
            yield from of_container(container, where, volumes)
            if part == "initContainers" and container.get("restartPolicy") != "Always":
                for one in (*PROBES, "lifecycle"):
                    if container.get(one):
                        yield FieldRefusal((*where, one), "must not be set for an init container that ends")
    yield from _of_host_ports(pod, path)
    yield from of_settings(pod, path)
    yield from of_scheduling(pod, path)
    yield from of_system(pod, path)


def _of_claims_and_times(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    """What containers say that depends on the pod around them."""
    claims = {one.get("name") for _, one in numbered(pod.get("resourceClaims"))}
    for part in ("initContainers", "containers"):
        for place, one in numbered(pod.get(part)):
            where = (*path, part, place)
            for number, claim in numbered(value_at(one, "resources", "claims")):
                if claim.get("name") not in claims:
                    words = f"names no resource claim of the pod: {quoted(claim.get('name'))}"
                    yield FieldRefusal((*where, "resources", "claims", number), words)
            yield from _of_sleep(one, where, pod.get("terminationGracePeriodSeconds"))
    yield from of_resources(pod.get("resources"), (*path, "resources"))
    for place, gate in numbered(pod.get("readinessGates")):
        kind = str(gate.get("conditionType") or "")
        if not forms.is_qualified_name(kind):
            words = f"must be {forms.FORMS['qualified'][1]}, and is {quoted(kind)}"
            yield FieldRefusal((*path, "readinessGates", place, "conditionType"), words)


def _of_sleep(container: Mapping[str, Any], path: Path, grace: Any) -> Iterator[FieldRefusal]:
    for hook in ("postStart", "preStop"):
        seconds = value_at(container, "lifecycle", hook, "sleep", "seconds")
        if is_number(seconds) and is_number(grace) and not 0 <= seconds <= grace:
            words = f"must be from 0 to terminationGracePeriodSeconds, which is {grace}, and is {seconds}"
            yield FieldRefusal((*path, "lifecycle", hook, "sleep"), words)


def _of_names(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    names = {str(one.get("name")) for _, one in numbered(pod.get("initContainers"))}
    for place, one in numbered(pod.get("containers")):
        if one.get("name") in names:
            yield FieldRefusal(
                (*path, "containers", place, "name"), f"is the name of an init container, too: {quoted(one['name'])}"
            )


def _of_host_ports(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
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
