"""What our own processes may do in a cluster: what each needs, what is missing, and the roles that give it (S31)."""

from approvals.rights.form import Chosen, choose_form
from approvals.rights.holders import accounts_of, holder_words, shared_by_all
from approvals.rights.known_names import registered
from approvals.rights.manifests import manifests
from approvals.rights.missing_rights import missing_of_account, missing_of_self, tell_what_is_missing, words_of
from approvals.rights.needs import ImpersonationForm, NeededRule, Process, Registered, Role, roles

__all__ = [
    "Chosen",
    "ImpersonationForm",
    "NeededRule",
    "Process",
    "Registered",
    "Role",
    "accounts_of",
    "choose_form",
    "holder_words",
    "manifests",
    "missing_of_account",
    "missing_of_self",
    "registered",
    "roles",
    "shared_by_all",
    "tell_what_is_missing",
    "words_of",
]
