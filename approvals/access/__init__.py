"""May this person do this? The one place that asks the cluster about people, always outside a transaction.

A name counts on the cluster where it was proved (security.md S01). "Could not ask" is never yes (promise 4).
"""

from approvals.access.acting import Acting, ActingAs, acting_of, has_proved_all, proved_by
from approvals.access.caller import Caller, Credential, Proof, Scope
from approvals.access.callers import of_chat, of_issuer, of_operator, of_proxy, of_sign_in, of_token
from approvals.access.identity import (
    Standing,
    acting_as,
    check_fresh,
    groups_limit,
    identity_of,
    last_known_of,
    proved_on,
    standing_on,
    still_known_of,
)
from approvals.access.measuring import Answers, answers_of
from approvals.access.people import (
    Asker,
    Person,
    asker_of,
    no_longer_current,
    person_of,
    person_of_account,
    person_recorded,
    person_who_reviewed,
    requester_record,
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
from approvals.access.reserved import is_human, is_machine, is_reserved, policy_identity

__all__ = [
    "Acting",
    "ActingAs",
    "Answers",
    "Asker",
    "Caller",
    "Credential",
    "Kubernetes",
    "Permission",
    "Person",
    "Proof",
    "Scope",
    "Standing",
    "acting_as",
    "acting_of",
    "answers_of",
    "approval_of",
    "ask_for",
    "asker_of",
    "check_fresh",
    "groups_limit",
    "has_proved_all",
    "identity_of",
    "is_human",
    "is_machine",
    "is_reserved",
    "kubeconfig_to_keep",
    "kubernetes",
    "last_known_of",
    "may",
    "may_approve",
    "may_override",
    "may_read",
    "may_see_object",
    "may_use_account",
    "may_write",
    "no_longer_current",
    "of_chat",
    "of_issuer",
    "of_operator",
    "of_proxy",
    "of_sign_in",
    "of_token",
    "person_of",
    "person_of_account",
    "person_recorded",
    "person_who_reviewed",
    "policy_identity",
    "proved_by",
    "proved_on",
    "read_answers",
    "requester_record",
    "standing_on",
    "still_known_of",
    "using",
]
