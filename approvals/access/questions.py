"""The questions that doors and services ask, answered in words and with the RBAC rule that would allow it."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from django.core.cache import cache

from approvals import models
from approvals.access.caller import Caller
from approvals.access.deputies import SeenDeputy, binding_named, deputies_by_binding
from approvals.access.identity import FoundIdentity, find_identity
from approvals.access.port import kubernetes
from approvals.errors import CouldNotAsk, NotAllowed, ProofTooOld, Refused
from provisioner.api_groups import OWN_GROUP, RBAC_GROUP
from provisioner.errors import PratiqueError, Unreachable
from provisioner.values import AccessRequest, Identity, ObjectRef

AUTHENTICATION = "authentication.k8s.io"
# What a request to the API server about objects can be.
REQUEST_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
# Reading is asked again after this long; a decision always asks.
READ_SECONDS = 10
# So many questions about the rows of one page, or about clusters, are under way at once.
PARALLEL = 8
# Whom a cluster kept waiting this long for nothing has waited for all readers of the next seconds.
SLOW_SECONDS = 1.0
SILENT_SECONDS = 10


# A browser shows no more than that in a list to pick from.
MOST = 500


@dataclass(frozen=True, slots=True)
class Permission:
    """`words` say why or why not, for people; `rule` is the RBAC YAML that would allow it, "" where it is allowed.

    `server_words` are the authorizer's: they name the role and the binding, which are values of those (S27).
    `refused` says why nobody was asked: the caller is nobody on that cluster, or proved it too long ago.
    `deputy_words` say whose deputy they are and until when, where they may as one.
    """

    allowed: bool
    words: str
    rule: str = ""
    identity: Identity | None = None
    could_ask: bool = True
    server_words: str = ""
    refused: Refused | None = None
    deputy_words: str = ""

    @property
    def is_too_old(self) -> bool:
        return isinstance(self.refused, ProofTooOld)

    def check(self) -> None:
        """Raise what the answer is, unless it is yes."""
        if self.refused:
            raise self.refused
        if not self.could_ask:
            raise CouldNotAsk(self.words)
        if not self.allowed:
            raise NotAllowed(self.words, rule=self.rule)


def may(
    caller: Caller,
    cluster: models.Cluster,
    verb: str,
    *,
    resource: str = "bundledeploymentrequests",
    name: str = "",
    fresh: bool = False,
) -> Permission:
    """Whether Kubernetes lets the caller do `verb` on our resource; reads may be answered from the last 10 seconds."""
    found = find_identity(caller, cluster)
    if found.identity is None:
        return _nobody(found)
    return ask_for(found.identity, cluster, AccessRequest(verb, OWN_GROUP, resource, name=name), fresh=fresh)


def may_read(caller: Caller, cluster: models.Cluster) -> Permission:
    """Required before anything of this cluster's requests and deployments is shown (S02)."""
    return may(caller, cluster, "get")


def may_approve(caller: Caller, deployment: models.BundleDeployment, *, fresh: bool = False) -> Permission:
    return may(caller, deployment.cluster, "approve", resource="bundledeployments", name=deployment.name, fresh=fresh)


def may_override(identity: Identity, deployment: models.BundleDeployment, *, fresh: bool = False) -> Permission:
    """Whether this identity may accept findings that a guard would hold back."""
    question = AccessRequest("override", OWN_GROUP, "bundledeployments", name=deployment.name)
    return ask_for(identity, deployment.cluster, question, fresh=fresh)


def may_break_glass(identity: Identity, deployment: models.BundleDeployment) -> Permission:
    """Whether this identity may let a request of it go in an emergency."""
    question = AccessRequest("break-glass", OWN_GROUP, "bundledeployments", name=deployment.name)
    return ask_for(identity, deployment.cluster, question, fresh=True)


def approval_of(deployment: models.BundleDeployment) -> AccessRequest:
    """The question that every decision on this deployment hangs on."""
    return AccessRequest("approve", OWN_GROUP, "bundledeployments", name=deployment.name)


