"""What pods may do to their node, whether their namespace will admit them at all, and security contexts that keep
containers apart less, or forbid what programs did so far."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts
from provisioner.review.rules.messages import VARIANT
from provisioner.review.workloads.mounts import mounts_of
from provisioner.review.workloads.pod_security import (
    APPARMOR_ANNOTATION,
    TABLE,
    Level,
    PodSecurityRow,
    added_capabilities,
    level_needed,
    selinux_words,
)
from provisioner.review.workloads.pod_specs import CONTAINER_LISTS, Container, PodSpec, pod_specs, runs_pods
from provisioner.review.workloads.workload_changes import PodChange, of_containers, pod_changes, sides
from provisioner.values import Content, Finding, GroupKind, JsonObject, ObjectRef, Plan, Section, Severity

_ADDS = ReviewRule("POD-04", Section.PODS, Severity.NOTABLE)
_REJECTED = ReviewRule("POD-20", Section.PODS, Severity.BREAKING)
_WORSE = ReviewRule("POD-21", Section.PODS, Severity.DANGEROUS)
_LOOSENED = ReviewRule("POD-22", Section.PODS, Severity.DANGEROUS)
_OTHER_VERSION = ReviewRule("POD-22", Section.PODS, Severity.NOTABLE)
_NO_LEVEL = ReviewRule("POD-22", Section.PODS, Severity.BREAKING)
_NODE_FOLDER = ReviewRule("POD-23", Section.PODS, Severity.CRITICAL)
_VOLUME_ON_NODE = ReviewRule("POD-05", Section.PODS, Severity.DANGEROUS)
_LESS_APART = ReviewRule("POD-38", Section.PODS, Severity.NOTABLE)
_STRICTER = ReviewRule("POD-39", Section.PODS, Severity.NOTABLE)
_HARDLY_STRICTER = ReviewRule("POD-39", Section.PODS, Severity.SAFE)
_CONTRADICTION = ReviewRule("POD-39", Section.PODS, Severity.BREAKING)

_FindLimit = Callable[[PodSpec, Container], object]
_NAMESPACE, _PERSISTENT_VOLUME = GroupKind("", "Namespace"), GroupKind("", "PersistentVolume")
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
_READ_ONLY = "readOnlyRootFilesystem"
# Few programs of images use sudo or setuid.
_NO_ESCALATION = "no-escalation"
# Rows of Pod Security whose failures that go are told here; of the others commands, probes and mounts tell.
_GIVEN_UP = frozenset({"POD-01", "POD-02", "POD-03", "POD-06", "POD-08", "POD-09", "POD-10", "POD-11", "POD-12"})
# Kinds of volumes that stay read-only whatever their mount says.
_NEVER_WRITABLE = frozenset({"configMap", "secret", "projected", "downwardAPI", "image"})


def judge_pod_security(state: StateFacts) -> Iterator[Finding]:
    """Find what fails the checks of Pod Security, and folders of the node by which pods own it."""
    for pod in pod_specs(state.objects):
        for row in TABLE:
            failures = list(row.failures(pod))
            if not failures:
                continue
            places = sorted({what for _, what in failures})
            severity = _weigh_row(row, pod, places)
            # The same folder that pods may now write to is another finding.
            key = [*places, "writable"] if row.id == "POD-05" and severity is Severity.CRITICAL else places
            yield ReviewRule(row.id, Section.PODS, severity).finding(
                "fails-check",
                pod.ref,
                where=failures[0][0],
                key=key,
                check=row.check,
                level=row.level.word,
                places=[list(path) for path, _ in failures],
                items=places,
            )
        for index, volume in enumerate(maps(pod.body.get("volumes"))):
            folder = _find_folder(volume.get("hostPath"))
            if _holds_credentials(folder):
                where = (*pod.path, "volumes", index, "hostPath", "path")
                yield _NODE_FOLDER.finding("mounts", pod.ref, where=where, key=folder, path=folder)
    # A folder of a node that pods reach by a claim: Pod Security looks at their own volumes only.
    for ref, obj in state.named:
        for kind in ("hostPath", "local") if ref.group_kind == _PERSISTENT_VOLUME else ():
            if path := _find_folder(value_at(obj, "spec", kind)):
                rule = _NODE_FOLDER if _holds_credentials(path) else _VOLUME_ON_NODE
                yield rule.finding("persistent-volume", ref, where=("spec", kind, "path"), key=path, path=path)


def _weigh_row(row: PodSecurityRow, pod: PodSpec, places: list[str]) -> Severity:
    if row.level is Level.RESTRICTED:
        return Severity.NOTABLE
    is_critical = row.id in _CRITICAL_ROWS or (row.id == "POD-01" and "hostPID" in places)
    if row.id == "POD-04":
        # Runtimes take a capability in any case, some with its prefix.
        words = (place.rsplit(maxsplit=1)[-1].upper().removeprefix("CAP_") for place in places)
        is_critical = any(word in _CRITICAL_CAPABILITIES for word in words)
    if row.id == "POD-05":
        # A folder of the node is mounted without `readOnly`.
        of_node = {volume.get("name") for volume in maps(pod.body.get("volumes")) if "hostPath" in volume}
        mounts = [mount for container in pod.containers() for mount in maps(container.body.get("volumeMounts"))]
        is_critical = any(mount.get("name") in of_node and mount.get("readOnly") is not True for mount in mounts)
    return Severity.CRITICAL if is_critical else Severity.DANGEROUS


def _find_folder(source: object) -> str:
    """Return the folder of the node that a volume is, as its kernel reads the path; "" where it names none."""
    raw = str(mapping(source).get("path") or "")
    return posixpath.normpath("/" + raw.lstrip("/")) if raw else ""


def _holds_credentials(path: str) -> bool:
    is_folder = any(path == folder or path.startswith(f"{folder}/") for folder in _NODE_FOLDERS)
    return bool(path) and (path in _WHOLE_FOLDERS or is_folder or path.endswith(_NODE_SOCKETS))


def compare_pod_security(facts: Facts) -> Iterator[Finding]:
    """Find pods that need a lower level than before or than their namespace enforces, and namespaces that change it."""
    before = {pod.ref.identity: level_needed(pod) for pod in pod_specs(facts.previous_state().objects)}
    live = {ref[3]: obj for ref, obj in facts.live.items() if ref[1] == _NAMESPACE.kind and obj is not None}
    now = _find_namespaces(facts.state())
    for pod in pod_specs(facts.state().objects):
        needed, old = level_needed(pod), before.get(pod.ref.identity)
        if old is not None and needed > old:
            yield _WORSE.finding("needs-more", pod.ref, key=needed.word, before=old.word, after=needed.word)
        # What the namespace will enforce, as the bundle sets it, else as it is.
        namespace = now.get(pod.ref.namespace) or live.get(pod.ref.namespace)
        enforced = _find_level(namespace) if namespace is not None else None
        if namespace is None or enforced is None:
            continue
        # Never a newer version of the standards than the server, whose are the default.
        versions = (_find_labels(namespace).get(_ENFORCE_VERSION), facts.around.version)
        matches = (_MINOR.match(str(version)) for version in versions)
        minor = min((int(match.group(1)) for match in matches if match), default=None)
        needed = level_needed(pod, minor)
        if needed > enforced:
            params: dict[str, Any] = {"needs": needed.word, "enforced": enforced.word}
            params["version"] = f"v1.{minor}" if minor is not None else "latest"
            yield _REJECTED.finding("not-admitted", pod.ref, key=needed.word, namespace=pod.ref.namespace, **params)
    known = _find_namespaces(facts.previous_state()) | live
    actions = facts.plan.actions
    unseen = {planned.ref.name for planned in actions if planned.ref.group_kind == _NAMESPACE and planned.after is None}
    for ref, obj in facts.state().named:
        if ref.group_kind == _NAMESPACE:
            yield from _compare_namespace(ref, known.get(ref.name), obj, is_unseen=ref.name in unseen)


def _find_namespaces(state: StateFacts) -> dict[str, JsonObject]:
    return {ref.name: obj for ref, obj in state.named if ref.group_kind == _NAMESPACE}


def _compare_namespace(
    ref: ObjectRef, old: JsonObject | None, obj: JsonObject, *, is_unseen: bool
) -> Iterator[Finding]:
    """Find what a bundle says itself of what its namespace lets through.

    Without a label the cluster's default holds, which as a rule admits everything.
    """
    level, before = _find_level(obj), _find_level(old or {})
    word, where = _find_labels(obj).get(_ENFORCE), ("metadata", "labels", _ENFORCE)
    if level is None:
        is_looser = before is not None and before is not Level.PRIVILEGED
    else:
        is_looser = level > before if before is not None else level is Level.PRIVILEGED
    was, shall = (side.word if side is not None else None for side in (before, level))
    params = {"namespace": ref.name}
    if word is not None and level is None:
        yield _NO_LEVEL.finding("no-level", ref, where=where, key=str(word), level=str(word))
    elif is_looser and not (level is None and is_unseen):  # others may set the label
        variant = "label-removed" if level is None else "loosened" if before is not None else "label-added"
        params |= {"before": was or "", "after": shall or ""}
        yield _LOOSENED.finding(variant, ref, where=where, key=shall or "", **params)
    elif before is not level and old is not None and not is_unseen:
        yield _OTHER_VERSION.finding("tightened", ref, where=where, key=[was, shall], before=was, after=shall, **params)
    if old is not None and before is not None and level is not None and not is_unseen:
        # Older standards forbid less, newer ones more: both are said, as is a version that is none.
        versions = (_find_labels(side).get(_ENFORCE_VERSION) for side in (old, obj))
        old_version, version = (str(found) if found is not None else "latest" for found in versions)
        if old_version != version:
            where, key = ("metadata", "labels", _ENFORCE_VERSION), [old_version, version]
            yield _OTHER_VERSION.finding("other-version", ref, where=where, key=key, before=old_version, after=version)


def _find_labels(obj: JsonObject) -> Mapping[str, Any]:
    return mapping(value_at(obj, "metadata", "labels"))


def _find_level(namespace: JsonObject) -> Level | None:
    word = _find_labels(namespace).get(_ENFORCE)
    return _LEVELS.get(word) if isinstance(word, str) else None


def want_namespaces(content: Content, _: Plan) -> list[ObjectRef]:
    """Want the namespaces in which the bundle's pods shall run."""
    refs = [manifest.ref for manifest in content.manifests]
    names = {ref.namespace for ref in refs if runs_pods(ref.group_kind) and ref.namespace}
    names |= {ref.name for ref in refs if ref.group_kind == _NAMESPACE}
    return [ObjectRef("", "v1", "Namespace", "", name) for name in sorted(names)]


