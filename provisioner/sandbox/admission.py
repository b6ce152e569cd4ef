"""What the API server does to built-in objects on their way in: names, defaults, obvious errors, immutable fields."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Callable
from typing import Any

from provisioner.sandbox.kinds import Kind
from provisioner.sandbox.status import Refusal, invalid

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
# (kind, path): what an update may not change.
IMMUTABLE: dict[str, tuple[tuple[str, ...], ...]] = {
    "Deployment": (("spec", "selector"),),
    "ReplicaSet": (("spec", "selector"),),
    "DaemonSet": (("spec", "selector"),),
    "StatefulSet": (("spec", "selector"), ("spec", "serviceName"), ("spec", "volumeClaimTemplates")),
    "Job": (("spec", "selector"), ("spec", "template")),
    "Service": (("spec", "clusterIP"),),
    "RoleBinding": (("roleRef",),),
    "ClusterRoleBinding": (("roleRef",),),
    "StorageClass": (("provisioner",), ("parameters",)),
    "PriorityClass": (("value",),),
    "Secret": (("type",),),
}


def check_name(kind: Kind, name: str) -> None:
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


def admitted(kind: Kind, obj: dict[str, Any], old: dict[str, Any] | None, free_ip: Callable[[], str]) -> dict[str, Any]:
    """The object with defaults; raises Refusal 422 for what the API server would refuse."""
    filled = _DEFAULTS[kind.kind](obj, old, free_ip) if kind.kind in _DEFAULTS else obj
    causes = _errors(kind, filled) + (_immutable(kind, filled, old) if old else [])
    if causes:
        shown = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
        raise invalid(shown, str(obj["metadata"].get("name", "")), causes)
    return filled


def _errors(kind: Kind, obj: dict[str, Any]) -> list[tuple[str, str]]:
    spec = obj.get("spec") or {}
    found: list[tuple[str, str]] = []
    if kind.kind in WORKLOADS | {"Job"}:
        template = spec.get("template") or {}
        labels = (template.get("metadata") or {}).get("labels") or {}
        wanted = (spec.get("selector") or {}).get("matchLabels") or {}
        if kind.kind in WORKLOADS and not spec.get("selector"):
            found.append(("spec.selector", "Required value"))
        elif any(labels.get(key) != value for key, value in wanted.items()):
            found.append(
                (
                    "spec.template.metadata.labels",
                    f"Invalid value: {labels}: `selector` does not match template `labels`",
                )
            )
        found += _pod_errors(template.get("spec") or {}, "spec.template.spec")
    if kind.kind == "Pod":
        found += _pod_errors(spec, "spec")
    if kind.kind == "Service":
        found += _service_errors(spec)
    if kind.kind == "Secret":
        found += _secret_errors(obj)
    return found


def _service_errors(spec: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    if spec.get("type") not in SERVICE_TYPES:
        listed = ", ".join(f'"{it}"' for it in SERVICE_TYPES)
        found.append(("spec.type", f'Unsupported value: "{spec.get("type")}": supported values: {listed}'))
    if spec.get("type") != "ExternalName" and not spec.get("ports") and spec.get("clusterIP") != "None":
        found.append(("spec.ports", "Required value"))
    return found


def _secret_errors(obj: dict[str, Any]) -> list[tuple[str, str]]:
    wanted = SECRET_KEYS.get(str(obj.get("type")), ())
    return [(f"data[{key}]", "Required value") for key in wanted if key not in (obj.get("data") or {})]


def _pod_errors(spec: dict[str, Any], at: str) -> list[tuple[str, str]]:
    containers = spec.get("containers") or []
    found = [] if containers else [(f"{at}.containers", "Required value")]
    for number, container in enumerate(containers):
        missing = [field for field in ("name", "image") if not container.get(field)]
        found += [(f"{at}.containers[{number}].{field}", "Required value") for field in missing]
    return found


def _immutable(kind: Kind, obj: dict[str, Any], old: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for path in IMMUTABLE.get(kind.kind, ()):
        before, after = _at(old, path), _at(obj, path)
        if before is not None and before != after:
            found.append((".".join(path), f"Invalid value: {_shown(after)}: field is immutable"))
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
    return f'"{value}"' if isinstance(value, str) else str(value)


def _pod_defaults(spec: dict[str, Any]) -> dict[str, Any]:
    containers = [_container_defaults(container) for container in spec.get("containers") or []]
    named = {"serviceAccount": spec["serviceAccountName"]} if spec.get("serviceAccountName") else {}
    return {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        **named,
        **spec,
        **({"containers": containers} if containers else {}),
    }


def _container_defaults(container: dict[str, Any]) -> dict[str, Any]:
    image = str(container.get("image") or "")
    is_fixed = "@" in image or (":" in image.rpartition("/")[2] and not image.endswith(":latest"))
    ports = [{"protocol": "TCP", **port} for port in container.get("ports") or []]
    filled = {
        "imagePullPolicy": "IfNotPresent" if is_fixed else "Always",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **container,
    }
    return {**filled, "ports": ports} if ports else filled


def _template_defaults(obj: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    spec = {**defaults, **(obj.get("spec") or {})}
    template = dict(spec.get("template") or {})
    if template.get("spec"):
        template["spec"] = _pod_defaults(template["spec"])
        spec["template"] = {"metadata": {}, **template}
    return {**obj, "spec": spec}


def _deployment(obj: dict[str, Any], _old: Any, _ip: Any) -> dict[str, Any]:
    filled = _template_defaults(
        obj, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": {}}
    )
    strategy = filled["spec"]["strategy"]
    if strategy.get("type", "RollingUpdate") == "RollingUpdate":
        rolling = {"maxUnavailable": "25%", "maxSurge": "25%", **(strategy.get("rollingUpdate") or {})}
        filled["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return filled


def _stateful_set(obj: dict[str, Any], _old: Any, _ip: Any) -> dict[str, Any]:
    return _template_defaults(
        obj,
        {
            "replicas": 1,
            "podManagementPolicy": "OrderedReady",
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        },
    )


def _daemon_set(obj: dict[str, Any], _old: Any, _ip: Any) -> dict[str, Any]:
    update = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    return _template_defaults(obj, {"revisionHistoryLimit": 10, "updateStrategy": update})


def _replica_set(obj: dict[str, Any], _old: Any, _ip: Any) -> dict[str, Any]:
    return _template_defaults(obj, {"replicas": 1})


def _job(obj: dict[str, Any], old: dict[str, Any] | None, _ip: Any) -> dict[str, Any]:
    filled = _template_defaults(
        obj, {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    )
    uid = str((old or obj)["metadata"].get("uid", ""))
    labels = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": obj["metadata"]["name"]}
    spec = filled["spec"]
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    template = spec.get("template") or {}
    meta = template.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), **labels}
    spec["template"] = {**template, "metadata": {**meta, "labels": labels}}
    if not filled["metadata"].get("labels"):  # as the real one: a Job without labels has its pods'
        filled["metadata"] = {**filled["metadata"], "labels": labels}
    return filled


def _pod(obj: dict[str, Any], _old: Any, _ip: Any) -> dict[str, Any]:
    spec = _pod_defaults(obj.get("spec") or {})
    return {**obj, "spec": {"serviceAccountName": "default", "serviceAccount": "default", **spec}}


def _service(obj: dict[str, Any], old: dict[str, Any] | None, free_ip: Callable[[], str]) -> dict[str, Any]:
    given = obj.get("spec") or {}
    ports = [{"protocol": "TCP", "targetPort": port.get("port"), **port} for port in given.get("ports") or []]
    spec = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", **given}
    if ports:
        spec["ports"] = ports
    if spec["type"] != "ExternalName":
        spec.setdefault("clusterIP", ((old or {}).get("spec") or {}).get("clusterIP") or free_ip())
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    return {**obj, "spec": spec}


def _namespace(obj: dict[str, Any], _old: Any, _ip: Any) -> dict[str, Any]:
    meta = obj["metadata"]
    labels = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta.get("name", "")}
    spec = {"finalizers": ["kubernetes"], **(obj.get("spec") or {})}
    return {
        **obj,
        "metadata": {**meta, "labels": labels},
        "spec": spec,
        "status": obj.get("status") or {"phase": "Active"},
    }


def _secret(obj: dict[str, Any], old: dict[str, Any] | None, _ip: Any) -> dict[str, Any]:
    """`stringData` is written into `data` and gone; what is no base64 cannot be read at all."""
    data = dict(obj.get("data") or {})
    for name, value in data.items():
        if not _is_base64(value):
            raise Refusal(500, "", f"illegal base64 data in data.{name}")
    data |= {
        name: base64.b64encode(str(value).encode()).decode() for name, value in (obj.get("stringData") or {}).items()
    }
    rest = {key: value for key, value in obj.items() if key not in ("data", "stringData")}
    return {"type": (old or {}).get("type", "Opaque"), **rest, **({"data": data} if data else {})}


def _is_base64(value: Any) -> bool:
    try:
        base64.b64decode(str(value), validate=True)
    except ValueError:
        return False
    return isinstance(value, str)


def _role_binding(obj: dict[str, Any], _old: Any, _ip: Any) -> dict[str, Any]:
    role = {"apiGroup": "rbac.authorization.k8s.io", **(obj.get("roleRef") or {})}
    subjects = [_subject(subject) for subject in obj.get("subjects") or []]
    return {**obj, "roleRef": role, **({"subjects": subjects} if subjects else {})}


def _subject(subject: dict[str, Any]) -> dict[str, Any]:
    if subject.get("kind") == "ServiceAccount":
        return subject
    return {"apiGroup": "rbac.authorization.k8s.io", **subject}


_DEFAULTS: dict[str, Callable[..., dict[str, Any]]] = {
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "ReplicaSet": _replica_set,
    "Job": _job,
    "Pod": _pod,
    "Service": _service,
    "Namespace": _namespace,
    "Secret": _secret,
    "RoleBinding": _role_binding,
    "ClusterRoleBinding": _role_binding,
}


def service_ip(number: int) -> str:
    """The n-th address of the Service range."""
    return str(ipaddress.IPv4Address("10.0.0.10") + number)
