"""What the pages of deployments and policies show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from django.db.models import Case, Count, OuterRef, Q, QuerySet, Subquery, Value, When

from approvals.lifecycle import OPEN
from approvals.models import (
    BundleDeployment,
    Cluster,
    InventoryItem,
    OptionalObject,
    Policy,
    PolicyEvaluation,
    Request,
    Revision,
)
from provisioner.values import WORST_FIRST

# The code of errors.MissingRight.
MISSING_RIGHT = "missing-right"


def deployments(*, clusters: Collection[Cluster], search: str = "", cluster: str = "") -> QuerySet[BundleDeployment]:
    """What is there, by name."""
    found = BundleDeployment.objects.filter(cluster__in=[one.pk for one in clusters], gone_at__isnull=True)
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
    return {one.pk: one for one in found.filter(pk__in=list(keys))}


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
    return Policy.objects.filter(cluster__in=clusters).select_related("cluster", "author", "editor").order_by("name")


def evaluations(*, policy: Policy, clusters: Collection[Cluster]) -> QuerySet[PolicyEvaluation]:
    """What a policy said about requests of these clusters, the latest first."""
    found = PolicyEvaluation.objects.filter(policy=policy, request__cluster__in=[one.pk for one in clusters])
    return found.order_by("-at", "-pk")


def with_their_requests(found: QuerySet[PolicyEvaluation]) -> QuerySet[PolicyEvaluation]:
    return found.select_related("request__deployment__cluster").defer(
        "request__spec", "request__deployment__spec", "request__deployment__cluster__kubeconfig"
    )
