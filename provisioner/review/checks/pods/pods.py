"""What pods may do to their node, and whether their namespace will admit them at all."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, mapping, maps
from provisioner.review.workloads.pod_security import TABLE, Level, PodSecurityRow, level_needed
from provisioner.review.workloads.pod_specs import CONTAINER_LISTS, PodSpec, pod_specs, runs_pods
from provisioner.values import (
    Content,
    Finding,
    GroupKind,
    JsonObject,
    ObjectRef,
    Plan,
    Section,
    Severity,
)

_REJECTED = ReviewRule("POD-20", Section.PODS, Severity.BREAKING)
_WORSE = ReviewRule("POD-21", Section.PODS, Severity.DANGEROUS)
_LOOSENED = ReviewRule("POD-22", Section.PODS, Severity.DANGEROUS)
_OTHER_VERSION = ReviewRule("POD-22", Section.PODS, Severity.NOTABLE)
_NO_LEVEL = ReviewRule("POD-22", Section.PODS, Severity.BREAKING)
_NODE_FOLDER = ReviewRule("POD-23", Section.PODS, Severity.CRITICAL)

_VOLUME_ON_NODE = ReviewRule("POD-05", Section.PODS, Severity.DANGEROUS)

_NAMESPACE = GroupKind("", "Namespace")
_PERSISTENT_VOLUME = GroupKind("", "PersistentVolume")
_ENFORCE = "pod-security.kubernetes.io/enforce"
_ENFORCE_VERSION = "pod-security.kubernetes.io/enforce-version"
_MINOR = re.compile(r"v?1\.(\d{1,9})(?!\d)")
_LEVELS = {level.word: level for level in Level}
_CRITICAL_ROWS = frozenset({"POD-02", "POD-03"})
# Each of them is root on the node by another name: any syscall, modules of the kernel, any file, its memory.
_CRITICAL_CAPABILITIES = frozenset({"ALL", "DAC_READ_SEARCH", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO"})
# Whoever may write there, or talk to what listens there, owns the node.
_NODE_FOLDERS = ("/etc", "/var/lib/kubelet", "/root", "/proc", "/boot")
_WHOLE_FOLDERS = frozenset({"/", "/var", "/run", "/var/run", "/var/lib"})
_NODE_SOCKETS = ("docker.sock", "containerd.sock", "crio.sock")


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        for row in TABLE:
            yield from _of_row(row, pod)
        yield from _of_node_folders(pod)
    for ref, obj in state.named:
        if ref.group_kind == _PERSISTENT_VOLUME:
            yield from _of_persistent_volume(ref, mapping(obj.get("spec")))


def _of_row(row: PodSecurityRow, pod: PodSpec) -> Iterator[Finding]:
    failures = list(row.failures(pod))
    if not failures:
        return
    places = sorted({what for _, what in failures})
    rule = ReviewRule(row.id, Section.PODS, _severity(row, pod, places))
    # The same folder that pods may now write to is another finding.
    key = [*places, "writable"] if row.id == "POD-05" and rule.severity is Severity.CRITICAL else places
    yield rule.finding(
        "fails-check",
        pod.ref,
        where=failures[0][0],
        key=key,
        check=row.check,
        level=row.level.word,
        places=[list(path) for path, _ in failures],
        items=places,
    )


def _severity(row: PodSecurityRow, pod: PodSpec, places: list[str]) -> Severity:
    if row.level is Level.RESTRICTED:
        return Severity.NOTABLE
    is_critical = (
        row.id in _CRITICAL_ROWS
        or (row.id == "POD-01" and "hostPID" in places)
        or (row.id == "POD-04" and any(_capability(what) in _CRITICAL_CAPABILITIES for what in places))
        or (row.id == "POD-05" and _mounts_writably(pod))
    )
    return Severity.CRITICAL if is_critical else Severity.DANGEROUS


def _capability(place: str) -> str:
    """The capability of a place; runtimes take it in any case, some with its prefix."""
    return place.rsplit(maxsplit=1)[-1].upper().removeprefix("CAP_")


def _mounts_writably(pod: PodSpec) -> bool:
    """Whether a folder of the node is mounted without `readOnly`."""
    of_node = {one.get("name") for one in maps(pod.body.get("volumes")) if "hostPath" in one}
    mounts = [mount for container in pod.containers() for mount in maps(container.body.get("volumeMounts"))]
    return any(mount.get("name") in of_node and mount.get("readOnly") is not True for mount in mounts)


def _of_node_folders(pod: PodSpec) -> Iterator[Finding]:
    for index, volume in enumerate(maps(pod.body.get("volumes"))):
        where = _folder(volume.get("hostPath"))
        if _holds_credentials(where):
            at = (*pod.path, "volumes", index, "hostPath", "path")
            yield _NODE_FOLDER.finding("mounts", pod.ref, where=at, key=where, path=where)


def _folder(source: object) -> str:
    """The folder of the node that a volume is, as its kernel reads the path; "" where it names none."""
    raw = str(mapping(source).get("path") or "")
    return posixpath.normpath("/" + raw.lstrip("/")) if raw else ""


def _holds_credentials(where: str) -> bool:
    is_folder = where in _WHOLE_FOLDERS or any(where == one or where.startswith(f"{one}/") for one in _NODE_FOLDERS)
    return bool(where) and (is_folder or where.endswith(_NODE_SOCKETS))


def _of_persistent_volume(ref: ObjectRef, spec: Mapping[str, Any]) -> Iterator[Finding]:
    """A folder of a node that pods reach by a claim: Pod Security looks at their own volumes only."""
    for kind in ("hostPath", "local"):
        if path := _folder(spec.get(kind)):
            rule = _NODE_FOLDER if _holds_credentials(path) else _VOLUME_ON_NODE
            yield rule.finding("persistent-volume", ref, where=("spec", kind, "path"), key=path, path=path)


def _changes(facts: Facts) -> Iterator[Finding]:
    before = {pod.ref.identity: level_needed(pod) for pod in pod_specs(facts.previous_state().objects)}
    enforced = _enforced(facts)
    for pod in pod_specs(facts.state().objects):
        needed = level_needed(pod)
        old = before.get(pod.ref.identity)
        if old is not None and needed > old:
            yield _WORSE.finding("needs-more", pod.ref, key=needed.word, before=old.word, after=needed.word)
        rule = enforced.get(pod.ref.namespace)
        if rule is None:
            continue
        allowed, minor = rule
        needed = level_needed(pod, minor)
        if needed > allowed:
            version = f"v1.{minor}" if minor is not None else "latest"
            params: dict[str, Any] = {"needs": needed.word, "enforced": allowed.word, "version": version}
            yield _REJECTED.finding("not-admitted", pod.ref, key=needed.word, namespace=pod.ref.namespace, **params)
    yield from _of_labels(facts)


def _enforced(facts: Facts) -> dict[str, tuple[Level, int | None]]:
    """The level that each namespace will enforce, as the bundle sets it, else as it is, and by which minor version."""
    found = {ref[3]: obj for ref, obj in facts.live.items() if ref[1] == _NAMESPACE.kind and obj is not None}
    found |= {ObjectRef.of(obj).name: obj for obj in _namespaces(facts.state().objects)}
    levels = {name: (_level(obj), _enforce_version(obj, facts.around.version)) for name, obj in found.items()}
    return {name: (level, minor) for name, (level, minor) in levels.items() if level is not None}


def _enforce_version(namespace: Mapping[str, Any], server: str) -> int | None:
    """The minor version of the standards that are enforced: never newer than the server, whose are the default."""
    asked, own = (_MINOR.match(str(one)) for one in (_labels(namespace).get(_ENFORCE_VERSION), server))
    found = [int(match.group(1)) for match in (asked, own) if match]
    return min(found, default=None)


def _of_labels(facts: Facts) -> Iterator[Finding]:
    """A bundle that says itself what its namespace lets through."""
    live = {ref[3]: obj for ref, obj in facts.live.items() if ref[1] == _NAMESPACE.kind and obj is not None}
    old = {ObjectRef.of(obj).name: obj for obj in _namespaces(facts.previous_state().objects)} | live
    unseen = {one.ref.name for one in facts.plan.actions if one.ref.group_kind == _NAMESPACE and one.after is None}
    for obj in _namespaces(facts.state().objects):
        ref, level, before = ObjectRef.of(obj), _level(obj), _level(old.get(ObjectRef.of(obj).name) or {})
        where = ("metadata", "labels", _ENFORCE)
        word = _labels(obj).get(_ENFORCE)
        if word is not None and level is None:
            yield _NO_LEVEL.finding("no-level", ref, where=where, key=str(word), level=str(word))
        elif _is_looser(before, level) and not (level is None and ref.name in unseen):  # others may set the label
            old_word, new_word = (one.word if one is not None else "" for one in (before, level))
            variant = "label-removed" if level is None else "loosened" if before is not None else "label-added"
            params = {"namespace": ref.name, "before": old_word, "after": new_word}
            yield _LOOSENED.finding(variant, ref, where=where, key=new_word, **params)
        elif before is not level and ref.name in old and ref.name not in unseen:
            words = [one.word if one is not None else None for one in (before, level)]
            told = {"namespace": ref.name, "before": words[0], "after": words[1]}
            yield _OTHER_VERSION.finding("tightened", ref, where=where, key=words, **told)
        if before is not None and level is not None and ref.name not in unseen:
            yield from _of_version(ref, old[ref.name], obj)


def _of_version(ref: ObjectRef, before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    """Older standards forbid less, newer ones more: both are said, as is a version that is none."""
    versions = [_labels(one).get(_ENFORCE_VERSION) for one in (before, after)]
    old, new = (str(one) if one is not None else "latest" for one in versions)
    if old != new:
        where = ("metadata", "labels", _ENFORCE_VERSION)
        yield _OTHER_VERSION.finding("other-version", ref, where=where, key=[old, new], before=old, after=new)


def _labels(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(obj.get("metadata")).get("labels"))


def _is_looser(before: Level | None, after: Level | None) -> bool:
    """Without a label the cluster's default holds, which as a rule admits everything."""
    if after is None:
        return before is not None and before is not Level.PRIVILEGED
    return after > before if before is not None else after is Level.PRIVILEGED


