"""Which person it is: one who asked for a change, voted on it or wrote a policy, however they are called now (S05).

A name can be changed at an issuer, and an identity can be unlinked from one account and enter another. So a person is
compared by everything that is known of them, and one equal part is enough.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.dateparse import parse_datetime

from approvals import controllers, models
from approvals.access.caller import Caller, also_known_as, counts, may_vouch
from approvals.access.identity import MAPPED, groups_limit
from approvals.bundle_spec import parse_catalog_source
from approvals.clock import database_now
from approvals.policy import Lapse, Lapsed
from approvals.policy.document import LoadedPolicy
from approvals.proxies import is_issuer, is_name
from provisioner.values import Identity

Record = Mapping[str, Any]
# An issuer, and its `sub`.
Subject = tuple[str, str]
# What a requester and a write have in common, if they are the same person's.
_WRITER = ("username", "uid", "user_id", "issuer", "subject")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody on one cluster; what is not known of them is "", None or empty, and equals nothing.

    `user_id` is the key of their account here, `subjects` are what issuers call whoever enters that account.
    """

    username: str = ""
    uid: str = ""
    user_id: int | None = None
    subjects: frozenset[Subject] = field(default_factory=frozenset)

    def is_same(self, other: Person) -> bool:
        """Whether both are one person, as far as anybody can tell. Both are of the same cluster.

        Kubernetes tells `alice` from `Alice`. Here these are one person, unless both have proved identifiers that
        differ: a proxy or an issuer that passes names on as they were typed gives one person both. What a proxy passes
        on as an identifier may be such a name as well. A `sub` is none: "a case-sensitive string" that is compared as
        it stands (OpenID Connect Core 1.0, section 2), as base64 of an issuer's own key, and neither is a uid.
        """
        return (
            self._is_called_as(other)
            or self.uid == other.uid != ""
            or (self.user_id is not None and self.user_id == other.user_id)
            or not _comparable(self.subjects).isdisjoint(_comparable(other.subjects))
            or self._has_uid_of(other)
            or other._has_uid_of(self)
        )

    @property
    def _identifiers(self) -> frozenset[Subject]:
        """What each issuer gives to this person alone; names are none."""
        return frozenset(subject for subject in self.subjects if not is_name(*subject))

    def _is_called_as(self, other: Person) -> bool:
        if self.username == other.username or not (self.username and other.username):
            return self.username == other.username != ""
        return folded(self.username) == folded(other.username) and not self._is_told_from(other)

    def _is_told_from(self, other: Person) -> bool:
        """Whether both have proved to the same one, the cluster or an issuer, who they are, and differ.

        Asked of those whose identifiers are not the same: `is_same` compares these as well. Names and uids that differ
        in capitals alone are what one person typed twice.
        """
        if self.uid and other.uid:
            return folded(self.uid) != folded(other.uid)
        issuers = [{issuer for issuer, _ in one._identifiers} for one in (self, other)]
        return not issuers[0].isdisjoint(issuers[1])

    def _has_uid_of(self, other: Person) -> bool:
        """Whether the cluster knows this person by what an issuer gave the other one (`claimMappings.uid`)."""
        return any(self.uid == subject for _, subject in other._identifiers)

    def record(self) -> dict[str, Any]:
        subjects = [list(subject) for subject in sorted(self.subjects)]
        return {"username": self.username, "uid": self.uid, "user_id": self.user_id, "subjects": subjects}


def person_of(caller: Caller, cluster: models.Cluster) -> Person:
    """Whoever is asking, as this cluster knows them, also by a proof that is too old; by `sub` on any cluster."""
    told = [(one.issuer, one.subject) for one in caller.proofs if one.subject]
    subjects = frozenset(pair for one in told for pair in (one, *also_known_as(*one)))
    known, proof = Person(user_id=caller.user.pk, subjects=subjects), caller.proof_on(cluster.pk)
    return replace(known, username=proof.identity.username, uid=proof.identity.uid) if proof else known


def person_of_account(user: User, cluster: models.Cluster) -> Person:
    """Who this account is on the cluster by what was last known of it, however old."""
    rows = list(models.KubernetesIdentity.objects.filter(user=user))
    subjects = frozenset((one.issuer, one.subject) for one in rows if one.subject)
    known, row = (
        Person(user_id=user.pk, subjects=subjects),
        next((it for it in rows if it.cluster_id == cluster.pk), None),
    )
    return replace(known, username=row.username, uid=row.uid) if row else known


