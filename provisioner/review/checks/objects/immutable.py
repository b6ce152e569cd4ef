"""Fields of built-in kinds that never change once the object exists, and what it costs to make the object anew.

Where the API server was asked, its dry-run is the proof and this only names the fields; where it could not be, a change
of one of these is known to be refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from provisioner.api_groups import RBAC_GROUP
from provisioner.review.base.changes import ABSENT, Change
from provisioner.review.base.sizes import bytes_of
from provisioner.values import GroupKind

_CLAIM = GroupKind("", "PersistentVolumeClaim")
_TEMPLATE = ("spec", "template")
_SELECTOR = ("spec", "selector")
_FIELDS: dict[GroupKind, tuple[tuple[str, ...], ...]] = {
    _CLAIM: (
        ("spec", "accessModes"),
        ("spec", "selector"),
        ("spec", "storageClassName"),
        ("spec", "volumeMode"),
        ("spec", "volumeName"),
    ),
    GroupKind("", "Secret"): (("type",),),
    GroupKind("", "Service"): (("spec", "clusterIP"), ("spec", "clusterIPs"), ("spec", "ipFamilies")),
    GroupKind("apps", "DaemonSet"): (_SELECTOR,),
    GroupKind("apps", "Deployment"): (_SELECTOR,),
    GroupKind("apps", "ReplicaSet"): (_SELECTOR,),
    GroupKind("apps", "StatefulSet"): (
        _SELECTOR,
        ("spec", "podManagementPolicy"),
        ("spec", "serviceName"),
        ("spec", "volumeClaimTemplates"),
    ),
    GroupKind("batch", "Job"): (_SELECTOR, _TEMPLATE, ("spec", "completionMode")),
    GroupKind("scheduling.k8s.io", "PriorityClass"): (("value",), ("preemptionPolicy",)),
    GroupKind("storage.k8s.io", "StorageClass"): (
        ("parameters",),
        ("provisioner",),
        ("reclaimPolicy",),
        ("volumeBindingMode",),
    ),
    GroupKind(RBAC_GROUP, "ClusterRoleBinding"): (("roleRef",),),
    GroupKind(RBAC_GROUP, "RoleBinding"): (("roleRef",),),
}
CONSEQUENCES = {
    GroupKind("", "ConfigMap"): "pods that start in between fail",
    _CLAIM: "its data is lost unless the volume is kept",
    GroupKind("", "Secret"): "pods that start in between fail",
    GroupKind("", "Service"): "it gets another address, and connections break",
    GroupKind("apps", "DaemonSet"): "all its pods stop before new ones start",
    GroupKind("apps", "Deployment"): "all its pods stop before new ones start",
    GroupKind("apps", "StatefulSet"): "all its pods stop before new ones start; its volume claims stay",
    GroupKind("batch", "Job"): "it runs again from the start",
    GroupKind("scheduling.k8s.io", "PriorityClass"): "pods that ask for it in between are refused; running ones keep "
    "their old value",
    GroupKind("storage.k8s.io", "StorageClass"): "volumes that exist keep the old settings; claims in between wait",
    GroupKind(RBAC_GROUP, "ClusterRoleBinding"): "its subjects are without these rights in between",
    GroupKind(RBAC_GROUP, "RoleBinding"): "its subjects are without these rights in between",
}


def never_changing(kind: GroupKind, found: Iterable[Change]) -> list[Change]:
    """Those of the changes that the API server will not make; what one side leaves out may be its default.

    A selector has no defaults, and a claim may grow, but not shrink.
    """
    fields = _FIELDS.get(kind, ())
    stuck = [one for one in found if _is_within(one, fields) and not _may_be_default(one, kind)]
    return stuck + [one for one in found if kind == _CLAIM and _shrinks(one)]


def _is_within(change: Change, fields: Iterable[tuple[str, ...]]) -> bool:
    path = tuple(map(str, change.path))
    return any(path[: len(field)] == field for field in fields)


def _may_be_default(change: Change, kind: GroupKind) -> bool:
    if ABSENT not in (change.before, change.after):
        return False
    return not (kind.group == "apps" and len(change.path) > len(_SELECTOR) and _is_within(change, (_SELECTOR,)))


def _shrinks(change: Change) -> bool:
    if change.path != ("spec", "resources", "requests", "storage"):
        return False
    before, after = bytes_of(change.before), bytes_of(change.after)
    return before is not None and after is not None and after < before
