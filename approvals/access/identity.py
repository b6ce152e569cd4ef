"""Which Kubernetes identity a user has on a cluster, and which identities never count (security.md S01, S12, S13)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User

from approvals import models
from provisioner.values import Identity

MACHINE_PREFIXES = ("system:serviceaccount:", "system:node:")
MASTERS = "system:masters"
# The names of policies are nobody else's, whoever vouches for them (S13).
POLICY_PREFIX = "pratique:policy:"


def identity_of(user: User, cluster: models.Cluster) -> Identity | None:
    """The identity that was proved or mapped for this cluster; None: the user is nobody there."""
    return _identity_in(_proof_of(user, cluster), user)


def fresh_identity_of(user: User, cluster: models.Cluster, *, now: datetime) -> Identity | None:
    """`identity_of`, read once with how old its groups are: None where that is too old to decide on (S25)."""
    proof = _proof_of(user, cluster)
    return _identity_in(proof, user) if _is_fresh(proof, now) else None


def are_groups_fresh(user: User, cluster: models.Cluster, *, now: datetime) -> bool:
    """Whether the user's groups were seen recently enough to decide on (S25); the operator's own word does not age."""
    return _is_fresh(_proof_of(user, cluster), now)


def _proof_of(user: User, cluster: models.Cluster) -> models.KubernetesIdentity | None:
    return models.KubernetesIdentity.objects.filter(user=user, cluster=cluster).first()


def _identity_in(proof: models.KubernetesIdentity | None, user: User) -> Identity | None:
    if proof is None or not user.is_active:
        return None
    identity = Identity(proof.username, tuple(proof.groups), proof.uid)
    if identity.username.startswith(POLICY_PREFIX):
        return None
    if proof.authenticator != models.KubernetesIdentity.Authenticator.TOKEN_REVIEW and is_reserved(identity):
        return None
    return identity


def _is_fresh(proof: models.KubernetesIdentity | None, now: datetime) -> bool:
    if proof is None:
        return False
    is_mapped = proof.authenticator == models.KubernetesIdentity.Authenticator.MAPPED
    return is_mapped or now - proof.groups_seen_at <= timedelta(hours=settings.PRATIQUE["GROUPS_HOURS"])


def policy_identity(policy: models.Policy) -> Identity:
    return Identity(f"{POLICY_PREFIX}{policy.pk}")


def is_reserved(identity: Identity) -> bool:
    """Whether a name or group starts with `system:`, which only the cluster itself may prove."""
    return any(name.startswith("system:") for name in (identity.username, *identity.groups))


def is_machine(identity: Identity) -> bool:
    """Whether this is no human, or one whose answer from Kubernetes is always yes: it may not review."""
    return identity.username not in settings.PRATIQUE["MACHINE_REVIEWERS"] and not is_human(identity)


def is_human(identity: Identity) -> bool:
    """Whether a name may be a person's at all, whatever the operator lets machines do."""
    return not identity.username.startswith(MACHINE_PREFIXES) and MASTERS not in identity.groups
