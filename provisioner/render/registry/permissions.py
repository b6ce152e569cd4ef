"""The ServiceAccounts of a bundle, and the roles and bindings that give them what it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.api_groups import RBAC_GROUP
from provisioner.render.registry.bundle import RegistryBundle
from provisioner.render.registry.config import ALL_NAMESPACES
from provisioner.render.registry.csv import AccountRules, ClusterServiceVersion
from provisioner.render.registry.names import permission_name
from provisioner.values import JsonObject

_API = f"{RBAC_GROUP}/v1"
# An operator that was written for one namespace and watches all has to find them itself: OLM gives it this, too.
_READS_NAMESPACES = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"]}


def service_accounts(bundle: RegistryBundle, namespace: str) -> Iterator[JsonObject]:
    """One for each that is given something, but for those of manifests/ and `default`, which every namespace has.

    OLM has an account of manifests/ twice.
    """
    own = {meta.text("name") for meta in bundle.metadata_of("ServiceAccount")}
    named = {one.subject for one in (*bundle.csv.permissions, *bundle.csv.cluster_permissions)}
    for name in sorted(named - own - {"default"}):
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def roles(csv: ClusterServiceVersion, namespace: str, watched: tuple[str, ...]) -> Iterator[JsonObject]:
    """Roles in each namespace that is watched; where all are, the same as ClusterRoles. Then those for the cluster."""
    for_cluster = list(csv.cluster_permissions)
    if watched == ALL_NAMESPACES:
        for_cluster += [replace(one, rules=(*one.rules, _READS_NAMESPACES)) for one in csv.permissions]
    else:
        for each in watched:
            for permission in csv.permissions:
                yield from _role(csv.name, permission, namespace, each)
    for permission in for_cluster:
        yield from _role(csv.name, permission, namespace, "")


def _role(csv_name: str, permission: AccountRules, namespace: str, watched: str) -> Iterator[JsonObject]:
    """A role and its binding, in the namespace `watched` or for the whole cluster."""
    name = permission_name(csv_name, permission)
    kind = "Role" if watched else "ClusterRole"
    meta = {"name": name, "namespace": watched} if watched else {"name": name}
    subject = {"kind": "ServiceAccount", "name": permission.subject, "namespace": namespace}
    yield {"apiVersion": _API, "kind": kind, "metadata": meta, "rules": list(permission.rules)}
    yield {
        "apiVersion": _API,
        "kind": f"{kind}Binding",
        "metadata": dict(meta),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name},
        "subjects": [subject],
    }
