"""May this person do this? The one place that asks the cluster about people, always outside a transaction.

A name counts on the cluster where it was proved (security-rules.md S01). "Could not ask" is never yes (promise 4).

Modules that other rooms use:

- `approvers`: who may approve a deployment, as far as the viewer may list roles and bindings
- `offers`: names that a form offers to pick from, of objects that the person themselves may list
- `own_words`: what a report says to a viewer who may see what it is made of
- `port`: what people's actions need of Kubernetes, as a port: the real thing, or in unit tests a fake through `using`
- `questions`: the questions that doors and services ask, answered in words and with the RBAC rule that would allow it
- `sight`: the live values of a report that a viewer may see: those of objects that they can get
- `workloads`: what will run as one viewer may see it
"""

from approvals.access.acting import Acting, ActingAs, acting_of, has_proved_all, proved_by
from approvals.access.authors import subjects_that_may_write, why_author
from approvals.access.caller import Caller, Credential, Proof, Scope
from approvals.access.callers import of_admission, of_chat, of_issuer, of_operator, of_proxy, of_sign_in, of_token
from approvals.access.catalogs import ReadableCatalogs, catalog_question, may_read_catalog, readable_catalogs
from approvals.access.identity import (
    FoundIdentity,
    acting_as,
    check_fresh,
    find_identity,
    groups_limit,
    identity_of,
    last_known_of,
    proved_on,
    still_known_of,
)
from approvals.access.measuring import Answers, answers_of
from approvals.access.people import (
    Asker,
    Person,
    asker_of,
    catalog_author,
    each_once,
    last_writer_of,
    no_longer_current,
    person_of,
    person_of_account,
    person_recorded,
    person_who_reviewed,
    requester_record,
    writers_of,
)
from approvals.access.port import Kubernetes, kubeconfig_to_keep, kubernetes, using
from approvals.access.questions import (
    Permission,
    Question,
    approval_of,
    ask_all,
    ask_each,
    ask_for,
    may,
    may_approve,
    may_override,
    may_read,
    may_see_object,
    may_use_account,
    read_answers,
)
from approvals.access.reserved import is_human, is_machine, is_reserved, policy_identity
from approvals.access.vouching import also_known_as

__all__ = [
    "Acting",
    "ActingAs",
    "Answers",
    "Asker",
    "Caller",
    "Credential",
    "FoundIdentity",
    "Kubernetes",
    "Permission",
    "Person",
    "Proof",
    "Question",
    "ReadableCatalogs",
    "Scope",
    "acting_as",
    "acting_of",
    "also_known_as",
    "answers_of",
    "approval_of",
    "approvers",
    "ask_all",
    "ask_each",
    "ask_for",
    "asker_of",
    "catalog_author",
    "catalog_question",
    "check_fresh",
    "each_once",
    "find_identity",
    "groups_limit",
    "has_proved_all",
    "identity_of",
    "is_human",
    "is_machine",
    "is_reserved",
    "kubeconfig_to_keep",
    "kubernetes",
    "last_known_of",
    "last_writer_of",
    "may",
    "may_approve",
    "may_override",
    "may_read",
    "may_read_catalog",
    "may_see_object",
    "may_use_account",
    "no_longer_current",
    "of_admission",
    "of_chat",
    "of_issuer",
    "of_operator",
    "of_proxy",
    "of_sign_in",
    "of_token",
    "offers",
    "own_words",
    "person_of",
    "person_of_account",
    "person_recorded",
    "person_who_reviewed",
    "policy_identity",
    "port",
    "proved_by",
    "proved_on",
    "questions",
    "read_answers",
    "readable_catalogs",
    "requester_record",
    "sight",
    "still_known_of",
    "subjects_that_may_write",
    "using",
    "why_author",
    "workloads",
    "writers_of",
]
