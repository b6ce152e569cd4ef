"""Who gets the rights: the account of each process, or the one as which all of them come to a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from approvals.access.port import connect_as_registered
from approvals.models import Cluster
from approvals.rights.missing_rights import holds_own_role
from approvals.rights.needs import Account, Process, account_of
from provisioner.cluster.client.access import review_self
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Forbidden, Unauthenticated

# An account, or the name of a user of the cluster.
Holder = Account | str
Holders = Mapping[Process, Holder]
_SYSTEM = "system:"


def accounts_of(namespace: str) -> dict[Process, Account]:
    """The ServiceAccounts of deploy/kubernetes/accounts.yaml."""
    return {process: (namespace, str(process)) for process in Process}


def shared_by_all(cluster: Cluster, api: Api, namespace: str) -> Holder | None:
    """Who the kubeconfig of the register is, by which all processes come; None where each has its own account.

    Asked of the register and of the cluster, so that it is the same wherever the command runs: what this process alone
    was given (PRATIQUE_KUBECONFIGS_DIR) says nothing of the others. Each has its own where Pratique runs in the
    cluster, where the accounts of `namespace` hold their shipped roles there, and where what is registered is nobody's
    credential.
    """
    if not cluster.kubeconfig or _are_installed(api, namespace):
        return None
    try:
        name = review_self(connect_as_registered(cluster)).username
    except (Forbidden, Unauthenticated):
        return None
    return account_of(name) or (None if name.startswith(_SYSTEM) else name)


def _are_installed(api: Api, namespace: str) -> bool:
    """Whether one of them holds its role: one may be an older role. Where nobody may be asked about, none does."""
    try:
        return any(holds_own_role(api, process, account) for process, account in accounts_of(namespace).items())
    except Forbidden:
        return False


def holder_words(holder: Holder) -> str:
    return f"user {holder}" if isinstance(holder, str) else f"ServiceAccount {'/'.join(holder)}"
