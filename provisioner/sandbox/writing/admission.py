"""What the API server does to built-in objects on their way in: names, defaults, obvious errors, immutable fields."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any

from provisioner.sandbox.status import invalid
from provisioner.sandbox.types.kinds import SandboxKind
from provisioner.sandbox.writing import validation
from provisioner.sandbox.writing.defaults import DEFAULTS
from provisioner.sandbox.writing.validation import Causes

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
PATH_NAMES = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
LABEL_NAMES = {"Namespace", "Service"}
SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
SECRET_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
WORKLOADS = {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}
# What the server decides by itself in new objects.
_SERVER_SET: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "Service": (
        ("spec", ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")),
        ("status", ("loadBalancer",)),
    ),
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
_CLAIM_MAY = ("resources", "volumeAttributesClassName", "volumeName")
FIXED = "field is immutable"
_FIXED = {"Service": "may not change once set"}


def check_name(kind: SandboxKind, name: str) -> None:
    """Raise Refusal 422 for a name that this kind may not have."""
    shown = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    if not name:
        raise invalid(shown, name, [("metadata.name", "Required value: name or generateName is required")])
    if kind.kind in PATH_NAMES:
        if name in (".", "..") or "/" in name or "%" in name:
            raise invalid(shown, name, [("metadata.name", f"Invalid value: \"{name}\": may not contain '/'")])
        return
    pattern, words = (LABEL, LABEL_WORDS) if kind.kind in LABEL_NAMES else (SUBDOMAIN, SUBDOMAIN_WORDS)
    if not pattern.fullmatch(name) or len(name) > (63 if pattern is LABEL else 253):
        raise invalid(shown, name, [("metadata.name", f'Invalid value: "{name}": {words}')])


def check_metadata(kind: SandboxKind, obj: dict[str, Any], old: dict[str, Any] | None) -> None:
    """Raise Refusal 422 for labels, annotations, finalizers or owners that no object may have."""
    causes = validation.metadata_errors(obj["metadata"], old["metadata"] if old else None)
    if causes:
        shown = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
        raise invalid(shown, str(obj["metadata"].get("name", "")), causes)


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
        shown = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
        raise invalid(shown, str(obj["metadata"].get("name", "")), causes)
    return filled


def _errors(kind: SandboxKind, obj: dict[str, Any], old: dict[str, Any] | None) -> Causes:
    spec = obj.get("spec") or {}
    if kind.kind in ("Role", "ClusterRole"):
        return validation.role_errors(obj)
    if kind.kind in ("RoleBinding", "ClusterRoleBinding"):
        return validation.binding_errors(obj, old)
    if kind.kind in ("ConfigMap", "Secret"):
        return validation.data_errors(obj) + (_secret_errors(obj) if kind.kind == "Secret" else [])
    if kind.kind in WORKLOADS | {"Job"}:
        return _workload_errors(kind, spec)
    if kind.kind == "Pod":
        return _pod_errors(spec, "spec")
    return _service_errors(spec) if kind.kind == "Service" else []


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


def _service_errors(spec: dict[str, Any]) -> Causes:
    found = []
    if spec.get("type") not in SERVICE_TYPES:
        listed = ", ".join(f'"{it}"' for it in SERVICE_TYPES)
        found.append(("spec.type", f'Unsupported value: "{spec.get("type")}": supported values: {listed}'))
    if spec.get("type") != "ExternalName" and not spec.get("ports") and spec.get("clusterIP") != "None":
        found.append(("spec.ports", "Required value"))
    return found


def _secret_errors(obj: dict[str, Any]) -> Causes:
    wanted = SECRET_KEYS.get(str(obj.get("type")), ())
    return [(f"data[{key}]", "Required value") for key in wanted if key not in (obj.get("data") or {})]


def _pod_errors(spec: dict[str, Any], at: str) -> Causes:
    containers = spec.get("containers") or []
    found = [] if containers else [(f"{at}.containers", "Required value")]
    seen: set[str] = set()
    for number, container in enumerate(containers):
        name = str(container.get("name") or "")
        if name and not LABEL.fullmatch(name):
            found.append((f"{at}.containers[{number}].name", f'Invalid value: "{name}": {LABEL_WORDS}'))
        elif name in seen:
            found.append((f"{at}.containers[{number}].name", f'Duplicate value: "{name}"'))
        seen.add(name)
        missing = [field for field in ("name", "image") if not container.get(field)]
        found += [(f"{at}.containers[{number}].{field}", "Required value") for field in missing]
    return found


def _immutable(kind: SandboxKind, obj: dict[str, Any], old: dict[str, Any]) -> Causes:
    found = []
    for path in IMMUTABLE.get(kind.kind, ()):
        before, after = _at(old, path), _at(obj, path)
        if before is not None and before != after:
            field = "spec.clusterIPs[0]" if kind.kind == "Service" else ".".join(path)
            found.append((field, f"Invalid value: {_shown(after)}: {_FIXED.get(kind.kind, FIXED)}"))
    if kind.kind == "StatefulSet" and any(_at(old, ("spec", name)) != _at(obj, ("spec", name)) for name in _SET_FIXED):
        words = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        found.append(("spec", f"Forbidden: {words}"))
    if kind.kind == "PersistentVolumeClaim":
        fixed = [{key: value for key, value in it["spec"].items() if key not in _CLAIM_MAY} for it in (old, obj)]
        if any(fixed[1].get(key) != value for key, value in fixed[0].items()):
            words = "spec is immutable after creation except resources.requests and volumeAttributesClassName"
            found.append(("spec", f"Forbidden: {words} for bound claims"))
    is_fixed = kind.kind in ("ConfigMap", "Secret") and old.get("immutable")
    if is_fixed and any(old.get(key) != obj.get(key) for key in ("data", "binaryData", "immutable", "stringData")):
        found.append(("data", "Forbidden: field is immutable when `immutable` is set"))
    return found


def _at(obj: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = obj
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def service_ip(number: int) -> str:
    """The n-th address of the Service range."""
    return str(ipaddress.IPv4Address("10.0.0.10") + number)
