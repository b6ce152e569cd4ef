"""People whom a proxy in front has signed in (security-rules.md S01, S25).

Which account a proxy's word enters and on which clusters it counts; a session begins by it, and each request has it
said again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from approvals import access
from approvals.access import Caller
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import NotAllowed
from approvals.models import Cluster, KubernetesIdentity, Proof, SignIn
from approvals.proxies import BY_UID, IdentityProxies, NameRefused, Said, identity_on
from approvals.services import sign_ins
from approvals.services.sign_ins import Browser, Proved

PROXY = KubernetesIdentity.Authenticator.PROXY

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
    rows = sign_ins.keep_all(user, proved, PROXY)
    return access.of_proxy(user, [(row, list(one.identity.groups), one.at) for row, one in rows])


def account_of(said: Said) -> User:
    """The account of this person of the proxy's, which is made if need be; in a transaction."""
    row = _rows(said.proxy.vouches_as, said.subject).first() or _taken_over(said)
    if row:
        return row.user
    mark = (PROXY, said.proxy.vouches_as, said.subject)
    return User.objects.create_user(sign_ins.free_name(f"{said.user}@{said.proxy.name}", *mark))


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


def sign_in_by_proxy(*, said: Said, browser: Browser, before: Caller | None = None) -> SignIn:
    """Begin a session in the account of this person, which is made if need be. Raises NotAllowed."""
    proved = proved_by(said)
    try:
        return _sign_in(said, proved, browser, before)
    except IntegrityError:
        # Somebody came in as the same new person at the same time: now the account is there.
        return _sign_in(said, proved, browser, before)


def is_still_said(row: SignIn, said: Said | None) -> bool:
    """Whether the proxy of this session names the session's person now; then the groups of now are kept (S25).

    Sessions that no proxy began are everybody's own affair: what a proxy says changes nothing of them.
    """
    if not row.proxy:
        return True
    if said is None or (said.proxy.name, said.subject) != (row.proxy, row.proxy_subject):
        return False
    try:
        _prove_again(row, proved_by(said))
    except NotAllowed:
        return False
    return True


def sign_out_url_of(row: SignIn) -> str:
    """Where one signs out at the session's proxy, too; "" where there is no such address."""
    proxies: IdentityProxies = settings.PRATIQUE["IDENTITY_PROXIES_FILE"]
    proxy = proxies.named(row.proxy)
    return proxy.sign_out_url if proxy else ""


def title_of(name: str) -> str:
    """What the proxy of this name is called here; its name where the operator has taken it away."""
    proxies: IdentityProxies = settings.PRATIQUE["IDENTITY_PROXIES_FILE"]
    proxy = proxies.named(name)
    return proxy.title if proxy else name


@transaction.atomic(durable=True)
def _sign_in(said: Said, proved: tuple[Proved, ...], browser: Browser, before: Caller | None) -> SignIn:
    user = account_of(said)
    return sign_ins.sign_in_on_all(
        user,
        proved,
        browser,
        before,
        authenticator=PROXY,
        actor=Actor(user.get_username(), "proxy"),
        facts={"proxy": said.proxy.name, "subject": said.subject},
        proxy=said.proxy.name,
        proxy_subject=said.subject,
    )


def _prove_again(row: SignIn, proved: tuple[Proved, ...]) -> None:
    """Only what the session has proved before: what somebody has unlinked stays so until they sign in again."""
    of_proxy = Proof.objects.filter(sign_in=row, identity__authenticator=PROXY).select_related("identity")
    known = {proof.identity.cluster_id: proof for proof in of_proxy}
    said = {one.cluster.pk: one for one in proved}
    gone = [proof.pk for cluster, proof in known.items() if cluster not in said]
    new = [said[cluster] for cluster, proof in known.items() if cluster in said and not _is_noted(proof, said[cluster])]
    if not gone and not new:
        return
    with transaction.atomic(durable=True):
        for identity, one in sign_ins.keep_all(row.user, new, PROXY):
            sign_ins.note(identity, one, sign_in=row)
        Proof.objects.filter(pk__in=gone).delete()


def _is_noted(proof: Proof, one: Proved) -> bool:
    said = (proof.identity.username, list(proof.groups)) == (one.identity.username, list(one.identity.groups))
    return said and one.at - proof.proved_at < sign_ins.NOTED_EVERY
