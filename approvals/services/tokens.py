"""Tokens for the REST API: what they may do, where, until when, and as whom (security-rules.md S33).

A token proves what the session that made it had proved, and that ages: after PRATIQUE_GROUPS_HOURS it is proved anew
with a token of its cluster, or it does nothing. Where an issuer is behind it, that is asked without a word from the
token's owner (services.issuers). Behind a password or a proxy there is nothing to prove anew, so it ends then.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from approvals import access, audit
from approvals.access import Caller, Credential, Scope
from approvals.access import Proof as CallersProof
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import InvalidInput, NotAllowed, NotFound
from approvals.models import ApiToken, Cluster, IssuerGrant, KubernetesIdentity, Proof
from approvals.services import sign_ins
from approvals.services.sessions import sharing_identity
from approvals.services.sign_ins import Proved

TOKEN_PREFIX = "prq_"  # noqa: S105 - says what kind of secret this is, and is none
MAX_NAME = 100


def create_api_token(
    *, by: Caller, name: str, days: int, scopes: Sequence[str], clusters: Collection[Cluster]
) -> tuple[ApiToken, str]:
    """A new token and its text, which is shown this once and never kept.

    Raises ProofTooOld, and InvalidInput for a scope that is none or a cluster where `by` has proved nothing.
    """
    if by.credential != Credential.SESSION:
        raise NotAllowed("a token cannot create tokens: sign in to create one")
    access.check_fresh(by)
    most = settings.PRATIQUE["TOKEN_DAYS"]
    if not name.strip():
        raise InvalidInput("the token needs a name", field="name")
    if not 1 <= days <= most:
        raise InvalidInput(f"{days} days; expected 1 to {most}, as the operator allows", field="days")
    if not scopes or not set(scopes) <= set(Scope.values):
        raise InvalidInput(f"the scopes are {[*scopes]}; expected some of {', '.join(Scope.values)}", field="scopes")
    if not clusters:
        raise InvalidInput("choose at least one cluster for the token", field="clusters")
    proofs = []
    for cluster in clusters:
        found = access.find_identity(by, cluster)
        if found.identity is None or found.proof is None:
            raise InvalidInput(f"no token for cluster {cluster.name}: {found.refusal}", field="clusters")
        proofs.append(found.proof)
    return _create(by, name.strip()[:MAX_NAME], days, sorted(set(scopes)), proofs)


def create_read_token(*, by: Caller, name: str, days: int) -> tuple[ApiToken, str]:
    """A token for reading, of somebody whom an issuer has just named, on every cluster where they are somebody.

    It stands on an ID token, so that nothing proves it anew, and it ends with what that has proved.
    """
    proofs = [proof for proof in by.proofs if proof.is_of_issuer]
    if by.credential != Credential.ID_TOKEN or not proofs:
        raise NotAllowed("only a sign-in at an issuer creates a token for the command line")
    days = min(days, settings.PRATIQUE["TOKEN_DAYS"])
    return _create(by, name.strip()[:MAX_NAME] or "command line", days, [Scope.READ.value], proofs, via="oidc")


@transaction.atomic(durable=True)
def end_api_token(*, by: Caller) -> None:
    """End the very token that `by` came with, as whoever signs out with it."""
    row = ApiToken.objects.filter(pk=by.holder_id or 0).first() if by.credential == Credential.API_TOKEN else None
    if row is None:
        raise NotFound("this call was not authenticated by an API token")
    audit.record(verb="token.revoked", actor=Actor(by.name, "rest"), facts={"name": row.name})
    row.delete()


@transaction.atomic(durable=True)
def revoke_api_token(*, by: Caller, token_id: int) -> None:
    _, mine = sharing_identity(by)
    token = mine.filter(pk=token_id).first()
    if token is None:
        raise NotFound("your account has no such token")
    audit.record(verb="token.revoked", actor=Actor(by.name, "browser"), facts={"name": token.name})
    ApiToken.objects.filter(pk=token.pk).delete()


@transaction.atomic(durable=True)
def prove_api_token(*, by: Caller, proved: Proved) -> ApiToken:
    """Renew what the token of `by` has proved, with the groups of now: only as the very person that it stands for."""
    is_token = by.credential == Credential.API_TOKEN and by.holder_id
    row = ApiToken.objects.filter(pk=by.holder_id or 0).first() if is_token else None
    if row is None:
        raise NotAllowed("only an API token can be verified again this way: send it as `Authorization: Bearer prq_…`")
    known = KubernetesIdentity.objects.filter(**sign_ins.key_of(proved), proofs__api_token=row)
    if not known.exists():
        raise NotAllowed(
            f"the token belongs to {proved.identity.username} on cluster {proved.cluster.name}, which is not an "
            "identity of this API token: use a token of the person who created it, or create a new API token"
        )
    sign_ins.note(sign_ins.keep(proved), proved, api_token=row)
    facts = {"name": row.name, "cluster": proved.cluster.name, "groups": list(proved.identity.groups)}
    audit.record(verb="token.proved", actor=Actor(proved.identity.username, "rest"), facts=facts)
    return row


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@transaction.atomic(durable=True)
def _create(
    by: Caller, name: str, days: int, scopes: list[str], proofs: list[CallersProof], *, via: str = "browser"
) -> tuple[ApiToken, str]:
    text = TOKEN_PREFIX + secrets.token_urlsafe(32)
    now = database_now()
    password_at = min((proof.proved_at for proof in proofs if proof.is_mapped), default=None)
    is_of_issuer = any(proof.is_of_issuer for proof in proofs)
    grant = IssuerGrant.objects.filter(signin__pk=by.holder_id or 0).first() if is_of_issuer else None
    is_renewed = bool(grant and grant.refresh_token)
    # What nobody can prove anew ends the token.
    ends = [proof.proved_at for proof in proofs if proof.is_of_proxy or (proof.is_of_issuer and not is_renewed)]
    ends += [password_at] if password_at else []
    token = ApiToken.objects.create(
        user=by.user,
        name=name,
        digest=digest(text),
        scopes=scopes,
        clusters=sorted(proof.cluster_id for proof in proofs),
        password_at=password_at,
        created_at=now,
        grant=grant,
        expires_at=min([now + timedelta(days=days), *(proved_at + access.groups_limit() for proved_at in ends)]),
    )
    for proof in proofs:
        if not proof.is_mapped:
            groups = list(proof.identity.groups)
            Proof.objects.create(
                api_token=token, identity_id=proof.identity_id, groups=groups, proved_at=proof.proved_at
            )
    facts = {"name": token.name, "scopes": scopes, "clusters": [proof.cluster for proof in proofs]}
    audit.record(verb="token.created", actor=Actor(by.name, via), facts=facts)
    return token, text
