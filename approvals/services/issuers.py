"""People of OpenID Connect issuers: signing in, being proved anew, being signed out by the issuer (S01, S25, S33)."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from approvals import access, audit
from approvals.access import Caller
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import NotAllowed
from approvals.locks import for_change
from approvals.models import ApiToken, Cluster, IssuerGrant, KubernetesIdentity, Proof, SignIn
from approvals.oidc import (
    ClaimsRefused,
    GrantRefused,
    Issuer,
    IssuerDiscovery,
    Issuers,
    IssuerSilent,
    TokenRefused,
    Tokens,
    Verified,
    names_on,
    renew,
    revoke,
    sign_out_address,
)
from approvals.services import sign_ins
from approvals.services.sign_ins import Browser, Proved

OIDC = KubernetesIdentity.Authenticator.OIDC
# An issuer that does not answer is asked again after this.
ASK_AGAIN = timedelta(seconds=30)
MAX_SESSION = 255
# Where a browser comes back to after it signed out at the issuer.
SIGN_IN_PATH = "/sign-in"
DISCOVERY = IssuerDiscovery()

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IssuerIdentities:
    """Whom an issuer's word proves, and why nobody on other clusters.

    `refused` names clusters and their rules: for the operator. `untold` is what the issuer left out of the person's own
    claims.
    """

    proved: tuple[Proved, ...]
    refused: tuple[str, ...]
    untold: tuple[str, ...] = ()


def identities_of(verified: Verified) -> IssuerIdentities:
    """Whom a verified token means on each registered cluster where its issuer counts."""
    proved, refused, untold = [], [], []
    rules = {one.cluster: one for one in verified.issuer.clusters}
    for cluster in Cluster.objects.filter(name__in=rules).order_by("name"):
        try:
            named = names_on(rules[cluster.name], verified.claims)
        except ClaimsRefused as exc:
            refused.append(f"{cluster.name}: {exc}")
            continue
        if named.groups_unknown:
            untold.append(named.groups_unknown)
        else:
            about = (OIDC, verified.issuer.url, verified.subject)
            proved.append(Proved(cluster, named.identity, verified.issued_at, *about))
    return IssuerIdentities(tuple(proved), tuple(refused), tuple(dict.fromkeys(untold)))


def sign_in_with_issuer(*, tokens: Tokens, browser: Browser, before: Caller | None = None) -> SignIn:
    """Begin a session in the account of this issuer's person, which is made if need be.

    Raises NotAllowed where the person is nobody on any cluster here, or the account is switched off.
    """
    found = identities_of(tokens.verified)
    if not found.proved:
        raise NotAllowed(_nobody(tokens.verified.issuer, found))
    try:
        return _sign_in(tokens, found, browser, before)
    except IntegrityError:
        # Somebody came in as the same new person at the same time: now the account is there.
        return _sign_in(tokens, found, browser, before)


def renew_grant(grant: IssuerGrant) -> bool:
    """Have the issuer say anew who this is, where that is due; True where it was asked.

    Sessions and tokens of a person who has left end. Where the issuer does not answer, or another request asks it just
    now, what was proved counts on until it is too old (S25).
    """
    now = database_now()
    is_due = now - grant.renewed_at >= timedelta(minutes=settings.PRATIQUE["RENEW_MINUTES"])
    was_tried = grant.tried_at > grant.renewed_at and now - grant.tried_at < ASK_AGAIN
    if not is_due or was_tried or not grant.refresh_token or DISCOVERY.is_silent(grant.issuer):
        return False
    mine = IssuerGrant.objects.filter(pk=grant.pk, tried_at=grant.tried_at)
    if not mine.update(tried_at=now):
        return False
    _renew(grant)
    return True


def end_sessions_of_issuer(issuer: Issuer, *, subject: str, session: str) -> int:
    """The issuer's word that a session there (`session`), or everything of a person, has ended; how many ended here."""
    grants = IssuerGrant.objects.filter(issuer=issuer.url)
    grants = grants.filter(session=session) if session else grants.filter(subject=subject)
    if session and subject:
        grants = grants.filter(subject=subject)
    with transaction.atomic(durable=True):
        rows = SignIn.objects.filter(grant__in=grants)
        ended = rows.count()
        people = sorted({row.grant.subject for row in rows.select_related("grant") if row.grant})
        rows.delete()
        _forget_unused(grants)
        # Only what ended: strangers may ask for the end of sessions that they make up.
        if ended:
            facts = {"issuer": issuer.url, "subjects": people, "sessions": ended}
            audit.record(verb="session.ended", actor=Actor(issuer.name, "issuer"), facts=facts)
    return ended