def _namespaces(objects: tuple[JsonObject, ...]) -> list[JsonObject]:
    return [obj for obj in objects if ObjectRef.of(obj).group_kind == _NAMESPACE]


def _level(namespace: Mapping[str, Any]) -> Level | None:
    word = _labels(namespace).get(_ENFORCE)
    return _LEVELS.get(word) if isinstance(word, str) else None


def _wants(content: Content, _: Plan) -> list[ObjectRef]:
    """The namespaces in which the bundle's pods shall run."""
    names = {one.ref.namespace for one in content.manifests if runs_pods(one.ref.group_kind) and one.ref.namespace}
    names |= {one.ref.name for one in content.manifests if one.ref.group_kind == _NAMESPACE}
    return [ObjectRef("", "v1", "Namespace", "", name) for name in sorted(names)]


_EACH = tuple(f"{{pod}}.{name}.*" for name in CONTAINER_LISTS)
_SECURITIES = ("{pod}.securityContext", *(f"{one}.securityContext" for one in _EACH))
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")


def _of_securities(rule: str, *fields: str) -> Claim:
    """Fields of the security contexts of pods and of containers."""
    return Claim(rule, PODS, tuple(f"{one}.{field}" for one in _SECURITIES for field in fields))


def _of_containers(rule: str, *fields: str) -> Claim:
    return Claim(rule, PODS, tuple(f"{one}.{field}" for one in _EACH for field in fields))