def person_recorded(record: Record) -> Person:
    """Who a record names: of a requester, or of `Person.record`."""
    pairs = frozenset((str(issuer), str(subject)) for issuer, subject in record.get("subjects") or [])
    one = _subject(record.get("issuer") or "", record.get("subject") or "")
    return Person(record.get("username") or "", record.get("uid") or "", record.get("user_id"), pairs | one)


def person_who_reviewed(review: models.Review | models.Dismissal) -> Person:
    return Person(review.username, review.uid, review.user_id, _subject(review.issuer, review.subject))


def writers_of(policy: LoadedPolicy, cluster: models.Cluster) -> Iterator[tuple[str, Person]]:
    """Everybody who ever wrote the policy, with a name to call them by: as they were then, and as they are now."""
    records = each_once(policy.authors)
    keys = {*policy.accounts, *(record["user_id"] for record in records if record.get("user_id"))}
    accounts = User.objects.in_bulk(keys) if keys else {}
    known = [person_recorded(record) for record in records]
    for person in [*known, *(person_of_account(user, cluster) for user in accounts.values())]:
        account = accounts.get(person.user_id or 0)
        yield person.username or (account.get_username() if account else "a deleted account"), person


def each_once(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The records of persons, each once, in their order; empty ones are nobody's."""
    found: list[dict[str, Any]] = []
    for record in records:
        if record and record not in found:
            found.append(dict(record))
    return found


def requester_record(*, user: User | None, groups_at: datetime | None, **facts: Any) -> dict[str, Any]:
    """Somebody who asked, as a request keeps them, from the columns of a SpecWrite.

    {username, uid, groups, groups_at, via, user_id, issuer, subject}. `groups_at` is when their groups were proved in
    ISO 8601, "" where nobody knows.
    """
    at = groups_at.isoformat() if groups_at else ""
    return {**facts, "user_id": user.pk if user else None, "groups_at": at}


def last_writer_of(request: models.Request) -> Record:
    """Of those who asked, the one who wrote the spec as it stands: they named what it names. Where nobody of them wrote
    it, who asked last.

    In this name sources are read (S08): of all who asked, Kubernetes has said that they may. There is somebody.
    """
    writes = models.SpecWrite.objects.filter(deployment=request.deployment_id, generation__lte=request.generation)
    write = writes.order_by("-generation").first()
    wrote = {key: getattr(write, key) or "" for key in _WRITER} if write else None
    theirs = [
        requester for requester in request.requesters if {key: requester.get(key) or "" for key in _WRITER} == wrote
    ]
    found: Record = (theirs or request.requesters)[-1]
    return found


@dataclass(frozen=True, slots=True)
class Asker:
    """Somebody who asked for a request, with the latest groups that are known of them.

    Without a `lapse` these were proved so lately that a yes counts (S25). By others only a no does.
    """

    identity: Identity
    lapse: Lapse | None = None

    @property
    def is_current(self) -> bool:
        return self.lapse is None


def asker_of(requester: Record, request: models.Request, *, now: datetime) -> Asker:
    """The person whom a request names, as they are known by `now`; or the GitOps controller, as the operator lists it.

    By their own row, whose groups are never older than those of the writing: by issuer and `sub`, by name and uid, or
    by account and name where one of both says no uid. Whose account is switched off or is nobody there any more has
    nobody who vouches for them. Whom no account stands for is known by the writing alone.
    """
    if requester.get("via") == controllers.VIA:
        # The groups of a ServiceAccount follow from its name: what ends is the operator's word for it (S34).
        return Asker(_written(requester), None if _is_listed(requester["username"], request) else Lapse.UNLISTED)
    return _person_on(request.deployment.cluster, requester, now=now)


def _written(requester: Record) -> Identity:
    return Identity(requester["username"], tuple(requester.get("groups") or ()), requester.get("uid") or "")


def _person_on(cluster: models.Cluster, requester: Record, *, now: datetime) -> Asker:
    """As `asker_of`, of a person alone who wrote something on this cluster."""
    written = _written(requester)
    row = _row_of(requester, cluster)
    if row is not None and counts(Identity(row.username, tuple(row.groups), row.uid), row.authenticator):
        # A mapping says no uid; the cluster has proved one with the writing.
        identity = Identity(row.username, tuple(row.groups), row.uid or written.uid)
        return Asker(identity, _lapse_of(row, cluster, now))
    if requester.get("user_id") is not None:
        return Asker(written, Lapse.UNLINKED)
    proved_at = parse_datetime(requester.get("groups_at") or "")
    is_young = proved_at is not None and now - proved_at <= groups_limit()
    return Asker(written, None if is_young else Lapse.UNCONFIRMED)


def _lapse_of(row: models.KubernetesIdentity, cluster: models.Cluster, now: datetime) -> Lapse | None:
    if not row.user.is_active:
        return Lapse.DISABLED
    if not may_vouch(row.authenticator, row.issuer, cluster.name):
        return Lapse.UNTRUSTED
    is_young = row.authenticator == MAPPED or now - row.groups_seen_at <= groups_limit()
    return None if is_young else Lapse.EXPIRED


def catalog_author(catalog: models.Catalog, writer: Record, *, now: datetime) -> Asker:
    """As `asker_of`, of who wrote the source of a Catalog."""
    if writer.get("via") == controllers.VIA:
        wish = controllers.catalog_wish_of(catalog.cluster.name, catalog.name, parse_catalog_source(catalog.spec))
        is_listed = wish is not None and settings.PRATIQUE["GITOPS_FILE"].may_ask(writer["username"], wish)
        return Asker(_written(writer), None if is_listed else Lapse.UNLISTED)
    return _person_on(catalog.cluster, writer, now=now)


def _is_listed(username: str, request: models.Request) -> bool:
    deployment = request.deployment
    wish = controllers.wish_of(deployment.cluster.name, deployment.name, request.labels, request.bundle_spec)
    return wish is not None and settings.PRATIQUE["GITOPS_FILE"].may_ask(username, wish)


def no_longer_current(request: models.Request) -> list[Lapsed]:
    """Those who asked and are known by what is too old or does not count any more, each once, sorted.

    Not who is known by one writing alone, where somebody asked who is current and whom Kubernetes knows by the same
    name, and by no other uid: RBAC asks for names, so that what may be said of one is so of both.
    """
    now = request.without_hold(database_now())
    askers = [asker_of(requester, request, now=now) for requester in request.requesters]
    current = [one.identity for one in askers if one.is_current]
    lapsed = [(one.identity, one.lapse) for one in askers if one.lapse]
    return sorted(
        {
            Lapsed(identity.username, why)
            for identity, why in lapsed
            if why is not Lapse.UNCONFIRMED or not any(_may_be_one(identity, one) for one in current)
        }
    )


def _may_be_one(one: Identity, other: Identity) -> bool:
    return one.username == other.username and (one.uid == other.uid or "" in (one.uid, other.uid))


def _row_of(requester: Record, cluster: models.Cluster) -> models.KubernetesIdentity | None:
    here = models.KubernetesIdentity.objects.filter(cluster=cluster).select_related("user")
    if requester.get("subject"):
        rows = list(here.filter(issuer=requester.get("issuer") or "", subject=requester["subject"]).order_by("pk"))
        # Two where the person comes by an issuer and by a proxy of its people: Kubernetes knows each by its name.
        wanted = (requester["username"], requester.get("user_id"))
        return min(rows, key=lambda row: (row.username != wanted[0], row.user_id != wanted[1]), default=None)
    name, uid = requester["username"], requester.get("uid") or ""
    # By an account that was theirs when they wrote, and is called so still. Two uids that differ are two people.
    theirs = here.filter(user_id=requester.get("user_id") or 0, username=name).order_by("-uid")
    known = next((row for row in theirs if row.uid == uid or "" in (row.uid, uid)), None)
    # A uid is given to nobody else: also where the person has been linked to another account since.
    return known or (here.filter(username=name, uid=uid).first() if uid else None)


def _subject(issuer: str, subject: str) -> frozenset[Subject]:
    return frozenset({(issuer, subject)} if subject else ())


def folded(name: str) -> str:
    """A name without what people and keyboards vary: capitals and compatibility forms (Unicode, section 3.13)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _comparable(subjects: Iterable[Subject]) -> frozenset[Subject]:
    """A `sub` as it stands, and what a proxy says as somebody may have typed it."""
    return frozenset((issuer, it if is_issuer(issuer) else folded(it)) for issuer, it in subjects)
