"""Lists of requests: what stands in which tab, narrowed and sorted by what requests are found by (models.listing).

The number of queries is the same for every list. None opens a report, and none counts further than keyset.MOST_COUNTED.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.lookups import IsNull

from approvals.lifecycle import OPEN, SETTLED, State
from approvals.models import Cluster, Request, RequestAsker, RequestRule, RequestText, Review, Verdict
from approvals.selectors import keyset
from approvals.selectors.inbox_columns import COLUMNS, with_columns
from approvals.selectors.keyset import ListOrder
from provisioner.values import Severity

SEVERITIES = [str(one) for one in Severity]
TABS = ("needs-me", "mine", "open", "applying", "decided", "all")
STATES: dict[str, Collection[str]] = {
    "needs-me": (State.IN_REVIEW,),
    "open": OPEN,
    "applying": (State.APPROVED, State.APPLYING, State.RESTORING),
    "decided": SETTLED,
}
# Past this many requests in review nobody looks for those that need the viewer.
MAX_WAITING = 1_000
# What waits is read by how bad it is, what is over by when it was.
ORDER_OF_TAB = {"needs-me": "worst", "open": "worst"}
NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class Askers:
    """(key of a cluster, user name there) of one person: the same name on another cluster may be somebody else."""

    names: tuple[tuple[int, str], ...] = ()

    def narrow(self, rows: QuerySet[Request]) -> QuerySet[Request]:
        """One subquery, so that the database begins with the few requests of a name and not with all there are."""
        clusters: dict[str, list[int]] = {}
        for cluster, username in self.names:
            clusters.setdefault(username, []).append(cluster)
        wanted = Q()
        for username, keys in clusters.items():
            wanted |= Q(username=username, request__cluster__in=keys)
        return rows.filter(pk__in=RequestAsker.objects.filter(wanted).values("request")) if wanted else rows.none()


NO_ASKERS = Askers()


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """Which requests to list; what is "" leaves none out. `text` is looked for in names and headlines."""

    text: str = ""
    cluster: str = ""
    severity: str = ""
    purpose: str = ""
    format: str = ""
    requester: str = ""
    state: str = ""
    rule: str = ""

    @property
    def is_set(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    @property
    def is_narrowed_more(self) -> bool:
        """By what people filter for less often, whose fields are folded."""
        return bool(self.purpose or self.format or self.requester or self.state or self.rule)

    def listed(self, rows: QuerySet[Request]) -> QuerySet[Request]:
        """`narrow`, for a page of these."""
        return keyset.by_keys_if_few(self.narrow(rows)) if self.is_set else rows

    def narrow(self, rows: QuerySet[Request]) -> QuerySet[Request]:
        rows = rows.filter(**{name: value for name in ("purpose", "format", "state") if (value := getattr(self, name))})
        if self.severity:
            rows = rows.filter(weight=weight_of(self.severity)) if self.severity in SEVERITIES else rows.none()
        if self.cluster:
            rows = rows.filter(cluster__in=list(Cluster.objects.filter(name=self.cluster).values_list("pk", flat=True)))
        return self._narrow_beside(rows)

    def _narrow_beside(self, rows: QuerySet[Request]) -> QuerySet[Request]:
        """By the tables beside the requests."""
        if self.requester:
            rows = rows.filter(pk__in=RequestAsker.objects.filter(username=self.requester).values("request"))
        if self.rule:
            rows = rows.filter(pk__in=RequestRule.objects.filter(rule=self.rule).values("request"))
        if self.text:
            rows = rows.filter(pk__in=RequestText.objects.filter(text__contains=self.text.casefold()).values("request"))
        return rows


def weight_of(severity: str) -> int:
    """As of Request.weight."""
    return len(SEVERITIES) - SEVERITIES.index(severity)


def requests(*, clusters: Collection[Cluster], tab: str = "all", askers: Askers = NO_ASKERS) -> QuerySet[Request]:
    """`askers` are the viewer's names, by which "mine" finds its requests."""
    found = Request.objects.filter(cluster__in=[cluster.pk for cluster in clusters])
    found = keyset.by_keys_if_few(askers.narrow(found)) if tab == "mine" else found
    return found.filter(state__in=sorted(STATES[tab])) if tab in STATES else found


def tab_counts(*, clusters: Collection[Cluster], askers: Askers) -> dict[str, int | None]:
    """How many requests each tab but "needs-me" holds; None for more than keyset.MOST_COUNTED."""
    everything = requests(clusters=clusters)
    rows = {tab: everything.filter(state__in=sorted(states)) for tab, states in STATES.items()}
    rows |= {"mine": askers.narrow(everything), "all": everything}
    return {tab: keyset.counted(rows[tab]) for tab in TABS if tab != "needs-me"}


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """What tells whether a request in review needs somebody; of a thousand of them no more than that is read."""

    pk: int
    cluster_id: int
    requesters: list[dict[str, Any]]


def waiting(*, user: User, clusters: Collection[Cluster], order: ListOrder) -> list[WaitingRequest]:
    """Requests in review on which this user has not decided in the present round.

    At most MAX_WAITING, the first in this order.
    """
    # A value and not EXISTS: PostgreSQL would make that a join with all reviews that somebody ever gave.
    given = Review.objects.filter(request=OuterRef("pk"), round=OuterRef("round"), user=user).order_by()
    rows = requests(clusters=clusters, tab="needs-me").filter(IsNull(Subquery(given.values("pk")[:1]), True))
    found = rows.order_by(*order.names()).values_list("pk", "cluster", "requesters")[:MAX_WAITING]
    return [WaitingRequest(*row) for row in found]


def shown(keys: Sequence[int], *, user: User) -> list[Request]:
    """The requests of a page, each with `has_decided`: whether this user did in the present round, and `had_approved`:
    whether they approved an earlier one."""
    own = Review.objects.filter(request=OuterRef("pk"), round=OuterRef("round"), user=user)
    earlier = Review.objects.counted().filter(user=user, request=OuterRef("pk"), round__lt=OuterRef("round"))
    found = Request.objects.annotate(has_decided=Exists(own), had_approved=Exists(earlier.filter(decision="Approve")))
    return keyset.in_order(with_summary(found), keys)


def with_summary(found: QuerySet[Request]) -> QuerySet[Request]:
    """With what the columns of the inbox say of each."""
    return (
        with_columns(found.select_related("deployment__cluster", "from_revision__request", "to_revision"), COLUMNS)
        .defer("deployment__cluster__kubeconfig", "deployment__spec")
        .order_by("-created_at", "-pk")
    )


def with_verdict(found: QuerySet[Request]) -> QuerySet[Request]:
    """With `verdict` of the present round, None where there is none."""
    given = Verdict.objects.filter(request=OuterRef("pk"), round=OuterRef("round"))
    return found.annotate(verdict=Subquery(given.values("verdict")[:1]))
