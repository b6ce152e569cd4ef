"""What the API server refuses of containers: variables, probes, resources, security and volumes of theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin import forms
from provisioner.builtin.changes import FieldRefusal, ObjectNode, is_number, quoted, texts

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_HEADER = re.compile(r"[-A-Za-z0-9]+")

_VARIABLE_SOURCES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_NAMING = frozenset({"metadata.name", "metadata.namespace", "metadata.uid"})
_FILE_FIELDS = _NAMING | {"metadata.labels", "metadata.annotations"}
_VARIABLE_FIELDS = _NAMING | {"spec.nodeName", "spec.serviceAccountName"}
_VARIABLE_FIELDS |= {"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
_BY_KEY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_DIVISORS = {forms.quantity(f"1{unit}") for unit in ("", *"kMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")}
_CPU_DIVISORS = {forms.quantity("1"), forms.quantity("1m")}

_HUGE = "hugepages-"
_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_MOST_PRIVILEGED = "CAP_SYS_ADMIN"
_FILE_SOURCES = ("configMap", "secret", "downwardAPI")
LEAST_TOKEN_SECONDS = 600
_OF_LINUX = {"allowPrivilegeEscalation", "appArmorProfile", "capabilities", "fsGroup", "fsGroupChangePolicy"}
_OF_LINUX |= {"privileged", "procMount", "readOnlyRootFilesystem", "runAsGroup", "runAsUser", "seLinuxOptions"}
_OF_LINUX |= {"seccompProfile", "supplementalGroups", "supplementalGroupsPolicy", "sysctls"}


def check_container(container: ObjectNode, volumes: Mapping[str, Any]) -> Iterator[FieldRefusal]:
    if not container.get("image"):
        yield container.refuse("is missing", "image")
    yield from _check_environment(container)
    yield from container.check_unique("ports", "name", allows_empty=True)
    for policy in container.items("resizePolicy"):
        yield from policy.check_choice(("NotRequired", "RestartContainer"), "restartPolicy")
    if container.get("restartPolicyRules") and not container.get("restartPolicy"):
        yield container.refuse("is missing, and needed by restartPolicyRules", "restartPolicy")
    yield from _check_mounts(container, volumes)
    yield from check_resources(container.at("resources"))
    for name in PROBES:
        if container.get(name) is not None:
            yield from _check_probe(name, container.at(name))
    lifecycle = container.at("lifecycle")
    for name, handler in lifecycle.value.items():
        if isinstance(handler, Mapping):
            yield from _check_handlers(lifecycle.at(name), _HOOK_HANDLERS)
    context = container.at("securityContext")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged") is True:
            yield context.refuse("must not be false where privileged is true", "allowPrivilegeEscalation")
        elif _MOST_PRIVILEGED in texts(context.get("capabilities", "add")):
            words = f"must not be false where {_MOST_PRIVILEGED} is added"
            yield context.refuse(words, "allowPrivilegeEscalation")
    yield from check_profiles(context)


def _check_environment(container: ObjectNode) -> Iterator[FieldRefusal]:
    for variable in container.items("env"):
        yield from variable.check_form("environment", "name")
        if variable.get("valueFrom") is not None:
            if variable.get("value"):
                yield variable.refuse("must not be set beside a value", "valueFrom")
            yield from _check_variable_source(variable.at("valueFrom"))
    for source in container.items("envFrom"):
        yield from source.check_form("environment", "prefix")
        if (source.get("configMapRef") is None) == (source.get("secretRef") is None):
            yield source.refuse("must name one source")


def _check_variable_source(source: ObjectNode) -> Iterator[FieldRefusal]:
    given = [key for key in _VARIABLE_SOURCES if source.get(key) is not None]
    if len(given) != 1:
        yield source.refuse("must name one source" if given else "must name a source")
    field = source.get("fieldRef", "fieldPath")
    if isinstance(field, str) and field and field not in _VARIABLE_FIELDS and not _is_by_key(field):
        yield source.refuse(f"names no field that can be read: {quoted(field)}", "fieldRef", "fieldPath")
    for key in ("configMapKeyRef", "secretKeyRef"):
        name = str(source.get(key, "name") or "")
        if source.get(key) is not None and not forms.is_subdomain(name):
            yield source.refuse(f"must be {forms.FORMS['subdomain'][1]}, and is {quoted(name)}", key, "name")
    resource, divisor = source.get("resourceFieldRef", "resource"), source.get("resourceFieldRef", "divisor")
    amount, allowed = forms.quantity(divisor), _CPU_DIVISORS if str(resource).endswith(".cpu") else _DIVISORS
    if amount and amount not in allowed:
        yield source.refuse(f"does not divide {resource}: {quoted(divisor)}", "resourceFieldRef", "divisor")


def _is_by_key(field: str) -> bool:
    match = _BY_KEY.fullmatch(field)
    return match is not None and forms.is_qualified_name(match[2].lower())


def _check_probe(name: str, probe: ObjectNode) -> Iterator[FieldRefusal]:
    yield from _check_handlers(probe, _PROBE_HANDLERS)
    if name != "readinessProbe" and probe.get("successThreshold") not in (None, 0, 1):
        yield probe.refuse(f"must be 1, and is {probe.get('successThreshold')}", "successThreshold")
    if name == "readinessProbe" and probe.get("terminationGracePeriodSeconds") is not None:
        yield probe.refuse("must not be set for a readiness probe", "terminationGracePeriodSeconds")
    times = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds")
    yield from probe.check_least(0, *times, "failureThreshold", "successThreshold")


def _check_handlers(handler: ObjectNode, kinds: tuple[str, ...]) -> Iterator[FieldRefusal]:
    given = [kind for kind in kinds if handler.get(kind) is not None]
    if len(given) != 1:
        yield handler.refuse(f"must have one of {', '.join(kinds)}, and has {' and '.join(given) or 'none'}")
    if "exec" in given and not handler.get("exec", "command"):
        yield handler.refuse("must not be empty", "exec", "command")
    for header in handler.at("httpGet").items("httpHeaders"):
        name = str(header.get("name") or "")
        if not _HEADER.fullmatch(name):
            yield header.refuse(f"must be letters, digits and hyphens, and is {quoted(name)}", "name")
    for kind in ("httpGet", "tcpSocket", "grpc"):
        port = handler.get(kind, "port")
        is_name = isinstance(port, str) and kind != "grpc" and forms.is_port_name(port)
        if kind in given and not is_name and not (is_number(port) and 0 < port < 65536):
            yield handler.refuse_value("must be a number from 1 to 65535 or the name of a port", kind, "port")


def check_resources(resources: ObjectNode) -> Iterator[FieldRefusal]:
    limits, requests = resources.at("limits"), resources.at("requests")
    for amounts in (limits, requests):
        for name, value in amounts.value.items():
            amount = forms.quantity(value)
            if amount is not None and amount < 0:
                yield amounts.refuse(f"must not be below 0, and is {quoted(value)}", str(name))
            is_known = name in _STANDARD_RESOURCES or str(name).startswith(_HUGE)
            if not (forms.is_qualified_name(str(name)) if "/" in str(name) else is_known):
                yield amounts.refuse(f"names no resource of a container: {quoted(name)}", str(name))
            elif amount is not None and _is_extended(str(name)) and amount != amount.to_integral_value():
                yield amounts.refuse(f"must be a whole number, and is {quoted(value)}", str(name))
    names = {*limits.value, *requests.value}
    if any(name.startswith(_HUGE) for name in names) and not names & {"cpu", "memory"}:
        yield resources.refuse("must ask for cpu or memory beside huge pages")
    for name, value in requests.value.items():
        asked, limit = forms.quantity(value), forms.quantity(limits.value.get(name))
        if asked is not None and limit is not None and asked > limit:
            words = f"must not be above the limit {quoted(limits.value[name])}, and is {quoted(value)}"
            yield requests.refuse(words, str(name))
        elif asked != limit and (str(name).startswith(_HUGE) or _is_extended(str(name))):
            # These cannot be promised twice.
            yield requests.refuse("must be the same as the limit", str(name))


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def check_system(pod: ObjectNode) -> Iterator[FieldRefusal]:
    """Refuse what the operating system that a pod names does not have, and what a user namespace rules out."""
    name = pod.get("os", "name")
    foreign = _OF_LINUX if name == "windows" else {"windowsOptions"} if name == "linux" else set()
    host_process = pod.get("securityContext", "windowsOptions", "hostProcess")
    containers = [*pod.items("initContainers"), *pod.items("containers")]
    own = [container.get("securityContext", "windowsOptions", "hostProcess") for container in containers]
    on_host = [bool(host_process if each is None else each) for each in own]
    if any(on_host) and pod.get("hostNetwork") is not True:
        yield pod.refuse("must be true where a container is a host process", "hostNetwork")
    if len(set(on_host)) > 1 or any(host_process is not None and each not in (None, host_process) for each in own):
        yield pod.refuse("must all be host processes, or none", "containers")
    for holder in (pod, *containers):
        context = holder.at("securityContext")
        if context.get("procMount") == "Unmasked" and pod.get("hostUsers") is not False:
            yield context.refuse("must be Default unless hostUsers is false", "procMount")
        for key in sorted(foreign & context.value.keys()):
            yield context.refuse(f"must not be set in a pod of {name}", key)
    for key in ("hostIPC", "hostNetwork", "hostPID") if pod.get("hostUsers") is False else ():
        if pod.get(key) is True:
            yield pod.refuse("must not be set where hostUsers is false", key)
    for key in ("hostPID", "hostIPC", "shareProcessNamespace", "hostUsers") if name == "windows" else ():
        if pod.get(key):
            yield pod.refuse(f"must not be set in a pod of {name}", key)


def check_profiles(context: ObjectNode) -> Iterator[FieldRefusal]:
    for profile in ("seccompProfile", "appArmorProfile"):
        kind, file = context.get(profile, "type"), context.get(profile, "localhostProfile")
        if kind == "Localhost" and not file:
            yield context.refuse("is missing, and the type is Localhost", profile, "localhostProfile")
        elif file is not None and kind != "Localhost":
            yield context.refuse("must be set only where the type is Localhost", profile, "localhostProfile")


def _check_mounts(container: ObjectNode, volumes: Mapping[str, Any]) -> Iterator[FieldRefusal]:
    is_privileged = container.get("securityContext", "privileged") is True
    for mount in container.items("volumeMounts"):
        if mount.get("name") not in volumes:
            yield mount.refuse(f"names no volume of the pod: {quoted(mount.get('name') or '')}", "name")
        for key in ("subPath", "subPathExpr"):
            text = str(mount.get(key) or "")
            if text.startswith("/") or ".." in text.split("/"):
                yield mount.refuse("must be a path inside the volume, without `..`", key)
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield mount.refuse("must not be set beside subPath", "subPathExpr")
        if mount.get("mountPropagation") == "Bidirectional" and not is_privileged:
            yield mount.refuse("must not be Bidirectional in a container that is not privileged", "mountPropagation")
    for device in container.items("volumeDevices"):
        volume = volumes.get(str(device.get("name"))) or {}
        if not (volume.get("persistentVolumeClaim") or volume.get("ephemeral")):
            yield device.refuse("must name a volume of the pod that is a claim", "name")


def check_volumes(pod: ObjectNode) -> Iterator[FieldRefusal]:
    for volume in pod.items("volumes"):
        sources = [key for key, value in volume.value.items() if key != "name" and value is not None]
        if len(sources) > 1:
            yield volume.refuse(f"must be of one type, and is of {', '.join(sorted(sources))}")
        if ".." in str(volume.get("hostPath", "path") or "").split("/"):
            yield volume.refuse("must not hold `..`", "hostPath", "path")
        limit = forms.quantity(volume.get("emptyDir", "sizeLimit"))
        if limit is not None and limit < 0:
            yield volume.refuse("must not be below 0", "emptyDir", "sizeLimit")
        if volume.get("image", "pullPolicy") not in (None, "", "Always", "IfNotPresent", "Never"):
            yield volume.refuse_value("must be Always, IfNotPresent or Never", "image", "pullPolicy")
        claim = volume.at("ephemeral", "volumeClaimTemplate")
        if claim.get("spec") is not None and claim.get("spec", "resources", "requests", "storage") is None:
            yield claim.refuse("is missing", "spec", "resources", "requests", "storage")
        yield from _check_projected(volume.at("projected"))
        for holder in (volume, *volume.at("projected").items("sources")):
            for kind in _FILE_SOURCES:
                for item in holder.at(kind).items("items"):
                    yield from _check_file(item, kind)


def _check_projected(projected: ObjectNode) -> Iterator[FieldRefusal]:
    taken: dict[str, int] = {}
    for place, source in enumerate(projected.items("sources")):
        kinds = sorted(key for key, value in source.value.items() if value is not None)
        if len(kinds) > 1:
            yield source.refuse(f"must be of one type, and is of {', '.join(kinds)}")
        yield from source.at("serviceAccountToken").check_least(LEAST_TOKEN_SECONDS, "expirationSeconds")
        files = [str(item.get("path") or "") for kind in _FILE_SOURCES for item in source.at(kind).items("items")]
        token = source.get("serviceAccountToken", "path")
        for file in [*files, str(token)] if token else files:
            if taken.setdefault(file, place) != place:
                yield projected.refuse(f"has two files by one path: {quoted(file)}")


def _check_file(item: ObjectNode, kind: str) -> Iterator[FieldRefusal]:
    path = str(item.get("path") or "")
    if path.startswith(("/", "..")) or ".." in path.split("/"):
        yield item.refuse("must be a path inside the volume, without `..`", "path")
    field = item.get("fieldRef", "fieldPath")
    is_known = field in _FILE_FIELDS or (isinstance(field, str) and _is_by_key(field))
    if kind == "downwardAPI" and isinstance(field, str) and not is_known:
        yield item.refuse(f"names no field that can be read: {quoted(field)}", "fieldRef", "fieldPath")
