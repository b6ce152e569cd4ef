"""What happened to a person's requests and reviews: a bounded number of queries and rows, however long the audit is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Q

from approvals.lifecycle import Event
from approvals.models import AuditEntry, Cluster, NewsRead, Request, Review, SavedView
from approvals.selectors import keyset
from approvals.selectors.askers import Askers

# So many of the latest requests that somebody asked for, and that they decided on, are looked at.
MAX_REQUESTS = 200
MAX_NEWS = 50
# What a requester or a reviewer wants to be told; the rest stands in the audit.
TOLD = (
    *(f"request.{event}" for event in Event if event not in (Event.START, Event.REPORT_AGAIN)),
    *("review.given", "review.dismissed", "request.waits"),
)


@dataclass(frozen=True, slots=True)
class News:
    """`entries` are the latest, the newest first; `new` how many of them are unread, MAX_NEWS for as many or more."""

    entries: list[AuditEntry]
    new: int
    read_up_to: int
    read_at: datetime | None

    @property
    def count(self) -> str:
        """How many are new, for people; "" for none."""
        return f"{self.new}+" if self.new >= MAX_NEWS else str(self.new or "")


def news_of(*, user: User, clusters: Collection[Cluster], askers: Askers) -> News:
    """What others and the machine did; `askers` are the viewer's names, whose own acts are no news to them."""
    read = NewsRead.objects.filter(user=user).first()
    found = AuditEntry.objects.filter(request_uid__in=_uids(user, clusters, askers), verb__in=TOLD)
    entries = list(found.exclude(_by(user, askers, clusters)).order_by("-number")[:MAX_NEWS])
    up_to = read.number if read else 0
    return News(entries, sum(one.number > up_to for one in entries), up_to, read.at if read else None)


def _by(user: User, askers: Askers, clusters: Collection[Cluster]) -> Q:
    """What somebody did under one of their names; the same name on another cluster is somebody else.

    The audit has a withdrawal under the name of the account.
    """
    places = {one.pk: one.name for one in clusters}
    found = Q(verb=f"request.{Event.WITHDRAW}", actor=user.get_username())
    for cluster, username in askers.names:
        if cluster in places:
            found |= Q(cluster=places[cluster], actor=username)
    return found


def newest_number() -> int:
    """The number of the newest entry of the audit; 0 where there is none."""
    return AuditEntry.objects.order_by("-number").values_list("number", flat=True).first() or 0


def saved_views(*, user: User) -> list[SavedView]:
    return list(SavedView.objects.filter(user=user).order_by("name"))


def _uids(user: User, clusters: Collection[Cluster], askers: Askers) -> list[str]:
    here = Request.objects.filter(cluster__in=[one.pk for one in clusters])
    asked = (
        keyset.by_keys_if_few(askers.narrow(here))
        .order_by("-created_at", "-pk")
        .values_list("uid", flat=True)[:MAX_REQUESTS]
    )
    reviewed = Review.objects.filter(user=user, request__cluster__in=[one.pk for one in clusters])
    decided = reviewed.order_by("-pk").values_list("request__uid", flat=True)[:MAX_REQUESTS]
    return sorted({str(uid) for uid in (*asked, *decided)})
