"""As whom a caller acts on a cluster: what they have proved there, and not too long ago (security-rules.md S01, S25).

A caller is asked about. Of a person who is not there, such as one who gave a review yesterday, only the latest proof
of their identity is known: `last_known_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User

from approvals import models
from approvals.access.caller import Caller, Credential, Proof, counts, may_vouch
from approvals.clock import database_now
from approvals.errors import NotAllowed, OutOfScope, ProofTooOld, Refused
from provisioner.values import Identity

MAPPED = models.KubernetesIdentity.Authenticator.MAPPED


@dataclass(frozen=True, slots=True)
class FoundIdentity:
    """As whom a caller acts on one cluster; else why as nobody: `refusal`. A `proof` that is too old is there, too."""

    identity: Identity | None
    proof: Proof | None = None
    refusal: Refused | None = None


def groups_limit() -> timedelta:
    """How long groups are believed (S25)."""
    return timedelta(hours=settings.PRATIQUE["GROUPS_HOURS"])


def find_identity(caller: Caller, cluster: models.Cluster) -> FoundIdentity:
    """Judged by the proofs of this very session or token, never by the account (S01)."""
    if not caller.may_act_on(cluster.pk) and caller.user.kubernetes_identities.filter(cluster=cluster).exists():
        words = f"this token does not cover cluster {cluster.name}: create a token for that cluster"
        return FoundIdentity(None, refusal=OutOfScope(words, cluster=cluster.name))
    proof = caller.proof_on(cluster.pk)
    if proof is None:
        words = f"you have no Kubernetes identity on cluster {cluster.name}: sign in with a token for that cluster"
        return FoundIdentity(None, refusal=NotAllowed(words))
    if not proof.is_fresh(database_now(), groups_limit()):
        return FoundIdentity(None, proof, too_old(caller, [proof]))
    return FoundIdentity(proof.identity, proof)


def identity_of(caller: Caller, cluster: models.Cluster) -> Identity | None:
    """None: nobody there, or by a proof that is too old."""
    return find_identity(caller, cluster).identity


def acting_as(caller: Caller, cluster: models.Cluster) -> Identity:
    """The identity; raises NotAllowed, OutOfScope or ProofTooOld where there is none."""
    return proved_on(caller, cluster).identity


def proved_on(caller: Caller, cluster: models.Cluster) -> Proof:
    """What makes the caller somebody there; raises as `acting_as`."""
    found = find_identity(caller, cluster)
    if found.refusal:
        raise found.refusal
    assert found.proof is not None
    return found.proof


def check_fresh(caller: Caller) -> None:
    """Raise ProofTooOld where somebody is known everywhere by what is too old only."""
    if caller.is_all_stale(database_now(), groups_limit()):
        raise too_old(caller, caller.proofs)


def too_old(caller: Caller, proofs: list[Proof] | tuple[Proof, ...]) -> ProofTooOld:
    names = ", ".join(proof.cluster for proof in proofs)
    hours = settings.PRATIQUE["GROUPS_HOURS"]
    words = f"your identity and groups on {names} were verified more than {hours} hours ago and have expired: "
    return ProofTooOld(words + _remedy(caller, proofs), clusters=[proof.cluster for proof in proofs])


def _remedy(caller: Caller, proofs: list[Proof] | tuple[Proof, ...]) -> str:
    if caller.credential == Credential.ID_TOKEN:
        return "get a new ID token from your issuer"
    if caller.credential == Credential.API_TOKEN and any(proof.is_of_proxy for proof in proofs):
        return "create a new token on the account page"
    if caller.credential != Credential.API_TOKEN:
        return "sign in again"
    if any(proof.is_of_issuer for proof in proofs):
        return "the issuer did not confirm who you are: try again later, or create a new token on the account page"
    if any(not proof.is_mapped for proof in proofs):
        return "verify them again with a token for that cluster: POST /api/v1/tokens/current/prove"
    return "create a new token on the account page"


def last_known_of(user: User, cluster: models.Cluster) -> Identity | None:
    """Who this account is on the cluster, by the latest proof of it, however old. To narrow what counts, not to act."""
    return _identity_in(_row_of(user, cluster), user)


def still_known_of(user: User, cluster: models.Cluster, *, now: datetime) -> Identity | None:
    """`last_known_of`, None where the groups are too old to count on (S25). A mapping is the operator's word of now."""
    row = _row_of(user, cluster)
    if row is None or not may_vouch(row.authenticator, row.issuer, cluster.name):
        return None
    is_fresh = row.authenticator == MAPPED or now - row.groups_seen_at <= groups_limit()
    return _identity_in(row, user) if is_fresh else None


def _row_of(user: User, cluster: models.Cluster) -> models.KubernetesIdentity | None:
    return models.KubernetesIdentity.objects.filter(user=user, cluster=cluster).first()


def _identity_in(row: models.KubernetesIdentity | None, user: User) -> Identity | None:
    if row is None or not user.is_active:
        return None
    identity = Identity(row.username, tuple(row.groups), row.uid)
    return identity if counts(identity, row.authenticator) else None