def may_use_account(identity: Identity, wanted: models.Request, *, fresh: bool = True) -> Permission:
    """Whether this identity may act as the ServiceAccount that this request would be applied as (S07).

    Legacy impersonation answers that with one right. Constrained impersonation (Kubernetes 1.36) splits it: who may be
    the account, and which requests they may make as it. A request here makes whatever its bundle needs, by then or
    later, so only who may make every request as the account may use it: one who may only list Pods as it, may not.
    A cluster that does not serve constrained impersonation grants nothing by these verbs; that somebody was given
    every one of them over everything says there, too, that they were meant to act as the account.
    """
    namespace, name = wanted.bundle_spec.account
    cluster = wanted.deployment.cluster
    legacy = AccessRequest("impersonate", resource="serviceaccounts", namespace=namespace, name=name)
    answer = ask_for(identity, cluster, legacy, fresh=fresh)
    if answer.allowed or not answer.could_ask:
        return answer
    for question in _constrained(namespace, name):
        part = ask_for(identity, cluster, question, fresh=fresh)
        if not part.could_ask:
            return part
        if not part.allowed:
            return answer
    words = f"Kubernetes lets {identity.username} send any request as {namespace}/{name} (constrained impersonation)"
    return Permission(True, words, "", identity)


def _constrained(namespace: str, name: str) -> list[AccessRequest]:
    """What it takes to make every request as an account by constrained impersonation; the narrowest right first."""
    being = AccessRequest("impersonate:serviceaccount", AUTHENTICATION, "serviceaccounts", "", namespace, name)
    return [being, *(AccessRequest(f"impersonate-on:serviceaccount:{verb}", "*", "*") for verb in REQUEST_VERBS)]


def may_see_object(caller: Caller, cluster: models.Cluster, ref: ObjectRef) -> Permission:
    """Whether the caller may read this very object, so that its live values may be shown (S09)."""
    found = find_identity(caller, cluster)
    identity = found.identity
    if identity is None:
        return _nobody(found)
    try:
        plural = kubernetes().plural_of(cluster, ref)
    except PratiqueError as exc:
        return _could_not_ask(identity, str(exc))
    if plural is None:
        return Permission(False, f"the cluster does not serve {ref.group_kind}", identity=identity)
    request = AccessRequest("get", ref.group, plural, namespace=ref.namespace, name=ref.name)
    return ask_for(identity, cluster, request, fresh=False)


def may_see_each(
    caller: Caller, wanted: Iterable[tuple[models.Cluster, ObjectRef]]
) -> frozenset[tuple[models.Cluster, ObjectRef]]:
    """Those of these objects that the caller may read; all are asked about at once."""
    found: dict[int, Identity | None] = {}
    asked: dict[tuple[models.Cluster, ObjectRef], Question] = {}
    for cluster, ref in dict.fromkeys(wanted):
        if cluster.pk not in found:
            found[cluster.pk] = find_identity(caller, cluster).identity
        identity = found[cluster.pk]
        try:
            plural = kubernetes().plural_of(cluster, ref) if identity else None
        except PratiqueError:
            continue  # what nobody could be asked about counts as hidden
        if identity and plural:
            question = AccessRequest("get", ref.group, plural, namespace=ref.namespace, name=ref.name)
            asked[cluster, ref] = Question(identity, cluster, question)
    answers = zip(asked, ask_all(list(asked.values())), strict=True)
    return frozenset(one for one, answer in answers if answer.allowed)


def read_answers(caller: Caller) -> list[tuple[models.Cluster, Permission]]:
    """Whether the caller may read its requests, for each cluster where they proved who they are, by name.

    All clusters are asked at once: a page waits as long as for the slowest, however many there are.
    """
    proved = [proof.cluster_id for proof in caller.proofs]
    known = list(models.Cluster.objects.filter(pk__in=proved).order_by("name")) if proved else []
    found = {cluster.pk: find_identity(caller, cluster) for cluster in known}
    question = AccessRequest("get", OWN_GROUP, "bundledeploymentrequests")
    asked = [Question(one, cluster, question) for cluster in known if (one := found[cluster.pk].identity)]
    answers = {one.cluster.pk: answer for one, answer in zip(asked, ask_all(asked), strict=True)}
    return [(cluster, answers.get(cluster.pk) or _nobody(found[cluster.pk])) for cluster in known]


