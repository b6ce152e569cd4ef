"""The roles and bindings of a cluster before and after a change, and whose rights may differ between the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import RbacObjects, RbacSubject
from provisioner.review.base.facts import Facts, mapping
from provisioner.values import Action, JsonObject, ObjectIdentity, ObjectRef

_AUTHORIZATION = "authorization.k8s.io"

# Offline nobody tells what the cluster's own roles grant; these three are the same everywhere.
EVERYWHERE: tuple[JsonObject, ...] = (
    {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "cluster-admin"},
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ],
    },
    {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:auth-delegator"},
        "rules": [
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
            {"apiGroups": [_AUTHORIZATION], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
        ],
    },
    {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "Role",
        "metadata": {"name": "extension-apiserver-authentication-reader", "namespace": "kube-system"},
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": ["extension-apiserver-authentication"],
                "verbs": ["get", "list", "watch"],
            }
        ],
    },
)


@dataclass(frozen=True, slots=True)
class RbacBeforeAfter:
    """`own` names the objects of the bundle, by identity. Without a cluster only the bundles are known."""

    before: RbacObjects
    after: RbacObjects
    own: frozenset[ObjectIdentity]
    is_whole: bool

    def affected(self) -> list[RbacSubject]:
        """Everybody whose rights the change may touch, and everybody whom the bundle binds; sorted."""
        roles = self._changed_roles()
        found: set[RbacSubject] = set()
        for side in (self.before, self.after):
            for binding in side.bindings.values():
                if self._is_concerned(binding, roles):
                    found.update(rbac.binding_subjects(binding))
        return sorted(found, key=lambda it: (it.kind, it.namespace, it.name))

    def _is_concerned(self, binding: JsonObject, roles: set[tuple[str, str]]) -> bool:
        ref = ObjectRef.of(binding)
        key = (ref.kind, ref.namespace, ref.name)
        wanted = mapping(binding.get("roleRef"))
        place = "" if wanted.get("kind") == "ClusterRole" else ref.namespace
        is_changed = _rights(self.before.bindings.get(key)) != _rights(self.after.bindings.get(key))
        return ref.identity in self.own or is_changed or (place, str(wanted.get("name", ""))) in roles

    def _changed_roles(self) -> set[tuple[str, str]]:
        """Roles that grant something else than before; an aggregated one also where what it collects differs."""
        changed = {
            key
            for key in {*self.before.roles, *self.after.roles}
            if _rights(self.before.roles.get(key)) != _rights(self.after.roles.get(key))
        }
        if not changed:
            return changed
        aggregated = {key for side in (self.before, self.after) for key in _aggregated(side)}
        return changed | aggregated


def rbac_before_after_of(facts: Facts) -> RbacBeforeAfter:
    """Before: the cluster as it is, offline the previous bundle. After: the same with the bundle's changes made."""
    results = [obj for ref, obj in facts.state().named if ref.group == RBAC_GROUP]
    previous = [obj for ref, obj in facts.previous_state().named if ref.group == RBAC_GROUP]
    base = list(facts.live_rbac) if facts.live_rbac is not None else [*EVERYWHERE, *previous]
    gone = {one.ref.identity for one in facts.plan.actions if one.action is Action.DELETE}
    kept = [obj for obj in base if ObjectRef.of(obj).identity not in gone]
    own = frozenset(ObjectRef.of(obj).identity for obj in results)
    return RbacBeforeAfter(RbacObjects.of(base), RbacObjects.of([*kept, *results]), own, facts.live_rbac is not None)


def _aggregated(side: RbacObjects) -> Iterator[tuple[str, str]]:
    return (key for key, role in side.roles.items() if rbac.is_aggregated(role))


def _rights(obj: JsonObject | None) -> tuple[object, ...]:
    """What of a role or binding says who may do what."""
    if obj is None:
        return ()
    labels = mapping(mapping(obj.get("metadata")).get("labels"))
    parts: Iterable[object] = (obj.get(key) for key in ("rules", "aggregationRule", "roleRef", "subjects"))
    return (*parts, dict(labels))
