"""Which Kubernetes names and groups never count, and which are no human's (security-rules.md S01, S12, S13)."""

from __future__ import annotations

from django.conf import settings

from approvals import models
from provisioner.values import Identity

# Names that the cluster gives itself: accounts, nodes, components, and whoever did not say who they are.
SYSTEM = "system:"
MASTERS = "system:masters"
# Of whom they are, no name says who it is.
NOBODYS = frozenset({MASTERS, "system:unauthenticated"})
# The names of policies are nobody else's, whoever vouches for them (S13).
POLICY_PREFIX = "pratique:policy:"


def policy_identity(policy: models.Policy) -> Identity:
    return Identity(f"{POLICY_PREFIX}{policy.pk}")


def counts(identity: Identity, authenticator: str) -> bool:
    """Whether this authenticator may vouch for such a name and such groups at all."""
    if identity.username.startswith(POLICY_PREFIX):
        return False
    is_of_cluster = authenticator == models.KubernetesIdentity.Authenticator.TOKEN_REVIEW
    return is_of_cluster or not is_reserved(identity)


def is_reserved(identity: Identity) -> bool:
    """Whether a name or group starts with `system:`, which only the cluster itself may prove."""
    return any(name.startswith(SYSTEM) for name in (identity.username, *identity.groups))


def is_machine(identity: Identity) -> bool:
    """Whether this is no human, or one whose answer from Kubernetes is always yes: it may not review."""
    return identity.username not in settings.PRATIQUE["MACHINE_REVIEWERS"] and not is_human(identity)


def is_human(identity: Identity) -> bool:
    """Whether a name may be a person's at all, whatever the operator lets machines do."""
    return not identity.username.startswith(SYSTEM) and not NOBODYS & {*identity.groups}
