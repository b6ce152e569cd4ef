"""Whole roles, and bindings of them to a robot."""

from __future__ import annotations

from typing import Any

from provisioner.rbac import RbacSubject
from tests.support.provisioner.contents import an_object

GROUP = "rbac.authorization.k8s.io"
ROBOT = RbacSubject("ServiceAccount", "robot", "shop")
PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
SECRETS = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["secrets"]}
APPS = {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"]}


def role(name: str, *rules: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return an_object(f"{GROUP}/v1", "ClusterRole", name, rules=list(rules), **rest)


def binding(name: str, to: str, *, subject: RbacSubject = ROBOT, namespace: str = "") -> dict[str, Any]:
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    named = {"kind": subject.kind, "name": subject.name} | (
        {"namespace": subject.namespace} if subject.namespace else {}
    )
    wanted = {"apiGroup": GROUP, "kind": "ClusterRole", "name": to}
    return an_object(f"{GROUP}/v1", kind, name, namespace, roleRef=wanted, subjects=[named])
