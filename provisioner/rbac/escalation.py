"""Whether the API server lets somebody write a role or a binding: nobody may hand out what they do not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import InvalidManifest, TooManyRights
from provisioner.rbac.effective import EffectiveRules, allows_in
from provisioner.rbac.objects import CLUSTER, RbacObjects, role_ref, role_rules, written_rules
from provisioner.rbac.policy import FULL_AUTHORITY, PolicyRule
from provisioner.rbac.rules import allows, covers, holds
from provisioner.values import AccessRequest, JsonObject, ObjectRef, object_in

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
    aggregates = any(_has_selectors(it) for it in (role, before))
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


def _has_selectors(role: JsonObject) -> bool:
    rule = role.get("aggregationRule")
    return isinstance(rule, Mapping) and bool(rule.get("clusterRoleSelectors"))
