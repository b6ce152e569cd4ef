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
    row = _proof_of(user, cluster)
    if row is None or not user.is_active:
        return None
    identity = Identity(row.username, tuple(row.groups), row.uid)
    if identity.username.startswith(POLICY_PREFIX):
        return None
    if row.authenticator != models.KubernetesIdentity.Authenticator.TOKEN_REVIEW and is_reserved(identity):
        return None
    return identity


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


def are_groups_fresh(user: User, cluster: models.Cluster, *, now: datetime) -> bool:
    """Whether the user's groups were seen recently enough to decide on (S25); the operator's own word does not age."""
    row = _proof_of(user, cluster)
    patience = timedelta(hours=settings.PRATIQUE["GROUPS_HOURS"])
    if row is None:
        return False
    is_mapped = row.authenticator == models.KubernetesIdentity.Authenticator.MAPPED
    return is_mapped or now - row.groups_seen_at <= patience


def _proof_of(user: User, cluster: models.Cluster) -> models.KubernetesIdentity | None:
    """Read anew, or once with its user where the reader has it prefetched."""
    return next((row for row in user.kubernetes_identities.all() if row.cluster_id == cluster.pk), None)
