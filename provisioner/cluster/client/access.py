"""May they? Only the cluster's own authorizers answer that, whatever RBAC looks like from outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import ClusterError, InvalidManifest
from provisioner.rbac import OwnRules, PolicyRule
from provisioner.retention import may_be_remade
from provisioner.values import AccessAnswer, AccessRequest, Action, Identity, PlannedAction

PARALLEL = 8
# No namespace can have this name, so that no RoleBinding counts there: what is held there is held in the whole cluster.
NOWHERE = "(nowhere)"
# What a server-side apply asks for: `create` only where there is nothing yet.
_VERBS = {
    Action.CREATE: ("create", "patch"),
    Action.UPDATE: ("patch",),
    Action.ADOPT: ("patch",),
    Action.REPLACE: ("create", "delete", "patch"),
    Action.RERUN: ("create", "delete", "patch"),
    Action.DELETE: ("delete",),
}


def ask(cluster: ClusterClient, identity: Identity, request: AccessRequest) -> AccessAnswer:
    """What the API server says about `identity` doing `request` (a SubjectAccessReview).

    An answer with an evaluation error is a no unless some authorizer allowed it; the error stands in the reason.
    """
    spec = {"user": identity.username, "groups": list(identity.groups), **_attributes(request)}
    if identity.uid:
        spec["uid"] = identity.uid
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = cluster.post(path, body, subject=f"whether {identity.username} may {request}")
    status = answer.get("status")
    if not isinstance(status, dict) or not isinstance(status.get("allowed"), bool):
        raise ClusterError(f"whether {identity.username} may {request}: the answer has no status")
    words = [str(status.get(key)) for key in ("reason", "evaluationError") if status.get(key)]
    allowed = status["allowed"] and not status.get("denied")
    return AccessAnswer(allowed, "; ".join(words))


def ask_self(cluster: ClusterClient, request: AccessRequest) -> bool:
    """Whether this connection may do `request` (a SelfSubjectAccessReview), which everybody may ask."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": _attributes(request)}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    status = cluster.post(path, body, subject=f"whether we may {request}").get("status")
    if not isinstance(status, dict) or not isinstance(status.get("allowed"), bool):
        raise ClusterError(f"whether we may {request}: the answer has no status")
    return bool(status["allowed"]) and not status.get("denied")


def own_rules(cluster: ClusterClient, namespace: str = "") -> OwnRules:
    """What this connection may do in a namespace (a SelfSubjectRulesReview), without one in the whole cluster."""
    spec = {"namespace": namespace or NOWHERE}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": spec}
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    status = cluster.post(path, body, subject="what we may do").get("status")
    if not isinstance(status, dict):
        raise ClusterError("could not read our own permissions: the answer has no status")
    listed = [*(status.get("resourceRules") or []), *(status.get("nonResourceRules") or [])]
    try:
        rules = tuple(PolicyRule.from_object(rule) for rule in listed)
    except InvalidManifest as exc:
        raise ClusterError(f"could not read our own permissions: {exc}") from exc
    return OwnRules(rules, status.get("incomplete") is not True, str(status.get("evaluationError") or ""))


def ask_self_many(cluster: ClusterClient, requests: Iterable[AccessRequest]) -> dict[AccessRequest, bool]:
    """The answer to each different request. The first error is raised."""
    wanted = list(dict.fromkeys(requests))
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return dict(zip(wanted, pool.map(lambda request: ask_self(cluster, request), wanted), strict=True))


def ask_many(
    cluster: ClusterClient, identity: Identity, requests: Iterable[AccessRequest], *, parallel: int = PARALLEL
) -> dict[AccessRequest, AccessAnswer]:
    """The answer to each different request, in the order in which they came. The first error is raised."""
    wanted = list(dict.fromkeys(requests))
    with ThreadPoolExecutor(max_workers=parallel) as pool:
        answers = pool.map(lambda request: ask(cluster, identity, request), wanted)
        return dict(zip(wanted, answers, strict=True))


def refused_writes(cluster: ClusterClient, identity: Identity, actions: Iterable[PlannedAction]) -> list[AccessRequest]:
    """What of the planned writes `identity` may not do; of kinds that are not served yet nobody can ask.

    Asked once for all objects of a kind and place, and one by one only where that is refused.
    """
    wanted: dict[AccessRequest, list[AccessRequest]] = {}
    for one in actions:
        resource = cluster.resource_of(one.ref.group, one.ref.version, one.ref.kind)
        action = Action.REPLACE if may_be_remade(one) else one.action
        for verb in _VERBS.get(action, ()) if resource else ():
            assert resource is not None  # there are no verbs else
            every = AccessRequest(verb, resource.group, resource.plural, namespace=one.ref.namespace)
            wanted.setdefault(every, []).append(replace(every, name=one.ref.name))
    answers = ask_many(cluster, identity, wanted)
    doubtful = [named for every, those in wanted.items() if not answers[every].allowed for named in those]
    return [named for named, answer in ask_many(cluster, identity, doubtful).items() if not answer.allowed]


def review_token(cluster: ClusterClient, token: str, audience: str) -> Identity | None:
    """Whose token it is (a TokenReview), None if the cluster does not know it, or not for this `audience`."""
    if not token or not token.isascii() or not token.isprintable():
        return None
    spec: dict[str, Any] = {"token": token}
    if audience:
        spec["audiences"] = [audience]
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    status = cluster.post(path, body, subject="whose token this is").get("status")
    if not isinstance(status, dict):
        raise ClusterError("whose token this is: the answer has no status")
    if status.get("authenticated") is not True:
        return None
    # A server that does not know audiences answers without any: then the token may be meant for somebody else.
    if audience and audience not in (status.get("audiences") or []):
        return None
    return _identity(status.get("user"))


def review_self(cluster: ClusterClient) -> Identity:
    """Who the cluster takes this connection for (a SelfSubjectReview)."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    status = cluster.post(path, body, subject="who we are").get("status") or {}
    found = _identity(status.get("userInfo"))
    if found is None:
        raise ClusterError("who we are: the answer names no user")
    return found


def _attributes(request: AccessRequest) -> dict[str, Any]:
    if request.path:
        return {"nonResourceAttributes": {"path": request.path, "verb": request.verb}}
    attributes = {
        "verb": request.verb,
        "group": request.group,
        "resource": request.resource,
        "subresource": request.subresource,
        "namespace": request.namespace,
        "name": request.name,
    }
    return {"resourceAttributes": {key: value for key, value in attributes.items() if value}}


def _identity(user: object) -> Identity | None:
    if not isinstance(user, Mapping) or not user.get("username"):
        return None
    groups = tuple(str(group) for group in user.get("groups") or ())
    return Identity(str(user["username"]), groups, str(user.get("uid") or ""))
