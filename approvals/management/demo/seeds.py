"""The demo's people, rights, deployments and policy, as data."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from provisioner.api_groups import ADMISSION_GROUP, RBAC_GROUP
from provisioner.cluster.client.kubeconfig import read_kubeconfig


def pack_bundles(folder: Path, into: Path) -> None:
    """Write `<name>-<version>.tar.gz` for every bundle below `folder`."""
    into.mkdir(parents=True, exist_ok=True)
    for name, archive in _pack_versions(folder).items():
        (into / name).write_bytes(archive)


def bundle_checksums(folder: Path) -> dict[str, str]:
    """The sha256, by file name, of what `pack` writes."""
    return {name: f"sha256:{hashlib.sha256(archive).hexdigest()}" for name, archive in _pack_versions(folder).items()}


def _pack_versions(folder: Path) -> dict[str, bytes]:
    versions = sorted(path for path in folder.glob("*/*") if path.is_dir())
    return {f"{version.parent.name}-{version.name}.tar.gz": _pack_folder(version) for version in versions}


def _pack_folder(folder: Path) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream, tarfile.open(fileobj=stream, mode="w") as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(entry, file)
    return packed.getvalue()


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
    return bundle_checksums(Path(settings.BASE_DIR) / "deploy/demo/bundles")


def bundle_spec(bundles: str, name: str, version: str) -> dict[str, Any]:
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
    # The rights of deploy/rbac.yaml, all for one account, and to act as the demo's people and its installing account.
    service = _account_subject(SERVICE_NAMESPACE, SERVICE)
    names = [*PEOPLE, *map(issuer_name, PEOPLE)]
    people = [_impersonation_rule("users", names), _impersonation_rule("groups", [*PEOPLE.values()])]
    return [
        *(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            for namespace in (SERVICE_NAMESPACE, NAMESPACE)
        ),
        _service_account(SERVICE_NAMESPACE, SERVICE),
        _service_account(NAMESPACE, ACCOUNT),
        *(
            _binding(f"pratique-demo-{account}", f"pratique-{account}", service)
            for account in ("web", "worker", "watch")
        ),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "pratique-demo-impersonator"},
            "rules": people,
        },
        _binding("pratique-demo-impersonator", "pratique-demo-impersonator", service),
        *_role_and_binding("pratique-acts-as-installer", _IMPERSONATE_INSTALLER, [service]),
        _binding("pratique-demo-installer", "cluster-admin", _account_subject(NAMESPACE, ACCOUNT)),
        *(
            _binding(f"pratique-demo-reader-{group}", "pratique-reader", _group_subject(group))
            for group in PEOPLE.values()
        ),
        *(
            _binding(f"pratique-demo-view-{group}", "view", _group_subject(group))
            for group in ("platform", "requesters")
        ),
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "pratique-demo-look"},
            "rules": [*map(_read_rule, _LOOKED_AT), _read_rule("", "nodes", "persistentvolumes")],
        },
        _binding("pratique-demo-look", "pratique-demo-look", _group_subject("platform")),
        _binding("pratique-demo-approver", "pratique-approver", _group_subject("platform")),
        _binding("pratique-demo-override", "pratique-override", _group_subject("platform")),
        _binding(
            "pratique-demo-policies",
            "pratique-approver",
            {"apiGroup": _RBAC, "kind": "User", "name": "pratique:policy:1"},
        ),
        _binding("pratique-demo-requester", "pratique-requester", _group_subject("requesters")),
        *_role_and_binding(
            "use-installer", _IMPERSONATE_INSTALLER, [_group_subject("requesters"), _group_subject("platform")]
        ),
    ]


def _role_and_binding(name: str, rule: dict[str, Any], subjects: list[dict[str, str]]) -> list[dict[str, Any]]:
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


def _read_rule(group: str, *resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [*resources] or ["*"], "verbs": ["get", "list"]}


def _impersonation_rule(resource: str, names: list[str]) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": ["impersonate"], "resourceNames": names}


_IMPERSONATE_INSTALLER = _impersonation_rule("serviceaccounts", [ACCOUNT])


def _binding(name: str, role: str, subject: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def _group_subject(name: str) -> dict[str, str]:
    return {"apiGroup": _RBAC, "kind": "Group", "name": name}


def _account_subject(namespace: str, name: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def _service_account(namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def write_people(folder: Path) -> None:
    """Who can be picked; what somebody changed there since the last start stays, but for names of an older demo."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "people.json"
    people = {name: {"sub": issuer_name(name), "groups": [group]} for name, group in PEOPLE.items()}
    if path.exists():
        known = json.loads(path.read_text())
        people = {
            name: {**it, "sub": issuer_name(name) if it["sub"] == name else it["sub"]} for name, it in known.items()
        }
    path.write_text(json.dumps(people, indent=2))


def write_issuers(path: Path, url: str) -> None:
    """The file for PRATIQUE_OIDC_FILE: the demo's issuer counts on the demo's cluster."""
    mappings = {"username": {"claim": "sub", "prefix": ""}, "groups": {"claim": "groups", "prefix": ""}}
    issuer = {
        "name": ISSUER,
        "title": "the demo issuer",
        "url": url,
        "audiences": ["pratique"],
        "client": {"id": "pratique"},
        "commandLine": {"id": "kubectl-pratique"},
        "clusters": [{"name": CLUSTER, "claimMappings": mappings}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"issuers": [issuer]}, sort_keys=False))


def issuer_command(python: str, folder: Path, port: str, site: str) -> list[str]:
    """Start the issuer, whose people come back to `site`."""
    addresses = {name: f"{site}/oidc/{ISSUER}/{name}" for name in ("callback", "back-channel", "front-channel")}
    return [
        *(python, "-m", "approvals.management.demo.issuer", "--port", port, "--folder", str(folder)),
        *("--redirect-uri", addresses["callback"], "--home", f"{site}/sign-in"),
        *("--back-channel", addresses["back-channel"], "--front-channel", addresses["front-channel"]),
    ]


def with_token(kubeconfig: str, token: str) -> dict[str, Any]:
    """A kubeconfig for the cluster of the current context, its CA inline, whose only user has this bearer token."""
    document = read_kubeconfig(kubeconfig, trusted=True)
    context = _find_entry(document["contexts"], document["current-context"])["context"]
    cluster = dict(_find_entry(document["clusters"], context["cluster"])["cluster"])
    path = cluster.pop("certificate-authority", None)
    if path and not cluster.get("certificate-authority-data"):
        cluster["certificate-authority-data"] = base64.b64encode(Path(path).read_bytes()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "service",
        "clusters": [{"name": "service", "cluster": cluster}],
        "users": [{"name": "service", "user": {"token": token}}],
        "contexts": [{"name": "service", "context": {"cluster": "service", "user": "service"}}],
    }


def _find_entry(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)
