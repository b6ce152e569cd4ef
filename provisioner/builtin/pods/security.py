"""Security contexts, and what the operating system of a pod does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin.changes import FieldRefusal, Path, numbered, texts
from provisioner.json_values import as_mapping, value_at

_MOST_PRIVILEGED = frozenset({"CAP_SYS_ADMIN"})


def of_privileges(context: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    if context.get("allowPrivilegeEscalation") is False:
        added = set(texts(value_at(context, "capabilities", "add")))
        if context.get("privileged") is True:
            yield FieldRefusal((*path, "allowPrivilegeEscalation"), "must not be false where privileged is true")
        elif added & _MOST_PRIVILEGED:
            yield FieldRefusal((*path, "allowPrivilegeEscalation"), "must not be false where CAP_SYS_ADMIN is added")
    yield from of_seccomp(context, path)


_OF_LINUX = frozenset(
    [
        "allowPrivilegeEscalation",
        "appArmorProfile",
        "capabilities",
        "fsGroup",
        "fsGroupChangePolicy",
        "privileged",
        "procMount",
        "readOnlyRootFilesystem",
        "runAsGroup",
        "runAsUser",
        "seLinuxOptions",
        "seccompProfile",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "sysctls",
    ]
)


_OF_THE_HOST = ("hostIPC", "hostNetwork", "hostPID")


def of_system(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    """What the operating system that a pod names does not have."""
    name = value_at(pod, "os", "name")
    foreign = _OF_LINUX if name == "windows" else {"windowsOptions"} if name == "linux" else frozenset()
    for context, where in _contexts(pod, path):
        if context.get("procMount") == "Unmasked" and pod.get("hostUsers") is not False:
            yield FieldRefusal((*where, "procMount"), "must be Default unless hostUsers is false")
        for key in sorted(foreign & context.keys()):
            yield FieldRefusal((*where, key), f"must not be set in a pod of {name}")
    for key in _OF_THE_HOST if pod.get("hostUsers") is False else ():
        if pod.get(key) is True:
            yield FieldRefusal((*path, key), "must not be set where hostUsers is false")
    for key in ("hostPID", "hostIPC", "shareProcessNamespace", "hostUsers") if name == "windows" else ():
        if pod.get(key):
            yield FieldRefusal((*path, key), f"must not be set in a pod of {name}")


def _contexts(pod: Mapping[str, Any], path: Path) -> Iterator[tuple[Mapping[str, Any], Path]]:
    yield as_mapping(pod.get("securityContext")), (*path, "securityContext")
    for part in ("initContainers", "containers"):
        for place, one in numbered(pod.get(part)):
            yield as_mapping(one.get("securityContext")), (*path, part, place, "securityContext")


def of_seccomp(context: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    for profile in ("seccompProfile", "appArmorProfile"):
        given = as_mapping(context.get(profile))
        where = (*path, profile, "localhostProfile")
        if given.get("type") == "Localhost" and not given.get("localhostProfile"):
            yield FieldRefusal(where, "is missing, and the type is Localhost")
        elif given.get("localhostProfile") is not None and given.get("type") != "Localhost":
            yield FieldRefusal(where, "must be set only where the type is Localhost")
