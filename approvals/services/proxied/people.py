"""Which account a proxy's word enters, and whom it proves on which cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from approvals import access
from approvals.access import Caller
from approvals.clock import database_now
from approvals.errors import NotAllowed
from approvals.models import Cluster, KubernetesIdentity
from approvals.proxies import BY_UID, NameRefused, Said, identity_on
from approvals.services import sign_in
from approvals.services.sign_in import Proved

PROXY = KubernetesIdentity.Authenticator.PROXY
# What is said with each request is written at most this often, while it stays the same.
NOTED_EVERY = timedelta(minutes=1)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProxyIdentities:
    """Whom a proxy's word proves, and why nobody on other clusters: that is for the operator."""

    proved: tuple[Proved, ...]
    refused: tuple[str, ...]


def identities_of(said: Said) -> ProxyIdentities:
    """Whom the word means on each registered cluster where the proxy counts."""
    proved, refused = [], []
    names = {one.cluster: one for one in said.proxy.clusters}
    for cluster in Cluster.objects.filter(name__in=names).order_by("name"):
        try:
            identity = identity_on(names[cluster.name], said)
        except NameRefused as exc:
            refused.append(f"{cluster.name}: {exc}")
        else:
            proved.append(Proved(cluster, identity, database_now(), PROXY, said.proxy.vouches_as, said.subject))
    return ProxyIdentities(tuple(proved), tuple(refused))


def proved_by(said: Said) -> tuple[Proved, ...]:
    """The same; raises NotAllowed where the person is nobody anywhere."""
    found = identities_of(said)
    if found.refused:
        facts = {"proxy": said.proxy.name, "reasons": list(found.refused)}
        logger.warning("a person of a proxy has no identity on any cluster", extra=facts)
    if not found.proved:
        raise NotAllowed(
            f"{said.proxy.title} signed you in, but you have no identity on any cluster here: the operator "
            "configures which people are trusted; the log says why you are not"
        )
    return found.proved


def caller_of_proxy(said: Said) -> Caller:
    """Who a call without a session comes from, for this call. Raises NotAllowed."""
    proved = proved_by(said)
    try:
        return _caller_of(said, proved)
    except IntegrityError:
        # As when somebody signs in: the same new person came twice at the same time.
        return _caller_of(said, proved)


@transaction.atomic
def _caller_of(said: Said, proved: Iterable[Proved]) -> Caller:
    user = account_of(said)
    rows = keep(user, proved)
    return access.of_proxy(user, [(row, list(one.identity.groups), one.at) for row, one in rows])


def account_of(said: Said) -> User:
    """The account of this person of the proxy's, which is made if need be; in a transaction."""
    row = _rows(said.proxy.vouches_as, said.subject).first() or _taken_over(said)
    if row:
        return row.user
    mark = (PROXY, said.proxy.vouches_as, said.subject)
    return User.objects.create_user(sign_in.free_name(f"{said.user}@{said.proxy.name}", *mark))


def _rows(issuer: str, subject: str) -> QuerySet[KubernetesIdentity]:
    rows = KubernetesIdentity.objects.filter(authenticator=PROXY, issuer=issuer, subject=subject)
    return rows.select_related("user").order_by("pk")


def _taken_over(said: Said) -> KubernetesIdentity | None:
    """The same person from before the proxy was said to have an issuer's people; kept as such from now on."""
    if not said.proxy.issuer:
        return None
    rows = _rows(said.proxy.name, BY_UID + said.uid)
    row = rows.first()
    if row:
        rows.filter(user=row.user).update(issuer=said.proxy.issuer, subject=said.subject)
    return row


def keep(user: User, proved: Iterable[Proved]) -> list[tuple[KubernetesIdentity, Proved]]:
    """The person's rows, as far as they are this account's; in a transaction. Raises NotAllowed (S01).

    On a cluster where the account is linked to somebody else, that stays who it is.
    """
    linked = set(user.kubernetes_identities.exclude(authenticator=PROXY).values_list("cluster_id", flat=True))
    sign_in.check_enterable(user)
    rows = [(_keep_one(one, user), one) for one in proved if one.cluster.pk not in linked]
    return [(row, one) for row, one in rows if row.user_id == user.pk]


def _keep_one(one: Proved, user: User) -> KubernetesIdentity:
    known = KubernetesIdentity.objects.select_related("user").filter(**sign_in.key_of(one)).first()
    if known and is_noted(known, one):
        return known
    return sign_in.keep(one, user)


def is_noted(row: KubernetesIdentity, one: Proved) -> bool:
    """Whether the row says all of this already, and since a moment ago."""
    said = (row.username, row.groups) == (one.identity.username, list(one.identity.groups))
    return said and one.at - row.groups_seen_at < NOTED_EVERY