def judge_isolation(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        if pod.body.get("shareProcessNamespace") is True:
            yield _LESS_APART.finding("shared-processes", pod.ref, where=(*pod.path, "shareProcessNamespace"))


def compare_isolation(facts: Facts) -> Iterator[Finding]:
    """Find what keeps containers apart no longer, from each other and from their node.

    Files of the image become writable, capabilities are kept or added, a runtime goes, or processes run as another user
    or by another profile.
    """
    for change in pod_changes(facts.plan):
        writable, kept = [], {}
        for old, new in change.kept():
            if old.security.get(_READ_ONLY) is True and new.security.get(_READ_ONLY) is not True:
                writable.append(new.name)
            # Where ALL is no longer dropped, POD-18 says so.
            if (given := sorted(_find_dropped(old) - _find_dropped(new))) and "ALL" not in given:
                kept[new.name] = given
        if writable:
            yield _LESS_APART.finding("writable", change.ref, key=["writable", *writable], containers=writable)
        if kept:
            capabilities = sorted({name for given in kept.values() for name in given})
            params: dict[str, Any] = {"containers": [*kept], "capabilities": capabilities}
            yield _LESS_APART.finding("capabilities", change.ref, key=["capabilities", kept], **params)
        was, shall = (str(pod.body.get("runtimeClassName") or "") for pod in (change.before, change.after))
        if was and was != shall:
            where, key = (*change.after.path, "runtimeClassName"), [was, shall] if shall else was
            yield _LESS_APART.finding(
                "other-runtime", change.ref, where=where, key=key, before=was, after=shall or None
            )
        for rule, find_limit in _LIMITS:
            yield from _compare_limits(change, rule, find_limit)
        were, are = _find_failures(change, _ADDS)
        gained = []
        for old, new in change.kept():
            names = sorted(set(added_capabilities(new)) - set(added_capabilities(old)))
            if added := [name for name in names if f"{new.name} {name}" not in are - were]:
                gained.append({"container": new.name, "capabilities": added})
        if gained:
            yield _ADDS.finding("adds", change.ref, key=["adds", gained], changes=gained)


def _compare_limits(change: PodChange, rule: ReviewRule, find_limit: _FindLimit) -> Iterator[Finding]:
    """Find containers that run as another user or by another profile than before.

    Where Pod Security speaks of the one or the other, its own finding does. What it forbids a container may now have
    from its pod, which had it before.
    """
    were, are = _find_failures(change, rule)
    # Of the others POD-39 says what they give up.
    told = are - were if rule.id == "POD-16" else are ^ were
    found = []
    for old, new in change.kept():
        before, after = find_limit(change.before, old), find_limit(change.after, new)
        names = {f"{of}{limit}" for of in ("", f"{new.name} ") for limit in (before, after)}
        if before != after and names.isdisjoint(told):
            found.append({"container": new.name, **sides(before, after)})
    if found:
        is_forbidden = any(str(other.get("after")) in are for other in found)
        milder = ReviewRule(rule.id, rule.section, Severity.NOTABLE)
        yield (rule if is_forbidden else milder).finding("other", change.ref, key=found, changes=found)


def _find_failures(change: PodChange, rule: ReviewRule) -> tuple[set[str], set[str]]:
    """Return what Pod Security says by this rule of the pods before and after."""
    failures = next(row.failures for row in TABLE if row.id == rule.id)
    return {what for _, what in failures(change.before)}, {what for _, what in failures(change.after)}


def _find_apparmor(pod: PodSpec, container: Container) -> object:
    own, default = (value_at(side, "appArmorProfile", "type") for side in (container.security, pod.security))
    return own or pod.annotations.get(f"{APPARMOR_ANNOTATION}{container.name}") or default or None


def _find_selinux(pod: PodSpec, container: Container) -> object:
    options = mapping(container.security.get("seLinuxOptions") or pod.security.get("seLinuxOptions"))
    return selinux_words(options) or None


def _find_seccomp(pod: PodSpec, container: Container) -> object:
    own, default = (value_at(side, "seccompProfile", "type") for side in (container.security, pod.security))
    return own or default or None


def _find_user(pod: PodSpec, container: Container) -> object:
    own = container.security.get("runAsUser")
    return own if own is not None else pod.security.get("runAsUser")


_LIMITS = (
    (ReviewRule("POD-08", Section.PODS, Severity.DANGEROUS), _find_apparmor),
    (ReviewRule("POD-09", Section.PODS, Severity.DANGEROUS), _find_selinux),
    (ReviewRule("POD-11", Section.PODS, Severity.DANGEROUS), _find_seccomp),
    (ReviewRule("POD-16", Section.PODS, Severity.NOTABLE), _find_user),
)


def _find_dropped(container: Container) -> set[str]:
    """Return the capabilities that it drops, as they are written, and nothing beside ALL."""
    dropped = {str(name).upper() for name in items(value_at(container.security, "capabilities", "drop"))}
    return {"ALL"} if "ALL" in dropped else dropped


def judge_hardening(state: StateFacts) -> Iterator[Finding]:
    """Find containers that must not run as root, and are told to."""
    for pod in pod_specs(state.objects):
        containers = [
            container.name
            for container in pod.containers()
            if _must_not_be_root(pod, container) and _find_user(pod, container) == 0
        ]
        if containers:
            yield _CONTRADICTION.finding("root", pod.ref, where=pod.path, key=containers, containers=containers)


def compare_hardening(facts: Facts) -> Iterator[Finding]:
    """Find security contexts that become stricter: what they forbid now can stop a program that did it so far."""
    for change in pod_changes(facts.plan):
        if changes := _find_stricter(change):
            is_hard = any(found[VARIANT] != _NO_ESCALATION for found in changes)
            yield (_STRICTER if is_hard else _HARDLY_STRICTER).finding(
                "stricter", change.ref, key=changes, changes=changes
            )


def _find_stricter(change: PodChange) -> list[dict[str, Any]]:
    """Return what the containers that stay must not do any more, as POD-39 names it."""
    read_only: dict[tuple[str, ...], list[str]] = {}
    closed: dict[tuple[str, ...], list[str]] = {}
    lost: dict[tuple[str, ...], list[str]] = {}
    unsure, confined = [], []
    for old, new in change.kept():
        writable = _find_writable(change.after, new)
        mounted = {mount.path for mount in mounts_of(change.after, new)}
        if shut := (mounted - set(writable)) & set(_find_writable(change.before, old)):
            closed.setdefault(tuple(sorted(shut)), []).append(new.name)
        if new.security.get(_READ_ONLY) is True and old.security.get(_READ_ONLY) is not True:
            read_only.setdefault(tuple(writable), []).append(new.name)
        # Capabilities that were added and are not now, or are dropped now and were not; ALL is all of them.
        before, after = _find_capabilities(old, "drop"), _find_capabilities(new, "drop")
        gone = _find_capabilities(old, "add") - _find_capabilities(new, "add")
        gone |= set() if "ALL" in before else after - before
        if gone:
            lost.setdefault(tuple(sorted(gone)), []).append(new.name)
        if _is_unsure(change.after, new) and not _is_unsure(change.before, old):
            unsure.append(new.name)
        escalates, escalated = (side.security.get("allowPrivilegeEscalation") is not False for side in (new, old))
        if escalated and not escalates:
            confined.append(new.name)
    found: list[dict[str, Any]] = []
    for variant, mounts in (("read-only", read_only), ("read-only-mounts", closed)):
        found += [{VARIANT: variant, "containers": names, "paths": list(paths)} for paths, names in mounts.items()]
    found += [{VARIANT: "non-root", "containers": unsure}] if unsure else []
    for capabilities, names in lost.items():
        found.append({VARIANT: "capabilities", "containers": names, "capabilities": list(capabilities)})
    for row in TABLE:
        were, are = ({what for _, what in row.failures(pod)} for pod in (change.before, change.after))
        if row.id in _GIVEN_UP and were - are:
            found.append({VARIANT: "given-up", "check": row.check, "items": sorted(were - are)})
    return found + ([{VARIANT: _NO_ESCALATION, "containers": confined}] if confined else [])


def _find_capabilities(container: Container, field: str) -> set[str]:
    """Return capabilities without their prefix, and nothing beside ALL."""
    listed = mapping(container.security.get("capabilities"))
    found = {str(name).upper().removeprefix("CAP_") for name in items(listed.get(field))}
    return {"ALL"} if "ALL" in found else found


def _find_writable(pod: PodSpec, container: Container) -> list[str]:
    """Return where volumes stand that the container may write to."""
    mounts = (mount for mount in mounts_of(pod, container) if mount.kind not in _NEVER_WRITABLE)
    return sorted(mount.path for mount in mounts if "read-only" not in mount.how)


def _is_unsure(pod: PodSpec, container: Container) -> bool:
    """Whether only the image says as whom it runs, where it must not be root."""
    return _must_not_be_root(pod, container) and _find_user(pod, container) is None


def _must_not_be_root(pod: PodSpec, container: Container) -> bool:
    own = container.security.get("runAsNonRoot")
    return (pod.security.get("runAsNonRoot") if own is None else own) is True


_EACH = tuple(f"{{pod}}.{name}.*" for name in CONTAINER_LISTS)
_SECURITIES = ("{pod}.securityContext", *(f"{container}.securityContext" for container in _EACH))
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")


def _of_securities(rule: str, *fields: str) -> Claim:
    """Return the claim of a rule to fields of the security contexts of pods and of containers."""
    return Claim(rule, PODS, tuple(f"{context}.{field}" for context in _SECURITIES for field in fields))


_POD_CLAIMS = (
    Claim("POD-01", PODS, ("{pod}.hostNetwork", "{pod}.hostPID", "{pod}.hostIPC")),
    _of_securities("POD-02", "windowsOptions.hostProcess"),
    of_containers("POD-03", "securityContext.privileged"),
    of_containers("POD-04", "securityContext.capabilities.add"),
    Claim("POD-05", PODS, ("{pod}.volumes.*.hostPath.path",)),
    Claim("POD-05", frozenset({_PERSISTENT_VOLUME}), ("spec.hostPath.path", "spec.local.path")),
    of_containers("POD-06", "ports.*.hostPort"),
    of_containers("POD-07", *(f"{probe}.{how}.host" for probe in _PROBES for how in ("httpGet", "tcpSocket"))),
    _of_securities("POD-08", "appArmorProfile.type"),
    Claim("POD-08", PODS, ("{pod-meta}.annotations.[container.apparmor.security.beta.kubernetes.io/*]",)),
    _of_securities("POD-09", "seLinuxOptions.type", "seLinuxOptions.user", "seLinuxOptions.role"),
    of_containers("POD-10", "securityContext.procMount"),
    _of_securities("POD-11", "seccompProfile.type"),
    Claim("POD-12", PODS, ("{pod}.securityContext.sysctls.*.name",)),
    of_containers("POD-14", "securityContext.allowPrivilegeEscalation"),
    _of_securities("POD-15", "runAsNonRoot"),
    _of_securities("POD-16", "runAsUser"),
    of_containers("POD-18", "securityContext.capabilities.drop"),
    Claim(
        "POD-22", frozenset({_NAMESPACE}), (f"metadata.labels.[{_ENFORCE}]", f"metadata.labels.[{_ENFORCE_VERSION}]")
    ),
)
_ISOLATION_CLAIMS = (
    Claim("POD-38", PODS, ("{pod}.shareProcessNamespace",), is_of_new=True),
    Claim("POD-38", PODS, ("{pod}.runtimeClassName",)),
    of_containers("POD-38", f"securityContext.{_READ_ONLY}"),
)
PODS_CHECK = Check(
    "pods", claims=_POD_CLAIMS, changes=compare_pod_security, standing=judge_pod_security, wants=want_namespaces
)
ISOLATION_CHECK = Check("isolation", changes=compare_isolation, standing=judge_isolation, claims=_ISOLATION_CLAIMS)
HARDENING_CHECK = Check("hardening", changes=compare_hardening, standing=judge_hardening)
