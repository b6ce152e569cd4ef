"""As whom a caller acts on which cluster, how that was proved, and until when it counts: facts for people to read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from approvals import models
from approvals.access.caller import Caller, Proof
from approvals.access.identity import MAPPED, groups_limit

# So many identities stand in one line; the list has all.
MAX_IN_LINE = 2
# The same of the groups of one identity; the account page has all.
MAX_GROUPS = 4


@dataclass(frozen=True, slots=True)
class ActingAs:
    """One identity of the caller: how it was proved, in words, and when it stops counting."""

    cluster: str
    username: str
    groups: tuple[str, ...]
    proved_by: str
    proved_at: datetime
    ends_at: datetime
    is_expired: bool

    @property
    def first_groups(self) -> tuple[str, ...]:
        return self.groups[:MAX_GROUPS]

    @property
    def more_groups(self) -> int:
        return max(0, len(self.groups) - MAX_GROUPS)


@dataclass(frozen=True, slots=True)
class Acting:
    """The caller on the clusters of one page: by name, with the clusters where they are known but proved nothing now.

    `cluster` is that of a page about one cluster, else "".
    """

    cluster: str
    identities: tuple[ActingAs, ...]
    not_proved: tuple[str, ...]

    @property
    def current(self) -> tuple[ActingAs, ...]:
        return tuple(one for one in self.identities if not one.is_expired)

    @property
    def expired(self) -> tuple[ActingAs, ...]:
        return tuple(one for one in self.identities if one.is_expired)

    @property
    def only(self) -> ActingAs | None:
        """The identity that can be told in full, because there is nothing else to tell."""
        return self.identities[0] if len(self.identities) == 1 and not self.not_proved else None

    @property
    def in_line(self) -> tuple[ActingAs, ...]:
        return self.current[:MAX_IN_LINE]

    @property
    def more(self) -> int:
        return len(self.current) - len(self.in_line)


def acting_of(caller: Caller, cluster: models.Cluster | None, now: datetime) -> Acting:
    """On `cluster`, or without one on all clusters where the account is known."""
    proofs = [proof for proof in caller.proofs if cluster is None or proof.cluster_id == cluster.pk]
    identities = tuple(_shown(caller, proof, now) for proof in proofs)
    if cluster is not None:
        return Acting(cluster.name, identities, () if proofs else (cluster.name,))
    return Acting("", identities, _not_proved(caller))


def has_proved_all(caller: Caller) -> bool:
    """Whether the caller has proved everybody that the account is: what is known of the account is theirs, then.

    Of an account that is linked, a session by one cluster learns nothing of what was done by another (S01).
    """
    return not _not_proved(caller)


def proved_by(proof: Proof) -> str:
    """How an identity was proved, in the words of the sign-in page."""
    if proof.authenticator == MAPPED:
        return "password"
    if proof.is_of_proxy:
        proxies = settings.PRATIQUE["IDENTITY_PROXIES_FILE"].vouching_as(proof.issuer)
        names = ", ".join(proxy.name for proxy in proxies if proxy.names_on(proof.cluster))
        return f"trusted proxy {names}" if names else proof.known_by
    issuer = settings.PRATIQUE["OIDC_FILE"].with_url(proof.issuer) if proof.issuer else None
    return issuer.title if issuer else proof.known_by


def _shown(caller: Caller, proof: Proof, now: datetime) -> ActingAs:
    """What its credential ends with, ends too: a session has an end of its own."""
    limit = groups_limit()
    counts_until = proof.proved_at + limit
    ends_at = min(counts_until, caller.ends_at) if caller.ends_at else counts_until
    who = proof.identity
    is_expired = not proof.is_fresh(now, limit)
    return ActingAs(proof.cluster, who.username, who.groups, proved_by(proof), proof.proved_at, ends_at, is_expired)


def _not_proved(caller: Caller) -> tuple[str, ...]:
    """Clusters to which the account is linked, and where this session is nobody. Mapped accounts have none of these."""
    if caller.proofs and all(proof.is_mapped for proof in caller.proofs):
        return ()
    known = models.KubernetesIdentity.objects.filter(user=caller.user).exclude(pk__in=caller.identity_ids)
    return tuple(known.order_by("cluster__name").values_list("cluster__name", flat=True))
