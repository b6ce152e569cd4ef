"""What the API server refuses of containers: variables, probes, resources, security and volumes of theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin import forms
from provisioner.builtin.changes import FieldRefusal, Path, is_number, numbered, quoted, texts
from provisioner.json_values import mapping, value_at

_VARIABLE_SOURCES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_FIELD_PATHS = frozenset(
    [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ]
)
_BY_KEY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def check_environment(container: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    for place, one in numbered(container.get("env")):
        where = (*path, "env", place)
        name, source = one.get("name"), one.get("valueFrom")
        if isinstance(name, str) and name and not forms.is_environment_name(name):
            yield FieldRefusal((*where, "name"), f"must be {forms.FORMS['environment'][1]}, and is {quoted(name)}")
        if source is not None:
            if one.get("value"):
                yield FieldRefusal((*where, "valueFrom"), "must not be set beside a value")
            yield from _check_variable_source(source, (*where, "valueFrom"))
    for place, one in numbered(container.get("envFrom")):
        prefix = one.get("prefix")
        if isinstance(prefix, str) and prefix and not forms.is_environment_name(prefix):
            words = f"must be {forms.FORMS['environment'][1]}, and is {quoted(prefix)}"
            yield FieldRefusal((*path, "envFrom", place, "prefix"), words)
        if (one.get("configMapRef") is None) == (one.get("secretRef") is None):
            yield FieldRefusal((*path, "envFrom", place), "must name one source")


def _check_variable_source(source: Any, path: Path) -> Iterator[FieldRefusal]:
    found = [key for key in _VARIABLE_SOURCES if mapping(source).get(key) is not None]
    if len(found) != 1:
        yield FieldRefusal(path, "must name one source" if found else "must name a source")
    field = value_at(source, "fieldRef", "fieldPath")
    if isinstance(field, str) and field and field not in _FIELD_PATHS and not is_by_key(field):
        yield FieldRefusal((*path, "fieldRef", "fieldPath"), f"names no field that can be read: {quoted(field)}")
    for key in ("configMapKeyRef", "secretKeyRef"):
        if mapping(source).get(key) is not None:
            name = str(value_at(mapping(source)[key], "name") or "")
            if not forms.is_subdomain(name):
                yield FieldRefusal(
                    (*path, key, "name"), f"must be {forms.FORMS['subdomain'][1]}, and is {quoted(name)}"
                )
    measured = mapping(value_at(source, "resourceFieldRef"))
    if not _is_divisor(str(measured.get("resource")), measured.get("divisor")):
        words = f"does not divide {measured.get('resource')}: {quoted(measured['divisor'])}"
        yield FieldRefusal((*path, "resourceFieldRef", "divisor"), words)


_DIVISORS = {forms.quantity(f"1{unit}") for unit in ("", *"kMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")}


def _is_divisor(resource: str, divisor: Any) -> bool:
    found = forms.quantity(divisor)
    if not found:
        return True
    if resource.endswith(".cpu"):
        return found in (forms.quantity("1m"), 1)
    return found in _DIVISORS


def is_by_key(field: str) -> bool:
    match = _BY_KEY.fullmatch(field)
    return match is not None and forms.is_qualified_name(match[2].lower())


_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
LIFECYCLE = ("exec", "httpGet", "tcpSocket", "sleep")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HEADER = re.compile(r"[-A-Za-z0-9]+")


def check_probe(name: str, probe: Any, path: Path) -> Iterator[FieldRefusal]:
    yield from check_handlers(mapping(probe), path, _PROBE_HANDLERS)
    if name != "readinessProbe" and value_at(probe, "successThreshold") not in (None, 0, 1):
        yield FieldRefusal((*path, "successThreshold"), f"must be 1, and is {probe['successThreshold']}")
    if name == "readinessProbe" and value_at(probe, "terminationGracePeriodSeconds") is not None:
        yield FieldRefusal((*path, "terminationGracePeriodSeconds"), "must not be set for a readiness probe")
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold", "successThreshold"):
        value = value_at(probe, key)
        if is_number(value) and value < 0:
            yield FieldRefusal((*path, key), f"must be at least 0, and is {value}")


def check_handlers(handler: Mapping[str, Any], path: Path, kinds: tuple[str, ...]) -> Iterator[FieldRefusal]:
    found = [one for one in kinds if handler.get(one) is not None]
    if len(found) != 1:
        yield FieldRefusal(path, f"must have one of {', '.join(kinds)}, and has {' and '.join(found) or 'none'}")
    if "exec" in found and not value_at(handler, "exec", "command"):
        yield FieldRefusal((*path, "exec", "command"), "must not be empty")
    for place, header in numbered(value_at(handler, "httpGet", "httpHeaders")):
        name = str(header.get("name") or "")
        if not _HEADER.fullmatch(name):
            words = f"must be letters, digits and hyphens, and is {quoted(name)}"
            yield FieldRefusal((*path, "httpGet", "httpHeaders", place, "name"), words)
    for kind in ("httpGet", "tcpSocket", "grpc"):
        port = value_at(handler, kind, "port")
        is_name = isinstance(port, str) and kind != "grpc" and forms.is_port_name(port)
        if kind in found and not is_name and not (is_number(port) and 0 < port < 65536):
            yield FieldRefusal(
                (*path, kind, "port"), f"must be a number from 1 to 65535 or the name of a port, and is {quoted(port)}"
            )


_HUGE = "hugepages-"
_NEEDED = frozenset({"cpu", "memory"})
_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})


def check_resources(resources: Any, path: Path) -> Iterator[FieldRefusal]:
    limits, requests = mapping(value_at(resources, "limits")), mapping(value_at(resources, "requests"))
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            own_name = str(name)
            inner = (*path, part, str(name))
            found = forms.quantity(amount)
            if found is not None and found < 0:
                yield FieldRefusal(inner, f"must not be below 0, and is {quoted(amount)}")
            if not _is_resource(own_name):
                yield FieldRefusal(inner, f"names no resource of a container: {quoted(own_name)}")
            elif found is not None and _is_extended(own_name) and found != found.to_integral_value():
                yield FieldRefusal(inner, f"must be a whole number, and is {quoted(amount)}")
    if any(name.startswith(_HUGE) for name in {*limits, *requests}) and not _NEEDED & {*limits, *requests}:
        yield FieldRefusal(path, "must ask for cpu or memory beside huge pages")
    for name, amount in requests.items():
        asked, most = forms.quantity(amount), forms.quantity(limits.get(name))
        where = (*path, "requests", str(name))
        if asked is not None and most is not None and asked > most:
            yield FieldRefusal(where, f"must not be above the limit {quoted(limits[name])}, and is {quoted(amount)}")
        elif _is_whole(str(name)) and asked != most:
            yield FieldRefusal(where, "must be the same as the limit")


def _is_resource(name: str) -> bool:
    if "/" in name:
        return forms.is_qualified_name(name)
    return name in _STANDARD_RESOURCES or name.startswith(_HUGE)


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def _is_whole(name: str) -> bool:
    """Resources that cannot be promised twice."""
    return name.startswith(_HUGE) or _is_extended(name)


_MOST_PRIVILEGED = frozenset({"CAP_SYS_ADMIN"})


def check_privileges(context: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    if context.get("allowPrivilegeEscalation") is False:
        added = set(texts(value_at(context, "capabilities", "add")))
        if context.get("privileged") is True:
            yield FieldRefusal((*path, "allowPrivilegeEscalation"), "must not be false where privileged is true")
        elif added & _MOST_PRIVILEGED:
            yield FieldRefusal((*path, "allowPrivilegeEscalation"), "must not be false where CAP_SYS_ADMIN is added")
    yield from check_seccomp(context, path)


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


def check_system(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
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
    yield mapping(pod.get("securityContext")), (*path, "securityContext")
    for part in ("initContainers", "containers"):
        for place, one in numbered(pod.get(part)):
            yield mapping(one.get("securityContext")), (*path, part, place, "securityContext")


def check_seccomp(context: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    for profile in ("seccompProfile", "appArmorProfile"):
        given = mapping(context.get(profile))
        where = (*path, profile, "localhostProfile")
        if given.get("type") == "Localhost" and not given.get("localhostProfile"):
            yield FieldRefusal(where, "is missing, and the type is Localhost")
        elif given.get("localhostProfile") is not None and given.get("type") != "Localhost":
            yield FieldRefusal(where, "must be set only where the type is Localhost")


_FILE_PATHS = frozenset(
    ["metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"]
)
LEAST_TOKEN_SECONDS = 600


def check_mounts(container: Mapping[str, Any], path: Path, volumes: Mapping[str, Any]) -> Iterator[FieldRefusal]:
    is_privileged = value_at(container, "securityContext", "privileged") is True
    for place, mount in numbered(container.get("volumeMounts")):
        where = (*path, "volumeMounts", place)
        if mount.get("name") not in volumes:
            yield FieldRefusal((*where, "name"), f"names no volume of the pod: {quoted(mount.get('name') or '')}")
        for key in ("subPath", "subPathExpr"):
            text = str(mount.get(key) or "")
            if text.startswith("/") or ".." in text.split("/"):
                yield FieldRefusal(((*where, key)), "must be a path inside the volume, without `..`")
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield FieldRefusal((*where, "subPathExpr"), "must not be set beside subPath")
        if mount.get("mountPropagation") == "Bidirectional" and not is_privileged:
            words = "must not be Bidirectional in a container that is not privileged"
            yield FieldRefusal((*where, "mountPropagation"), words)
    for place, device in numbered(container.get("volumeDevices")):
        volume = mapping(volumes.get(str(device.get("name"))))
        if not (volume.get("persistentVolumeClaim") or volume.get("ephemeral")):
            yield FieldRefusal((*path, "volumeDevices", place, "name"), "must name a volume of the pod that is a claim")


def check_volumes(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    for place, volume in numbered(pod.get("volumes")):
        where = (*path, "volumes", place)
        sources = [key for key, value in volume.items() if key != "name" and value is not None]
        if len(sources) > 1:
            yield FieldRefusal(where, f"must be of one type, and is of {', '.join(sorted(sources))}")
        if ".." in str(value_at(volume, "hostPath", "path") or "").split("/"):
            yield FieldRefusal((*where, "hostPath", "path"), "must not hold `..`")
        yield from _check_volume_sources(volume, where)
        for holder, inner in _file_holders(volume, where):
            for position, item in numbered(value_at(holder, "items")):
                text = str(item.get("path") or "")
                if text.startswith(("/", "..")) or ".." in text.split("/"):
                    yield FieldRefusal(
                        (*inner, "items", position, "path"), "must be a path inside the volume, without `..`"
                    )
                field = value_at(item, "fieldRef", "fieldPath")
                if (
                    inner[-1] == "downwardAPI"
                    and isinstance(field, str)
                    and field not in _FILE_PATHS
                    and not is_by_key(field)
                ):
                    yield FieldRefusal(
                        (*inner, "items", position, "fieldRef", "fieldPath"),
                        f"names no field that can be read: {quoted(field)}",
                    )


def _check_volume_sources(volume: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    limit = forms.quantity(value_at(volume, "emptyDir", "sizeLimit"))
    if limit is not None and limit < 0:
        yield FieldRefusal((*path, "emptyDir", "sizeLimit"), "must not be below 0")
    policy = value_at(volume, "image", "pullPolicy")
    if policy not in (None, "", "Always", "IfNotPresent", "Never"):
        words = f"must be Always, IfNotPresent or Never, and is {quoted(policy)}"
        yield FieldRefusal((*path, "image", "pullPolicy"), words)
    inner = ("ephemeral", "volumeClaimTemplate", "spec")
    claim = value_at(volume, *inner)
    if claim is not None and value_at(claim, "resources", "requests", "storage") is None:
        yield FieldRefusal((*path, *inner, "resources", "requests", "storage"), "is missing")
    taken: dict[str, int] = {}
    for place, source in numbered(value_at(volume, "projected", "sources")):
        where = (*path, "projected", "sources", place)
        kinds = sorted(key for key, value in source.items() if value is not None)
        if len(kinds) > 1:
            yield FieldRefusal(where, f"must be of one type, and is of {', '.join(kinds)}")
        seconds = value_at(source, "serviceAccountToken", "expirationSeconds")
        if is_number(seconds) and seconds < LEAST_TOKEN_SECONDS:
            problem = f"must be at least {LEAST_TOKEN_SECONDS}, and is {seconds}"
            yield FieldRefusal((*where, "serviceAccountToken", "expirationSeconds"), problem)
        for file in _files_of(source):
            if taken.setdefault(file, place) != place:
                yield FieldRefusal((*path, "projected"), f"has two files by one path: {quoted(file)}")


def _files_of(source: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("secret", "configMap", "downwardAPI"):
        for _, item in numbered(value_at(source, kind, "items")):
            yield str(item.get("path") or "")
    token = value_at(source, "serviceAccountToken", "path")
    if token:
        yield str(token)


def _file_holders(volume: Mapping[str, Any], path: Path) -> Iterator[tuple[Any, Path]]:
    for kind in ("configMap", "secret", "downwardAPI"):
        if volume.get(kind) is not None:
            yield volume[kind], (*path, kind)
    for place, source in numbered(value_at(volume, "projected", "sources")):
        where = (*path, "projected", "sources", place)
        for kind in ("configMap", "secret", "downwardAPI"):
            if source.get(kind) is not None:
                yield source[kind], (*where, kind)


def check_container(container: Mapping[str, Any], path: Path, volumes: Mapping[str, Any]) -> Iterator[FieldRefusal]:
    image = container.get("image")
    if not image:
        yield FieldRefusal((*path, "image"), "is missing")
    yield from check_environment(container, path)
    yield from _check_ports(container, path)
    for place, one in numbered(container.get("resizePolicy")):
        if one.get("restartPolicy") not in ("NotRequired", "RestartContainer"):
            words = f"must be NotRequired or RestartContainer, and is {quoted(one.get('restartPolicy'))}"
            yield FieldRefusal((*path, "resizePolicy", place, "restartPolicy"), words)
    if container.get("restartPolicyRules") and not container.get("restartPolicy"):
        yield FieldRefusal((*path, "restartPolicy"), "is missing, and needed by restartPolicyRules")
    yield from check_mounts(container, path, volumes)
    yield from check_resources(container.get("resources"), (*path, "resources"))
    for name in PROBES:
        if container.get(name) is not None:
            yield from check_probe(name, container[name], (*path, name))
    for name, handler in mapping(container.get("lifecycle")).items():
        if isinstance(handler, Mapping):
            yield from check_handlers(handler, (*path, "lifecycle", name), LIFECYCLE)
    yield from check_privileges(mapping(container.get("securityContext")), (*path, "securityContext"))


def _check_ports(container: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    names: set[str] = set()
    for place, port in numbered(container.get("ports")):
        name = str(port.get("name") or "")
        if name and name in names:
            yield FieldRefusal((*path, "ports", place, "name"), f"stands there twice: {quoted(name)}")
        names.add(name)
