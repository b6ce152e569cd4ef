"""What the API server refuses of pods, wherever their template stands. Source: pkg/apis/core/validation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin import forms, metadata
from provisioner.builtin.changes import FieldRefusal, Path, at, is_number, mapping, numbered, quoted, texts

Pod = Mapping[str, Any]
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_LIFECYCLE = ("exec", "httpGet", "tcpSocket", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_SOURCES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
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
_FILE_PATHS = frozenset(
    ["metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"]
)
_BY_KEY = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
LEAST_TOKEN_SECONDS = 600
MOST_NAMESERVERS, MOST_SEARCHES, LONGEST_SYSCTL = 3, 32, 253
_MOST_PRIVILEGED = frozenset({"CAP_SYS_ADMIN"})


def refusals_of_template(template: Any, path: Path, claims: tuple[str, ...] = ()) -> Iterator[FieldRefusal]:
    """A pod template, without what depends on the kind around it; `claims` are volumes that this makes."""
    meta = mapping(at(template, "metadata"))
    yield from metadata.of_labels(meta.get("labels"), (*path, "metadata", "labels"))
    yield from metadata.of_annotations(meta.get("annotations"), (*path, "metadata", "annotations"))
    spec = mapping(at(template, "spec"))
    if spec.get("ephemeralContainers"):
        yield FieldRefusal((*path, "spec", "ephemeralContainers"), "must not be set in a template")
    yield from _of_profiles(meta.get("annotations"), spec, (*path, "annotations"))
    yield from refusals(spec, (*path, "spec"), claims)


_PROFILE_OF = "container.apparmor.security.beta.kubernetes.io/"


def _of_profiles(annotations: Any, pod: Pod, path: Path) -> Iterator[FieldRefusal]:
    """The older way to name profiles of AppArmor."""
    names = {one.get("name") for part in ("initContainers", "containers") for _, one in numbered(pod.get(part))}
    for key, value in mapping(annotations).items():
        _, found, name = str(key).partition(_PROFILE_OF)
        if not found:
            continue
        is_profile = value in ("", "runtime/default", "unconfined") or str(value).startswith("localhost/")
        if name not in names:
            yield FieldRefusal((*path, str(key)), f"names no container of the pod: {quoted(name)}")
        elif not is_profile:
            yield FieldRefusal((*path, str(key)), f"must be the name of a profile, and is {quoted(value)}")


def refusals(pod: Pod, path: Path, claims: tuple[str, ...] = ()) -> Iterator[FieldRefusal]:
    if not pod.get("containers"):
        yield FieldRefusal((*path, "containers"), "must hold at least one container")
    yield from _of_names(pod, path)
    yield from _of_volumes(pod, path)
    volumes: dict[str, Any] = {one: {"persistentVolumeClaim": {"claimName": one}} for one in claims}
    volumes |= {str(one.get("name")): one for _, one in numbered(pod.get("volumes")) if one.get("name") not in volumes}
    yield from _of_claims_and_times(pod, path)
    for part in ("initContainers", "containers"):
        for place, container in numbered(pod.get(part)):
            where = (*path, part, place)
            yield from _of_container(container, where, volumes)
            if part == "initContainers" and container.get("restartPolicy") != "Always":
                for one in (*_PROBES, "lifecycle"):
                    if container.get(one):
                        yield FieldRefusal((*where, one), "must not be set for an init container that ends")
    yield from _of_host_ports(pod, path)
    yield from _of_settings(pod, path)
    yield from _of_scheduling(pod, path)
    yield from _of_system(pod, path)


def _of_claims_and_times(pod: Pod, path: Path) -> Iterator[FieldRefusal]:
    """What containers say that depends on the pod around them."""
    claims = {one.get("name") for _, one in numbered(pod.get("resourceClaims"))}
    for part in ("initContainers", "containers"):
        for place, one in numbered(pod.get(part)):
            where = (*path, part, place)
            for number, claim in numbered(at(one, "resources", "claims")):
                if claim.get("name") not in claims:
                    words = f"names no resource claim of the pod: {quoted(claim.get('name'))}"
                    yield FieldRefusal((*where, "resources", "claims", number), words)
            yield from _of_sleep(one, where, pod.get("terminationGracePeriodSeconds"))
    yield from _of_resources(pod.get("resources"), (*path, "resources"))
    for place, gate in numbered(pod.get("readinessGates")):
        kind = str(gate.get("conditionType") or "")
        if not forms.is_qualified_name(kind):
            words = f"must be {forms.FORMS['qualified'][1]}, and is {quoted(kind)}"
            yield FieldRefusal((*path, "readinessGates", place, "conditionType"), words)


def _of_sleep(container: Pod, path: Path, grace: Any) -> Iterator[FieldRefusal]:
    for hook in ("postStart", "preStop"):
        seconds = at(container, "lifecycle", hook, "sleep", "seconds")
        if is_number(seconds) and is_number(grace) and not 0 <= seconds <= grace:
            words = f"must be from 0 to terminationGracePeriodSeconds, which is {grace}, and is {seconds}"
            yield FieldRefusal((*path, "lifecycle", hook, "sleep"), words)


def _of_names(pod: Pod, path: Path) -> Iterator[FieldRefusal]:
    names = {str(one.get("name")) for _, one in numbered(pod.get("initContainers"))}
    for place, one in numbered(pod.get("containers")):
        if one.get("name") in names:
            yield FieldRefusal(
                (*path, "containers", place, "name"), f"is the name of an init container, too: {quoted(one['name'])}"
            )


def _of_container(container: Pod, path: Path, volumes: Mapping[str, Any]) -> Iterator[FieldRefusal]:
    image = container.get("image")
    if not image:
        yield FieldRefusal((*path, "image"), "is missing")
    yield from _of_environment(container, path)
    yield from _of_ports(container, path)
    for place, one in numbered(container.get("resizePolicy")):
        if one.get("restartPolicy") not in ("NotRequired", "RestartContainer"):
            words = f"must be NotRequired or RestartContainer, and is {quoted(one.get('restartPolicy'))}"
            yield FieldRefusal((*path, "resizePolicy", place, "restartPolicy"), words)
    yield from _of_mounts(container, path, volumes)
    yield from _of_resources(container.get("resources"), (*path, "resources"))
    for name in _PROBES:
        if container.get(name) is not None:
            yield from _of_probe(name, container[name], (*path, name))
    for name, handler in mapping(container.get("lifecycle")).items():
        if isinstance(handler, Mapping):
            yield from _of_handlers(handler, (*path, "lifecycle", name), _LIFECYCLE)
    yield from _of_privileges(mapping(container.get("securityContext")), (*path, "securityContext"))


def _of_environment(container: Pod, path: Path) -> Iterator[FieldRefusal]:
    for place, one in numbered(container.get("env")):
        where = (*path, "env", place)
        name, source = one.get("name"), one.get("valueFrom")
        if isinstance(name, str) and name and not forms.is_environment_name(name):
            yield FieldRefusal((*where, "name"), f"must be {forms.FORMS['environment'][1]}, and is {quoted(name)}")
        if source is not None:
            if one.get("value"):
                yield FieldRefusal((*where, "valueFrom"), "must not be set beside a value")
            yield from _of_source(source, (*where, "valueFrom"))
    for place, one in numbered(container.get("envFrom")):
        prefix = one.get("prefix")
        if isinstance(prefix, str) and prefix and not forms.is_environment_name(prefix):
            words = f"must be {forms.FORMS['environment'][1]}, and is {quoted(prefix)}"
            yield FieldRefusal((*path, "envFrom", place, "prefix"), words)
        if (one.get("configMapRef") is None) == (one.get("secretRef") is None):
            yield FieldRefusal((*path, "envFrom", place), "must name one source")


def _of_source(source: Any, path: Path) -> Iterator[FieldRefusal]:
    found = [key for key in _SOURCES if mapping(source).get(key) is not None]
    if len(found) != 1:
        yield FieldRefusal(path, "must name one source" if found else "must name a source")
    field = at(source, "fieldRef", "fieldPath")
    if isinstance(field, str) and field and field not in _FIELD_PATHS and not _is_by_key(field):
        yield FieldRefusal((*path, "fieldRef", "fieldPath"), f"names no field that can be read: {quoted(field)}")
    for key in ("configMapKeyRef", "secretKeyRef"):
        if mapping(source).get(key) is not None:
            yield from _of_reference(mapping(source)[key], (*path, key))
    measured = mapping(at(source, "resourceFieldRef"))
    if not _is_divisor(str(measured.get("resource")), measured.get("divisor")):
        words = f"does not divide {measured.get('resource')}: {quoted(measured['divisor'])}"
        yield FieldRefusal((*path, "resourceFieldRef", "divisor"), words)


def _of_reference(reference: Any, path: Path) -> Iterator[FieldRefusal]:
    name = str(at(reference, "name") or "")
    if not forms.is_subdomain(name):
        yield FieldRefusal((*path, "name"), f"must be {forms.FORMS['subdomain'][1]}, and is {quoted(name)}")


_DIVISORS = {forms.quantity(f"1{unit}") for unit in ("", *"kMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")}


def _is_divisor(resource: str, divisor: Any) -> bool:
    found = forms.quantity(divisor)
    if not found:
        return True
    if resource.endswith(".cpu"):
        return found in (forms.quantity("1m"), 1)
    return found in _DIVISORS


def _is_by_key(field: str) -> bool:
    match = _BY_KEY.fullmatch(field)
    return match is not None and forms.is_qualified_name(match[2].lower())


def _of_ports(container: Pod, path: Path) -> Iterator[FieldRefusal]:
    names: set[str] = set()
    for place, one in numbered(container.get("ports")):
        name = str(one.get("name") or "")
        if name and name in names:
            yield FieldRefusal((*path, "ports", place, "name"), f"stands there twice: {quoted(name)}")
        names.add(name)


def _of_mounts(container: Pod, path: Path, volumes: Mapping[str, Any]) -> Iterator[FieldRefusal]:
    is_privileged = at(container, "securityContext", "privileged") is True
    for place, one in numbered(container.get("volumeMounts")):
        where = (*path, "volumeMounts", place)
        yield from _of_mount(one, where, volumes)
        if one.get("mountPropagation") == "Bidirectional" and not is_privileged:
            words = "must not be Bidirectional in a container that is not privileged"
            yield FieldRefusal((*where, "mountPropagation"), words)
    for place, one in numbered(container.get("volumeDevices")):
        volume = mapping(volumes.get(str(one.get("name"))))
        if not (volume.get("persistentVolumeClaim") or volume.get("ephemeral")):
            yield FieldRefusal((*path, "volumeDevices", place, "name"), "must name a volume of the pod that is a claim")


def _of_mount(one: Pod, path: Path, volumes: Mapping[str, Any]) -> Iterator[FieldRefusal]:
    if one.get("name") not in volumes:
        yield FieldRefusal((*path, "name"), f"names no volume of the pod: {quoted(one.get('name') or '')}")
    for key in ("subPath", "subPathExpr"):
        yield from _of_inner_path(str(one.get(key) or ""), (*path, key))
    if one.get("subPath") and one.get("subPathExpr"):
        yield FieldRefusal((*path, "subPathExpr"), "must not be set beside subPath")


def _of_inner_path(text: str, path: Path) -> Iterator[FieldRefusal]:
    if text.startswith("/") or ".." in text.split("/"):
        yield FieldRefusal(path, "must be a path inside the volume, without `..`")


def _of_resources(resources: Any, path: Path) -> Iterator[FieldRefusal]:
    limits, requests = mapping(at(resources, "limits")), mapping(at(resources, "requests"))
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _of_amount(str(name), amount, (*path, part, str(name)))
    for name, amount in requests.items():
        asked, most = forms.quantity(amount), forms.quantity(limits.get(name))
        where = (*path, "requests", str(name))
        if asked is not None and most is not None and asked > most:
            yield FieldRefusal(where, f"must not be above the limit {quoted(limits[name])}, and is {quoted(amount)}")
        elif _is_whole(str(name)) and asked != most:
            yield FieldRefusal(where, "must be the same as the limit")


def _of_amount(name: str, amount: Any, path: Path) -> Iterator[FieldRefusal]:
    found = forms.quantity(amount)
    if found is not None and found < 0:
        yield FieldRefusal(path, f"must not be below 0, and is {quoted(amount)}")
    if not _is_resource(name):
        yield FieldRefusal(path, f"names no resource of a container: {quoted(name)}")
    elif found is not None and _is_extended(name) and found != found.to_integral_value():
        yield FieldRefusal(path, f"must be a whole number, and is {quoted(amount)}")


def _is_resource(name: str) -> bool:
    if "/" in name:
        return forms.is_qualified_name(name)
    return name in _STANDARD_RESOURCES or name.startswith("hugepages-")


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def _is_whole(name: str) -> bool:
    """Resources that cannot be promised twice."""
    return name.startswith("hugepages-") or _is_extended(name)


def _of_probe(name: str, probe: Any, path: Path) -> Iterator[FieldRefusal]:
    yield from _of_handlers(mapping(probe), path, _HANDLERS)
    if name != "readinessProbe" and at(probe, "successThreshold") not in (None, 0, 1):
        yield FieldRefusal((*path, "successThreshold"), f"must be 1, and is {probe['successThreshold']}")
    if name == "readinessProbe" and at(probe, "terminationGracePeriodSeconds") is not None:
        yield FieldRefusal((*path, "terminationGracePeriodSeconds"), "must not be set for a readiness probe")
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold", "successThreshold"):
        value = at(probe, key)
        if is_number(value) and value < 0:
            yield FieldRefusal((*path, key), f"must be at least 0, and is {value}")


def _of_handlers(handler: Pod, path: Path, kinds: tuple[str, ...]) -> Iterator[FieldRefusal]:
    found = [one for one in kinds if handler.get(one) is not None]
    if len(found) != 1:
        yield FieldRefusal(path, f"must have one of {', '.join(kinds)}, and has {' and '.join(found) or 'none'}")
    if "exec" in found and not at(handler, "exec", "command"):
        yield FieldRefusal((*path, "exec", "command"), "must not be empty")
    for place, header in numbered(at(handler, "httpGet", "httpHeaders")):
        name = str(header.get("name") or "")
        if not _HEADER.fullmatch(name):
            words = f"must be letters, digits and hyphens, and is {quoted(name)}"
            yield FieldRefusal((*path, "httpGet", "httpHeaders", place, "name"), words)
    for kind in ("httpGet", "tcpSocket", "grpc"):
        port = at(handler, kind, "port")
        is_name = isinstance(port, str) and kind != "grpc" and forms.is_port_name(port)
        if kind in found and not is_name and not (is_number(port) and 0 < port < 65536):
            yield FieldRefusal(
                (*path, kind, "port"), f"must be a number from 1 to 65535 or the name of a port, and is {quoted(port)}"
            )


def _of_privileges(context: Pod, path: Path) -> Iterator[FieldRefusal]:
    if context.get("allowPrivilegeEscalation") is False:
        added = set(texts(at(context, "capabilities", "add")))
        if context.get("privileged") is True:
            yield FieldRefusal((*path, "allowPrivilegeEscalation"), "must not be false where privileged is true")
        elif added & _MOST_PRIVILEGED:
            yield FieldRefusal((*path, "allowPrivilegeEscalation"), "must not be false where CAP_SYS_ADMIN is added")
    yield from _of_seccomp(context, path)


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


def _of_system(pod: Pod, path: Path) -> Iterator[FieldRefusal]:
    """What the operating system that a pod names does not have."""
    name = at(pod, "os", "name")
    foreign = _OF_LINUX if name == "windows" else {"windowsOptions"} if name == "linux" else frozenset()
    for context, where in _contexts(pod, path):
        if context.get("procMount") == "Unmasked" and pod.get("hostUsers") is not False:
            yield FieldRefusal((*where, "procMount"), "must be Default unless hostUsers is false")
        for key in sorted(foreign & context.keys()):
            yield FieldRefusal((*where, key), f"must not be set in a pod of {name}")
    for key in ("hostPID", "hostIPC", "shareProcessNamespace", "hostUsers") if name == "windows" else ():
        if pod.get(key):
            yield FieldRefusal((*path, key), f"must not be set in a pod of {name}")


def _contexts(pod: Pod, path: Path) -> Iterator[tuple[Pod, Path]]:
    yield mapping(pod.get("securityContext")), (*path, "securityContext")
    for part in ("initContainers", "containers"):
        for place, one in numbered(pod.get(part)):
            yield mapping(one.get("securityContext")), (*path, part, place, "securityContext")


def _of_seccomp(context: Pod, path: Path) -> Iterator[FieldRefusal]:
    for profile in ("seccompProfile", "appArmorProfile"):
        given = mapping(context.get(profile))
        where = (*path, profile, "localhostProfile")
        if given.get("type") == "Localhost" and not given.get("localhostProfile"):
            yield FieldRefusal(where, "is missing, and the type is Localhost")
        elif given.get("localhostProfile") is not None and given.get("type") != "Localhost":
            yield FieldRefusal(where, "must be set only where the type is Localhost")


def _of_volumes(pod: Pod, path: Path) -> Iterator[FieldRefusal]:
    for place, one in numbered(pod.get("volumes")):
        where = (*path, "volumes", place)
        sources = [key for key, value in one.items() if key != "name" and value is not None]
        if len(sources) > 1:
            yield FieldRefusal(where, f"must be of one type, and is of {', '.join(sorted(sources))}")
        if ".." in str(at(one, "hostPath", "path") or "").split("/"):
            yield FieldRefusal((*where, "hostPath", "path"), "must not hold `..`")
        yield from _of_sources(one, where)
        for holder, inner in _file_holders(one, where):
            yield from _of_files(holder, inner)


def _of_sources(volume: Pod, path: Path) -> Iterator[FieldRefusal]:
    limit = forms.quantity(at(volume, "emptyDir", "sizeLimit"))
    if limit is not None and limit < 0:
        yield FieldRefusal((*path, "emptyDir", "sizeLimit"), "must not be below 0")
    policy = at(volume, "image", "pullPolicy")
    if policy not in (None, "", "Always", "IfNotPresent", "Never"):
        words = f"must be Always, IfNotPresent or Never, and is {quoted(policy)}"
        yield FieldRefusal((*path, "image", "pullPolicy"), words)
    claim, inner = at(volume, "ephemeral", "volumeClaimTemplate", "spec"), ("ephemeral", "volumeClaimTemplate", "spec")
    if claim is not None and at(claim, "resources", "requests", "storage") is None:
        yield FieldRefusal((*path, *inner, "resources", "requests", "storage"), "is missing")
    taken: dict[str, int] = {}
    for place, one in numbered(at(volume, "projected", "sources")):
        yield from _of_projected(one, (*path, "projected", "sources", place))
        for file in _files_of(one):
            if taken.setdefault(file, place) != place:
                yield FieldRefusal((*path, "projected"), f"has two files by one path: {quoted(file)}")


def _of_projected(source: Pod, path: Path) -> Iterator[FieldRefusal]:
    kinds = sorted(key for key, value in source.items() if value is not None)
    if len(kinds) > 1:
        yield FieldRefusal(path, f"must be of one type, and is of {', '.join(kinds)}")
    seconds = at(source, "serviceAccountToken", "expirationSeconds")
    if is_number(seconds) and seconds < LEAST_TOKEN_SECONDS:
        words = f"must be at least {LEAST_TOKEN_SECONDS}, and is {seconds}"
        yield FieldRefusal((*path, "serviceAccountToken", "expirationSeconds"), words)


def _files_of(source: Pod) -> Iterator[str]:
    for kind in ("secret", "configMap", "downwardAPI"):
        for _, one in numbered(at(source, kind, "items")):
            yield str(one.get("path") or "")
    token = at(source, "serviceAccountToken", "path")
    if token:
        yield str(token)


def _file_holders(volume: Pod, path: Path) -> Iterator[tuple[Any, Path]]:
    for kind in ("configMap", "secret", "downwardAPI"):
        if volume.get(kind) is not None:
            yield volume[kind], (*path, kind)
    for place, one in numbered(at(volume, "projected", "sources")):
        where = (*path, "projected", "sources", place)
        for kind in ("configMap", "secret", "downwardAPI"):
            if one.get(kind) is not None:
                yield one[kind], (*where, kind)


def _of_files(holder: Any, path: Path) -> Iterator[FieldRefusal]:
    for place, one in numbered(at(holder, "items")):
        text = str(one.get("path") or "")
        if text.startswith(("/", "..")) or ".." in text.split("/"):
            yield FieldRefusal((*path, "items", place, "path"), "must be a path inside the volume, without `..`")
        field = at(one, "fieldRef", "fieldPath")
        if path[-1] == "downwardAPI" and isinstance(field, str) and field not in _FILE_PATHS and not _is_by_key(field):
            yield FieldRefusal(
                (*path, "items", place, "fieldRef", "fieldPath"), f"names no field that can be read: {quoted(field)}"
            )


def _of_host_ports(pod: Pod, path: Path) -> Iterator[FieldRefusal]:
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


def _of_settings(pod: Pod, path: Path) -> Iterator[FieldRefusal]:
    if pod.get("hostPID") is True and pod.get("shareProcessNamespace") is True:
        yield FieldRefusal((*path, "shareProcessNamespace"), "must not be true where hostPID is")
    yield from _of_names_of_hosts(pod, path)
    seconds = pod.get("activeDeadlineSeconds")
    if is_number(seconds) and seconds < 1:
        yield FieldRefusal((*path, "activeDeadlineSeconds"), f"must be at least 1, and is {seconds}")
    context = mapping(pod.get("securityContext"))
    yield from _of_seccomp(context, (*path, "securityContext"))
    names: set[str] = set()
    for place, one in numbered(context.get("sysctls")):
        name = str(one.get("name") or "")
        where = (*path, "securityContext", "sysctls", place, "name")
        if len(name) > LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            yield FieldRefusal(where, f"must be the name of a kernel parameter, and is {quoted(name)}")
        elif name in names:
            yield FieldRefusal(where, f"stands there twice: {quoted(name)}")
        names.add(name)


def _of_names_of_hosts(pod: Pod, path: Path) -> Iterator[FieldRefusal]:
    servers, searches = at(pod, "dnsConfig", "nameservers") or [], at(pod, "dnsConfig", "searches") or []
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


def _of_scheduling(pod: Pod, path: Path) -> Iterator[FieldRefusal]:
    yield from metadata.of_labels(pod.get("nodeSelector"), (*path, "nodeSelector"))
    for place, one in numbered(pod.get("tolerations")):
        yield from _of_toleration(one, (*path, "tolerations", place))
    yield from _of_affinity(mapping(pod.get("affinity")), (*path, "affinity"))
    seen = set()
    for place, one in numbered(pod.get("topologySpreadConstraints")):
        where = (*path, "topologySpreadConstraints", place)
        yield from metadata.of_selector(one.get("labelSelector"), (*where, "labelSelector"))
        if one.get("minDomains") is not None and one.get("whenUnsatisfiable") != "DoNotSchedule":
            yield FieldRefusal((*where, "minDomains"), "must be set only where whenUnsatisfiable is DoNotSchedule")
        if one.get("matchLabelKeys") and one.get("labelSelector") is None:
            yield FieldRefusal((*where, "matchLabelKeys"), "must not be set without a labelSelector")
        key = (one.get("topologyKey"), one.get("whenUnsatisfiable"))
        if key in seen:
            yield FieldRefusal(where, "stands there twice")
        seen.add(key)


def _of_toleration(one: Pod, path: Path) -> Iterator[FieldRefusal]:
    operator = one.get("operator") or "Equal"
    if not one.get("key") and operator != "Exists":
        yield FieldRefusal((*path, "operator"), "must be Exists where there is no key")
    if operator == "Exists" and one.get("value"):
        yield FieldRefusal((*path, "value"), "must be empty where the operator is Exists")
    if one.get("tolerationSeconds") is not None and one.get("effect") != "NoExecute":
        yield FieldRefusal((*path, "effect"), "must be NoExecute where tolerationSeconds is set")
    if isinstance(one.get("value"), str) and operator == "Equal" and not forms.is_label_value(one["value"]):
        yield FieldRefusal((*path, "value"), f"must be {forms.FORMS['label-value'][1]}, and is {quoted(one['value'])}")


_ON_NODES = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def _of_affinity(affinity: Pod, path: Path) -> Iterator[FieldRefusal]:
    yield from _of_node_terms(mapping(affinity.get("nodeAffinity")), (*path, "nodeAffinity"))
    for kind in ("podAffinity", "podAntiAffinity"):
        given = mapping(affinity.get(kind))
        for place, one in numbered(given.get(_REQUIRED)):
            yield from _of_pod_term(one, (*path, kind, _REQUIRED, place))
        for place, one in numbered(given.get(_PREFERRED)):
            weight = one.get("weight")
            where = (*path, kind, _PREFERRED, place)
            if not is_number(weight) or not 0 < weight < 101:
                yield FieldRefusal((*where, "weight"), "must be from 1 to 100")
            yield from _of_pod_term(mapping(one.get("podAffinityTerm")), (*where, "podAffinityTerm"))


def _of_node_terms(node: Pod, path: Path) -> Iterator[FieldRefusal]:
    terms = [
        (one, (*path, _REQUIRED, "nodeSelectorTerms", place))
        for place, one in numbered(at(node, _REQUIRED, "nodeSelectorTerms"))
    ]
    terms += [
        (mapping(one.get("preference")), (*path, _PREFERRED, place, "preference"))
        for place, one in numbered(node.get(_PREFERRED))
    ]
    for term, inner in terms:
        for place, one in numbered(term.get("matchExpressions")):
            yield from metadata.of_requirement(one, (*inner, "matchExpressions", place), _ON_NODES)
        for place, one in numbered(term.get("matchFields")):
            if one.get("key") != "metadata.name":
                words = f"must be metadata.name, and is {quoted(one.get('key'))}"
                yield FieldRefusal((*inner, "matchFields", place, "key"), words)


def _of_pod_term(term: Pod, path: Path) -> Iterator[FieldRefusal]:
    if not term.get("topologyKey"):
        yield FieldRefusal((*path, "topologyKey"), "is missing")
    for key in ("labelSelector", "namespaceSelector"):
        yield from metadata.of_selector(term.get(key), (*path, key))
