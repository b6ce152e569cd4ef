"""What a deletion would take that cannot be made again from what was approved (security-rules.md S15). PURE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from provisioner.api_groups import ADMISSION_GROUP, RBAC_GROUP
from provisioner.values import Action, GroupKind, JsonObject, ObjectIdentity, PlannedAction

_APPS, _RBAC, _NETWORK = "apps", RBAC_GROUP, "networking.k8s.io"
_ADMISSION, _CONFIG_MAP, _STATEFUL_SET = ADMISSION_GROUP, GroupKind("", "ConfigMap"), "StatefulSet"
# Kinds that say what shall be and keep nothing. All others may hold data, custom resources above all.
_PLAIN = frozenset(
    GroupKind(group, kind)
    for group, kinds in {
        "": ("LimitRange", "ResourceQuota", "Service", "ServiceAccount"),
        _APPS: ("DaemonSet", "Deployment", "ReplicaSet"),
        "autoscaling": ("HorizontalPodAutoscaler",),
        "batch": ("CronJob", "Job"),
        _NETWORK: ("Ingress", "IngressClass", "NetworkPolicy"),
        "policy": ("PodDisruptionBudget",),
        _RBAC: ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        "scheduling.k8s.io": ("PriorityClass",),
        _ADMISSION: (
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ),
    }.items()
    for kind in kinds
)


def says_what_shall_be(kind: GroupKind) -> bool:
    """Whether objects of a kind say what shall be and keep nothing, but for what a program wrote into a ConfigMap."""
    return kind in _PLAIN or kind == _CONFIG_MAP


def holdings(actions: Iterable[PlannedAction], running: Mapping[ObjectIdentity, JsonObject]) -> list[str]:
    """Of the objects of a deletion's plan those that hold data, or of which that is not known, in words.

    `running` are the approved objects by `ref.identity`: a ConfigMap holds nothing that is not in the approved one. An
    object that is gone holds nothing; one that stays does, for from then on nobody knows of it.
    """
    return [str(one.ref) for one in actions if not _holds_nothing(one, running.get(one.ref.identity))]


def _holds_nothing(planned: PlannedAction, approved: JsonObject | None) -> bool:
    if planned.action is not Action.DELETE or planned.problem or not planned.is_proved:
        return False
    kind, live = planned.ref.group_kind, planned.before
    if live is None:
        return True
    if kind == _CONFIG_MAP:
        return approved is not None and _data_of(live) == _data_of(approved)
    if kind == GroupKind(_APPS, _STATEFUL_SET):
        return not (live.get("spec") or {}).get("volumeClaimTemplates")
    return kind in _PLAIN


def _data_of(obj: JsonObject) -> tuple[dict[str, Any], dict[str, Any]]:
    return dict(obj.get("data") or {}), dict(obj.get("binaryData") or {})
