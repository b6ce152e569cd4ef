"""ClusterRoles for the APIs of an extension, as Kubernetes has them for its own (view, edit, admin); their bindings.

Names are stable: the same grant is the same objects again, whoever makes it. One binding holds one subject, so that to
take a right back is to delete one object.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from provisioner.api_groups import OWN_GROUP, RBAC_GROUP
from provisioner.cluster.annotations import label_value
from provisioner.extensions.apis import Extension, ExtensionApi
from provisioner.rbac import PolicyRule, RbacSubject, minimal
from provisioner.values import JsonObject, ObjectRef

MANAGED_BY, MANAGER = "app.kubernetes.io/managed-by", "kubectl-pratique"
APIS_OF, LEVEL = f"{OWN_GROUP}/apis-of", f"{OWN_GROUP}/access"
_AGGREGATED = f"{RBAC_GROUP}/aggregate-to-"
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_V1 = f"{RBAC_GROUP}/v1"
_HASH_LENGTH = 8


class AccessLevel(StrEnum):
    """What somebody is to do with objects: look, change, or everything that the extension knows."""

    VIEW = "view"
    EDIT = "edit"
    ADMIN = "admin"


def role_of(extension: Extension, level: AccessLevel, *, is_aggregated: bool) -> dict[str, Any]:
    """The ClusterRole for all APIs of the extension. Aggregated, it is part of Kubernetes' role of that name."""
    labels = _labels(extension.name, level)
    labels |= {f"{_AGGREGATED}{level}": "true"} if is_aggregated else {}
    rules = minimal(rule for api in extension.apis for rule in _rules(api, level))
    return {
        "apiVersion": _V1,
        "kind": "ClusterRole",
        "metadata": {"name": role_name(extension.name, level), "labels": labels},
        "rules": [rule.to_object() for rule in rules],
    }


def binding_of(extension: str, level: AccessLevel, subject: RbacSubject, namespace: str) -> dict[str, Any]:
    """The binding of one subject to that role: in a namespace, without one in the whole cluster."""
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    meta: dict[str, Any] = {"name": binding_name(extension, level, subject)}
    meta |= {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": _V1,
        "kind": kind,
        "metadata": {**meta, "labels": _labels(extension, level)},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role_name(extension, level)},
        "subjects": [_subject(subject)],
    }


def role_name(extension: str, level: AccessLevel) -> str:
    return f"{extension}-apis-{level}"


def binding_name(extension: str, level: AccessLevel, subject: RbacSubject) -> str:
    """Names of users may be anything: a hash tells them apart."""
    told_apart = hashlib.sha256(f"{subject.kind}\n{subject.namespace}\n{subject.name}".encode()).hexdigest()
    return f"{role_name(extension, level)}-{told_apart[:_HASH_LENGTH]}"


def selector_of(extension: str, level: AccessLevel | None) -> str:
    """The label selector of all that was made for an extension."""
    wanted = {MANAGED_BY: MANAGER, APIS_OF: label_value(extension)} | ({LEVEL: str(level)} if level else {})
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def is_ours(obj: JsonObject, extension: str) -> bool:
    """Whether a role or binding was made by a grant of this extension's APIs."""
    labels = _labels_on(obj)
    return labels.get(MANAGED_BY) == MANAGER and labels.get(APIS_OF) == label_value(extension)


def is_aggregated(role: JsonObject) -> bool:
    """Whether the rules of a role are part of roles of Kubernetes."""
    return any(key.startswith(_AGGREGATED) and value == "true" for key, value in _labels_on(role).items())


def is_as_wanted(live: JsonObject | None, wanted: JsonObject) -> bool:
    """Whether a live role or binding says already what is wanted of it."""
    if live is None:
        return False
    keys = ("rules",) if wanted["kind"] == "ClusterRole" else ("roleRef", "subjects")
    labels, there = _labels_on(wanted), _labels_on(live)
    are_labelled = all(there.get(key) == value for key, value in labels.items())
    return are_labelled and is_aggregated(live) == is_aggregated(wanted) and all(live.get(k) == wanted[k] for k in keys)


def roles_in_use(bindings: Iterable[JsonObject], going: Iterable[ObjectRef]) -> frozenset[str]:
    """The ClusterRoles that bindings name once those that are `going` are gone."""
    gone = {ref.identity for ref in going}
    staying = (one for one in bindings if ObjectRef.of(one).identity not in gone)
    return frozenset(str(_map(one.get("roleRef")).get("name")) for one in staying if _names_cluster_role(one))


def _names_cluster_role(binding: JsonObject) -> bool:
    return _map(binding.get("roleRef")).get("kind") == "ClusterRole"


def _rules(api: ExtensionApi, level: AccessLevel) -> Iterator[PolicyRule]:
    """Of parts of objects that only the extension knows (such as a console), nobody but an admin may use any: for many
    of them `get` is all it takes."""
    group = (api.group,)
    if level is AccessLevel.ADMIN:
        parts = (f"{api.plural}/{part}" for part in api.subresources)
        yield PolicyRule(("*",), group, (api.plural, *parts))
        return
    verbs = _READ if level is AccessLevel.VIEW else (*_READ, *_WRITE)
    known = tuple(verb for verb in verbs if verb in api.verbs)
    if known:
        yield PolicyRule(known, group, (api.plural,))
    for part in ("status", "scale"):
        if part in api.subresources:
            is_changed = part == "scale" and level is AccessLevel.EDIT
            yield PolicyRule(("get", "patch", "update") if is_changed else ("get",), group, (f"{api.plural}/{part}",))


def _labels(extension: str, level: AccessLevel) -> dict[str, str]:
    return {MANAGED_BY: MANAGER, APIS_OF: label_value(extension), LEVEL: str(level)}


def _subject(subject: RbacSubject) -> dict[str, str]:
    if subject.kind == "ServiceAccount":
        return {"kind": subject.kind, "name": subject.name, "namespace": subject.namespace}
    return {"kind": subject.kind, "name": subject.name, "apiGroup": RBAC_GROUP}


def _labels_on(obj: JsonObject) -> Mapping[str, Any]:
    return _map(_map(obj.get("metadata")).get("labels"))


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
