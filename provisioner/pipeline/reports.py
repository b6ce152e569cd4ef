"""What a content would do, as a report: looked at beside a cluster, or beside another content without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from provisioner import regexes
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.plan.known import Options
from provisioner.expressions import evaluator as expressions
from provisioner.pipeline.planning import as_applied, plan_again, plan_offline
from provisioner.reading import installer, kinds, live_objects, live_rbac, surroundings, with_rights
from provisioner.review.base.facts import OWN_NAMESPACE, ClusterSurroundings, Facts, Stored, WayBack
from provisioner.review.frame import report, wanted
from provisioner.review.output.headline import in_own_words
from provisioner.values import APPLYING, Content, Identity, ObjectIdentity, Report, SourceHistory

REVIEW_SECONDS, PATTERN_SECONDS = 60.0, 20.0  # for all rules of schemas that one review runs, and for all patterns


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
    left = tuple(sorted(one.ref for one in options.hooks.values() if one.uid)) if options.is_removal else ()
    content = content.with_hooks(options.moments)
    previous = previous.with_hooks(APPLYING) if previous else None
    readers = (cluster, cluster.acting_as(as_account)) if as_account else (cluster,)
    live, gaps = live_objects(readers, wanted(content, plan))
    roles, more = live_rbac(readers)
    around = replace(kinds(cluster, own_namespace), installers=installers, allowed_images=allowed_images)
    facts = Facts(content, plan, previous, live, roles, (*gaps, *more), around=around, way_back=way_back)
    bundle = None if is_for_reader else plan_offline(content, previous)
    facts = replace(facts, installer=installer(as_account), bundle=bundle, left_by_hooks=left)
    facts = replace(facts, history=history or SourceHistory(), deployment=deployment)
    facts = replace(facts, around=surroundings(readers, facts))
    found = report(with_rights(cluster, facts), running=running)
    return in_own_words(found) if is_for_reader else found


@expressions.limited(REVIEW_SECONDS)
@regexes.limited(PATTERN_SECONDS)
def look_offline(
    content: Content,
    previous: Content | None,
    *,
    allowed_images: tuple[str, ...] = (),
    stored: Stored | None = None,
    is_for_reader: bool = True,
) -> Report:
    """What differs between two bundles, without a cluster: from `previous`, or from nothing, to `content`.

    `stored` are the objects that changed CRDs are tried on, where somebody knows them. `is_for_reader` where whoever
    reads the report may read both bundles; else `previous` is what runs, and the report is as `look` makes it for all.
    """
    around = ClusterSurroundings(allowed_images=allowed_images)
    content, previous = as_applied(content, previous)
    plan = plan_offline(content, previous, is_for_reader=is_for_reader)
    bundle = None if is_for_reader else plan
    return report(Facts(content, plan, previous, is_offline=True, around=around, stored=stored, bundle=bundle))
