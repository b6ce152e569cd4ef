"""What a subject may do after all bindings, roles, groups and aggregation are followed, and what it may grant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import InvalidManifest, TooManyRights
from provisioner.json_values import value_at
from provisioner.rbac.objects import (
    CLUSTER,
    RbacObjects,
    RbacSubject,
    RoleProblem,
    binding_subjects,
    role_ref,
    role_rules,
    written_rules,
)
from provisioner.rbac.rules import FULL_AUTHORITY, PolicyRule, allows, allows_by, covers, holds
from provisioner.values import AccessRequest, Identity, JsonObject, ObjectRef, object_in


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
        ref, role = ObjectRef.of(binding), known.role_of(binding)
        if role is None:
            kind, name = role_ref(binding)
            words = f"names {kind or 'no kind'} {name}, which does not exist"
            problems.append(RoleProblem(ref, words, is_missing=True))
            continue
        scope = CLUSTER if ref.kind == "ClusterRoleBinding" else ref.namespace
        rules, unreadable = known.rules_of(role)
        problems += unreadable
        named = ObjectRef.of(role)
        grants += [Grant(entry.rule, scope, matched, ref, named, entry.origin, entry.index) for entry in rules]
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
        if role and reaches and any(allows_by(entry.rule, request) for entry in known.rules_of(role)[0]):
            found.update(binding_subjects(binding))
    return sorted(found, key=str)


def _that_count(effective: EffectiveRules, request: AccessRequest) -> list[Grant]:
    return effective.grants_in(CLUSTER if request.path else request.namespace)


SUPERUSERS = "system:masters"


@dataclass(frozen=True, slots=True)
class EscalationCheck:
    """`missing` are the rules the requester would have to hold; `reason` says why, in one sentence.

    What is not allowed and has nothing missing could not be told: such rules cannot be read, or are too many.
    """

    allowed: bool
    missing: tuple[PolicyRule, ...] = ()
    reason: str = ""

    def __bool__(self) -> bool:
        return self.allowed


def may_write_role(requester: EffectiveRules, role: JsonObject, *, old: JsonObject | None = None) -> EscalationCheck:
    """The escalation check on creating `role`, or on updating it where `old` is what is there now."""
    ref = ObjectRef.of(role)
    before = {} if old is None else object_in(old, "the role as it is")
    if SUPERUSERS in requester.identity.groups:
        return EscalationCheck(True, reason=f"{SUPERUSERS} may grant everything")
    resource = "clusterroles" if ref.kind == "ClusterRole" else "roles"
    namespace = CLUSTER if ref.kind == "ClusterRole" else ref.namespace
    if _may(requester, "escalate", resource, ObjectRef(RBAC_GROUP, "", "", namespace, ref.name)):
        return EscalationCheck(True, reason=f"may escalate {resource}")
    try:
        rules = written_rules(role)
    except InvalidManifest as exc:
        return EscalationCheck(False, reason=f"{ref}: {exc}")
    try:
        coverage = covers(requester.rules_in(namespace), rules)
    except TooManyRights as exc:
        return EscalationCheck(False, reason=f"{ref}: {exc}")
    if not coverage.covered:
        return EscalationCheck(
            False, coverage.missing, f"{ref} grants what {requester.identity.username} does not hold"
        )
    aggregates = any(value_at(side, "aggregationRule", "clusterRoleSelectors") for side in (role, before))
    if aggregates and not holds(requester.rules_in(namespace), FULL_AUTHORITY):
        return EscalationCheck(
            False, FULL_AUTHORITY, f"{ref}: must have cluster-admin privileges to use the aggregationRule"
        )
    return EscalationCheck(True, reason="holds everything that the role grants")


def may_write_binding(
    requester: EffectiveRules, binding: JsonObject, objects: Iterable[JsonObject] | RbacObjects
) -> EscalationCheck:
    """The bind check on writing `binding`, whose role stands among `objects` as it is when the binding is written."""
    ref = ObjectRef.of(binding)
    if SUPERUSERS in requester.identity.groups:
        return EscalationCheck(True, reason=f"{SUPERUSERS} may bind everything")
    namespace = CLUSTER if ref.kind == "ClusterRoleBinding" else ref.namespace
    kind, name = role_ref(binding)
    resource = {"ClusterRole": "clusterroles", "Role": "roles"}.get(kind, "")
    if resource and _may(requester, "bind", resource, ObjectRef(RBAC_GROUP, "", "", namespace, name)):
        return EscalationCheck(True, reason=f"may bind {resource} {name}")
    known = RbacObjects.of(objects)
    role = known.role_of(binding)
    if role is None:
        return EscalationCheck(False, reason=f"{ref} names {kind} {name}, which does not exist")
    try:
        coverage = covers(requester.rules_in(namespace), role_rules(known, role))
    except (InvalidManifest, TooManyRights) as exc:
        return EscalationCheck(False, reason=f"{ref}: {exc}")
    if coverage.covered:
        return EscalationCheck(True, reason="holds everything that the role grants")
    return EscalationCheck(False, coverage.missing, f"{ref} grants what {requester.identity.username} does not hold")


def escalating_rule(roles: Iterable[JsonObject], escalate: AccessRequest) -> tuple[ObjectRef, PolicyRule] | None:
    """The first rule in `roles`, with the role, that lets whoever holds it do `escalate`; bindings are passed over."""
    for role in roles:
        ref = ObjectRef.of(role)
        try:
            rules = [] if ref.kind.endswith("Binding") else written_rules(role)
        except InvalidManifest:
            continue
        for rule in rules:
            if allows([rule], escalate):
                return ref, rule
    return None


def is_escalation(requester: EffectiveRules, obj: JsonObject, objects: Iterable[JsonObject] | RbacObjects = ()) -> bool:
    """Whether the API server would refuse `requester` to write `obj`, a role or a binding, as an escalation."""
    if ObjectRef.of(obj).kind.endswith("Binding"):
        return not may_write_binding(requester, obj, objects).allowed
    return not may_write_role(requester, obj).allowed


def _may(requester: EffectiveRules, verb: str, resource: str, target: ObjectRef) -> bool:
    request = AccessRequest(verb, group=RBAC_GROUP, resource=resource, namespace=target.namespace, name=target.name)
    return allows_in(requester, request)
