"""May this person do this? The one place that asks the cluster about people, always outside a transaction.

A name counts on the cluster where it was proved (security.md S01). "Could not ask" is never yes (promise 4).
"""

from approvals.access.identity import (
    are_groups_fresh,
    fresh_identity_of,
    identity_of,
    is_human,
    is_machine,
    is_reserved,
    policy_identity,
)
from approvals.access.port import Kubernetes, kubeconfig_to_keep, kubernetes, using
from approvals.access.questions import (
    Permission,
    approval_of,
    ask_for,
    may,
    may_approve,
    may_override,
    may_read,
    may_see_object,
    may_use_account,
    may_write,
    read_answers,
)

__all__ = [
    "Kubernetes",
    "Permission",
    "approval_of",
    "are_groups_fresh",
    "ask_for",
    "fresh_identity_of",
    "identity_of",
    "is_human",
    "is_machine",
    "is_reserved",
    "kubeconfig_to_keep",
    "kubernetes",
    "may",
    "may_approve",
    "may_override",
    "may_read",
    "may_see_object",
    "may_use_account",
    "may_write",
    "policy_identity",
    "read_answers",
    "using",
]
