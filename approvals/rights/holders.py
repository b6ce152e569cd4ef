"""Who gets the rights: the account of each process, or the one as which all of them come to a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from approvals.access.port import own_kubeconfig
from approvals.models import Cluster
from approvals.rights.needs import Account, Process, account_of
from provisioner.cluster.client.access import review_self
from provisioner.cluster.client.api import Cluster as Api
from provisioner.errors import Forbidden, Unauthenticated

# An account, or the name of a user of the cluster.
Holder = Account | str
Holders = Mapping[Process, Holder]
_SYSTEM = "system:"


def accounts_of(namespace: str) -> dict[Process, Holder]:
    """The ServiceAccounts of deploy/kubernetes/accounts.yaml."""
    return {process: (namespace, str(process)) for process in Process}


def shared_by_all(cluster: Cluster, api: Api) -> Holder | None:
    """Who the kubeconfig of the register is, by which all processes come; None where each has its own.

    Each has where Pratique runs in the cluster, or was given a kubeconfig of its own (PRATIQUE_KUBECONFIGS_DIR).
    """
    if not cluster.kubeconfig or own_kubeconfig(cluster.name) is not None:
        return None
    try:
        name = review_self(api).username
    except (Forbidden, Unauthenticated):
        return None
    return account_of(name) or (None if name.startswith(_SYSTEM) else name)


def holder_words(holder: Holder) -> str:
    return f"user {holder}" if isinstance(holder, str) else f"ServiceAccount {'/'.join(holder)}"