_CLAIMS = (
    Claim("POD-01", PODS, ("{pod}.hostNetwork", "{pod}.hostPID", "{pod}.hostIPC")),
    _of_securities("POD-02", "windowsOptions.hostProcess"),
    _of_containers("POD-03", "securityContext.privileged"),
    _of_containers("POD-04", "securityContext.capabilities.add"),
    Claim("POD-05", PODS, ("{pod}.volumes.*.hostPath.path",)),
    Claim("POD-05", frozenset({_PERSISTENT_VOLUME}), ("spec.hostPath.path", "spec.local.path")),
    _of_containers("POD-06", "ports.*.hostPort"),
    _of_containers("POD-07", *(f"{probe}.{how}.host" for probe in _PROBES for how in ("httpGet", "tcpSocket"))),
    _of_securities("POD-08", "appArmorProfile.type"),
    Claim("POD-08", PODS, ("{pod-meta}.annotations.[container.apparmor.security.beta.kubernetes.io/*]",)),
    _of_securities("POD-09", "seLinuxOptions.type", "seLinuxOptions.user", "seLinuxOptions.role"),
    _of_containers("POD-10", "securityContext.procMount"),
    _of_securities("POD-11", "seccompProfile.type"),
    Claim("POD-12", PODS, ("{pod}.securityContext.sysctls.*.name",)),
    _of_containers("POD-14", "securityContext.allowPrivilegeEscalation"),
    _of_securities("POD-15", "runAsNonRoot"),
    _of_securities("POD-16", "runAsUser"),
    _of_containers("POD-18", "securityContext.capabilities.drop"),
    Claim(
        "POD-22",
        frozenset({_NAMESPACE}),
        (f"metadata.labels.[{_ENFORCE}]", f"metadata.labels.[{_ENFORCE_VERSION}]"),
    ),
)

CHECK = Check("pods", claims=_CLAIMS, changes=_changes, standing=_standing, wants=_wants)
