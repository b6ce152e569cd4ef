"""What a new cluster holds: its namespaces, a node, and the roles that everybody counts on."""

from __future__ import annotations

from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.sandbox.store import Key

_ISSUER = "system:service-account-issuer-discovery"
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
    spaces = ("default", "kube-system", "kube-public", "kube-node-lease")
    found = [(("", "namespaces", "", name), _namespace(name)) for name in spaces]
    found.append((("", "nodes", "", "sandbox"), _node()))
    found += [((RBAC_GROUP, "clusterroles", "", name), _role(name, rules)) for name, rules in _roles().items()]
    for name, role, group in (
        ("cluster-admin", "cluster-admin", "system:masters"),
        ("system:basic-user", "system:basic-user", "system:authenticated"),
        ("system:discovery", "system:discovery", "system:authenticated"),
        ("system:public-info-viewer", "system:public-info-viewer", "system:authenticated"),
        (_ISSUER, _ISSUER, "system:serviceaccounts"),
    ):
        found.append(((RBAC_GROUP, "clusterrolebindings", "", name), _binding(name, role, group)))
    for name in ("admin", "edit", "view"):
        found.append(((RBAC_GROUP, "clusterroles", "", name), _aggregated(name)))
    return found


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
                "nonResourceURLs": [
                    "/api",
                    "/api/*",
                    "/apis",
                    "/apis/*",
                    "/healthz",
                    "/livez",
                    "/openapi",
                    "/openapi/*",
                    "/readyz",
                    "/version",
                    "/version/",
                ],
                "verbs": ["get"],
            }
        ],
        "system:public-info-viewer": [
            {"nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"], "verbs": ["get"]}
        ],
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


def _role(name: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    target = name.removeprefix("system:aggregate-to-")
    if target != name:
        labels[f"{RBAC_GROUP}/aggregate-to-{target}"] = "true"
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": rules,
    }


def _aggregated(name: str) -> dict[str, Any]:
    """admin selects what edit has, edit what view has: the same labels as the real ones."""
    below = {"admin": ("admin", "edit", "view"), "edit": ("edit", "view"), "view": ("view",)}[name]
    selectors = [{"matchLabels": {f"{RBAC_GROUP}/aggregate-to-{it}": "true"}} for it in below]
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "aggregationRule": {"clusterRoleSelectors": selectors},
        "rules": [],
    }


def _binding(name: str, role: str, group: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC_GROUP, "kind": "Group", "name": group}],
    }


def _namespace(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _node() -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True", "reason": "Sandbox", "message": "nothing runs here"}
    capacity = {"cpu": "32", "memory": "256Gi", "pods": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "sandbox",
            "labels": {"kubernetes.io/hostname": "sandbox", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"},
        },
        "spec": {},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": [condition]},
    }
