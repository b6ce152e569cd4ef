"""What the cluster says now: the live BundleDeployment, its account, which cluster this is, and whether it meets
spec.constraints.

Nobody else reads the live BundleDeployment to decide by it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from approvals import policy
from approvals.access.questions import AUTHENTICATION
from approvals.bundle_spec import parse_spec
from approvals.clock import database_now
from approvals.gate.facts import Account, Fact, How, Known, LiveSpec, Right, Unknown
from approvals.gate.plan_options import reserved_namespaces
from approvals.ledger.digests import options_digest
from approvals.models import BundleDeployment, Request
from approvals.selectors import lists
from approvals.selectors.pages import version_words
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.access import ask_self
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import ClusterError, PratiqueError, TryLater
from provisioner.expressions.evaluator import ask
from provisioner.values import AccessRequest, HealthState, JsonObject, ObjectRef

T = TypeVar("T")


def live_deployment(api: Api, deployment: BundleDeployment) -> JsonObject | None:
    """The object of this name as the cluster has it; None where there is none, or another one of the name."""
    live = api.get(ObjectRef(OWN_GROUP, "v1alpha2", "BundleDeployment", "", deployment.name))
    return live if live is not None and live["metadata"]["uid"] == deployment.uid else None


def learn(ask: Callable[[], T], *, may_be_final: bool = False, how: How = How.CLUSTER) -> Fact[T]:
    """What `ask` answers, or that nobody could find out.

    `may_be_final`: what is wrong may be what is asked, such as an expression that cannot be read. What the cluster
    refuses is never final: rights come back, and no answer is no end (S25).
    """
    at = database_now()
    try:
        return Known(ask(), at, how)
    except PratiqueError as exc:
        is_final = may_be_final and not isinstance(exc, TryLater | ClusterError)
        return Unknown(str(exc), at, how, exc.code, is_final)


@dataclass(frozen=True, slots=True)
class PendingFacts:
    """What is first asked of the cluster, all at once, while records are read here."""

    cluster_uid: Future[Fact[str]]
    live: Future[Fact[JsonObject | None]]
    account: Future[Fact[Account]]

    @classmethod
    def of(cls, beside: ThreadPoolExecutor, request: Request, api: Api) -> PendingFacts:
        return cls(
            beside.submit(learn, api.uid),
            beside.submit(learn, partial(live_deployment, api, request.deployment)),
            beside.submit(learn, partial(account_of, request, api)),
        )


def cluster_uid(request: Request, found: Fact[str]) -> Fact[str]:
    """As it was found; that of a cluster that was never reached is learned once and then never changes (S19)."""
    cluster = request.deployment.cluster
    if cluster.uid is None and isinstance(found, Known):
        type(cluster).objects.filter(pk=cluster.pk, uid__isnull=True).update(uid=found.value)
        cluster.uid = found.value
    return found


def desired_spec(deployment: BundleDeployment, found: Fact[JsonObject | None]) -> Fact[LiveSpec]:
    """Return what counts of the live BundleDeployment; who paused it is in our records."""
    if isinstance(found, Unknown):
        return found
    live = found.value or {}
    written: dict[str, Any] = dict(live.get("spec") or {})
    spec = parse_spec(written)
    said = LiveSpec(
        is_the_same=found.value is not None,
        is_being_deleted=bool((live.get("metadata") or {}).get("deletionTimestamp")),
        is_paused=spec.is_paused,
        paused_by=lists.pause_words(deployment=deployment) if spec.is_paused else "",
        options_digest=options_digest(written),
        drift=spec.drift,
    )
    return Known(said, found.at, found.how)


def account_of(request: Request, api: Api) -> Account:
    """The installing ServiceAccount of this request, with the uid that it has now."""
    namespace, name = request.bundle_spec.account
    live = api.get(ObjectRef.of_service_account(namespace, name)) if namespace and name else None
    uid = str(live["metadata"]["uid"]) if live else ""
    return Account(namespace, name, uid, request.service_account_uid, namespace in reserved_namespaces())


def own_right(request: Request, api: Api) -> Right:
    """Whether the worker may act as the installing account: else nothing could be planned (S31)."""
    namespace, name = request.bundle_spec.account
    either = (
        AccessRequest("impersonate:serviceaccount", AUTHENTICATION, "serviceaccounts", "", namespace, name),
        AccessRequest("impersonate", resource="serviceaccounts", namespace=namespace, name=name),
    )
    words = f"Pratique's worker is not allowed to impersonate ServiceAccount {namespace}/{name}"
    return Right(any(ask_self(api, question) for question in either), words)


def unmet_words(request: Request, api: Api) -> str:
    """What of spec.constraints is not so now, "" if all is. Raises InvalidConstraint, and TryLater by the cluster."""
    constraints = request.bundle_spec.constraints
    if not constraints or request.purpose == Request.Purpose.DELETE:
        return ""
    texts = policy.expressions_of(constraints)
    policy.check_constraints(constraints, ask(policy.CONSTRAINT, texts))
    beside, versions = list(lists.running_beside(deployment=request.deployment)), {}
    for deployment in beside:
        if deployment.active_revision:
            runs = deployment.active_revision.request
            versions[deployment.name] = version_words(runs.bundle_spec, runs.bundles).split(" ")[0]
    facts = policy.ConstraintFacts(
        kubernetes_version=api.version(),
        apis=frozenset(policy.api_name(kind.group, kind.version, kind.kind) for kind in api.resources()),
        versions=versions,
        healthy=frozenset(deployment.name for deployment in beside if deployment.health == HealthState.CURRENT),
    )
    found = policy.unmet(constraints, facts, ask(policy.CONSTRAINT, texts, policy.facts_of(facts)))
    return f"waiting for its constraints: {'; '.join(found)}" if found else ""
