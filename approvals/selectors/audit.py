"""Who may see which entries of the audit.

An entry about a cluster is for its readers, but those about drift of Secrets are for operators. Sign-ins, tokens, chat
accounts and identities tell where somebody was and in which groups: they are for that account, and for operators, who
also see what was done to the whole installation.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q, QuerySet

from approvals.models import AuditEntry, Cluster
from approvals.selectors import keyset

# These concern a whole cluster, and name it among their facts.
_ABOUT_A_CLUSTER = (
    *("policy.saved", "policy.switched", "cluster.registered", "cluster.removed"),
    *("deciding-object.created", "deciding-object.changed", "deciding-object.deleted", "deciding-object.seen"),
    "deciding-object.confirmed",
)
_OF_SOME_CLUSTER = Q(verb__in=_ABOUT_A_CLUSTER, facts__has_key="cluster")
# Who may not get a Secret would read in these when it changed, and who changed it (S38).
OF_SECRETS = Q(verb__startswith="drift.", facts__object__startswith="Secret ")
_OF_ACCOUNTS = ("session.", "token.", "chat.")
# Through these the name of the actor is the account's; elsewhere it is one that a cluster or an issuer gave.
_ACCOUNT_VIAS = ("browser", "password")
_PROVING_VIAS = ("oidc", "proxy")
# Greater than the number of any entry.
AFTER_ALL = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AuditReader:
    """Who reads. `account` may see what was done with it, None where the reader does not stand for all of it."""

    clusters: Collection[Cluster]
    account: User | None = None
    is_operator: bool = False


@dataclass(frozen=True, slots=True)
class Days:
    """Days in UTC, both inclusive; None where nothing is left out on that side."""

    since: date | None = None
    until: date | None = None


ANY_DAY = Days()


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which entries; what is "" leaves none out. `actor` and `deployment` are parts of names, `request` is a uid."""

    actor: str = ""
    deployment: str = ""
    via: str = ""
    request: str = ""
    days: Days = ANY_DAY


EVERY_ENTRY = EntryFilter()


def audit_entries(reader: AuditReader, wish: EntryFilter = EVERY_ENTRY) -> QuerySet[AuditEntry]:
    """What the reader may see, the latest first."""
    found = AuditEntry.objects.filter(_visible_to(reader))
    if wish.actor:
        found = found.filter(actor__in=_values_with("actor", wish.actor))
    if wish.deployment:
        found = found.filter(deployment__in=_values_with("deployment", wish.deployment))
    if wish.via:
        found = found.filter(via=wish.via)
    if wish.request:
        found = found.filter(request_uid=wish.request)
    found = between(found, wish.days).order_by("-number")
    return found if wish == EVERY_ENTRY else keyset.by_keys_if_few(found)


def between(found: QuerySet[AuditEntry], days: Days) -> QuerySet[AuditEntry]:
    """By the numbers of the first entries of days: who writes waits for the one before, so numbers follow the time."""
    if days.since:
        found = found.filter(number__gte=_first_number(days.since))
    if days.until and days.until < date.max:
        found = found.filter(number__lt=_first_number(days.until + timedelta(days=1)))
    return found


def _first_number(day: date) -> int:
    begin = datetime.combine(day, time.min, UTC)
    first = AuditEntry.objects.filter(at__gte=begin).order_by("at", "number").values_list("number", flat=True).first()
    return AFTER_ALL if first is None else first


def _values_with(column: str, text: str) -> list[str]:
    """The values of an indexed column that hold the text, whatever its capitals.

    There are few different ones among very many entries: from each the index leads to the next, so that nothing else is
    read (a loose index scan, which neither database does by itself).
    """
    table, field = (connection.ops.quote_name(name) for name in (AuditEntry._meta.db_table, column))
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE known(value) AS (SELECT MIN({field}) FROM {table} UNION ALL"  # noqa: S608 - quoted names of the model
            f" SELECT (SELECT MIN({field}) FROM {table} WHERE {field} > known.value) FROM known"
            " WHERE known.value IS NOT NULL) SELECT value FROM known WHERE value IS NOT NULL"
        )
        wanted = text.casefold()
        return [value for (value,) in cursor.fetchall() if wanted in value.casefold()]


def was_ever_linked(*, account: str) -> bool:
    """Whether the account has been that of persons of several clusters, so that its entries are not one person's."""
    return AuditEntry.objects.filter(verb="identity.linked", facts__account=account).exists()


def _visible_to(reader: AuditReader) -> Q:
    names = [cluster.name for cluster in reader.clusters]
    about_clusters = Q(cluster__in=names) | Q(cluster="", verb__in=_ABOUT_A_CLUSTER, facts__cluster__in=names)
    if reader.is_operator:
        return about_clusters | (Q(cluster="") & ~_OF_SOME_CLUSTER)
    about_clusters &= ~OF_SECRETS
    if reader.account is None:
        return about_clusters
    account = reader.account.get_username()
    acted = Q()
    for prefix in _OF_ACCOUNTS:
        acted |= Q(verb__startswith=prefix, actor=account, via__in=_ACCOUNT_VIAS)
    proved = Q(verb="identity.proved", actor=account, via__in=_PROVING_VIAS)
    named = Q(verb__startswith="identity.") & (Q(facts__account=account) | Q(facts__user=account))
    return about_clusters | (Q(cluster="", at__gte=reader.account.date_joined) & (acted | proved | named))
