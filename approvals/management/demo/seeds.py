"""The demo's people, rights, deployments and policy, as data."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from approvals.management.demo.bundles import pack

NAMESPACE = "harbour-system"
ACCOUNT = "installer"
# Who there is, and their group.
PEOPLE = {"ada": "platform", "bert": "developers", "rita": "requesters"}
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


@cache
def _checksums() -> dict[str, str]:
    root = Path(settings.BASE_DIR)
    return pack(root / "deploy/demo/bundles", root / ".demo/bundles")


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
    """The namespace, the installing account and everybody's rights."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        _binding("pratique-demo-installer", "cluster-admin", _account()),
        *(_binding(f"pratique-demo-reader-{group}", "pratique-reader", _group(group)) for group in PEOPLE.values()),
        *(_binding(f"pratique-demo-view-{group}", "view", _group(group)) for group in ("platform", "requesters")),
        _binding("pratique-demo-approver", "pratique-approver", _group("platform")),
        _binding("pratique-demo-policies", "pratique-approver", _policy_user()),
        _binding("pratique-demo-requester", "pratique-requester", _group("requesters")),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "use-installer", "namespace": NAMESPACE},
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": ["serviceaccounts"],
                    "verbs": ["impersonate"],
                    "resourceNames": [ACCOUNT],
                }
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "use-installer", "namespace": NAMESPACE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "use-installer"},
            "subjects": [_group("requesters"), _group("platform")],
        },
    ]


def _binding(name: str, role: str, subject: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def _group(name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}


def _account() -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}


def _policy_user() -> dict[str, str]:
    """The first policy's identity; policies are numbered from 1."""
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "pratique:policy:1"}
