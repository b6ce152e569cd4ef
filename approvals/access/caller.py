"""Who is asking, as a value: an account here, and what this very session or token has proved (security-rules.md S01).

An account alone is nobody on any cluster. A proof answers on its own cluster, while its groups are young enough (S25).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.conf import settings
from django.contrib.auth.models import User

from approvals import models
from approvals.models import ApiToken, KubernetesIdentity
from approvals.oidc import Issuers
from approvals.proxies import IdentityProxies
from provisioner.values import Identity

Scope = ApiToken.Scope


class Credential(StrEnum):
    """What somebody came with."""

    SESSION = "session"
    ID_TOKEN = "id-token"  # noqa: S105 - a word of ours
    PROXY = "proxy"
    API_TOKEN = "api-token"  # noqa: S105 - a word of ours
    CHAT = "chat"
    WEBHOOK = "webhook"
    SHELL = "shell"
    KUBECTL = "kubectl"


@dataclass(frozen=True, slots=True)
class Proof:
    """One identity on one cluster. `issuer` and `subject` are "" where the cluster itself or its operator vouches.

    `issuer` is the address of an OpenID Connect issuer, also of a proxy that has its people; else the name of a proxy.
    """

    cluster_id: int
    cluster: str
    authenticator: str
    issuer: str
    identity: Identity
    proved_at: datetime
    identity_id: int
    subject: str = ""

    @property
    def is_mapped(self) -> bool:
        return self.authenticator == KubernetesIdentity.Authenticator.MAPPED

    @property
    def is_of_issuer(self) -> bool:
        return self.authenticator == KubernetesIdentity.Authenticator.OIDC

    @property
    def is_of_proxy(self) -> bool:
        return self.authenticator == KubernetesIdentity.Authenticator.PROXY

    @property
    def known_by(self) -> str:
        label = str(KubernetesIdentity.Authenticator(self.authenticator).label)
        return f"{label} {self.issuer}" if self.is_of_proxy else label

    def is_fresh(self, now: datetime, limit: timedelta) -> bool:
        return now - self.proved_at <= limit


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking. `scopes` and `clusters` (keys) narrow an API token; None: nothing is narrowed.

    `holder_id` is the key of the session's or the token's row, None for others. There is at most one proof a cluster.
    `ends_at` is when the session ends, however fresh its proofs are; None for others.
    """

    user: User
    credential: Credential
    proofs: tuple[Proof, ...] = ()
    scopes: frozenset[str] | None = None
    clusters: frozenset[int] | None = None
    holder_id: int | None = None
    ends_at: datetime | None = None

    @property
    def name(self) -> str:
        return self.user.get_username()

    @property
    def identity_ids(self) -> list[int]:
        return [proof.identity_id for proof in self.proofs]

    def proof_on(self, cluster_id: int) -> Proof | None:
        return next((proof for proof in self.proofs if proof.cluster_id == cluster_id), None)

    def may_act_on(self, cluster_id: int) -> bool:
        """Whether the credential is for this cluster at all."""
        return self.clusters is None or cluster_id in self.clusters

    def has(self, scope: str) -> bool:
        return self.scopes is None or scope in self.scopes

    def is_all_stale(self, now: datetime, limit: timedelta) -> bool:
        """Whether something was proved, and nothing of it is young enough."""
        return bool(self.proofs) and not any(proof.is_fresh(now, limit) for proof in self.proofs)


def sorted_proofs(proofs: Iterable[Proof]) -> tuple[Proof, ...]:
    return tuple(sorted(proofs, key=lambda proof: proof.cluster))


# Names that the cluster gives itself: accounts, nodes, components, and whoever did not say who they are.
SYSTEM = "system:"
MASTERS = "system:masters"
# Of whom they are, no name says who it is.
NOBODYS = frozenset({MASTERS, "system:unauthenticated"})
# The names of policies are nobody else's, whoever vouches for them (S13).
POLICY_PREFIX = "pratique:policy:"


def policy_identity(policy: models.Policy) -> Identity:
    """Of a row its key, of an object of a cluster its name, which is never digits alone."""
    return Identity(f"{POLICY_PREFIX}{policy.name if policy.uid else policy.pk}")


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


OIDC, PROXY = KubernetesIdentity.Authenticator.OIDC, KubernetesIdentity.Authenticator.PROXY


def may_vouch(authenticator: str, issuer: str, cluster: str) -> bool:
    """Whether `issuer` still counts on the cluster of this name: an issuer's address, or what a proxy vouches as.

    A worker has no files of issuers and proxies (S31): there, proofs count by their age alone (S25).
    """
    if settings.PRATIQUE["ISSUERS_ELSEWHERE"]:
        return True
    if authenticator == OIDC:
        issuers: Issuers = settings.PRATIQUE["OIDC_FILE"]
        known = issuers.with_url(issuer)
        return known is not None and known.rules_on(cluster) is not None
    if authenticator == PROXY:
        proxies: IdentityProxies = settings.PRATIQUE["IDENTITY_PROXIES_FILE"]
        return any(proxy.names_on(cluster) for proxy in proxies.vouching_as(issuer))
    return True


def also_known_as(issuer: str, subject: str) -> frozenset[tuple[str, str]]:
    """What else the same person may be recorded as: from before a proxy was said to have an issuer's people."""
    proxies: IdentityProxies = settings.PRATIQUE["IDENTITY_PROXIES_FILE"]
    return proxies.also_known_as(issuer, subject)
