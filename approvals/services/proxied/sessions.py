"""Sessions of people whom a proxy has signed in: each request has to come with the proxy's word for the same person."""

from __future__ import annotations

from django.conf import settings
from django.db import IntegrityError, transaction

from approvals import audit
from approvals.access import Caller
from approvals.audit import Actor
from approvals.errors import NotAllowed
from approvals.models import Proof, SignIn
from approvals.proxies import IdentityProxies, Said
from approvals.services import sign_in
from approvals.services.proxied.people import NOTED_EVERY, PROXY, account_of, keep, proved_by
from approvals.services.sign_in import Browser, Proved


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
    rows = keep(user, proved)
    row = sign_in.begin(user, browser, before)
    row.proxy, row.proxy_subject = said.proxy.name, said.subject
    row.save(update_fields=["proxy", "proxy_subject"])
    sign_in.carry_only(row, rows, PROXY)
    audit.record(
        verb="identity.proved",
        actor=Actor(user.get_username(), "proxy"),
        facts={
            "proxy": said.proxy.name,
            "subject": said.subject,
            **sign_in.told_of(proved),
            "address": browser.address,
        },
    )
    return row


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
        for identity, one in keep(row.user, new):
            sign_in.note(identity, one, sign_in=row)
        Proof.objects.filter(pk__in=gone).delete()


def _is_noted(proof: Proof, one: Proved) -> bool:
    said = (proof.identity.username, list(proof.groups)) == (one.identity.username, list(one.identity.groups))
    return said and one.at - proof.proved_at < NOTED_EVERY
