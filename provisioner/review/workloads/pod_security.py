"""The Pod Security Standards as one table: what a pod must not ask for at the levels baseline and restricted.

The order is that of the catalog (POD-01 to POD-18). Each row names the check as Kubernetes does and answers with the
places that fail. Containers of Windows pods are judged like others, which errs on the side of saying more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from provisioner.json_values import items, mapping, maps
from provisioner.review.workloads.pod_specs import Container, PodSpec

Path = tuple[str | int, ...]
Failures = Iterator[tuple[Path, str]]


class Level(IntEnum):
    """What a namespace may enforce; a pod that fails a row needs a level below the row's."""

    RESTRICTED = 0
    BASELINE = 1
    PRIVILEGED = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class PodSecurityRow:
    """`level` is the highest level that forbids it, `failures` tells the places that fail, each with what is there.

    `since` is the minor version of Kubernetes whose standards have the row, `spares_windows` whether those from 1.25 on
    leave Windows pods out.
    """

    id: str
    check: str
    level: Level
    failures: Callable[[PodSpec], Failures]
    since: int = 0
    spares_windows: bool = False


_BASELINE_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_SAFE_SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    ]
)
# Those that came later than the standards themselves.
_SYSCTLS_SINCE = {
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
WINDOWS_SINCE = 25
_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_RESTRICTED_VOLUMES = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_PROFILES = frozenset({"RuntimeDefault", "Localhost"})
# The level at which a row is asked of pods with their own user namespace, from this minor version on; None: at none.
_OWN_USERS_SINCE = 35
_OF_OWN_USERS: Mapping[str, Level | None] = {"POD-10": Level.RESTRICTED, "POD-15": None, "POD-16": None}


def _host_namespaces(pod: PodSpec) -> Failures:
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.body.get(key) is True:
            yield (*pod.path, key), key


def _host_process(pod: PodSpec) -> Failures:
    for path, of, security in _securities(pod):
        if mapping(security.get("windowsOptions")).get("hostProcess") is True:
            yield (*path, "windowsOptions", "hostProcess"), f"{of}hostProcess"


def _privileged(pod: PodSpec) -> Failures:
    for container in pod.containers():
        if container.security.get("privileged") is True:
            yield _in(container, "privileged"), container.name


def _capabilities_baseline(pod: PodSpec) -> Failures:
    for container in pod.containers():
        for added in added_capabilities(container):
            if added not in _BASELINE_CAPABILITIES:
                yield _in(container, "capabilities", "add"), f"{container.name} {added}"


def _host_path(pod: PodSpec) -> Failures:
    for index, volume in enumerate(maps(pod.body.get("volumes"))):
        if "hostPath" in volume:
            where = mapping(volume.get("hostPath")).get("path")
            yield (*pod.path, "volumes", index, "hostPath"), str(where)


def _host_ports(pod: PodSpec) -> Failures:
    for container in pod.containers():
        for index, port in enumerate(maps(container.body.get("ports"))):
            if port.get("hostPort"):
                yield (*container.path, "ports", index, "hostPort"), f"{container.name} {port['hostPort']}"


def _host_probes(pod: PodSpec) -> Failures:
    for container in pod.containers():
        hooks = mapping(container.body.get("lifecycle"))
        probes = {key: container.body.get(key) for key in ("livenessProbe", "readinessProbe", "startupProbe")}
        probes |= {f"lifecycle.{key}": hooks.get(key) for key in ("postStart", "preStop")}
        for key, probe in probes.items():
            for how in ("httpGet", "tcpSocket"):
                host = str(mapping(mapping(probe).get(how)).get("host") or "")
                if host:
                    yield (*container.path, *key.split("."), how, "host"), f"{container.name} {host}"


def _apparmor(pod: PodSpec) -> Failures:
    for path, of, security in _securities(pod):
        profile = mapping(security.get("appArmorProfile")).get("type", "RuntimeDefault")
        if profile not in _PROFILES:
            yield (*path, "appArmorProfile", "type"), f"{of}{profile}"
    for key, value in sorted(pod.annotations.items()):
        is_profile = str(key).startswith(APPARMOR_ANNOTATION)
        if is_profile and value not in {"", "runtime/default"} and not str(value).startswith("localhost/"):
            of = str(key).removeprefix(APPARMOR_ANNOTATION)
            yield (*pod.path[:-1], "metadata", "annotations", str(key)), f"{of} {value}"


def _selinux(pod: PodSpec) -> Failures:
    for path, of, security in _securities(pod):
        options = mapping(security.get("seLinuxOptions"))
        if str(options.get("type") or "") not in _SELINUX_TYPES or options.get("user") or options.get("role"):
            yield (*path, "seLinuxOptions"), f"{of}{selinux_words(options)}"


def _proc_mount(pod: PodSpec) -> Failures:
    for container in pod.containers():
        if container.security.get("procMount") not in {None, "Default"}:
            yield _in(container, "procMount"), container.name


def _seccomp_baseline(pod: PodSpec) -> Failures:
    for path, of, security in _securities(pod):
        profile = mapping(security.get("seccompProfile")).get("type")
        if profile is not None and profile not in _PROFILES:
            yield (*path, "seccompProfile", "type"), f"{of}{profile}"


def _sysctls(pod: PodSpec) -> Failures:
    for index, entry in enumerate(maps(pod.security.get("sysctls"))):
        if str(entry.get("name")) not in _SAFE_SYSCTLS:
            yield (*pod.path, "securityContext", "sysctls", index), str(entry.get("name"))


def _restricted_volumes(pod: PodSpec) -> Failures:
    for index, volume in enumerate(maps(pod.body.get("volumes"))):
        kinds = {str(key) for key, value in volume.items() if key != "name" and value is not None}
        for kind in sorted(kinds - _RESTRICTED_VOLUMES - {"hostPath"}):
            yield (*pod.path, "volumes", index), f"{volume.get('name')} {kind}"


def _escalation(pod: PodSpec) -> Failures:
    for container in pod.containers():
        if container.security.get("allowPrivilegeEscalation") is not False:
            yield _in(container, "allowPrivilegeEscalation"), container.name


def _run_as_non_root(pod: PodSpec) -> Failures:
    """The pod itself must not say the contrary, whatever its containers say."""
    default = pod.security.get("runAsNonRoot")
    if default is False:
        yield (*pod.path, "securityContext", "runAsNonRoot"), "the pod"
    for container in pod.containers():
        if container.security.get("runAsNonRoot", default) is not True:
            yield _in(container, "runAsNonRoot"), container.name


def _run_as_user(pod: PodSpec) -> Failures:
    for path, of, security in _securities(pod):
        user = security.get("runAsUser")
        if user == 0 and not isinstance(user, bool):
            yield (*path, "runAsUser"), f"{of}0"


def _seccomp_restricted(pod: PodSpec) -> Failures:
    default = mapping(pod.security.get("seccompProfile")).get("type")
    for container in pod.containers():
        own = mapping(container.security.get("seccompProfile")).get("type", default)
        if own is None:
            yield _in(container, "seccompProfile"), container.name


def _capabilities_restricted(pod: PodSpec) -> Failures:
    for container in pod.containers():
        dropped = {str(name) for name in items(mapping(container.security.get("capabilities")).get("drop"))}
        if "ALL" not in dropped:
            yield _in(container, "capabilities", "drop"), container.name
        elif set(added_capabilities(container)) - {"NET_BIND_SERVICE"}:
            yield _in(container, "capabilities", "add"), container.name


def selinux_words(options: Mapping[str, Any]) -> str:
    """What of SELinux options decides what a process may do; the level only keeps pods apart."""
    return ", ".join(f"{key} {options[key]}" for key in ("role", "type", "user") if options.get(key))


def _securities(pod: PodSpec) -> Iterator[tuple[Path, str, Mapping[str, Any]]]:
    """The security contexts of the pod and of its containers, each with its path and its words before a value: the
    container has to be named, or a second one with the same value would be nothing new."""
    yield (*pod.path, "securityContext"), "", pod.security
    for container in pod.containers():
        yield _in(container), f"{container.name} ", container.security


def _in(container: Container, *keys: str) -> Path:
    return (*container.path, "securityContext", *keys)


def added_capabilities(container: Container) -> list[str]:
    return [str(name) for name in items(mapping(container.security.get("capabilities")).get("add"))]


_B, _R = Level.BASELINE, Level.RESTRICTED
TABLE: tuple[PodSecurityRow, ...] = (
    PodSecurityRow("POD-01", "hostNamespaces", _B, _host_namespaces),
    PodSecurityRow("POD-02", "windowsHostProcess", _B, _host_process),
    PodSecurityRow("POD-03", "privileged", _B, _privileged),
    PodSecurityRow("POD-04", "capabilities_baseline", _B, _capabilities_baseline),
    PodSecurityRow("POD-05", "hostPathVolumes", _B, _host_path),
    PodSecurityRow("POD-06", "hostPorts", _B, _host_ports),
    PodSecurityRow("POD-07", "hostProbesAndHostLifecycle", _B, _host_probes, since=34),
    PodSecurityRow("POD-08", "appArmorProfile", _B, _apparmor),
    PodSecurityRow("POD-09", "seLinuxOptions", _B, _selinux),
    PodSecurityRow("POD-10", "procMount", _B, _proc_mount),
    PodSecurityRow("POD-11", "seccompProfile_baseline", _B, _seccomp_baseline, since=19),
    PodSecurityRow("POD-12", "sysctls", _B, _sysctls),
    PodSecurityRow("POD-13", "restrictedVolumes", _R, _restricted_volumes),
    PodSecurityRow("POD-14", "allowPrivilegeEscalation", _R, _escalation, since=8, spares_windows=True),
    PodSecurityRow("POD-15", "runAsNonRoot", _R, _run_as_non_root),
    PodSecurityRow("POD-16", "runAsUser", _R, _run_as_user, since=23),
    PodSecurityRow("POD-17", "seccompProfile_restricted", _R, _seccomp_restricted, since=19, spares_windows=True),
    PodSecurityRow("POD-18", "capabilities_restricted", _R, _capabilities_restricted, since=22, spares_windows=True),
)


def level_needed(pod: PodSpec, minor: int | None = None) -> Level:
    """The strictest level that admits the pod, by the standards of Kubernetes 1.`minor`, by default the newest.

    What a row of restricted finds, baseline forgives.
    """
    rows = [row for row in TABLE if _has_row(row, pod, minor)]
    failed = {_level(row, pod, minor) for row in rows if next(row.failures(pod), None)}
    if minor is not None and any(
        _SYSCTLS_SINCE.get(name, 0) > minor
        for name in {str(sysctl.get("name")) for sysctl in maps(pod.security.get("sysctls"))}
    ):
        failed.add(Level.BASELINE)
    if Level.BASELINE in failed:
        return Level.PRIVILEGED
    return Level.BASELINE if Level.RESTRICTED in failed else Level.RESTRICTED


def host_access(pod: PodSpec) -> tuple[str, ...]:
    """What the pods use of their node, each once: `hostNetwork`, `privileged`, `hostPort 443`, `hostPath /var/log`."""
    rows = (_host_namespaces, _privileged, _host_process)
    words = [str(path[-1]) for failures in rows for path, _ in failures(pod)]
    ports = (port for container in pod.containers() for port in maps(container.body.get("ports")))
    words += [f"hostPort {port['hostPort']}" for port in ports if port.get("hostPort")]
    return tuple(dict.fromkeys([*words, *(f"hostPath {where}" for _, where in _host_path(pod))]))


def _has_row(row: PodSecurityRow, pod: PodSpec, minor: int | None) -> bool:
    if minor is not None and row.since > minor:
        return False
    is_windows = mapping(pod.body.get("os")).get("name") == "windows"
    return not (row.spares_windows and is_windows and (minor is None or minor >= WINDOWS_SINCE))


def _level(row: PodSecurityRow, pod: PodSpec, minor: int | None) -> Level | None:
    """The highest level that forbids what the row finds."""
    has_own_users = pod.body.get("hostUsers") is False and (minor is None or minor >= _OWN_USERS_SINCE)
    return _OF_OWN_USERS.get(row.id, row.level) if has_own_users else row.level