def _nobody(found: FoundIdentity) -> Permission:
    return Permission(False, str(found.refusal), refused=found.refusal)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of which cluster, about whom."""

    identity: Identity
    cluster: models.Cluster
    request: AccessRequest

    @property
    def key(self) -> str:
        return _cache_key(self.identity, self.cluster, self.request)


def ask_for(identity: Identity, cluster: models.Cluster, request: AccessRequest, *, fresh: bool) -> Permission:
    """Ask Kubernetes for `identity`; with `fresh` the answer never comes from the cache, nor from a silence before.

    What somebody may as a deputy whose time is over they may not, whether or not Kubernetes has noticed (S52).
    """
    return _until_end(_ask(identity, cluster, request, fresh=fresh), cluster)


def _until_end(
    answer: Permission,
    cluster: models.Cluster,
    deputies: Callable[[models.Cluster], Mapping[str, SeenDeputy]] = deputies_by_binding,
) -> Permission:
    """The same with whose deputy they are and until when, where they may as a deputy; a no where that is over."""
    binding = binding_named(answer.server_words) if answer.allowed else ""
    if not binding or answer.identity is None:
        return answer
    known, who = deputies(cluster).get(binding), answer.identity.username
    if known is None or known.deputy.user != who:
        words = f"{who} may do this as a deputy only, and that has ended or is not known here (binding {binding})"
        return replace(answer, allowed=False, words=words, server_words="")
    told = f"deputy of {known.deputy.deputy_for} until {known.end:%Y-%m-%d %H:%M} UTC"
    return replace(answer, words=f"{answer.words} as {told}", deputy_words=told)


def _ask(identity: Identity, cluster: models.Cluster, request: AccessRequest, *, fresh: bool) -> Permission:
    key, silence = _cache_key(identity, cluster, request), f"silent:{cluster.pk}"
    if not fresh:
        known = cache.get_many((key, silence))
        if isinstance(answered := known.get(key), Permission):
            return answered
        if silence in known:
            return _could_not_ask(identity, f"cluster {cluster.name} did not answer a moment ago")
    began = time.monotonic()
    try:
        answer = kubernetes().ask(cluster, identity, request)
    except PratiqueError as exc:
        if isinstance(exc, Unreachable) and time.monotonic() - began >= SLOW_SECONDS:
            cache.set(silence, True, SILENT_SECONDS)
        return _could_not_ask(identity, str(exc))
    if answer.allowed:
        words = f"Kubernetes allows {identity.username} to {request}"
        permission = Permission(True, words, "", identity, server_words=answer.reason)
    else:
        words = f"Kubernetes does not allow {identity.username} to {request} on cluster {cluster.name}"
        permission = Permission(False, words, _rule_for(identity, request), identity)
    cache.set(key, permission, READ_SECONDS)
    return permission


def ask_each(
    identity: Identity, cluster: models.Cluster, requests: Iterable[AccessRequest]
) -> dict[AccessRequest, Permission]:
    """Ask several questions about one person on one cluster at once."""
    wanted = list(dict.fromkeys(requests))
    return dict(zip(wanted, ask_all([Question(identity, cluster, one) for one in wanted]), strict=True))


def ask_all(questions: Sequence[Question], *, fresh: bool = False) -> list[Permission]:
    """Ask several questions at once, as `ask_for`: for a decision `fresh` ones.

    What somebody may as a deputy whose time is over they may not, as in `ask_for`.
    """
    answers, deputies = ask_plainly(questions, fresh=fresh), functools.cache(deputies_by_binding)
    return [_until_end(answer, one.cluster, deputies) for one, answer in zip(questions, answers, strict=True)]


def ask_plainly(questions: Sequence[Question], *, fresh: bool = False) -> list[Permission]:
    """Ask several questions at once, and take each answer as Kubernetes gives it: where a yes counts against somebody,
    a deputy whose time is over may still do what Kubernetes lets them (S43).

    Other threads do nothing but ask Kubernetes: none of them meets the database.
    """
    keys = [question.key for question in questions]
    kept = {} if fresh else cache.get_many(keys)
    known = {key: kept[key] for key in keys if isinstance(kept.get(key), Permission)}
    unknown = {key: one for key, one in zip(keys, questions, strict=True) if key not in known}
    if len(unknown) == 1:
        known.update((key, _asked(one, fresh=fresh)) for key, one in unknown.items())
    elif unknown:
        with ThreadPoolExecutor(min(PARALLEL, len(unknown))) as pool:
            known.update(zip(unknown, pool.map(partial(_asked, fresh=fresh), unknown.values()), strict=True))
    return [known[key] for key in keys]


def _asked(one: Question, *, fresh: bool) -> Permission:
    return _ask(one.identity, one.cluster, one.request, fresh=fresh)


def _could_not_ask(identity: Identity, error: str) -> Permission:
    return Permission(
        False, f"Kubernetes could not be asked, so this counts as no: {error}", identity=identity, could_ask=False
    )


def _cache_key(identity: Identity, cluster: models.Cluster, request: AccessRequest) -> str:
    return "may:" + hashlib.sha256(repr((cluster.pk, cluster.uid, identity, request)).encode()).hexdigest()


def _rule_for(identity: Identity, request: AccessRequest) -> str:
    """A ClusterRole (or Role) and its binding that would allow exactly this, ready to apply."""
    scope = "Role" if request.namespace else "ClusterRole"
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    place = f", namespace: {json.dumps(request.namespace)}" if request.namespace else ""
    # Names come from specs: quoted, none of them can add to what an administrator applies.
    title = json.dumps(f"pratique-{request.verb}-{request.name or request.resource}")
    names = f", resourceNames: [{json.dumps(request.name)}]" if request.name else ""
    return (
        f"apiVersion: {RBAC_GROUP}/v1\n"
        f"kind: {scope}\n"
        f"metadata: {{name: {title}{place}}}\n"
        "rules:\n"
        f"- {{apiGroups: [{json.dumps(request.group)}], resources: [{json.dumps(resource)}],"
        f" verbs: [{json.dumps(request.verb)}]{names}}}\n"
        "---\n"
        f"apiVersion: {RBAC_GROUP}/v1\n"
        f"kind: {scope}Binding\n"
        f"metadata: {{name: {title}{place}}}\n"
        f"roleRef: {{apiGroup: {RBAC_GROUP}, kind: {scope}, name: {title}}}\n"
        f"subjects: [{{apiGroup: {RBAC_GROUP}, kind: User, name: {json.dumps(identity.username)}}}]\n"
    )


class Kind(StrEnum):
    NAMESPACE = "Namespace"
    ACCOUNT = "ServiceAccount"


@dataclass(frozen=True, slots=True)
class Offer:
    """`names`, sorted; of more than MOST the first ones, and then `has_more`."""

    names: tuple[str, ...] = ()
    has_more: bool = False
    could_list: bool = True


def has_namespace(caller: Caller, cluster: models.Cluster, name: str) -> bool | None:
    """Whether there is such a namespace, by those that the caller may list; None where that does not say it."""
    found = names(caller, cluster, Kind.NAMESPACE)
    if name in found.names:
        return True
    return None if found.has_more or not found.could_list else False


def names(caller: Caller, cluster: models.Cluster, kind: Kind, namespace: str = "") -> Offer:
    """What the caller may list of this kind there; kept as long as other answers about what they may read."""
    identity = find_identity(caller, cluster).identity
    if identity is None:
        return Offer(could_list=False)
    key = "offer:" + hashlib.sha256(repr((cluster.pk, cluster.uid, identity, kind, namespace)).encode()).hexdigest()
    if isinstance(known := cache.get(key), Offer):
        return known
    try:
        found = kubernetes().names_of(cluster, kind, namespace=namespace, most=MOST + 1, as_person=identity)
    except PratiqueError:
        return Offer(could_list=False)
    offer = Offer(tuple(sorted(found[:MOST])), len(found) > MOST)
    cache.set(key, offer, READ_SECONDS)
    return offer
