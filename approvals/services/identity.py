"""Signing in, and tokens for the REST API."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Sequence
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from approvals import access, audit, instruments, limits
from approvals.audit import Actor
from approvals.errors import InvalidInput, NotAllowed, NotFound
from approvals.models import ApiToken, Cluster, KubernetesIdentity
from provisioner.errors import PratiqueError
from provisioner.values import Identity

TOKEN_PREFIX = "prq_"  # noqa: S105 - says what kind of secret this is, and is none
MAX_TOKEN_DAYS = 365
# RFC 6750, section 2.1. Not every Kubernetes token is a JWT: OpenShift's and EKS's are not.
BEARER = re.compile(r"[A-Za-z0-9._~+/:-]{1,16384}={0,2}", re.ASCII)
DO_NOT_FIT = (
    "this cluster and token do not fit: the name of the cluster is the one that its operator gave it here,"
    " and the token has to be valid there for audience pratique. It may also be that the cluster does not answer"
)
# About what a cluster takes to answer, so that the time does not tell which clusters there are.
REFUSAL_SECONDS = 0.3

logger = logging.getLogger(__name__)


def sign_in_with_token(*, cluster: str, token: str, address: str) -> User:
    """The user whom the cluster of this name takes the token's bearer for; name and groups count there only (S01).

    `address` is the client's. Raises NotAllowed in the same words, and after the same time, whether there is no such
    cluster, it does not answer or it does not know the token; TooManyAttempts where that happened too often.
    """
    attempt = limits.Attempt(limits.CLUSTER_TOKEN, address, cluster)
    attempt.begin()
    begin = time.monotonic()
    where = Cluster.objects.filter(name=cluster).first() if BEARER.fullmatch(token) else None
    identity = _bearer(where, token) if where else None
    if where is None or identity is None:
        time.sleep(max(0.0, begin + REFUSAL_SECONDS - time.monotonic()))
        instruments.refused_sign_ins.labels("cluster_token").inc()
        raise NotAllowed(DO_NOT_FIT)
    attempt.succeed()
    return _keep_identity(where, identity)


def _bearer(cluster: Cluster, token: str) -> Identity | None:
    try:
        return access.kubernetes().review_token(cluster, token)
    except PratiqueError as exc:
        # Told to the operator, not to a stranger.
        logger.warning("could not ask about a token", extra={"cluster": cluster.name, "code": exc.code})
        return None


@transaction.atomic(durable=True)
def map_identity(*, user: User, cluster: Cluster, username: str, groups: Sequence[str], by: Actor) -> None:
    """The operator's word that a local user is `username` on this cluster. `system:` names are refused (S01)."""
    identity = Identity(username, tuple(sorted(groups)))
    if access.is_reserved(identity):
        raise InvalidInput(f"{username} or one of its groups starts with system:, which only a token can prove")
    if KubernetesIdentity.objects.filter(cluster=cluster, username=username).exclude(user=user).exists():
        raise InvalidInput(f"somebody else is {username} on cluster {cluster.name}: one name is one person")
    KubernetesIdentity.objects.update_or_create(
        user=user,
        cluster=cluster,
        defaults={
            "authenticator": KubernetesIdentity.Authenticator.MAPPED,
            "username": username,
            "uid": "",
            "groups": list(identity.groups),
            "groups_seen_at": timezone.now(),
        },
    )
    audit.record(
        verb="identity.mapped",
        actor=by,
        facts={"user": user.get_username(), "cluster": cluster.name, "as": username, "groups": list(identity.groups)},
    )


@transaction.atomic(durable=True)
def create_api_token(*, user: User, name: str, days: int) -> tuple[ApiToken, str]:
    """A new token and its text, which is shown this once and never kept."""
    if not name.strip():
        raise InvalidInput("give the token a name, so that you can tell it from others", field="name")
    if not 1 <= days <= MAX_TOKEN_DAYS:
        raise InvalidInput(f"{days} days; expected 1 to {MAX_TOKEN_DAYS}", field="days")
    text = TOKEN_PREFIX + secrets.token_urlsafe(32)
    now = timezone.now()
    token = ApiToken.objects.create(
        user=user, name=name.strip()[:100], digest=digest(text), created_at=now, expires_at=now + timedelta(days=days)
    )
    audit.record(verb="token.created", actor=Actor(user.get_username(), "browser"), facts={"name": token.name})
    return token, text


@transaction.atomic(durable=True)
def revoke_api_token(*, user: User, token_id: int) -> None:
    token = ApiToken.objects.filter(user=user, pk=token_id).first()
    if token is None:
        raise NotFound("you have no such token")
    audit.record(verb="token.revoked", actor=Actor(user.get_username(), "browser"), facts={"name": token.name})
    token.delete()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@transaction.atomic(durable=True)
def _keep_identity(cluster: Cluster, identity: Identity) -> User:
    known = (
        KubernetesIdentity.objects.select_related("user").filter(cluster=cluster, username=identity.username).first()
    )
    user = known.user if known else User.objects.create_user(f"{identity.username}@{cluster.name}"[:150])
    if not user.is_active:
        raise NotAllowed("this account is switched off here")
    KubernetesIdentity.objects.update_or_create(
        user=user,
        cluster=cluster,
        defaults={
            "authenticator": KubernetesIdentity.Authenticator.TOKEN_REVIEW,
            "username": identity.username,
            "uid": identity.uid,
            "groups": list(identity.groups),
            "groups_seen_at": timezone.now(),
        },
    )
    audit.record(
        verb="identity.proved",
        actor=Actor(identity.username, "token"),
        facts={"cluster": cluster.name, "groups": list(identity.groups)},
    )
    return user