def leave_issuer(grant: IssuerGrant) -> str:
    """Give back what nothing here stands on any more; the address at which one signs out at the issuer, too.

    An issuer that does not answer forgets it by itself one day.
    """
    issuer = _issuer_of(grant)
    id_token, refresh_token = grant.id_token, grant.refresh_token
    is_used = SignIn.objects.filter(grant=grant).exists() or ApiToken.objects.filter(grant=grant).exists()
    if not is_used:
        IssuerGrant.objects.filter(pk=grant.pk).delete()
    if issuer is None:
        return ""
    try:
        if refresh_token and not is_used:
            revoke(issuer, DISCOVERY, refresh_token)
        home = str(settings.PRATIQUE["PUBLIC_URL"]).rstrip("/") + SIGN_IN_PATH
        return sign_out_address(issuer, DISCOVERY, id_token=id_token, home=home)
    except IssuerSilent as exc:
        logger.warning(
            "an issuer could not be notified of a sign-out", extra={"issuer": issuer.name, "error": str(exc)}
        )
        return ""


def caller_of_id_token(verified: Verified) -> Caller:
    """Who comes with an ID token of their own, without a session: for as long as the token lasts.

    Raises NotAllowed where the person is nobody on any cluster here, or the account is switched off.
    """
    found = identities_of(verified)
    if not found.proved:
        raise NotAllowed(_nobody(verified.issuer, found))
    try:
        return _caller_of(verified, found)
    except IntegrityError:
        # As when somebody signs in: the same new person came twice at the same time.
        return _caller_of(verified, found)


@transaction.atomic
def _caller_of(verified: Verified, found: IssuerIdentities) -> Caller:
    user = _account_of(verified)
    rows = sign_ins.keep_all(user, found.proved, OIDC)
    return access.of_issuer(user, [(row, list(proved.identity.groups), proved.at) for row, proved in rows])


@transaction.atomic(durable=True)
def _sign_in(tokens: Tokens, found: IssuerIdentities, browser: Browser, before: Caller | None) -> SignIn:
    verified = tokens.verified
    user = _account_of(verified)
    return sign_ins.sign_in_on_all(
        user,
        found.proved,
        browser,
        before,
        authenticator=OIDC,
        actor=Actor(user.get_username(), "oidc"),
        facts={"issuer": verified.issuer.url, "subject": verified.subject},
        grant=_grant(tokens),
    )


def _account_of(verified: Verified) -> User:
    """The account of this person of the issuer's: by `sub` alone, which an issuer gives to nobody else (S01)."""
    known = (
        KubernetesIdentity.objects.filter(authenticator=OIDC, issuer=verified.issuer.url, subject=verified.subject)
        .select_related("user")
        .order_by("pk")
        .first()
    )
    if known:
        return known.user
    said = verified.claims.get("preferred_username")
    shown = said if isinstance(said, str) and said else verified.subject
    mark = (verified.issuer.url, verified.subject)
    return User.objects.create_user(sign_ins.free_name(f"{shown}@{verified.issuer.name}", *mark))


def _grant(tokens: Tokens) -> IssuerGrant:
    verified, now = tokens.verified, database_now()
    session = verified.claims.get("sid", "")
    return IssuerGrant.objects.create(
        uid=uuid.uuid4(),
        issuer=verified.issuer.url,
        subject=verified.subject,
        session=session[:MAX_SESSION] if isinstance(session, str) else "",
        refresh_token=tokens.refresh_token,
        id_token=tokens.id_token,
        renewed_at=now,
        tried_at=now,
    )


