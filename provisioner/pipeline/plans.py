"""The plan of a content with a cluster; a reviewed plan carried out, and all that is ours removed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from provisioner.cluster.annotations import FIELD_MANAGER, RevisionOwner
from provisioner.cluster.apply import run as applying
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.health import observation
from provisioner.cluster.inventory import HookRuns, Inventory, uids
from provisioner.cluster.plan.content_plan import plan as make_plan
from provisioner.cluster.plan.inputs import Options
from provisioner.errors import DigestMismatch
from provisioner.health_checks import HealthCheck
from provisioner.render import content_digest
from provisioner.values import (
    APPLYING,
    Content,
    Health,
    HelmRelease,
    HookMoment,
    Identity,
    ObjectIdentity,
    ObjectOutcome,
    ObjectRef,
    Plan,
)


def plan_again(
    cluster: ClusterClient,
    content: Content,
    *,
    previous: Content | None,
    inventory: Mapping[ObjectIdentity, str],
    as_account: Identity | None = None,
    options: Options | None = None,
    reviewed: Plan | None = None,
) -> Plan:
    """The plan that `look` would make now, without reading what only a report needs.

    `reviewed` is the plan that `look` made of the same content: only what has moved since then is planned anew.
    """
    options = replace(options or Options(), reviewed=reviewed)
    account = cluster.acting_as(as_account) if as_account else cluster
    return make_plan(
        account,
        content.with_hooks(options.moments),
        inventory=inventory,
        previous=previous,
        field_manager=FIELD_MANAGER,
        options=options,
    )


def part_of(content: Content, wanted: Collection[ObjectIdentity]) -> Content:
    """Only those objects of `content`, without hooks, with the digest that belongs to them."""
    manifests = tuple(manifest for manifest in content.manifests if manifest.ref.identity in wanted)
    digest = content_digest(
        manifests,
        install_namespace=content.install_namespace,
        service_account=content.service_account,
        salt=content.salt,
    )
    return replace(content, manifests=manifests, digest=digest, hooks=())


DEADLINE_SECONDS = 600.0


def deploy(  # noqa: PLR0913 -- each by its name
    cluster: ClusterClient,
    content: Content,
    plan: Plan,
    *,
    inventory: Inventory,
    deadline_seconds: float = DEADLINE_SECONDS,
    observer: ClusterClient | None = None,
    before_phase: Callable[[str], None] | None = None,
    at_phase: Callable[[applying.PhaseReached], None] | None = None,
    before_wait: Callable[[Sequence[ObjectRef]], None] | None = None,
    while_waiting: Callable[[], None] | None = None,
    checks: Sequence[HealthCheck] = (),
    owner: RevisionOwner | None = None,
    moments: frozenset[HookMoment] = APPLYING,
    runs: HookRuns | None = None,
    helm_release: HelmRelease | None = None,
) -> Iterator[ObjectOutcome]:
    """Do what the reviewed `plan` says, as the identity of `cluster`: one ObjectOutcome per object, as they happen.

    The manifests are hashed again first: DigestMismatch where they are not those of `content.digest`, before anything
    is touched. PlanChanged, PreconditionFailed and the rest as in cluster.apply. `observer` is who watches health, by
    default `cluster`; `before_phase` is called with each phase's name right before its first write, and after each wait
    within it, and keeps what follows from being written by raising; `at_phase` hears of each first; `before_wait` with
    the objects that are given time to settle, `while_waiting` every few seconds of any wait, which it ends by raising.
    What `checks` select is Current by them before a later phase begins. What is written names `owner`. Of the hooks
    those of `moments` run, and `runs` is their record. `helm_release` is what adopted objects are taken over from.
    """
    found = content_digest(
        content.everything,
        install_namespace=content.install_namespace,
        service_account=content.service_account,
        salt=content.salt,
    )
    if found != content.digest:
        raise DigestMismatch(f"the manifests to apply have digest {found}; reviewed was {content.digest}")
    terms = applying.Terms(FIELD_MANAGER, deadline_seconds, observer=observer, checks=checks, owner=owner, runs=runs)
    terms = replace(terms, helm_release=helm_release)
    terms = replace(terms, before_phase=before_phase) if before_phase else terms
    terms = replace(terms, at_phase=at_phase) if at_phase else terms
    terms = replace(terms, before_wait=before_wait) if before_wait else terms
    terms = replace(terms, while_waiting=while_waiting) if while_waiting else terms
    return applying.apply(cluster, content.with_hooks(moments), plan, inventory, terms)


def observe(
    cluster: ClusterClient, refs: Iterable[ObjectRef], *, checks: Sequence[HealthCheck] = ()
) -> dict[ObjectRef, Health]:
    """The health of each object, read once, with reasons in words; `checks` are the deployment's own.

    What may not be read is Unknown; raises TryLater if nobody answers.
    """
    return observation.observe(cluster, refs, now=datetime.now(UTC), checks=checks)


def remove(
    cluster: ClusterClient, inventory: Inventory, *, deadline_seconds: float = DEADLINE_SECONDS
) -> Iterator[ObjectOutcome]:
    """Delete everything that `inventory` holds, in reverse order, each object only if it is still the one that is ours.

    For the command line and for tests; in the service a deletion is a request with a reviewed plan (S15).
    """
    nothing = Content((), "", "", (), content_digest((), install_namespace="", service_account=""))
    owned = uids(inventory.items().values())
    options = Options(is_removal=True)
    plan = make_plan(cluster, nothing, inventory=owned, previous=None, field_manager=FIELD_MANAGER, options=options)
    return deploy(cluster, nothing, plan, inventory=inventory, deadline_seconds=deadline_seconds)
