"""Refusals that say only: something is missing which the same bundle brings. Pure.

The API server looks for it before it tries anything else, so the object itself stays untried until its turn comes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import ClusterError, Forbidden
from provisioner.values import GroupKind, Manifest, ObjectIdentity

NOT_FOUND = 404
POD = GroupKind("", "Pod")

_BINDINGS = frozenset({GroupKind(RBAC_GROUP, "RoleBinding"), GroupKind(RBAC_GROUP, "ClusterRoleBinding")})


def is_expected_refusal(manifest: Manifest, error: ClusterError, brought: Collection[ObjectIdentity]) -> bool:
    """Whether `error` only misses one of `brought`: the role of a binding; the account or a class of a pod."""
    if manifest.ref.group_kind in _BINDINGS:
        return error.status == NOT_FOUND and _role_of(manifest) in brought
    if manifest.ref.group_kind == POD and isinstance(error, Forbidden):
        return any(words in error.server_words and identity in brought for words, identity in _asked_of(manifest))
    return False


def _role_of(manifest: Manifest) -> ObjectIdentity | None:
    """The role that a binding names; the server looks for it before it lets anybody bind it."""
    role = manifest.body.get("roleRef")
    if not isinstance(role, Mapping):
        return None
    kind = str(role.get("kind") or "")
    namespace = manifest.ref.namespace if kind == "Role" else ""
    return (RBAC_GROUP, kind, namespace, str(role.get("name") or ""))


def _asked_of(pod: Manifest) -> Iterator[tuple[str, ObjectIdentity]]:
    """What admission looks for, with its words where it does not find it (seen on 1.36.3)."""
    spec = pod.body.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    account = spec.get("serviceAccountName") or "default"
    yield f'serviceaccount "{account}" not found', ("", "ServiceAccount", pod.ref.namespace, str(account))
    priority, runtime = spec.get("priorityClassName"), spec.get("runtimeClassName")
    yield f"no PriorityClass with name {priority} was found", ("scheduling.k8s.io", "PriorityClass", "", str(priority))
    yield f'RuntimeClass "{runtime}" not found', ("node.k8s.io", "RuntimeClass", "", str(runtime))