def _renew(grant: IssuerGrant) -> None:
    issuer = _issuer_of(grant)
    if issuer is None or issuer.client is None:
        _end(grant, "the operator removed the issuer")
        return
    try:
        tokens = renew(issuer, DISCOVERY, refresh_token=grant.refresh_token, subject=grant.subject)
    except IssuerSilent as exc:
        # Else each session in turn would have a thread of the pages wait for it.
        DISCOVERY.note_silent(issuer, str(exc))
        logger.warning("an issuer is not responding", extra={"issuer": issuer.name, "error": str(exc)})
    except (GrantRefused, TokenRefused) as exc:
        _end(grant, str(exc))
    else:
        try:
            _keep_renewed(grant, tokens)
        except NotAllowed as exc:
            _end(grant, str(exc))


@transaction.atomic(durable=True)
def _keep_renewed(grant: IssuerGrant, tokens: Tokens) -> None:
    kept = for_change(IssuerGrant.objects.filter(pk=grant.pk)).first()
    if kept is None:
        return  # somebody signed out meanwhile
    kept.refresh_token, kept.id_token = tokens.refresh_token, tokens.id_token
    kept.renewed_at = kept.tried_at = database_now()
    kept.save()
    proved = identities_of(tokens.verified).proved
    holders: list[SignIn | ApiToken] = [*SignIn.objects.filter(grant=grant), *ApiToken.objects.filter(grant=grant)]
    for holder in holders:
        _prove_again(holder, proved)


def _prove_again(holder: SignIn | ApiToken, proved: Iterable[Proved]) -> None:
    """Only what the holder had proved before: a token for one cluster does not become one for two."""
    about = {"sign_in": holder} if isinstance(holder, SignIn) else {"api_token": holder}
    known = {row.identity.cluster_id: row for row in Proof.objects.filter(**about).select_related("identity")}
    if not any(row.identity.authenticator == OIDC for row in known.values()):
        return  # it was unlinked or taken away from this session
    for identity, one in sign_ins.keep_all(holder.user, proved, OIDC):
        row = known.pop(one.cluster.pk, None)
        if row is not None or isinstance(holder, SignIn):
            sign_ins.note(identity, one, **about)
    for row in known.values():
        if row.identity.authenticator == OIDC:
            row.delete()


@transaction.atomic(durable=True)
def _end(grant: IssuerGrant, why: str) -> None:
    """Sessions, tokens and chat links end with the identity behind them (S33)."""
    audit.record(
        verb="identity.ended",
        actor=Actor(f"{grant.subject}", "oidc"),
        facts={"issuer": grant.issuer, "subject": grant.subject, "why": why},
    )
    SignIn.objects.filter(grant=grant).delete()
    ApiToken.objects.filter(grant=grant).delete()
    grant.delete()
    if not IssuerGrant.objects.filter(issuer=grant.issuer, subject=grant.subject).exists():
        for row in KubernetesIdentity.objects.filter(authenticator=OIDC, issuer=grant.issuer, subject=grant.subject):
            row.chat_accounts.clear()


def _forget_unused(grants: Iterable[IssuerGrant]) -> None:
    for grant in grants:
        if not ApiToken.objects.filter(grant=grant).exists():
            grant.delete()


def _issuer_of(grant: IssuerGrant) -> Issuer | None:
    issuers: Issuers = settings.PRATIQUE["OIDC_FILE"]
    return issuers.with_url(grant.issuer)


def _nobody(issuer: Issuer, found: IssuerIdentities) -> str:
    """What is said to somebody whom the issuer knows and nobody here: not which clusters there are, nor their rules."""
    facts = {"issuer": issuer.name, "reasons": list(found.refused)}
    logger.warning("a person of an issuer has no identity on any cluster", extra=facts)
    words = f"{issuer.title} signed you in, but you have no identity on any cluster here"
    if found.untold:
        return f"{words}: {'; '.join(found.untold)}."
    return f"{words}: the operator configures which people are trusted; the log says why you are not."
