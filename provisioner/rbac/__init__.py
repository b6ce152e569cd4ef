"""Kubernetes' role-based access control, pure: rules, covering, effective rights, escalation, risks."""

from provisioner.rbac.compare import PermissionDiff, ScopedRule, diff
from provisioner.rbac.effective import (
    EffectiveRules,
    Grant,
    RbacObjects,
    Subject,
    allows_in,
    binding_subjects,
    effective_rules,
    grants,
    is_aggregated,
    role_rules,
    subjects,
    written_rules,
)
from provisioner.rbac.escalation import EscalationCheck, is_escalation, may_write_binding, may_write_role
from provisioner.rbac.resources import BUILT_IN_RESOURCES, plural_of
from provisioner.rbac.risks import Risk, risks
from provisioner.rbac.rules import FULL_AUTHORITY, Coverage, PolicyRule, allows, breakdown, compact, covers, minimal
from provisioner.values import AccessRequest

__all__ = [
    "BUILT_IN_RESOURCES",
    "FULL_AUTHORITY",
    "AccessRequest",
    "Coverage",
    "EffectiveRules",
    "EscalationCheck",
    "Grant",
    "PermissionDiff",
    "PolicyRule",
    "RbacObjects",
    "Risk",
    "ScopedRule",
    "Subject",
    "allows",
    "allows_in",
    "binding_subjects",
    "breakdown",
    "compact",
    "covers",
    "diff",
    "effective_rules",
    "grants",
    "is_aggregated",
    "is_escalation",
    "may_write_binding",
    "may_write_role",
    "minimal",
    "plural_of",
    "risks",
    "role_rules",
    "subjects",
    "written_rules",
]
