"""Reading who is asking from the rows of their session, token or link."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet

from approvals import models
from approvals.access.caller import Caller, Credential, Proof, counts, may_vouch, sorted_proofs
from approvals.access.identity import MAPPED, groups_limit
from approvals.clock import database_now
from approvals.models import ApiToken, ChatAccount, KubernetesIdentity, SignIn
from approvals.models import Proof as ProofRow
from provisioner.values import Identity


def of_sign_in(row: SignIn) -> Caller:
    proofs = [*_vouched(ProofRow.objects.filter(sign_in=row)), *_mapped(row.user, row.password_at)]
    ends_at = row.began_at + timedelta(hours=settings.PRATIQUE["SESSION_HOURS"])
    return Caller(row.user, Credential.SESSION, _counting(row.user, proofs), holder_id=row.pk, ends_at=ends_at)


def of_token(row: ApiToken) -> Caller:
    """Only what the token has proved of the clusters that it is for."""
    proofs = [*_vouched(ProofRow.objects.filter(api_token=row)), *_mapped(row.user, row.password_at)]
    here = [proof for proof in proofs if proof.cluster_id in row.clusters]
    scopes, clusters = frozenset(row.scopes), frozenset(row.clusters)
    return Caller(row.user, Credential.API_TOKEN, _counting(row.user, here), scopes, clusters, row.pk)


def of_issuer(user: User, proved: Iterable[tuple[KubernetesIdentity, list[str], datetime]]) -> Caller:
    """Who comes with an ID token: identities with the groups in it, and when it was issued."""
    proofs = [_proof(row, groups, at) for row, groups, at in proved]
    return Caller(user, Credential.ID_TOKEN, _counting(user, proofs))


def of_proxy(user: User, proved: Iterable[tuple[KubernetesIdentity, list[str], datetime]]) -> Caller:
    """Whom a proxy names in this very request, without a session."""
    proofs = [_proof(row, groups, at) for row, groups, at in proved]
    return Caller(user, Credential.PROXY, _counting(user, proofs))


def of_chat(account: ChatAccount) -> Caller:
    """As whom the account was linked, with the groups that this person was last seen with.

    A chat proves nothing anew: a mapped identity counts from when its password was last given.
    """
    linked = {row.pk: row for row in account.identities.filter(user=account.user).select_related("cluster")}
    proofs = [_proof(row, row.groups, row.groups_seen_at) for row in linked.values() if row.authenticator != MAPPED]
    proofs += [proof for proof in _mapped(account.user, account.user.last_login) if proof.identity_id in linked]
    return Caller(account.user, Credential.CHAT, _counting(account.user, proofs))


def of_admission(row: KubernetesIdentity, identity: Identity, proved_at: datetime) -> Caller:
    """Who made an object, as the cluster's own admission has proved: for what the object says, and nothing else.

    An account that is known without a uid stays so: whoever is asked about the review later knows it as the row does.
    """
    identity = Identity(identity.username, identity.groups, row.uid)
    where = (row.cluster_id, row.cluster.name)
    authenticator = KubernetesIdentity.Authenticator.TOKEN_REVIEW
    is_person = row.user.is_active and counts(identity, authenticator)
    proof = Proof(*where, authenticator, row.issuer, identity, proved_at, row.pk, row.subject)
    return Caller(row.user, Credential.KUBECTL, (proof,) if is_person else (), clusters=frozenset({row.cluster_id}))


def of_operator(user: User, credential: Credential) -> Caller:
    """As whom the operator says that this user acts, by a word of now: a robot of the settings, or the shell."""
    return Caller(user, credential, _counting(user, _as_mapped(user, database_now())))


def _vouched(rows: QuerySet[ProofRow]) -> list[Proof]:
    return [_proof(row.identity, row.groups, row.proved_at) for row in rows.select_related("identity__cluster")]


def _mapped(user: User, password_at: datetime | None) -> list[Proof]:
    """A mapping is entered by the account's own password only, and counts as it stands now."""
    if password_at is None or not settings.PRATIQUE["LOCAL_ACCOUNTS"]:
        return []
    return _as_mapped(user, password_at)


def _as_mapped(user: User, proved_at: datetime) -> list[Proof]:
    rows = KubernetesIdentity.objects.filter(user=user, authenticator=MAPPED).select_related("cluster")
    return [_proof(row, row.groups, proved_at) for row in rows]


def _proof(row: KubernetesIdentity, groups: list[str], proved_at: datetime) -> Proof:
    identity = Identity(row.username, tuple(groups), row.uid)
    where = (row.cluster_id, row.cluster.name)
    return Proof(*where, row.authenticator, row.issuer, identity, proved_at, row.pk, row.subject)


def _counting(user: User, proofs: Iterable[Proof]) -> tuple[Proof, ...]:
    """What counts of it: nothing where the account is switched off, and no cluster's word for an operator's account.

    Nor the word of an issuer or proxy that the operator has taken away.
    """
    if not user.is_active:
        return ()
    is_operators = user.is_staff or user.is_superuser
    return sorted_proofs(
        proof
        for proof in proofs
        if counts(proof.identity, proof.authenticator)
        and may_vouch(proof.authenticator, proof.issuer, proof.cluster)
        and (proof.is_mapped or not is_operators)
    )


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
        return tuple(identity for identity in self.identities if not identity.is_expired)

    @property
    def expired(self) -> tuple[ActingAs, ...]:
        return tuple(identity for identity in self.identities if identity.is_expired)

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
    identities = tuple(_acting_as(caller, proof, now) for proof in proofs)
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


def _acting_as(caller: Caller, proof: Proof, now: datetime) -> ActingAs:
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
