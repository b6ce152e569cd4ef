"""Kubernetes' role-based access control, pure: rules, covering, effective rights, escalation, risks."""

from provisioner.rbac.catalogue import (
    IDENTITIES,
    PARTS_OF_THE_CLUSTER,
    PUBLIC_ROLES_OF_KUBERNETES,
    WIDE_SUBJECTS,
)
from provisioner.rbac.compare import Comparisons, PermissionDiff, ScopedRule, diff
from provisioner.rbac.effective import NO_SUCH_ROLE, EffectiveRules, Grant, allows_in, effective_rules, grants
from provisioner.rbac.escalation import EscalationCheck, is_escalation, may_write_binding, may_write_role
from provisioner.rbac.guarded import CONTROL_PLANE, OTHER_DEPLOYERS, OWN_RESOURCES, Means
from provisioner.rbac.held import HeldRules, bits_of, remainder, size
from provisioner.rbac.objects import (
    CLUSTER,
    KINDS,
    BindingKey,
    RbacObjects,
    RbacSubject,
    RoleKey,
    RoleRule,
    binding_key_of,
    binding_subjects,
    collects,
    is_aggregated,
    role_key_of,
    role_rules,
    subjects,
    written_rules,
)
from provisioner.rbac.policy import FULL_AUTHORITY, PolicyRule
from provisioner.rbac.power import BypassPower, Ours, is_strong_name, powers, powers_of
from provisioner.rbac.resources import BUILT_IN_RESOURCES, CLUSTER_SCOPED, plural_of
from provisioner.rbac.risks import SENSITIVE_NAMESPACES, Risk, names_of_risk, risks
from provisioner.rbac.rules import MAX_ATOMS, Coverage, allows, breakdown, compact, covers, holds, minimal
from provisioner.values import AccessRequest

__all__ = [
    "BUILT_IN_RESOURCES",
    "CLUSTER",
    "CLUSTER_SCOPED",
    "CONTROL_PLANE",
    "FULL_AUTHORITY",
    "IDENTITIES",
    "KINDS",
    "MAX_ATOMS",
    "NO_SUCH_ROLE",
    "OTHER_DEPLOYERS",
    "OWN_RESOURCES",
    "PARTS_OF_THE_CLUSTER",
    "PUBLIC_ROLES_OF_KUBERNETES",
    "SENSITIVE_NAMESPACES",
    "WIDE_SUBJECTS",
    "AccessRequest",
    "BindingKey",
    "BypassPower",
    "Comparisons",
    "Coverage",
    "EffectiveRules",
    "EscalationCheck",
    "Grant",
    "HeldRules",
    "Means",
    "Ours",
    "PermissionDiff",
    "PolicyRule",
    "RbacObjects",
    "RbacSubject",
    "Risk",
    "RoleKey",
    "RoleRule",
    "ScopedRule",
    "allows",
    "allows_in",
    "binding_key_of",
    "binding_subjects",
    "bits_of",
    "breakdown",
    "collects",
    "compact",
    "covers",
    "diff",
    "effective_rules",
    "grants",
    "holds",
    "is_aggregated",
    "is_escalation",
    "is_strong_name",
    "may_write_binding",
    "may_write_role",
    "minimal",
    "names_of_risk",
    "plural_of",
    "powers",
    "powers_of",
    "remainder",
    "risks",
    "role_key_of",
    "role_rules",
    "size",
    "subjects",
    "written_rules",
]
