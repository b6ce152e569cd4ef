"""Roles and bindings as `kubectl apply` takes them. Pure, and in a stable order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from approvals.rights.needs import Account, NeededRule, Process, Role
from provisioner.api_groups import RBAC_GROUP

# Whatever has this label came from this command, so that what is no longer printed can be pruned.
MANAGED_BY = {"app.kubernetes.io/managed-by": "pratique-rights"}


def manifests(roles: Iterable[Role], holders: Mapping[Process, Account | str]) -> list[dict[str, Any]]:
    """Each role, followed by its binding to the account of its process, or to the user of this name."""
    return [obj for role in roles for obj in _pair(role, holders[role.process])]


def _pair(role: Role, holder: Account | str) -> list[dict[str, Any]]:
    kind = "Role" if role.namespace else "ClusterRole"
    name = f"pratique-{role.process}-impersonates"
    place = {"namespace": role.namespace} if role.namespace else {}
    about = {"apiVersion": f"{RBAC_GROUP}/v1", "metadata": {"name": name, **place, "labels": MANAGED_BY}}
    return [
        {"kind": kind, **about, "rules": [_rule(one) for one in role.rules]},
        {
            "kind": f"{kind}Binding",
            **about,
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name},
            "subjects": [_subject(holder)],
        },
    ]


def _subject(holder: Account | str) -> dict[str, str]:
    if isinstance(holder, str):
        return {"apiGroup": RBAC_GROUP, "kind": "User", "name": holder}
    namespace, name = holder
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def _rule(rule: NeededRule) -> dict[str, Any]:
    named = {"resourceNames": [*rule.names]} if rule.names else {}
    return {"apiGroups": [rule.group], "resources": [*rule.resources], "verbs": [*rule.verbs], **named}
