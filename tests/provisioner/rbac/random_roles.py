"""Random roles, bindings and questions for the differential tests, all from one seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from provisioner.values import AccessRequest, Identity
from tests.support.provisioner.roles import API, account, group, user

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use", "escalate", "bind")
GROUPS = ("", "apps", "batch", API, "shop.example.com")
RESOURCES = ("pods", "secrets", "nodes", "deployments", "roles", "clusterroles", "orders")
SUBRESOURCES = ("", "", "", "exec", "log", "status", "scale")
WRITTEN = (*RESOURCES, "*", "pods/exec", "pods/*", "*/exec", "*/status", "deployments/scale", "*/*", "*/")
NAMES = ("a", "b", "c")
URLS = ("/healthz", "/healthz/*", "/healthz*", "/metrics", "/logs/**", "*", "/")
PATHS = ("/healthz", "/healthz/", "/healthz/etcd", "/healthzx", "/metrics", "/logs/x", "/", "/nowhere")
AGGREGATED = "aggregated"


@dataclass(frozen=True)
class World:
    """One set of roles and bindings; its names carry `prefix`, so that several stand beside each other."""

    prefix: str
    namespaces: tuple[str, str]
    identities: tuple[Identity, ...]
    objects: tuple[dict[str, Any], ...]


def world(dice: random.Random, prefix: str, namespaces: tuple[str, str]) -> World:
    cluster_roles = [_role("ClusterRole", f"{prefix}-{index}", "", dice, prefix) for index in range(5)]
    aggregated = _role("ClusterRole", f"{prefix}-{AGGREGATED}", "", dice, "")
    selector = {"matchLabels": {"world": prefix}}
    aggregated |= {"rules": [], "aggregationRule": {"clusterRoleSelectors": [selector]}}
    roles = [_role("Role", f"{prefix}-{place}", namespaces[place], dice, "") for place in (0, 1)]
    names = [one["metadata"]["name"] for one in (*cluster_roles, aggregated)] + [f"{prefix}-missing"]
    subjects = _subjects(prefix, namespaces)
    bindings = [
        _binding("ClusterRoleBinding", f"{prefix}-{index}", "", dice.choice(names), _some(dice, subjects))
        for index in range(3)
    ]
    bindings += [
        _binding("RoleBinding", f"{prefix}-{index}", place, dice.choice(names), _some(dice, subjects))
        for index, place in enumerate(namespaces * 2)
    ]
    for place, role in zip(namespaces, roles, strict=True):
        own = _binding("RoleBinding", f"{prefix}-own", place, role["metadata"]["name"], _some(dice, subjects))
        own["roleRef"]["kind"] = "Role"
        bindings.append(own)
    return World(prefix, namespaces, _identities(prefix, namespaces), (*cluster_roles, aggregated, *roles, *bindings))


def question(dice: random.Random, given: World) -> AccessRequest:
    if dice.random() < 0.2:
        return AccessRequest(dice.choice(("get", "post", "*")), path=dice.choice(PATHS))
    return AccessRequest(
        dice.choice((*VERBS, "nonsense")),
        group=dice.choice((*GROUPS, "other.example.com")),
        resource=dice.choice(RESOURCES),
        subresource=dice.choice(SUBRESOURCES),
        namespace=dice.choice(("", *given.namespaces, *given.namespaces, "elsewhere")),
        name=dice.choice(("", "", *NAMES, "d")),
    )


def rules(dice: random.Random, *, at_most: int = 3, with_urls: bool = True) -> list[dict[str, Any]]:
    return [_rule(dice, with_urls=with_urls) for _ in range(dice.randint(1, at_most))]


def _rule(dice: random.Random, *, with_urls: bool) -> dict[str, Any]:
    verbs = ["*"] if dice.random() < 0.15 else dice.sample(VERBS, dice.randint(1, 4))
    if with_urls and dice.random() < 0.2:
        return {"verbs": [*verbs, "get"], "nonResourceURLs": dice.sample(URLS, dice.randint(1, 2))}
    found: dict[str, Any] = {
        "verbs": verbs,
        "apiGroups": ["*"] if dice.random() < 0.2 else dice.sample(GROUPS, dice.randint(1, 2)),
        "resources": dice.sample(WRITTEN, dice.randint(1, 3)),
    }
    if dice.random() < 0.25:
        found["resourceNames"] = dice.sample(NAMES, dice.randint(1, 2))
    return found


def _role(kind: str, name: str, namespace: str, dice: random.Random, label: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    if label and dice.random() < 0.5:
        meta["labels"] = {"world": label}
    written = rules(dice, with_urls=kind == "ClusterRole")
    return {"apiVersion": f"{API}/v1", "kind": kind, "metadata": meta, "rules": written}


def _binding(kind: str, name: str, namespace: str, role: str, subjects: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": f"{API}/v1",
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": API, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }


def _subjects(prefix: str, namespaces: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        user(f"{prefix}-ann"),
        group(f"{prefix}-staff"),
        account("robot", namespaces[0]),
        account("robot", namespaces[1]),
        group(f"system:serviceaccounts:{namespaces[0]}"),
        user(f"system:serviceaccount:{namespaces[1]}:robot"),
    ]


def _identities(prefix: str, namespaces: tuple[str, str]) -> tuple[Identity, ...]:
    return (
        Identity(f"{prefix}-ann", ("system:authenticated",)),
        Identity(f"{prefix}-bob", (f"{prefix}-staff", "system:authenticated")),
        Identity.of_service_account(namespaces[0], "robot"),
        Identity.of_service_account(namespaces[1], "robot"),
        Identity("system:anonymous", ("system:unauthenticated",)),
    )


def _some(dice: random.Random, subjects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return dice.sample(subjects, dice.randint(1, 3))
