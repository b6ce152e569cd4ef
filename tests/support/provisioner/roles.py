"""Roles and bindings for these tests, as short as they can be said."""

from __future__ import annotations

from typing import Any

from provisioner.rbac import PolicyRule
from provisioner.sandbox import bootstrap

API = "rbac.authorization.k8s.io"


def rule(verbs: str, resources: str = "pods", *, group: str = "", names: str = "", urls: str = "") -> dict[str, Any]:
    """A rule as a manifest has it; several words in one string are several entries."""
    if urls:
        return {"verbs": verbs.split(), "nonResourceURLs": urls.split()}
    found: dict[str, Any] = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return {**found, "resourceNames": names.split()} if names else found


def rules(*entries: dict[str, Any]) -> list[PolicyRule]:
    return [PolicyRule.from_object(entry) for entry in entries]


def cluster_role(
    name: str, *entries: dict[str, Any], labels: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    meta = {"name": name, "labels": labels or {}}
    return {"apiVersion": f"{API}/v1", "kind": "ClusterRole", "metadata": meta, "rules": list(entries), **more}


def role(namespace: str, name: str, *entries: dict[str, Any]) -> dict[str, Any]:
    meta = {"namespace": namespace, "name": name}
    return {"apiVersion": f"{API}/v1", "kind": "Role", "metadata": meta, "rules": list(entries)}


def account(name: str, namespace: str = "") -> dict[str, Any]:
    return {"kind": "ServiceAccount", "name": name, **({"namespace": namespace} if namespace else {})}


def group(name: str) -> dict[str, Any]:
    return {"kind": "Group", "name": name, "apiGroup": API}


def user(name: str) -> dict[str, Any]:
    return {"kind": "User", "name": name, "apiGroup": API}


def bound(to: str, *subjects: dict[str, Any], namespace: str = "", kind: str = "ClusterRole") -> dict[str, Any]:
    """A binding to the role `to`: in `namespace` a RoleBinding, without one a ClusterRoleBinding."""
    meta = {"name": f"{to}-binding", **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": f"{API}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": API, "kind": kind, "name": to},
        "subjects": list(subjects),
    }


def of_kubernetes() -> tuple[dict[str, Any], ...]:
    """The roles and bindings of a cluster that nobody has used yet."""
    return tuple(obj for (group, *_), obj in bootstrap.objects() if group == API)


def teams(count: int) -> tuple[dict[str, Any], ...]:
    """A cluster that many use: `count` bindings of people, groups and accounts, and the custom roles that some name."""
    found: list[dict[str, Any]] = []
    for number in range(count):
        name, place = f"team-{number}", f"team-{number % 97}" if number % 3 == 0 else ""
        subject = (group(name), user(name), account("ci", name))[number % 5 % 3]
        wanted = ("edit", "cluster-admin", "view", f"custom-{number % 50}", "admin")[number % 7 % 5]
        binding = bound(wanted, subject, namespace=place)
        binding["metadata"]["name"] = f"{name}-{wanted}"
        found.append(binding)
    custom = (
        cluster_role(
            f"custom-{number}",
            rule("get list watch", "secrets" if number % 2 else "configmaps"),
            rule("create delete", "pods deployments", group="apps"),
            labels={"team": f"team-{number}"},
        )
        for number in range(50)
    )
    return (*of_kubernetes(), *custom, *found)
