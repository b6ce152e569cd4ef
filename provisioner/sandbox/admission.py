"""What the API server does to objects on their way in: names, defaults, immutable fields, refusals in its words."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any

from provisioner.json_values import value_at
from provisioner.sandbox.calls import invalid
from provisioner.sandbox.defaults import DEFAULTS
from provisioner.sandbox.kinds import SandboxKind
from provisioner.schema.names import (
    DNS_LABEL,
    DNS_LABEL_WORDS,
    LABEL_VALUE,
    LABEL_VALUE_WORDS,
    SUBDOMAIN,
    SUBDOMAIN_WORDS,
)

Causes = list[tuple[str, str]]
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_STANDARD_FINALIZERS = {"kubernetes", "orphan", "foregroundDeletion"}
_NAME_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
MAX_ANNOTATIONS_BYTES = 256 * 1024
MAX_DATA_BYTES = 1024 * 1024


def metadata_errors(meta: dict[str, Any], old: dict[str, Any] | None) -> Causes:
    """Labels, annotations, finalizers and owners; `old` is the metadata as it is stored."""
    found: Causes = []
    for key, value in (meta.get("labels") or {}).items():
        found += _qualified("metadata.labels", key)
        if len(value) > 63:
            found.append(("metadata.labels", f'Invalid value: "{value}": must be no more than 63 bytes'))
        elif not LABEL_VALUE.fullmatch(value):
            found.append(("metadata.labels", f'Invalid value: "{value}": {LABEL_VALUE_WORDS}'))
    annotations = meta.get("annotations") or {}
    for key in annotations:
        found += _qualified("metadata.annotations", key, is_lowered=True)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS_BYTES:
        words = f"Too long: may not be more than {MAX_ANNOTATIONS_BYTES} bytes"
        found.append(("metadata.annotations", words))
    for number, name in enumerate(meta.get("finalizers") or []):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            words = "name is neither a standard finalizer name nor is it fully qualified"
            found.append((f"metadata.finalizers[{number}]", f'Invalid value: "{name}": {words}'))
    known = (old or {}).get("finalizers") or []
    added = [json.dumps(name) for name in meta.get("finalizers") or [] if name not in known]
    if added and old and old.get("deletionTimestamp"):
        words = "no new finalizers can be added if the object is being deleted, found new finalizers"
        found.append(("metadata.finalizers", f"Forbidden: {words} []string{{{', '.join(added)}}}"))
    for owner in meta.get("ownerReferences") or []:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                what = "version " if name == "apiVersion" else ""
                found.append((f"metadata.ownerReferences.{name}", f'Invalid value: "": {what}must not be empty'))
    return found


def _qualified(field: str, key: str, *, is_lowered: bool = False) -> Causes:
    prefix, slash, name = key.rpartition("/")
    found: Causes = []
    if slash and not SUBDOMAIN.fullmatch(prefix.lower() if is_lowered else prefix):
        found.append((field, f'Invalid value: "{key}": prefix part {SUBDOMAIN_WORDS}'))
    if len(name) > 63:
        found.append((field, f'Invalid value: "{key}": name part must be no more than 63 bytes'))
    elif not _NAME.fullmatch(name):
        found.append((field, f'Invalid value: "{key}": {_NAME_WORDS}'))
    return found


def data_errors(obj: dict[str, Any]) -> Causes:
    """The keys and the size of a ConfigMap or a Secret."""
    found: Causes = []
    size = 0
    for field in ("data", "binaryData"):
        for key, value in (obj.get(field) or {}).items():
            size += len(str(value))
            if not _CONFIG_KEY.fullmatch(key):
                found.append((f"{field}[{key}]", f'Invalid value: "{key}": {_KEY_WORDS}'))
    if size > MAX_DATA_BYTES:
        field = "[]" if obj.get("kind") == "ConfigMap" else "data"
        found.append((field, f"Too long: may not be more than {MAX_DATA_BYTES} bytes"))
    return found


def role_errors(obj: dict[str, Any]) -> Causes:
    """The rules of a role."""
    found: Causes = []
    is_namespaced = obj.get("kind") == "Role"
    for number, rule in enumerate(obj.get("rules") or []):
        at = f"rules[{number}]"
        if not rule.get("verbs"):
            found.append((f"{at}.verbs", "Required value: verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if is_namespaced:
                words = "namespaced rules cannot apply to non-resource URLs"
                shown = json.dumps(rule["nonResourceURLs"])
                found.append((f"{at}.nonResourceURLs", f"Invalid value: {shown}: {words}"))
            continue
        if not rule.get("apiGroups"):
            words = "resource rules must supply at least one api group"
            found.append((f"{at}.apiGroups", f"Required value: {words}"))
        if not rule.get("resources"):
            words = "resource rules must supply at least one resource"
            found.append((f"{at}.resources", f"Required value: {words}"))
    return found


def binding_errors(obj: dict[str, Any], old: dict[str, Any] | None) -> Causes:
    """The role and the subjects of a binding."""
    role = obj.get("roleRef") or {}
    found: Causes = []
    if old and old.get("roleRef") != role:
        named = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
        shown = json.dumps({go: role.get(name, "") for go, name in named.items()}, separators=(",", ":"))
        found.append(("roleRef", f"Invalid value: {shown}: cannot change roleRef"))
    return found


PATH_NAMES = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
LABEL_NAMES = {"Namespace", "Service"}
SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
SECRET_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
WORKLOADS = {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}
# What the server decides by itself in new objects.
_SERVER_SET: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "Service": (("spec", ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")), ("status", ("loadBalancer",))),
    "Namespace": (("spec", ("finalizers",)), ("status", ("phase",))),
    "PersistentVolumeClaim": (("status", ("phase",)), ("metadata", ("finalizers",))),
    "Job": (("metadata", ("labels",)), ("spec", ("selector",))),
    "CustomResourceDefinition": (("status", ("conditions", "acceptedNames", "storedVersions")),),
}
# (kind, path): what an update may not change.
IMMUTABLE: dict[str, tuple[tuple[str, ...], ...]] = {
    "Deployment": (("spec", "selector"),),
    "ReplicaSet": (("spec", "selector"),),
    "DaemonSet": (("spec", "selector"),),
    "Job": (("spec", "selector"), ("spec", "template")),
    "Service": (("spec", "clusterIPs"),),
    "StorageClass": (("provisioner",), ("parameters",)),
    "PriorityClass": (("value",),),
    "Secret": (("type",),),
}


_SET_FIXED = ("selector", "serviceName", "volumeClaimTemplates", "podManagementPolicy")
FIXED = "field is immutable"
_FIXED = {"Service": "may not change once set"}


def check_name(kind: SandboxKind, name: str) -> None:
    """Raise Refusal 422 for a name that this kind may not have."""
    if not name:
        raise invalid(kind.full_name, name, [("metadata.name", "Required value: name or generateName is required")])
    if kind.kind in PATH_NAMES:
        if name in (".", "..") or "/" in name or "%" in name:
            words = f"Invalid value: \"{name}\": may not contain '/'"
            raise invalid(kind.full_name, name, [("metadata.name", words)])
        return
    pattern, words = (DNS_LABEL, DNS_LABEL_WORDS) if kind.kind in LABEL_NAMES else (SUBDOMAIN, SUBDOMAIN_WORDS)
    if not pattern.fullmatch(name) or len(name) > (63 if pattern is DNS_LABEL else 253):
        raise invalid(kind.full_name, name, [("metadata.name", f'Invalid value: "{name}": {words}')])


def check_metadata(kind: SandboxKind, obj: dict[str, Any], old: dict[str, Any] | None) -> None:
    """Raise Refusal 422 for labels, annotations, finalizers or owners that no object may have."""
    causes = metadata_errors(obj["metadata"], old["metadata"] if old else None)
    if causes:
        raise invalid(kind.full_name, str(obj["metadata"].get("name", "")), causes)


def without_server_set(
    kind: SandboxKind, obj: dict[str, Any], sent: dict[str, Any], live: dict[str, Any] | None
) -> dict[str, Any]:
    """`obj` as its sender changed it: what only the server decided belongs to no manager."""
    for holder, names in _SERVER_SET.get(kind.kind, ()):
        inside, given = obj.get(holder) or {}, sent.get(holder) or {}
        known = (live or {}).get(holder) or {}
        kept = {key: value for key, value in inside.items() if key not in names or key in given or key in known}
        obj = {**obj, holder: kept} if kept else {key: value for key, value in obj.items() if key != holder}
    return obj


def admitted(
    kind: SandboxKind, obj: dict[str, Any], old: dict[str, Any] | None, free_ip: Callable[[], str]
) -> dict[str, Any]:
    """The object with defaults; raises Refusal 422 for what the API server would refuse."""
    filled = DEFAULTS[kind.kind](obj, old, free_ip) if kind.kind in DEFAULTS else obj
    causes = _errors(kind, filled, old) + (_immutable(kind, filled, old) if old else [])
    if causes:
        raise invalid(kind.full_name, str(obj["metadata"].get("name", "")), causes)
    return filled


def _errors(kind: SandboxKind, obj: dict[str, Any], old: dict[str, Any] | None) -> Causes:
    spec = obj.get("spec") or {}
    if kind.kind in ("Role", "ClusterRole"):
        return role_errors(obj)
    if kind.kind in ("RoleBinding", "ClusterRoleBinding"):
        return binding_errors(obj, old)
    if kind.kind in ("ConfigMap", "Secret"):
        wanted = SECRET_KEYS.get(str(obj.get("type")), ()) if kind.kind == "Secret" else ()
        missing = [key for key in wanted if key not in (obj.get("data") or {})]
        return data_errors(obj) + [(f"data[{key}]", "Required value") for key in missing]
    if kind.kind in WORKLOADS | {"Job"}:
        return _workload_errors(kind, spec)
    if kind.kind == "Pod":
        return _pod_errors(spec, "spec")
    found: Causes = []
    if kind.kind == "Service":
        if spec.get("type") not in SERVICE_TYPES:
            listed = ", ".join(f'"{name}"' for name in SERVICE_TYPES)
            found.append(("spec.type", f'Unsupported value: "{spec.get("type")}": supported values: {listed}'))
        if spec.get("type") != "ExternalName" and not spec.get("ports") and spec.get("clusterIP") != "None":
            found.append(("spec.ports", "Required value"))
    return found


def _workload_errors(kind: SandboxKind, spec: dict[str, Any]) -> Causes:
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    is_unselective = kind.kind in WORKLOADS and not spec.get("selector")
    found: Causes = [("spec.selector", "Required value")] if is_unselective else []
    if is_unselective or any(labels.get(key) != value for key, value in wanted.items()):
        shown = json.dumps(labels, separators=(",", ":")) if labels else "null"
        words = f"Invalid value: {shown}: `selector` does not match template `labels`"
        found.append(("spec.template.metadata.labels", words))
    found += _pod_errors(template.get("spec") or {}, "spec.template.spec")
    if kind.kind == "Job" and (template.get("spec") or {}).get("restartPolicy") in (None, "Always"):
        words = 'Required value: valid values: "OnFailure", "Never"'
        found.append(("spec.template.spec.restartPolicy", words))
    return found


def _pod_errors(spec: dict[str, Any], at: str) -> Causes:
    containers = spec.get("containers") or []
    found = [] if containers else [(f"{at}.containers", "Required value")]
    for number, container in enumerate(containers):
        name = str(container.get("name") or "")
        if name and not DNS_LABEL.fullmatch(name):
            found.append((f"{at}.containers[{number}].name", f'Invalid value: "{name}": {DNS_LABEL_WORDS}'))
        missing = [field for field in ("name", "image") if not container.get(field)]
        found += [(f"{at}.containers[{number}].{field}", "Required value") for field in missing]
    return found


def _immutable(kind: SandboxKind, obj: dict[str, Any], old: dict[str, Any]) -> Causes:
    found = []
    for path in IMMUTABLE.get(kind.kind, ()):
        before, after = value_at(old, *path), value_at(obj, *path)
        if before is not None and before != after:
            field = "spec.clusterIPs[0]" if kind.kind == "Service" else ".".join(path)
            shown = json.dumps(after, separators=(",", ":"))
            found.append((field, f"Invalid value: {shown}: {_FIXED.get(kind.kind, FIXED)}"))
    if kind.kind == "StatefulSet" and any(
        value_at(old, "spec", name) != value_at(obj, "spec", name) for name in _SET_FIXED
    ):
        words = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        found.append(("spec", f"Forbidden: {words}"))
    is_fixed = kind.kind in ("ConfigMap", "Secret") and old.get("immutable")
    if is_fixed and any(old.get(key) != obj.get(key) for key in ("data", "binaryData", "immutable", "stringData")):
        found.append(("data", "Forbidden: field is immutable when `immutable` is set"))
    return found


def service_ip(number: int) -> str:
    """The n-th address of the Service range."""
    return str(ipaddress.IPv4Address("10.0.0.10") + number)
