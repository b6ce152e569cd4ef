"""What a subject may do after all bindings, roles, groups and aggregation are followed, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from provisioner.rbac.objects import CLUSTER, RbacObjects, RbacSubject, RoleProblem, binding_subjects, role_ref
from provisioner.rbac.policy import PolicyRule
from provisioner.rbac.rules import allows_by
from provisioner.values import AccessRequest, Identity, JsonObject, ObjectRef


@dataclass(frozen=True, slots=True)
class Grant:
    """One rule that a subject holds, with the way by which it holds it.

    `scope` is "" for the whole cluster, else a namespace. `role` is what the binding names, `origin` the role in which
    the rule stands (another one where `role` is aggregated), `rule_index` its place there.
    """

    rule: PolicyRule
    scope: str
    subject: RbacSubject
    binding: ObjectRef
    role: ObjectRef
    origin: ObjectRef
    rule_index: int


@dataclass(frozen=True, slots=True)
class EffectiveRules:
    """All grants of one identity. `problems` says what could not be read or found; then grants may be missing."""

    identity: Identity
    grants: tuple[Grant, ...] = ()
    problems: tuple[RoleProblem, ...] = ()

    @property
    def scopes(self) -> list[str]:
        """The places with grants, the whole cluster ("") first."""
        return sorted({grant.scope for grant in self.grants})

    def at(self, scope: str) -> list[PolicyRule]:
        """The rules granted exactly at `scope`."""
        return [grant.rule for grant in self.grants if grant.scope == scope]

    def rules_in(self, namespace: str) -> list[PolicyRule]:
        """The rules that count for a request in `namespace`: the cluster-wide ones and those of the namespace."""
        return [grant.rule for grant in self.grants_in(namespace)]

    def grants_in(self, namespace: str) -> list[Grant]:
        return [grant for grant in self.grants if grant.scope in (CLUSTER, namespace)]


def effective_rules(subject: Identity, objects: Iterable[JsonObject] | RbacObjects) -> EffectiveRules:
    """Every rule that `subject` holds by the (Cluster)Roles and (Cluster)RoleBindings among `objects`.

    A RoleBinding grants inside its namespace only, also where it names a ClusterRole. Aggregated ClusterRoles have the
    union of the rules of those they select, whatever their own `.rules` say. A role that is missing grants nothing.
    """
    known = RbacObjects.of(objects)
    grants: list[Grant] = []
    problems: list[RoleProblem] = []
    for binding, matched in known.bindings_of(subject):
        grants += _granted_by(known, binding, matched, problems)
    return EffectiveRules(subject, tuple(grants), tuple(problems))


def allows_in(effective: EffectiveRules, request: AccessRequest) -> bool:
    """Whether the identity may do what `request` asks, by RBAC alone."""
    return any(allows_by(grant.rule, request) for grant in _that_count(effective, request))


def grants(effective: EffectiveRules, request: AccessRequest) -> list[Grant]:
    """The grants that permit `request`, each enough by itself; empty where it is not permitted."""
    return [grant for grant in _that_count(effective, request) if allows_by(grant.rule, request)]


def holders(objects: Iterable[JsonObject] | RbacObjects, request: AccessRequest) -> list[RbacSubject]:
    """Everybody to whom a binding among `objects` gives what `request` asks, sorted, each once."""
    known = RbacObjects.of(objects)
    found: set[RbacSubject] = set()
    for binding in known.bindings.values():
        ref, role = ObjectRef.of(binding), known.role_of(binding)
        reaches = ref.kind == "ClusterRoleBinding" or (not request.path and ref.namespace == request.namespace)
        if role and reaches and any(allows_by(it.rule, request) for it in known.rules_of(role)[0]):
            found.update(binding_subjects(binding))
    return sorted(found, key=str)


def _that_count(effective: EffectiveRules, request: AccessRequest) -> list[Grant]:
    return effective.grants_in(CLUSTER if request.path else request.namespace)


def _granted_by(
    known: RbacObjects, binding: JsonObject, matched: RbacSubject, problems: list[RoleProblem]
) -> list[Grant]:
    ref = ObjectRef.of(binding)
    role = known.role_of(binding)
    if role is None:
        kind, name = role_ref(binding)
        words = f"names {kind or 'no kind'} {name}, which does not exist"
        problems.append(RoleProblem(ref, words, is_missing=True))
        return []
    scope = CLUSTER if ref.kind == "ClusterRoleBinding" else ref.namespace
    rules, unreadable = known.rules_of(role)
    problems += unreadable
    named = ObjectRef.of(role)
    return [Grant(entry.rule, scope, matched, ref, named, entry.origin, entry.index) for entry in rules]
