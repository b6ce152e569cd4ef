"""Discovery: versions, groups and resources, aggregated or not, and as much OpenAPI as kubectl asks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from provisioner.sandbox.types.kinds import REVIEWS, VERBS, SandboxKind

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+pratique.sandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "sandbox",
}


# What `kubectl get all` shows.
_IN_ALL = {
    "pods",
    "replicationcontrollers",
    "services",
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "horizontalpodautoscalers.autoscaling",
}
_SUB_GROUPS = {
    "Scale": {"group": "autoscaling", "version": "v1"},
    "TokenRequest": {"group": "authentication.k8s.io", "version": "v1"},
}


def resource_list(kinds: Iterable[SandboxKind], group: str, version: str) -> dict[str, Any]:
    resources: list[dict[str, Any]] = []
    for kind in kinds:
        if (kind.group, kind.version) == (group, version):
            resources.append(
                {
                    "name": kind.plural,
                    "singularName": kind.kind.lower(),
                    "namespaced": kind.is_namespaced,
                    "kind": kind.kind,
                    "verbs": list(VERBS),
                    **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
                    **({"categories": ["all"]} if kind.resource in _IN_ALL else {}),
                }
            )
            resources += [
                {
                    "name": f"{kind.plural}/{name}",
                    "singularName": "",
                    "namespaced": kind.is_namespaced,
                    **_SUB_GROUPS.get(sub, {}),
                    "kind": sub,
                    "verbs": ["create"] if name == "token" else ["get", "patch", "update"],
                }
                for name, sub in _subresources(kind)
            ]
    resources += [
        {"name": plural, "singularName": name.lower(), "namespaced": is_namespaced, "kind": name, "verbs": ["create"]}
        for review_group, plural, name, is_namespaced in REVIEWS
        if (review_group, "v1") == (group, version)
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": resources,
    }


def groups(kinds: Iterable[SandboxKind]) -> dict[str, list[str]]:
    """Versions by group, the built-in order kept; the preferred one first."""
    found: dict[str, list[str]] = {}
    for group, version in [(kind.group, kind.version) for kind in kinds] + [(it[0], "v1") for it in REVIEWS]:
        if version not in found.setdefault(group, []):
            found[group].append(version)
    return {group: sorted(versions, key=by_stability) for group, versions in found.items()}


def group_list(kinds: list[SandboxKind]) -> dict[str, Any]:
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in groups(kinds).items() if name],
    }


def aggregated(kinds: list[SandboxKind], *, core: bool) -> dict[str, Any]:
    """apidiscovery.k8s.io/v2: everything of /api or of /apis in one document."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
                "versions": [
                    {
                        "version": version,
                        "freshness": "Current",
                        "resources": [
                            _aggregated(kind) for kind in kinds if (kind.group, kind.version) == (name, version)
                        ]
                        + [_review(*it) for it in REVIEWS if (it[0], "v1") == (name, version)],
                    }
                    for version in versions
                ],
            }
            for name, versions in groups(kinds).items()
            if (name == "") == core
        ],
    }


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def group(name: str, kinds: list[SandboxKind]) -> dict[str, Any] | None:
    versions = groups(kinds).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def _aggregated(kind: SandboxKind) -> dict[str, Any]:
    return {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.is_namespaced else "Cluster",
        "singularResource": kind.kind.lower(),
        "verbs": list(VERBS),
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        **({"categories": ["all"]} if kind.resource in _IN_ALL else {}),
        "subresources": [
            {
                "subresource": name,
                "responseKind": {"group": kind.group, "version": kind.version, **_SUB_GROUPS.get(sub, {}), "kind": sub},
                "verbs": ["create"] if name == "token" else ["get", "patch", "update"],
            }
            for name, sub in _subresources(kind)
        ],
    }


def _review(review_group: str, plural: str, name: str, is_namespaced: bool) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": review_group, "version": "v1", "kind": name},
        "scope": "Namespaced" if is_namespaced else "Cluster",
        "singularResource": name.lower(),
        "verbs": ["create"],
    }


def _subresources(kind: SandboxKind) -> list[tuple[str, str]]:
    found = [("status", kind.kind)] if kind.has_status else []
    found += [("scale", "Scale")] if kind.has_scale else []
    return found + ([("token", "TokenRequest")] if (kind.group, kind.plural) == ("", "serviceaccounts") else [])


def by_stability(version: str) -> tuple[int, int, str]:
    """Kubernetes' order: v2, v1, v1beta1, v1alpha1."""
    digits = "".join(one if one.isdigit() else " " for one in version).split()
    rank = 2 if "alpha" in version else 1 if "beta" in version else 0
    return (rank, -int(digits[0]) if digits else 0, version)


def of_group(kinds: list[SandboxKind], parts: list[str]) -> dict[str, Any] | None:
    """/api/v1, /apis/<group> and /apis/<group>/<version>."""
    if parts == ["api", "v1"]:
        return resource_list(kinds, "", "v1")
    if parts[0] != "apis":
        return None
    if len(parts) == 2:
        return group(parts[1], kinds)
    is_known = len(parts) == 3 and parts[2] in groups(kinds).get(parts[1], [])
    return resource_list(kinds, parts[1], parts[2]) if is_known else None
