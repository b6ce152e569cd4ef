"""The roles and bindings of a cluster before and after a change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import BindingKey, RbacObjects, RbacSubject, RoleKey
from provisioner.review.base.facts import Facts
from provisioner.review.rights.renamed_roles import with_new_names
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import Action, GroupKind, JsonObject, ObjectIdentity, ObjectRef

_AUTHORIZATION = "authorization.k8s.io"
_ACCOUNT = GroupKind("", "ServiceAccount")
_ROLES, _BINDINGS = ("ClusterRole", "Role"), ("ClusterRoleBinding", "RoleBinding")

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
    """`own` names the objects of the bundle, by identity. `touched_roles` and `touched_bindings` are these and the ones
    that it deletes: all others are the same on both sides. Without a cluster only the bundles are known. `accounts` are
    the ServiceAccounts that the bundle makes or runs its pods as, and the one that installs it."""

    before: RbacObjects
    after: RbacObjects
    own: frozenset[ObjectIdentity]
    touched_roles: frozenset[RoleKey]
    touched_bindings: frozenset[BindingKey]
    accounts: frozenset[RbacSubject]
    is_whole: bool


def rbac_before_after_of(facts: Facts) -> RbacBeforeAfter:
    """Before: the cluster as it is, offline the previous bundle. After: the same with the bundle's changes made."""
    return facts.once("rbac before and after", _made)


def _made(facts: Facts) -> RbacBeforeAfter:
    results = [obj for ref, obj in facts.state().named if ref.group == RBAC_GROUP]
    before = facts.known_rbac
    if before is None:
        previous = (obj for ref, obj in facts.previous_state().named if ref.group == RBAC_GROUP)
        before = RbacObjects.of([*EVERYWHERE, *previous])
    if renamed := [one.ref for one in facts.plan.actions if one.returns_as]:
        roles = [before.roles[key] for one in renamed if (key := rbac.role_key_of(one)) in before.roles]
        held = [before.bindings[key] for one in renamed for key in _bindings_of(one, before)]
        others = RbacObjects.of(with_new_names(facts, [*roles, *held]))
        before = before.changed(gone={one.identity for one in renamed}, others=others)
    gone = [one.ref for one in facts.plan.actions if one.action is Action.DELETE and one.ref.group == RBAC_GROUP]
    own = [ObjectRef.of(obj) for obj in results]
    after = before.changed(gone={one.identity for one in gone}, others=RbacObjects.of(results))
    return RbacBeforeAfter(
        before,
        after,
        frozenset(one.identity for one in own),
        frozenset(rbac.role_key_of(one) for one in (*own, *gone) if one.kind in _ROLES),
        frozenset(rbac.binding_key_of(one) for one in (*own, *gone) if one.kind in _BINDINGS),
        frozenset(_accounts_of(facts)),
        facts.live_rbac is not None,
    )


def _bindings_of(ref: ObjectRef, known: RbacObjects) -> Iterator[BindingKey]:
    """The binding that `ref` is, or those that name the role that it is."""
    if ref.kind in _ROLES:
        yield from known.bindings_to(rbac.role_key_of(ref))
    elif (key := rbac.binding_key_of(ref)) in known.bindings:
        yield key


def _accounts_of(facts: Facts) -> Iterator[RbacSubject]:
    if facts.installer is not None:
        yield facts.installer.account
    for state in (facts.previous_state(), facts.state()):
        for ref, _ in state.named:
            if ref.group_kind == _ACCOUNT:
                yield RbacSubject("ServiceAccount", ref.name, ref.namespace or state.install_namespace)
        for pod in pod_specs(state.objects):
            yield RbacSubject("ServiceAccount", pod.account, pod.ref.namespace or state.install_namespace)
