"""The demo's people, rights, deployments and policy, as data."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from approvals.management.demo.bundles import checksums
from provisioner.api_groups import ADMISSION_GROUP, RBAC_GROUP

CLUSTER = "demo"
NAMESPACE = "harbour-system"
ACCOUNT = "installer"
_RBAC, _HARBOUR = RBAC_GROUP, "harbour.example.com"
# What a report is made of beside what the role view shows: its approver reads each finding whole. No Secret is there.
_LOOKED_AT = (
    ADMISSION_GROUP,
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    _RBAC,
    "scheduling.k8s.io",
    "storage.k8s.io",
    _HARBOUR,
)
# What the service itself is in the cluster.
SERVICE_NAMESPACE = SERVICE = "pratique"
# Who there is, and their group.
PEOPLE = {"ada": "platform", "bert": "developers", "rita": "requesters"}
ISSUER = "demo"
# What runs, and what is asked for then: a new bundle, a frightening permission change, a breaking CRD change.
DEPLOYMENTS = {"harbour": "1.0.0", "tugboat": "1.0.0"}
CHANGES = {"lighthouse": "1.0.0", "tugboat": "2.0.0", "harbour": "2.0.0"}
POLICY: dict[str, Any] = {
    "name": "routine",
    "kind": "grant",
    "mode": "dry-run",
    "names": [],
    "labels": {"team": "harbour"},
    "expression": (
        'worst_new in ["safe", "notable"] && actions["delete"] == 0 && requester_known'
        ' && !kinds.exists(kind, kind.endsWith(".rbac.authorization.k8s.io"))'
    ),
    "message": "",
    "is_active": True,
}
BERTHS = [
    {
        "apiVersion": "harbour.example.com/v1",
        "kind": "Berth",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"vessel": vessel, "cargo": cargo, "draughtMetres": draught, "pilot": "on request"},
    }
    for name, vessel, cargo, draught in (
        ("north-1", "Ever Forward", "container", 11.5),
        ("north-2", "Stena Line", "passengers", 6.3),
        ("south-1", "Ore Brasil", "bulk", 23),
    )
]


def issuer_name(name: str) -> str:
    """Who comes by the issuer, as the pages and the cluster call them: never the local account of the plain name."""
    return f"{name}@{ISSUER}"


@cache
def _checksums() -> dict[str, str]:
    return checksums(Path(settings.BASE_DIR) / "deploy/demo/bundles")


def spec(bundles: str, name: str, version: str) -> dict[str, Any]:
    """A BundleDeployment's spec for one of the demo's archives."""
    archive = f"{name}-{version}.tar.gz"
    return {
        "installNamespace": NAMESPACE,
        "serviceAccountName": ACCOUNT,
        "format": "plain",
        "sources": [{"kind": "http", "http": {"url": f"{bundles}/{archive}", "checksum": _checksums()[archive]}}],
    }


def cluster_objects() -> list[dict[str, Any]]:
    """The namespaces, the service's account and the installing one, and everybody's rights."""
    return [
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": it}} for it in (SERVICE_NAMESPACE, NAMESPACE)),
        _service_account(SERVICE_NAMESPACE, SERVICE),
        _service_account(NAMESPACE, ACCOUNT),
        *_rights_of_service(),
        _binding("pratique-demo-installer", "cluster-admin", _account(NAMESPACE, ACCOUNT)),
        *(_binding(f"pratique-demo-reader-{group}", "pratique-reader", _group(group)) for group in PEOPLE.values()),
        *(_binding(f"pratique-demo-view-{group}", "view", _group(group)) for group in ("platform", "requesters")),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "pratique-demo-look"},
            "rules": [*map(_look, _LOOKED_AT), _look("", "nodes", "persistentvolumes")],
        },
        _binding("pratique-demo-look", "pratique-demo-look", _group("platform")),
        _binding("pratique-demo-approver", "pratique-approver", _group("platform")),
        _binding("pratique-demo-override", "pratique-override", _group("platform")),
        _binding("pratique-demo-policies", "pratique-approver", _policy_user()),
        _binding("pratique-demo-requester", "pratique-requester", _group("requesters")),
        *_role("use-installer", _IMPERSONATE_INSTALLER, [_group("requesters"), _group("platform")]),
    ]


def _rights_of_service() -> list[dict[str, Any]]:
    """Those of deploy/rbac.yaml, all for one account, and to act as the demo's people and its installing account."""
    service = _account(SERVICE_NAMESPACE, SERVICE)
    names = [*PEOPLE, *map(issuer_name, PEOPLE)]
    people = [_impersonate("users", names), _impersonate("groups", [*PEOPLE.values()])]
    return [
        *(_binding(f"pratique-demo-{it}", f"pratique-{it}", service) for it in ("web", "worker", "watch")),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "pratique-demo-impersonator"},
            "rules": people,
        },
        _binding("pratique-demo-impersonator", "pratique-demo-impersonator", service),
        *_role("pratique-acts-as-installer", _IMPERSONATE_INSTALLER, [service]),
    ]


def _role(name: str, rule: dict[str, Any], subjects: list[dict[str, str]]) -> list[dict[str, Any]]:
    api_version = f"{_RBAC}/v1"
    metadata = {"name": name, "namespace": NAMESPACE}
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": name}
    return [
        {"apiVersion": api_version, "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": api_version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": subjects,
        },
    ]


def _look(group: str, *resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [*resources] or ["*"], "verbs": ["get", "list"]}


def _impersonate(resource: str, names: list[str]) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": ["impersonate"], "resourceNames": names}


_IMPERSONATE_INSTALLER = _impersonate("serviceaccounts", [ACCOUNT])


def _binding(name: str, role: str, subject: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def _group(name: str) -> dict[str, str]:
    return {"apiGroup": _RBAC, "kind": "Group", "name": name}


def _account(namespace: str, name: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def _service_account(namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def _policy_user() -> dict[str, str]:
    """The first policy's identity; policies are numbered from 1."""
    return {"apiGroup": _RBAC, "kind": "User", "name": "pratique:policy:1"}
