"""What a new cluster holds: its namespaces, a node, and the roles that everybody counts on."""

from __future__ import annotations

from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.sandbox.store import Key

_ISSUER = "system:service-account-issuer-discovery"
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_CORE = [
    "configmaps", "endpoints", "persistentvolumeclaims", "pods", "services", "serviceaccounts", "events",
    "resourcequotas", "limitranges", "pods/log", "pods/status", "replicationcontrollers",
]  # fmt: skip
_GROUPS = {
    "apps": ["*"],
    "batch": ["*"],
    "autoscaling": ["*"],
    "networking.k8s.io": ["ingresses", "networkpolicies"],
    "policy": ["poddisruptionbudgets"],
    "discovery.k8s.io": ["endpointslices"],
}


def objects() -> list[tuple[Key, dict[str, Any]]]:
    """(key, object) of everything that a first start makes; metadata is completed by the caller."""
    found: list[tuple[Key, dict[str, Any]]] = []
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        meta = {"name": name, "labels": {"kubernetes.io/metadata.name": name}}
        body = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        found.append(
            (("", "namespaces", "", name), {"apiVersion": "v1", "kind": "Namespace", "metadata": meta, **body})
        )
    labels = {"kubernetes.io/hostname": "sandbox", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
    condition = {"type": "Ready", "status": "True", "reason": "Sandbox", "message": "nothing runs here"}
    capacity = {"cpu": "32", "memory": "256Gi", "pods": "1000"}
    node: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "sandbox", "labels": labels}}
    node |= {"spec": {}, "status": {"capacity": capacity, "allocatable": capacity, "conditions": [condition]}}
    found.append((("", "nodes", "", "sandbox"), node))
    for name, rules in _roles().items():
        target = name.removeprefix("system:aggregate-to-")
        marks = {f"{RBAC_GROUP}/aggregate-to-{target}": "true"} if target != name else {}
        found.append(_of_rbac("ClusterRole", name, marks, rules=rules))
    for name, group in (
        ("cluster-admin", "system:masters"),
        ("system:basic-user", "system:authenticated"),
        ("system:discovery", "system:authenticated"),
        ("system:public-info-viewer", "system:authenticated"),
        (_ISSUER, "system:serviceaccounts"),
    ):
        role = {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name}
        subjects = [{"apiGroup": RBAC_GROUP, "kind": "Group", "name": group}]
        found.append(_of_rbac("ClusterRoleBinding", name, {}, roleRef=role, subjects=subjects))
    # admin selects what edit has, edit what view has: the same labels as the real ones.
    for name, below in (("admin", ("admin", "edit", "view")), ("edit", ("edit", "view")), ("view", ("view",))):
        selectors = [{"matchLabels": {f"{RBAC_GROUP}/aggregate-to-{role}": "true"}} for role in below]
        rule = {"clusterRoleSelectors": selectors}
        found.append(_of_rbac("ClusterRole", name, {}, aggregationRule=rule, rules=[]))
    return found


def _of_rbac(kind: str, name: str, labels: dict[str, str], **body: Any) -> tuple[Key, dict[str, Any]]:
    meta = {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels}}
    made = {"apiVersion": f"{RBAC_GROUP}/v1", "kind": kind, "metadata": meta, **body}
    return (RBAC_GROUP, f"{kind.lower()}s", "", name), made


def _roles() -> dict[str, list[dict[str, Any]]]:
    reading = [_rule([""], [*_CORE, "namespaces"], _READ)]
    reading += [_rule([group], names, _READ) for group, names in _GROUPS.items()]
    writing = [_rule([""], [*_CORE, "secrets", "pods/exec", "pods/attach", "pods/portforward"], [*_READ, *_WRITE])]
    writing += [_rule([group], names, _WRITE) for group, names in _GROUPS.items()]
    return {
        "cluster-admin": [_rule(["*"], ["*"], ["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}],
        "system:aggregate-to-view": reading,
        "system:aggregate-to-edit": writing,
        "system:aggregate-to-admin": [
            _rule([RBAC_GROUP], ["roles", "rolebindings"], [*_READ, *_WRITE]),
            _rule(["authorization.k8s.io"], ["localsubjectaccessreviews"], ["create"]),
        ],
        "system:basic-user": [
            _rule(["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], ["create"]),
            _rule(["authentication.k8s.io"], ["selfsubjectreviews"], ["create"]),
        ],
        "system:discovery": [
            {
                "nonResourceURLs": sorted([*_PUBLIC, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]),
                "verbs": ["get"],
            }
        ],
        "system:public-info-viewer": [{"nonResourceURLs": _PUBLIC, "verbs": ["get"]}],
        _ISSUER: [
            {
                "nonResourceURLs": [
                    "/.well-known/openid-configuration",
                    "/.well-known/openid-configuration/",
                    "/openid/v1/jwks",
                    "/openid/v1/jwks/",
                ],
                "verbs": ["get"],
            }
        ],
    }


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}
