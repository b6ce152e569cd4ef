"""Who gets which rights by a content, and which of them its installing account needs and holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from provisioner.cluster.client.access import review_self
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.plan.known import Options
from provisioner.cluster.plan.planning import plan as make_plan
from provisioner.cluster.tracking import FIELD_MANAGER
from provisioner.errors import ClusterError, TryLater
from provisioner.pipeline.planning import as_applied, in_order, plan_offline
from provisioner.rbac import RbacSubject
from provisioner.reading import all_rbac, live_rbac, namespaces, with_answers
from provisioner.review.base.facts import Facts, Gap
from provisioner.review.preflight.account_rights import PreflightFacts, ResourceWord
from provisioner.review.preflight.answer import Preflight
from provisioner.review.preflight.answer import preflight as answer_preflight
from provisioner.review.rights.permission_report import GroupResource, PermissionReport, permission_report
from provisioner.values import APPLYING, Content, HookMoment, JsonObject, ObjectIdentity, PlannedAction, Section


def permissions(
    cluster: ClusterClient | None,
    content: Content,
    previous: Content | None,
    *,
    nowhere: frozenset[GroupResource] = frozenset(),
) -> PermissionReport:
    """Who may do what with `content` in place of `previous` that they could not before, by RBAC alone.

    With a cluster its other roles and bindings count; without one, only those of the two bundles are known. What is
    `nowhere`, as it is in no namespace, nobody gets by a RoleBinding.
    """
    roles, gaps = live_rbac((cluster,)) if cluster else (None, [])
    content, previous = as_applied(content, previous)
    facts = Facts(content, plan_offline(content, previous), previous, live_rbac=roles, is_offline=True)
    found = permission_report(facts, nowhere=nowhere)
    return replace(found, problems=(*found.problems, *(f"{gap.what}: {gap.why}" for gap in gaps)))


def roles_and_bindings(cluster: ClusterClient) -> tuple[JsonObject, ...]:
    """All of the cluster. Raises ClusterError where one of the four kinds may not be listed, or nobody answers."""
    return all_rbac(cluster)


def preflight(
    cluster: ClusterClient | None,
    content: Content,
    *,
    account: RbacSubject,
    previous: Content | None = None,
    inventory: Mapping[ObjectIdentity, str] | None = None,
    options: Options | None = None,
) -> Preflight:
    """Whether the ServiceAccount `account` may do all that `content` needs. Nothing is changed.

    By the roles and bindings of the cluster, confirmed by the API server where they deny something, and by dry-runs as
    the account. `options` are those of its plan. Without a cluster: what it would have to hold. Raises TryLater where
    nobody answers.
    """
    options = options or Options(is_removal=not content.manifests)
    content = content.with_hooks(options.moments)
    facts = PreflightFacts(account, in_order(content))
    if cluster is None:
        return answer_preflight(facts)
    roles, gaps = live_rbac((cluster,))
    places, more = namespaces(cluster)
    actions, unplanned = _planned(
        cluster, content, account, inventory=inventory or {}, previous=previous, options=options
    )
    gaps = [*gaps, *more, *unplanned]
    facts = replace(facts, roles=roles, namespaces=places, kinds=_served(cluster), actions=actions, gaps=tuple(gaps))
    return answer_preflight(with_answers(cluster, facts))


def least_rights(
    cluster: ClusterClient,
    content: Content,
    *,
    account: RbacSubject,
    with_deletion: bool = False,
    tells_namespaces: bool = True,
) -> Preflight:
    """All that `account` needs to install `content` where nothing of it is yet, as if it held nothing: what is missing.

    The cluster says which kinds, namespaces and roles there are. Nothing is changed. Not `tells_namespaces`: the answer
    is the same whichever namespaces exist, for people who may not get them. Raises TryLater where nobody answers.
    """
    content = content.with_hooks(frozenset(HookMoment) if with_deletion else APPLYING)
    roles, gaps = live_rbac((cluster,))
    known = None if roles is None else tuple(one for one in roles if not str(one["kind"]).endswith("Binding"))
    places, more = namespaces(cluster) if tells_namespaces else (None, [])
    facts = PreflightFacts(
        account,
        in_order(content),
        roles=known,
        kinds=_served(cluster),
        namespaces=None if places is None else places | {account.namespace},
        gaps=(*gaps, *more),
        unanswered=frozenset(group for group, _ in cluster.served().unknown),
        with_deletion=with_deletion,
    )
    return answer_preflight(facts)


def _served(cluster: ClusterClient) -> dict[tuple[str, str, str], ResourceWord]:
    return {
        (one.group, one.version, one.kind): ResourceWord(one.plural, one.is_namespaced) for one in cluster.resources()
    }


def _planned(
    cluster: ClusterClient,
    content: Content,
    account: RbacSubject,
    *,
    inventory: Mapping[ObjectIdentity, str],
    previous: Content | None,
    options: Options,
) -> tuple[dict[ObjectIdentity, PlannedAction], list[Gap]]:
    """The plan as the account, by identity; none where nobody may act as the account."""
    acting = cluster.acting_as(account.identity)
    try:
        review_self(acting)
    except TryLater:
        raise
    except ClusterError as exc:
        return {}, [Gap("what a dry-run as the account says", str(exc), Section.PREFLIGHT)]
    plan = make_plan(
        acting,
        content,
        inventory=inventory,
        previous=previous,
        field_manager=FIELD_MANAGER,
        options=options,
    )
    return {one.ref.identity: one for one in plan.actions}, []
