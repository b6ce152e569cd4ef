"""Who may approve a deployment, by the roles and bindings of its cluster, as far as the viewer may list these.

Nothing hangs on it: about whoever decides Kubernetes is asked then. RBAC may not be the only authorizer of a cluster.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass

from django.core.cache import cache

from approvals import models
from approvals.access.caller import Caller
from approvals.access.identity import find_identity
from approvals.access.port import kubernetes
from approvals.access.questions import READ_SECONDS, approval_of
from approvals.access.reserved import MASTERS, POLICY_PREFIX, is_machine
from provisioner.errors import Forbidden, PratiqueError
from provisioner.rbac import RbacSubject, holders
from provisioner.values import Identity

# Of each kind; a large cluster has some thousands.
MOST = 5000
# Roles change seldom, and to read all of them is the longest thing that the page of a request does.
KEPT_SECONDS = 60
GROUPS_OF_MACHINES = ("system:serviceaccounts", "system:nodes", MASTERS)


@dataclass(frozen=True, slots=True)
class Approvers:
    """`users` and `groups` to whom a binding gives the right, sorted. Not `could_list`: the viewer may not know.

    `has_more`: there are more roles or bindings than were read.
    """

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    could_list: bool = True
    has_more: bool = False


UNKNOWN = Approvers(could_list=False)


def approvers_of(caller: Caller, deployment: models.BundleDeployment) -> Approvers:
    """Roles and bindings are listed as the caller, so that nobody learns more than Kubernetes shows them."""
    cluster = deployment.cluster
    identity = find_identity(caller, cluster).identity
    if identity is None:
        return UNKNOWN
    key, refused = _key(cluster, identity, deployment.name), _key(cluster, identity)
    kept = cache.get_many([key, refused])
    if isinstance(known := kept.get(key, kept.get(refused)), Approvers):
        return known
    try:
        roles = kubernetes().cluster_roles(cluster, most=MOST, as_person=identity)
        found = holders(roles, approval_of(deployment))
    except PratiqueError as exc:
        # All deployments of a cluster need the same roles.
        cache.set(refused, UNKNOWN, KEPT_SECONDS if isinstance(exc, Forbidden) else READ_SECONDS)
        return UNKNOWN
    users = tuple(one.name for one in found if one.kind == "User" and _may_be_human(one))
    groups = tuple(one.name for one in found if one.kind == "Group" and not one.name.startswith(GROUPS_OF_MACHINES))
    counted = Counter(one["kind"] for one in roles)
    approvers = Approvers(users, groups, has_more=max(counted.values(), default=0) >= MOST)
    cache.set(key, approvers, KEPT_SECONDS)
    return approvers


def _key(cluster: models.Cluster, identity: Identity, *names: str) -> str:
    return "approvers:" + hashlib.sha256(repr((cluster.pk, cluster.uid, identity, names)).encode()).hexdigest()


def _may_be_human(subject: RbacSubject) -> bool:
    return not subject.name.startswith(POLICY_PREFIX) and not is_machine(Identity(subject.name))
