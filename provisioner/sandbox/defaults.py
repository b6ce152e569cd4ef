"""What the API server fills in: the defaults of what people deploy most, and what it decides in new objects."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.sandbox.calls import StatusRefusal

Object = dict[str, Any]


def _pod_defaults(spec: dict[str, Any]) -> dict[str, Any]:
    containers = [_container_defaults(container) for container in spec.get("containers") or []]
    named = {"serviceAccount": spec["serviceAccountName"]} if spec.get("serviceAccountName") else {}
    volumes = []
    for volume in spec.get("volumes") or []:
        modes = {name: {"defaultMode": 420, **volume[name]} for name in _FILE_MODES & set(volume)}
        host = {"hostPath": {"type": "", **volume["hostPath"]}} if "hostPath" in volume else {}
        volumes.append({**volume, **modes, **host, **({"emptyDir": {}} if set(volume) == {"name"} else {})})
    return {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        **named,
        **spec,
        **({"containers": containers} if containers else {}),
        **({"volumes": volumes} if volumes else {}),
        **(
            {"initContainers": [_container_defaults(init_container) for init_container in spec["initContainers"]]}
            if spec.get("initContainers")
            else {}
        ),
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
    for name in _PROBES:
        if filled.get(name):
            probe = filled[name] = {**_PROBE, **filled[name]}
            if "httpGet" in probe:
                probe["httpGet"] = {"path": "/", "scheme": "HTTP", **probe["httpGet"]}
    for number, entry in enumerate(filled["env"] if filled.get("env") else []):
        if "fieldRef" in (source := entry.get("valueFrom") or {}):
            reference = {**source, "fieldRef": {"apiVersion": "v1", **source["fieldRef"]}}
            filled["env"] = [*filled["env"][:number], {**entry, "valueFrom": reference}, *filled["env"][number + 1 :]]
    return {**filled, "ports": ports} if ports else filled


def _workload(defaults: Object, obj: Object, *_old_and_ip: object) -> Object:
    spec = {**defaults, **(obj.get("spec") or {})}
    template = dict(spec.get("template") or {})
    if template.get("spec"):
        template["spec"] = _pod_defaults(template["spec"])
        spec["template"] = {"metadata": {}, **template}
    return {**obj, "spec": spec}


def _deployment(obj: dict[str, Any], _old: Any, _ip: Any) -> dict[str, Any]:
    filled = _workload({"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": {}}, obj)
    strategy = filled["spec"]["strategy"]
    if strategy.get("type", "RollingUpdate") == "RollingUpdate":
        rolling = {"maxUnavailable": "25%", "maxSurge": "25%", **(strategy.get("rollingUpdate") or {})}
        filled["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return filled


def _job(obj: dict[str, Any], old: dict[str, Any] | None, _ip: Any) -> dict[str, Any]:
    filled = _workload(
        {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "manualSelector": False,
            "podReplacementPolicy": "TerminatingOrFailed",
        },
        obj,
    )
    uid = str((old or obj)["metadata"].get("uid", ""))
    name = obj["metadata"]["name"]
    prefixes = ("batch.kubernetes.io/", "")
    labels = {
        f"{prefix}{key}": value for prefix in prefixes for key, value in (("controller-uid", uid), ("job-name", name))
    }
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
    return {
        **obj,
        "spec": {
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "enableServiceLinks": True,
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            **spec,
        },
    }


def _claim(obj: dict[str, Any], old: dict[str, Any] | None, _ip: Any) -> dict[str, Any]:
    spec = {"volumeMode": "Filesystem", **(obj.get("spec") or {})}
    if old:
        return {**obj, "spec": spec}
    meta = obj["metadata"]
    finalizers = [*(meta.get("finalizers") or []), "kubernetes.io/pvc-protection"]
    return {
        **obj,
        "metadata": {**meta, "finalizers": list(dict.fromkeys(finalizers))},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _service(obj: dict[str, Any], old: dict[str, Any] | None, free_ip: Callable[[], str]) -> dict[str, Any]:
    given = {
        key: value for key, value in (obj.get("spec") or {}).items() if value or key not in ("clusterIP", "clusterIPs")
    }
    ports = [{"protocol": "TCP", "targetPort": port.get("port"), **port} for port in given.get("ports") or []]
    spec = {"type": "ClusterIP", "sessionAffinity": "None", **given}
    if ports:
        spec["ports"] = ports
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        if (
            "clusterIP" in given
            and "clusterIPs" in given
            and old
            and given["clusterIP"] != old["spec"].get("clusterIP")
        ):
            spec["clusterIPs"] = [given["clusterIP"]]
        spec.setdefault("clusterIP", ((old or {}).get("spec") or {}).get("clusterIP") or free_ip())
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
    return {**obj, "spec": spec, "status": obj.get("status") or {"loadBalancer": {}}}


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
    for value in data.values():
        try:
            is_read = isinstance(value, str) and base64.b64decode(value, validate=True) is not None
        except ValueError:
            is_read = False
        if not is_read:
            said = "illegal base64 data at input byte 0"
            raise StatusRefusal(400, "BadRequest", f'Secret in version "v1" cannot be handled as a Secret: {said}')
    data |= {
        name: base64.b64encode(str(value).encode()).decode() for name, value in (obj.get("stringData") or {}).items()
    }
    rest = {key: value for key, value in obj.items() if key not in ("data", "stringData")}
    return {"type": (old or {}).get("type", "Opaque"), **rest, **({"data": data} if data else {})}


def _role_binding(obj: dict[str, Any], _old: Any, _ip: Any) -> dict[str, Any]:
    role = {"apiGroup": RBAC_GROUP, **(obj.get("roleRef") or {})}
    subjects = [
        subject if subject.get("kind") == "ServiceAccount" else {"apiGroup": RBAC_GROUP, **subject}
        for subject in obj.get("subjects") or []
    ]
    return {**obj, "roleRef": role, **({"subjects": subjects} if subjects else {})}


_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_FILE_MODES = {"configMap", "secret", "downwardAPI", "projected"}


_STATEFUL = {
    "replicas": 1,
    "podManagementPolicy": "OrderedReady",
    "revisionHistoryLimit": 10,
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
}
_ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
DEFAULTS: dict[str, Callable[..., dict[str, Any]]] = {
    "Deployment": _deployment,
    "StatefulSet": partial(_workload, _STATEFUL),
    "DaemonSet": partial(_workload, {"revisionHistoryLimit": 10, "updateStrategy": _ROLLING}),
    "ReplicaSet": partial(_workload, {"replicas": 1}),
    "Job": _job,
    "Pod": _pod,
    "Service": _service,
    "PersistentVolumeClaim": _claim,
    "Namespace": _namespace,
    "Secret": _secret,
    "RoleBinding": _role_binding,
    "ClusterRoleBinding": _role_binding,
}
