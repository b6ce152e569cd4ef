"""What it costs to make an object anew because fields of it never change, and which fields of a change those are.

The API server's own dry-run is the proof here; where it could not be asked, `builtin` knows what it refuses.
"""

from __future__ import annotations

from collections.abc import Iterable

from provisioner.api_groups import RBAC_GROUP
from provisioner.builtin import fixed_fields
from provisioner.review.base.difference import ABSENT, FieldChange
from provisioner.review.base.sizes import bytes_of
from provisioner.values import GroupKind

_CLAIM = GroupKind("", "PersistentVolumeClaim")
_SELECTOR = ("spec", "selector")
# What the server changes neither, and the table of facts does not hold as fields that never change in any object.
_ALSO_FIXED: dict[GroupKind, tuple[tuple[str, ...], ...]] = {
    GroupKind("", "Service"): (("spec", "clusterIP"), ("spec", "clusterIPs"), ("spec", "ipFamilies")),
}
# A claim may grow.
_FREE: dict[GroupKind, tuple[str, ...]] = {_CLAIM: ("spec", "resources")}
_LOSSES = {
    GroupKind("", "ConfigMap"): "pods-fail",
    _CLAIM: "data",
    GroupKind("", "Secret"): "pods-fail",
    GroupKind("", "Service"): "address",
    GroupKind("apps", "DaemonSet"): "pods-stop",
    GroupKind("apps", "Deployment"): "pods-stop",
    GroupKind("apps", "StatefulSet"): "pods-stop-claims-stay",
    GroupKind("batch", "Job"): "runs-again",
    GroupKind("scheduling.k8s.io", "PriorityClass"): "priority",
    GroupKind("storage.k8s.io", "StorageClass"): "storage-class",
    GroupKind(RBAC_GROUP, "ClusterRoleBinding"): "rights",
    GroupKind(RBAC_GROUP, "RoleBinding"): "rights",
}


def loss_of(kind: GroupKind) -> str:
    """What is lost in between: the name of a phrase of IMM-01."""
    return _LOSSES.get(kind, "itself")


def never_changing(kind: GroupKind, found: Iterable[FieldChange]) -> list[FieldChange]:
    """Those of the changes that the API server will not make; what one side leaves out may be its default.

    A selector has no defaults, nor has a list that gains or loses an item; and a claim may grow, but not shrink.
    """
    changes = list(found)
    fields = (*fixed_fields(kind), *_ALSO_FIXED.get(kind, ()))
    stuck = [one for one in changes if _is_within(one, fields) and not _may_be_default(one, kind)]
    stuck = [one for one in stuck if kind not in _FREE or not _is_within(one, [_FREE[kind]])]
    return stuck + [one for one in changes if kind == _CLAIM and _shrinks(one)]


def _is_within(change: FieldChange, fields: Iterable[tuple[str, ...]]) -> bool:
    path = tuple("[]" if isinstance(one, int) else one for one in change.path)
    return any(path[: len(field)] == field for field in fields)


def _may_be_default(change: FieldChange, kind: GroupKind) -> bool:
    if ABSENT not in (change.before, change.after) or isinstance(change.path[-1], int):
        return False
    return not (kind.group == "apps" and len(change.path) > len(_SELECTOR) and _is_within(change, (_SELECTOR,)))


def _shrinks(change: FieldChange) -> bool:
    if change.path != ("spec", "resources", "requests", "storage"):
        return False
    before, after = bytes_of(change.before), bytes_of(change.after)
    return before is not None and after is not None and after < before
