"""Whether a reviewer may be who wrote what they review, under a name that they can borrow (security-rules.md S05, S43).

Kubernetes says by which name something was written, and others can write by that name: who may impersonate it, make a
token of an account, or run pods or read Secrets where an account lives. Each is a question about the reviewer, asked
when they decide. They may have had another right before that, which nobody can ask about any more.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.core.cache import cache

from approvals import models
from approvals.access.caller import MASTERS, POLICY_PREFIX, Caller, Credential, is_machine
from approvals.access.identity import find_identity
from approvals.access.port import kubernetes
from approvals.access.questions import AUTHENTICATION, READ_SECONDS, Question, approval_of, ask_plainly
from approvals.controllers import PREFIX, VIA
from provisioner.api_groups import OWN_GROUP, RBAC_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Forbidden, PratiqueError
from provisioner.rbac import RbacSubject, holders
from provisioner.values import AccessRequest, Identity

CERTIFICATES = "certificates.k8s.io"
READING = ("get", "list", "watch")
CHANGING = ("create", "update", "patch")
# What leads to the tokens of all accounts of a namespace: reading or making Secrets, running or entering pods, taking
# more rights than one has.
IN_NAMESPACE = (
    ("", ("secrets",), (*READING, *CHANGING)),
    ("", ("pods", "replicationcontrollers"), CHANGING),
    ("", ("pods/exec", "pods/attach"), ("create", "get")),
    ("", ("pods/ephemeralcontainers",), ("update", "patch")),
    ("apps", ("deployments", "daemonsets", "statefulsets", "replicasets"), CHANGING),
    ("batch", ("jobs", "cronjobs"), CHANGING),
    (CERTIFICATES, ("podcertificaterequests",), ("create",)),
    (RBAC_GROUP, ("roles",), ("bind", "escalate")),
)
BOUND = ("edit", "admin", "cluster-admin")
# A pod of any namespace, every user, every right.
ANYBODY = (
    AccessRequest("impersonate", resource="users"),
    AccessRequest("impersonate", resource="groups", name=MASTERS),
    AccessRequest("impersonate:user-info", AUTHENTICATION, "users"),
    AccessRequest("approve", CERTIFICATES, "signers", name="kubernetes.io/kube-apiserver-client"),
    *(AccessRequest(verb, resource="nodes", subresource="proxy") for verb in ("create", "get")),
    AccessRequest("escalate", RBAC_GROUP, "clusterroles"),
    AccessRequest("bind", RBAC_GROUP, "clusterroles", name="cluster-admin"),
)
EVERY_ACCOUNT = ("system:serviceaccounts", "system:authenticated", "system:unauthenticated")
ACCOUNTS_OF = "system:serviceaccounts:"
# A cluster has some thousand roles and bindings; a reviewer is asked about so many rights at most.
MOST_ROLES = 5000
MOST_QUESTIONS = 500
# Kind and name.
Subject = tuple[str, str]
EVERYBODY: tuple[Subject, ...] = (("Group", EVERY_ACCOUNT[0]),)


# Of each kind; a large cluster has some thousands.
MOST = 5000
# Roles change seldom, and to read all of them is the longest thing that the page of a request does.
KEPT_SECONDS = 60
GROUPS_OF_MACHINES = ("system:serviceaccounts", "system:nodes", MASTERS)


def subjects_that_may_write(api: Api, request: models.Request) -> tuple[Subject, ...]:
    """All Users and Groups that a ClusterRoleBinding lets write the deployment, sorted; a ServiceAccount is the User
    that it is. Asked where nobody knows who wrote it; where nobody can tell, it is every account."""
    resources = [api.resource_of(RBAC_GROUP, "v1", kind) for kind in ("ClusterRole", "ClusterRoleBinding")]
    try:
        roles = [list(islice(api.list(resource), MOST_ROLES)) for resource in resources if resource is not None]
    except Forbidden:
        return EVERYBODY
    if any(len(each) == MOST_ROLES for each in roles):
        return EVERYBODY
    found = {
        ("User", f"{PREFIX}{one.namespace}:{one.name}") if one.kind == "ServiceAccount" else (one.kind, one.name)
        for question in _writing(request)
        for one in holders([obj for each in roles for obj in each], question)
    }
    return tuple(sorted(found))


def why_author(identity: Identity, request: models.Request, unknown: Sequence[models.SpecWrite]) -> str:
    """Why it may be this reviewer who wrote or asked for what the request is about, in words; "" where nothing says so.

    `unknown` are writes of its spec that nobody known has made. What Kubernetes does not answer holds.
    """
    here = {one["username"] for one in request.requesters if not _is_by_name(one)}
    names = {
        ("User", str(requester["username"])) for requester in request.requesters if requester["username"] not in here
    }
    questions: dict[AccessRequest, str] = {}
    if unknown or not request.is_requester_known:
        names |= {("User", write.proved_as) for write in unknown if write.proved_as}
        names |= {(kind, name) for kind, name in request.possible_authors}
        questions = dict.fromkeys((*_writing(request), *ANYBODY), "")
    for kind, name in sorted(names):
        if kind == "Group" and name in EVERY_ACCOUNT:
            return (
                f"nobody can tell which ServiceAccounts may write it, and so whether {identity.username} may act as one"
            )
        for question in _borrowing(kind, name):
            questions.setdefault(question, _called(kind, name))
    if len(questions) > MOST_QUESTIONS:
        return f"so many accounts may write it that Pratique does not ask about all that {identity.username} may do"
    asked = [Question(identity, request.deployment.cluster, question) for question in questions]
    # A yes counts against them: a deputy whose time is over for us may still write it.
    answers = ask_plainly(asked, fresh=True)
    for (question, name), answer in zip(questions.items(), answers, strict=True):
        if not answer.could_ask:
            return f"Kubernetes could not be asked whether {identity.username} may {question}"
        if answer.allowed:
            return f"{identity.username} may {question}" + (f", and so write as {name}" if name else "")
    return ""


def _is_by_name(requester: dict[str, Any]) -> bool:
    """Whether others can have borrowed the name: of who signed in here nobody can but that of an account."""
    return requester.get("via") in (Credential.KUBECTL, VIA) or str(requester["username"]).startswith(PREFIX)


def _writing(request: models.Request) -> list[AccessRequest]:
    verbs = (*CHANGING, "delete") if request.purpose == request.Purpose.DELETE else CHANGING
    return [AccessRequest(verb, OWN_GROUP, "bundledeployments", name=request.deployment.name) for verb in verbs]


def _called(kind: str, name: str) -> str:
    if kind == "Group":
        return f"a member of {name}"
    namespace, _, account = name.removeprefix(PREFIX).partition(":")
    return f"ServiceAccount {namespace}/{account}" if name.startswith(PREFIX) else name


def _borrowing(kind: str, name: str) -> Iterator[AccessRequest]:
    """What lets somebody write by this name."""
    is_accounts = kind == "Group" and name.startswith(ACCOUNTS_OF)
    if not is_accounts and not name.startswith(PREFIX):
        resource = "groups" if kind == "Group" else "users"
        yield AccessRequest("impersonate", resource=resource, name=name)
        yield AccessRequest("impersonate:user-info", AUTHENTICATION, resource, name=name)
        if kind == "User":
            yield ANYBODY[3]
        return
    namespace, _, account = name.removeprefix(ACCOUNTS_OF).removeprefix(PREFIX).partition(":")
    place = {"namespace": namespace, "name": account}
    yield AccessRequest("impersonate", resource="serviceaccounts", **place)
    yield AccessRequest("impersonate:serviceaccount", AUTHENTICATION, "serviceaccounts", **place)
    yield AccessRequest("create", resource="serviceaccounts", subresource="token", **place)
    for group, resources, verbs in IN_NAMESPACE:
        for resource, _, subresource in (one.partition("/") for one in resources):
            yield from (AccessRequest(verb, group, resource, subresource, namespace) for verb in verbs)
    yield from (AccessRequest("bind", RBAC_GROUP, "clusterroles", "", namespace, bound) for bound in BOUND)


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
    key, refused = _cache_key(cluster, identity, deployment.name), _cache_key(cluster, identity)
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
    counted = Counter(role["kind"] for role in roles)
    approvers = Approvers(users, groups, has_more=max(counted.values(), default=0) >= MOST)
    cache.set(key, approvers, KEPT_SECONDS)
    return approvers


def _cache_key(cluster: models.Cluster, identity: Identity, *names: str) -> str:
    return "approvers:" + hashlib.sha256(repr((cluster.pk, cluster.uid, identity, names)).encode()).hexdigest()


def _may_be_human(subject: RbacSubject) -> bool:
    return not subject.name.startswith(POLICY_PREFIX) and not is_machine(Identity(subject.name))
