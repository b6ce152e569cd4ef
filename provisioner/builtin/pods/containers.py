"""One container: its ports, and its other parts by their own modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin.changes import FieldRefusal, Path, numbered, quoted
from provisioner.builtin.pods.environment import of_environment
from provisioner.builtin.pods.handlers import LIFECYCLE, PROBES, of_handlers, of_probe
from provisioner.builtin.pods.resources import of_resources
from provisioner.builtin.pods.security import of_privileges
from provisioner.builtin.pods.volumes import of_mounts
from provisioner.json_values import as_mapping


def of_container(container: Mapping[str, Any], path: Path, volumes: Mapping[str, Any]) -> Iterator[FieldRefusal]:
    image = container.get("image")
    if not image:
        yield FieldRefusal((*path, "image"), "is missing")
    yield from of_environment(container, path)
    yield from _of_ports(container, path)
    for place, one in numbered(container.get("resizePolicy")):
        if one.get("restartPolicy") not in ("NotRequired", "RestartContainer"):
            words = f"must be NotRequired or RestartContainer, and is {quoted(one.get('restartPolicy'))}"
            yield FieldRefusal((*path, "resizePolicy", place, "restartPolicy"), words)
    if container.get("restartPolicyRules") and not container.get("restartPolicy"):
        yield FieldRefusal((*path, "restartPolicy"), "is missing, and needed by restartPolicyRules")
    yield from of_mounts(container, path, volumes)
    yield from of_resources(container.get("resources"), (*path, "resources"))
    for name in PROBES:
        if container.get(name) is not None:
            yield from of_probe(name, container[name], (*path, name))
    for name, handler in as_mapping(container.get("lifecycle")).items():
        if isinstance(handler, Mapping):
            yield from of_handlers(handler, (*path, "lifecycle", name), LIFECYCLE)
    yield from of_privileges(as_mapping(container.get("securityContext")), (*path, "securityContext"))


def _of_ports(container: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    names: set[str] = set()
    for place, one in numbered(container.get("ports")):
        name = str(one.get("name") or "")
        if name and name in names:
            yield FieldRefusal((*path, "ports", place, "name"), f"stands there twice: {quoted(name)}")
        names.add(name)
