"""What the account page shows: identities, sessions, tokens and chat accounts of one person."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from approvals.clock import database_now
from approvals.events.occasions import NEWS
from approvals.lifecycle import Event
from approvals.models import (
    ApiToken,
    AuditEntry,
    ChatAccount,
    Cluster,
    KubernetesIdentity,
    NewsRead,
    Request,
    Review,
    SavedView,
    SignIn,
)
from approvals.selectors import keyset
from approvals.selectors.inbox import Askers

# The first that fits; Chromium's relatives say that they are Chrome and Safari, too.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "an iPhone"),
    ("iPad", "an iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
# So many of the latest requests that somebody asked for, and that they decided on, are looked at.
MAX_REQUESTS = 200
MAX_NEWS = 50


def other_identities(*, user: User, but: Collection[int]) -> list[KubernetesIdentity]:
    """Who the account is where this session has proved nothing."""
    found = KubernetesIdentity.objects.filter(user=user).exclude(pk__in=but).select_related("cluster")
    return list(found.order_by("cluster__name"))


@dataclass(frozen=True, slots=True)
class ShownSession:
    """A session in words; `proofs` are (cluster, name, when) of what it has proved."""

    row: SignIn
    device: str
    proofs: list[tuple[str, str, datetime]]
    ends_at: datetime


def with_devices(rows: QuerySet[SignIn]) -> list[ShownSession]:
    found = rows.prefetch_related("proofs__identity__cluster")
    limit = timedelta(hours=settings.PRATIQUE["SESSION_HOURS"])
    return [ShownSession(row, device_of(row.agent), _proofs_of(row), row.began_at + limit) for row in found]


@dataclass(frozen=True, slots=True)
class ShownToken:
    """A token in words; `proofs` as of a session."""

    row: ApiToken
    scopes: str
    clusters: str
    proofs: list[tuple[str, str, datetime]]
    is_over: bool


def with_scopes(rows: QuerySet[ApiToken]) -> list[ShownToken]:
    found = list(rows.prefetch_related("proofs__identity__cluster"))
    names = dict(Cluster.objects.filter(pk__in={pk for row in found for pk in row.clusters}).values_list("pk", "name"))
    now = database_now()
    return [
        ShownToken(
            row,
            ", ".join(row.scopes),
            ", ".join(sorted(names.get(pk, "a deleted cluster") for pk in row.clusters)),
            _proofs_of(row),
            row.expires_at <= now,
        )
        for row in found
    ]


def _proofs_of(row: SignIn | ApiToken) -> list[tuple[str, str, datetime]]:
    found = [(proof.identity.cluster.name, proof.identity.username, proof.proved_at) for proof in row.proofs.all()]
    return sorted(found)


def device_of(agent: str) -> str:
    """A User-Agent in a few words. It is the browser's own claim."""
    browser = next((words for mark, words in _BROWSERS if mark in agent), "")
    system = next((words for mark, words in _SYSTEMS if mark in agent), "")
    if not browser:
        return f"a program on {system}" if system else "an unknown program"
    return f"{browser} on {system}" if system else browser


def chat_accounts(*, user: User) -> list[ChatAccount]:
    return list(ChatAccount.objects.filter(user=user).order_by("tool", "name"))


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
    here = Request.objects.filter(cluster__in=[cluster.pk for cluster in clusters])
    asked = (
        keyset.by_keys_if_few(askers.narrow(here))
        .order_by("-created_at", "-pk")
        .values_list("uid", flat=True)[:MAX_REQUESTS]
    )
    reviewed = Review.objects.filter(user=user, request__cluster__in=[cluster.pk for cluster in clusters])
    decided = reviewed.order_by("-pk").values_list("request__uid", flat=True)[:MAX_REQUESTS]
    found = AuditEntry.objects.filter(request_uid__in=sorted({str(uid) for uid in (*asked, *decided)}), verb__in=NEWS)
    entries = list(found.exclude(_by(user, askers, clusters)).order_by("-number")[:MAX_NEWS])
    up_to = read.number if read else 0
    return News(entries, sum(entry.number > up_to for entry in entries), up_to, read.at if read else None)


def _by(user: User, askers: Askers, clusters: Collection[Cluster]) -> Q:
    """What somebody did under one of their names; the same name on another cluster is somebody else.

    The audit has a withdrawal under the name of the account.
    """
    places = {known.pk: known.name for known in clusters}
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
