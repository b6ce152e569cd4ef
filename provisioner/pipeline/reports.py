"""What a content would do to a cluster, as a report, and who gets which rights by it, with a cluster or without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from provisioner import regexes
from provisioner.cluster.annotations import FIELD_MANAGER
from provisioner.cluster.client.access import review_self
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.plan.content_plan import plan as make_plan
from provisioner.cluster.plan.inputs import Options
from provisioner.errors import ClusterError, TryLater
from provisioner.expressions import evaluator as expressions
from provisioner.live_reads import (
    all_rbac,
    installer,
    kinds,
    live_objects,
    live_rbac,
    namespaces,
    surroundings,
    with_answers,
    with_rights,
)
from provisioner.pipeline.offline import PATTERN_SECONDS, REVIEW_SECONDS, as_applied, in_order, plan_offline
from provisioner.pipeline.plans import plan_again
from provisioner.rbac import RbacSubject
from provisioner.review.base.facts import OWN_NAMESPACE, Facts, Gap, WayBack
from provisioner.review.frame import report, wanted
from provisioner.review.output.headline import in_own_words
from provisioner.review.preflight.account_rights import PreflightFacts, ResourceWord
from provisioner.review.preflight.answer import Preflight
from provisioner.review.preflight.answer import preflight as answer_preflight
from provisioner.review.rights.permission_report import GroupResource, PermissionReport, permission_report
from provisioner.values import (
    APPLYING,
    Content,
    HookMoment,
    Identity,
    JsonObject,
    ObjectIdentity,
    PlannedAction,
    Report,
    Section,
    SourceHistory,
)


@expressions.limited(REVIEW_SECONDS)
@regexes.limited(PATTERN_SECONDS)
def look(  # noqa: PLR0913 -- each by its name
    cluster: ClusterClient,
    content: Content,
    *,
    previous: Content | None,
    inventory: Mapping[ObjectIdentity, str],
    as_account: Identity | None = None,
    own_namespace: str = OWN_NAMESPACE,
    installers: frozenset[tuple[str, str]] = frozenset(),
    allowed_images: tuple[str, ...] = (),
    options: Options | None = None,
    way_back: WayBack | None = None,
    history: SourceHistory | None = None,
    is_for_reader: bool = False,
    deployment: str = "",
    running: Report | None = None,
) -> Report:
    """What `content` would do to the cluster. Nothing is changed.

    The plan is made as `as_account`, who will apply it, with `options`; everything else is read as the identity of
    `cluster`, and as the account only where that one may not. Whether the account, a ServiceAccount, has the rights is
    a part of the report; without `as_account` only the dry-runs say so. `previous` is what runs, `inventory` what is
    ours: the uid by identity. `own_namespace` is where Pratique itself runs, `installers` are the accounts by which it
    applies other bundles, `allowed_images` says where images may come from (`ClusterSurroundings`). `way_back` says
    what `content` ran as before, `history` what its sources named earlier. `is_for_reader` where nobody else reads the
    report than who `cluster` is asked as: nothing of what they could read is withheld, and what is somebody else's is
    planned as if it were adopted. Else that stands in the way, and what would come of it is told apart for who may get
    it (S09). `deployment` is the name of the BundleDeployment, which holds values that few may read. `running` is the
    report of what runs: a finding that it has as well is not new.

    Raises TryLater where the API server does not answer; what it refuses becomes a finding.
    """
    options = replace(options or Options(), supposes_adoption=is_for_reader, tells_adoption=not is_for_reader)
    plan = plan_again(cluster, content, previous=previous, inventory=inventory, as_account=as_account, options=options)
    left = tuple(sorted(hook.ref for hook in options.hooks.values() if hook.uid)) if options.is_removal else ()
    content = content.with_hooks(options.moments)
    previous = previous.with_hooks(APPLYING) if previous else None
    readers = (cluster, cluster.acting_as(as_account)) if as_account else (cluster,)
    live, gaps = live_objects(readers, wanted(content, plan))
    roles, more = live_rbac(readers)
    around = replace(kinds(cluster, own_namespace), installers=installers, allowed_images=allowed_images)
    facts = Facts(content, plan, previous, live, roles, (*gaps, *more), around=around, way_back=way_back)
    bundle = None if is_for_reader else plan_offline(content, previous)
    facts = replace(facts, installer=installer(as_account), bundle=bundle, left_by_hooks=left)
    release = None if options.is_taking_over or options.is_removal else options.helm_release
    facts = replace(facts, history=history or SourceHistory(), deployment=deployment, helm_release=release)
    facts = replace(facts, around=surroundings(readers, facts))
    found = report(with_rights(cluster, facts), running=running)
    return in_own_words(found) if is_for_reader else found


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
    known = None if roles is None else tuple(role for role in roles if not str(role["kind"]).endswith("Binding"))
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
        (resource.group, resource.version, resource.kind): ResourceWord(resource.plural, resource.is_namespaced)
        for resource in cluster.resources()
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
        acting, content, inventory=inventory, previous=previous, field_manager=FIELD_MANAGER, options=options
    )
    return {action.ref.identity: action for action in plan.actions}, []
