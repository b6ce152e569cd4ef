"""What the account page shows: identities, sessions, tokens and chat accounts of one person."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet

from approvals.clock import database_now
from approvals.models import ApiToken, ChatAccount, Cluster, KubernetesIdentity, SignIn


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
        ShownToken(row, ", ".join(row.scopes), _named(row.clusters, names), _proofs_of(row), row.expires_at <= now)
        for row in found
    ]


def _named(clusters: Collection[int], names: Mapping[int, str]) -> str:
    return ", ".join(sorted(names.get(pk, "a deleted cluster") for pk in clusters))


def _proofs_of(row: SignIn | ApiToken) -> list[tuple[str, str, datetime]]:
    found = [(one.identity.cluster.name, one.identity.username, one.proved_at) for one in row.proofs.all()]
    return sorted(found)


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


def device_of(agent: str) -> str:
    """A User-Agent in a few words. It is the browser's own claim."""
    browser = next((words for mark, words in _BROWSERS if mark in agent), "")
    system = next((words for mark, words in _SYSTEMS if mark in agent), "")
    if not browser:
        return f"a program on {system}" if system else "an unknown program"
    return f"{browser} on {system}" if system else browser


def chat_accounts(*, user: User) -> list[ChatAccount]:
    return list(ChatAccount.objects.filter(user=user).order_by("tool", "name"))
