"""Who may see which entries of the audit.

An entry about a cluster is for its readers. Sign-ins, tokens, chat accounts and identities tell where somebody was and
in which groups: they are for that account, and for operators, who also see what was done to the whole installation.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from approvals.models import AuditEntry, Cluster

# These concern a whole cluster, and name it among their facts.
_ABOUT_A_CLUSTER = ("policy.saved", "cluster.registered")
_OF_SOME_CLUSTER = Q(verb__in=_ABOUT_A_CLUSTER, facts__has_key="cluster")
_OF_ACCOUNTS = ("session.", "token.", "chat.")
# Through these the name of the actor is the account's; elsewhere it is one that a cluster or an issuer gave.
_ACCOUNT_VIAS = ("browser", "password")
_PROVING_VIAS = ("oidc", "proxy")


@dataclass(frozen=True, slots=True)
class AuditReader:
    """Who reads. `account` may see what was done with it, None where the reader does not stand for all of it."""

    clusters: Collection[Cluster]
    account: User | None = None
    is_operator: bool = False


def audit_entries(reader: AuditReader, *, actor: str = "", deployment: str = "", via: str = "") -> QuerySet[AuditEntry]:
    """What the reader may see, the latest first; each filter is left out where it is ""."""
    found = AuditEntry.objects.filter(_visible_to(reader))
    if actor:
        found = found.filter(actor__icontains=actor)
    if deployment:
        found = found.filter(deployment__icontains=deployment)
    if via:
        found = found.filter(via=via)
    return found.order_by("-number")


def was_ever_linked(*, account: str) -> bool:
    """Whether the account has been that of persons of several clusters, so that its entries are not one person's."""
    return AuditEntry.objects.filter(verb="identity.linked", facts__account=account).exists()


def _visible_to(reader: AuditReader) -> Q:
    names = [cluster.name for cluster in reader.clusters]
    about_clusters = Q(cluster__in=names) | Q(cluster="", verb__in=_ABOUT_A_CLUSTER, facts__cluster__in=names)
    if reader.is_operator:
        return about_clusters | (Q(cluster="") & ~_OF_SOME_CLUSTER)
    if reader.account is None:
        return about_clusters
    return about_clusters | _about(reader.account.get_username(), reader.account.date_joined)


def _about(account: str, since: datetime) -> Q:
    """Entries about the account, from its making on: its name may have been another one's before."""
    acted = Q()
    for prefix in _OF_ACCOUNTS:
        acted |= Q(verb__startswith=prefix, actor=account, via__in=_ACCOUNT_VIAS)
    proved = Q(verb="identity.proved", actor=account, via__in=_PROVING_VIAS)
    named = Q(verb__startswith="identity.") & (Q(facts__account=account) | Q(facts__user=account))
    return Q(cluster="", at__gte=since) & (acted | proved | named)
