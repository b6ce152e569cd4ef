"""The table of kinds. PURE."""

from __future__ import annotations

from approvals.deciding.approval_policies import ApprovalPolicy
from approvals.deciding.approval_rules import ApprovalRule
from approvals.deciding.change_windows import ChangeWindow
from approvals.deciding.deputies import Deputy
from approvals.deciding.external_checks import ExternalCheck
from approvals.deciding.finding_exceptions import FindingException
from approvals.deciding.kinds import DecidingKind

KINDS: tuple[type[DecidingKind], ...] = (
    ApprovalRule,
    ChangeWindow,
    ApprovalPolicy,
    ExternalCheck,
    FindingException,
    Deputy,
)
BY_SLUG = {one.slug: one for one in KINDS}
BY_NAME = {one.kind: one for one in KINDS}
