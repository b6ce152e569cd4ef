"""What the pages of deployments and policies show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Case, Count, OuterRef, Q, QuerySet, Subquery, Value, When

from approvals.lifecycle import OPEN
from approvals.models import (
    BundleDeployment,
    Cluster,
    Drift,
    InventoryItem,
    OptionalObject,
    Policy,
    PolicyEvaluation,
    Request,
    Revision,
)
from approvals.policy.built_in import BUILT_IN, UID_PREFIX
from provisioner.sentences import some
from provisioner.values import WORST_FIRST, ObjectRef

# The code of errors.MissingRight.
MISSING_RIGHT = "missing-right"


MAX_DIGITS = 9
# What was restored, or went by itself, is shown for this long.
RECENT = timedelta(hours=24)
NAMED = 3
# Only who may get a Secret is told of its drift: that there is any says that a value changed (S38).
IS_SECRET = Q(item__group="", item__kind="Secret")
SECRETS = "Secrets are left out: people who can get them see on the deployment's page whether they differ"


def deployments(*, clusters: Collection[Cluster], search: str = "", cluster: str = "") -> QuerySet[BundleDeployment]:
    """What is there, by name."""
    found = BundleDeployment.objects.filter(cluster__in=[owner.pk for owner in clusters], gone_at__isnull=True)
    if search:
        found = found.filter(name__icontains=search)
    if cluster:
        found = found.filter(cluster__name=cluster)
    return found.order_by("name", "pk")


def with_open_requests(found: QuerySet[BundleDeployment]) -> QuerySet[BundleDeployment]:
    """What a row of the list says: what runs, and `open_key` of the open request."""
    still_open = Request.objects.filter(deployment=OuterRef("pk"), state__in=sorted(OPEN))
    return (
        found.select_related("cluster", "active_revision__request")
        .defer("cluster__kubeconfig", "spec")
        .annotate(open_key=Subquery(still_open.values("pk")[:1]))
    )


def requests_by_key(keys: Iterable[int]) -> dict[int, Request]:
    """With what a row of a list says of them."""
    found = Request.objects.select_related("deployment__cluster").defer("spec", "deployment__cluster__kubeconfig")
    return {request.pk: request for request in found.filter(pk__in=list(keys))}


def waiting_for_own_rights(*, clusters: Collection[Cluster]) -> dict[int, int]:
    """By key of the cluster: how many open requests wait for a right that Pratique itself lacks there."""
    waiting = Request.objects.filter(deployment__cluster__in=clusters, state__in=sorted(OPEN))
    found = waiting.filter(problem_code=MISSING_RIGHT).values_list("deployment__cluster").annotate(Count("pk"))
    return dict(found.order_by())


def open_request(*, deployment: BundleDeployment) -> Request | None:
    return Request.objects.filter(deployment=deployment, state__in=sorted(OPEN)).first()


def requests_of(*, deployment: BundleDeployment, limit: int) -> list[Request]:
    """The latest requests, newest first."""
    found = Request.objects.filter(deployment=deployment).select_related("deployment__cluster")
    return list(found.order_by("-number")[:limit])


def revisions(*, deployment: BundleDeployment, limit: int) -> list[Revision]:
    return list(Revision.objects.filter(deployment=deployment).select_related("request")[:limit])


def pause_words(*, deployment: BundleDeployment) -> str:
    """By whom it is paused, and why; "" where it is not."""
    if not deployment.is_paused:
        return ""
    write = deployment.writes.filter(generation=deployment.paused_generation or 0).first()
    name = write.username if write and write.username else "an unknown user"
    return f"by {name}: {deployment.pause_reason or 'no reason given'}"


def running_beside(*, deployment: BundleDeployment) -> QuerySet[BundleDeployment]:
    """The other deployments of its cluster of which something runs."""
    others = BundleDeployment.objects.filter(cluster=deployment.cluster, gone_at__isnull=True).exclude(pk=deployment.pk)
    return others.filter(active_revision__isnull=False).select_related("active_revision__request").order_by("name")


def inventory(*, deployment: BundleDeployment, search: str = "", health: str = "") -> QuerySet[InventoryItem]:
    """What is its own, what is not well first."""
    found = InventoryItem.objects.filter(deployment=deployment)
    if search:
        found = found.filter(Q(kind__icontains=search) | Q(namespace__icontains=search) | Q(name__icontains=search))
    if health:
        found = found.filter(health=health)
    ranks = (When(health=state, then=Value(rank)) for rank, state in enumerate(WORST_FIRST))
    return found.order_by(Case(*ranks, default=Value(len(WORST_FIRST))), "kind", "namespace", "name", "pk")


def inventory_health(*, deployment: BundleDeployment) -> list[tuple[str, int]]:
    """How many objects are how healthy, the most first; "" where nobody has looked yet."""
    return Counter(InventoryItem.objects.filter(deployment=deployment).values_list("health", flat=True)).most_common()


def left_out(*, deployment: BundleDeployment, limit: int) -> list[OptionalObject]:
    """What the running revision left out, with what became of it since."""
    return list(OptionalObject.objects.filter(revision=deployment.active_revision_id or 0)[:limit])


def policies(*, clusters: Collection[Cluster]) -> QuerySet[Policy]:
    """Those of the service."""
    found = Policy.objects.filter(cluster__in=clusters, uid="")
    return found.select_related("cluster", "author", "editor").order_by("name")


def policies_of_clusters(*, clusters: Collection[Cluster]) -> QuerySet[Policy]:
    """The rows that stand for the ApprovalPolicies which these clusters have."""
    found = Policy.objects.filter(cluster__in=clusters, is_active=True).exclude(uid="")
    found = found.exclude(uid__startswith=UID_PREFIX)
    return found.select_related("cluster").order_by("name")


def built_in_guards(*, clusters: Collection[Cluster]) -> QuerySet[Policy]:
    """The built-in guards of these clusters, switched on or off."""
    uids = [guard.uid for guard in BUILT_IN if guard.name in settings.PRATIQUE["BUILT_IN_GUARDS"]]
    found = Policy.objects.filter(cluster__in=clusters, uid__in=uids)
    return found.select_related("cluster", "editor").order_by("cluster__name", "name")


def evaluations(*, policy: Policy, clusters: Collection[Cluster]) -> QuerySet[PolicyEvaluation]:
    """What a policy said about requests of these clusters, the latest first."""
    found = PolicyEvaluation.objects.filter(policy=policy, request__cluster__in=[cluster.pk for cluster in clusters])
    return found.order_by("-at", "-pk")


def with_their_requests(found: QuerySet[PolicyEvaluation]) -> QuerySet[PolicyEvaluation]:
    return found.select_related("request__deployment__cluster").defer(
        "request__spec", "request__deployment__spec", "request__deployment__cluster__kubeconfig"
    )


def once_in_force(*, deployment: BundleDeployment) -> QuerySet[Revision]:
    """What was once applied whole and not given up, by number."""
    states = (Revision.State.ACTIVE, Revision.State.REPLACED)
    found = Revision.objects.filter(deployment=deployment, state__in=states)
    return found.select_related("deployment__cluster", "request").order_by("number")


def restorable(*, deployment: BundleDeployment) -> QuerySet[Revision]:
    """The revisions that can be gone back to: what was once in force, is not revoked and whose content is kept."""
    return once_in_force(deployment=deployment).filter(revoked_at=None, request__cleared_at=None)


def numbered(*, deployment: BundleDeployment, number: str) -> Revision | None:
    """The revision that was once in force and has this number, as somebody wrote it."""
    is_number = number.isdecimal() and len(number) <= MAX_DIGITS
    return once_in_force(deployment=deployment).filter(number=int(number)).first() if is_number else None


def why_not_restorable(*, deployment: BundleDeployment, number: str) -> str:
    """Why nobody can go back to that revision; "" where somebody can."""
    revision = numbered(deployment=deployment, number=number)
    if revision and revision.request.cleared_at is None:
        return revoked_words(revision)
    if revision:
        number = f"{number} (its content was removed on {revision.request.cleared_at:%Y-%m-%d})"
    there = ", ".join(str(each) for each in restorable(deployment=deployment).values_list("number", flat=True))
    return f"revision {number} cannot be rolled back to; available: {there or 'none'}"


def revoked_words(revision: Revision) -> str:
    """Who revoked it and why; "" where nobody did."""
    if revision.revoked_at is None:
        return ""
    return f"revision {revision.number} was revoked by {revision.revoked_by}: {revision.revoked_reason}"


@dataclass(frozen=True, slots=True)
class DriftSummary:
    """How many objects differ now, how many are fought over, and both in words; `since` is the last change of it."""

    open: int
    fights: int
    words: str
    since: datetime | None


def drifts(
    *, deployment: BundleDeployment, now: datetime, may_see: Callable[[ObjectRef], bool | None]
) -> QuerySet[Drift]:
    """What differs now and what did lately, fights first, then the open ones; Secrets only if `may_see` allows it."""
    is_recent = Q(changed_at__gte=now - RECENT)
    found = Drift.objects.filter(item__deployment=deployment).filter(is_recent | Q(state=Drift.State.OPEN))
    parts = [f"item__{name}" for name in ("group", "version", "kind", "namespace", "name")]
    secrets = found.filter(IS_SECRET).values_list("pk", *parts)
    found = found.exclude(pk__in=[pk for pk, *ref in secrets if not may_see(ObjectRef(*ref))])
    return found.select_related("item", "revision").order_by("-is_fight", "-state", "-changed_at", "-pk")


def ref_of(row: Drift) -> ObjectRef:
    return ObjectRef.from_parts(row.item)


def summary(*, deployment: BundleDeployment) -> DriftSummary:
    """For everybody who may get the deployment, so of Secrets it says only that they are left out."""
    known = Drift.objects.filter(~IS_SECRET, item__deployment=deployment)
    rows = known.filter(state=Drift.State.OPEN).select_related("item")
    left_out = SECRETS if deployment.inventory.filter(group="", kind="Secret").exists() else ""
    found = list(rows.order_by("-is_fight", "item__kind", "item__name", "pk")[: NAMED + 1])
    if not found:
        last = known.order_by("-changed_at").first()
        return DriftSummary(0, 0, left_out, last.changed_at if last else None)
    count = rows.count()
    fights = rows.filter(is_fight=True).count()
    named = some([_item_words(row) for row in found[:NAMED]], NAMED, total=count)
    words = "; ".join(filter(None, [named, left_out]))
    return DriftSummary(count, fights, words, max(row.changed_at for row in found))


def _item_words(row: Drift) -> str:
    managers = sorted({str(field["manager"]) for field in row.fields if field["manager"]})
    by = f" by {', '.join(managers[:NAMED])}" if managers else ""
    return f"{row.item} is {row.kind}{by}"
