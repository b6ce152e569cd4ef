"""Which person it is: one who asked for a change, voted on it or wrote a policy, however they are called by now (S05).

A name can be changed at an issuer, and an identity can be unlinked from one account and enter another. So a person is
compared by everything that is known of them, and one equal part is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from approvals import models
from approvals.access.caller import Caller
from approvals.access.identity import MAPPED, groups_limit
from approvals.access.reserved import counts
from approvals.access.vouching import may_vouch
from provisioner.values import Identity

Record = Mapping[str, Any]
# An issuer, and its `sub`.
Subject = tuple[str, str]


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
        """Whether both are one person, as far as anybody can tell. Both are of the same cluster."""
        return (
            (self.username != "" and self.username == other.username)
            or (self.uid != "" and self.uid == other.uid)
            or (self.user_id is not None and self.user_id == other.user_id)
            or bool(self.subjects & other.subjects)
        )

    def record(self) -> dict[str, Any]:
        subjects = [list(one) for one in sorted(self.subjects)]
        return {"username": self.username, "uid": self.uid, "user_id": self.user_id, "subjects": subjects}


def person_of(caller: Caller, cluster: models.Cluster) -> Person:
    """Whoever is asking, as this cluster knows them, also by a proof that is too old; by `sub` on any cluster."""
    subjects = frozenset((one.issuer, one.subject) for one in caller.proofs if one.subject)
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


def person_who_reviewed(review: models.Review) -> Person:
    return Person(review.username, review.uid, review.user_id, _subject(review.issuer, review.subject))


def requester_record(*, user: User | None, groups_at: datetime | None, **facts: Any) -> dict[str, Any]:
    """Somebody who asked, as a request keeps them, from the columns of a SpecWrite.

    {username, uid, groups, groups_at, via, user_id, issuer, subject}. `groups_at` is when their groups were proved in
    ISO 8601, "" where nobody knows.
    """
    at = groups_at.isoformat() if groups_at else ""
    return {**facts, "user_id": user.pk if user else None, "groups_at": at}


@dataclass(frozen=True, slots=True)
class Asker:
    """Somebody who asked for a request, with the latest groups that are known of them.

    `is_current`: these were proved so lately that a yes counts (S25). By older ones only a no does.
    """

    identity: Identity
    is_current: bool


def asker_of(requester: Record, cluster: models.Cluster, *, now: datetime) -> Asker:
    """The person whom a request names, as they are known by `now`.

    By their own row, whose groups are never older than those of the writing: by issuer and `sub`, by name and uid, or
    by account and name. Whose account is switched off or is nobody there any more has nobody who vouches for them. Whom
    no account stands for is known by the writing alone.
    """
    written = Identity(requester["username"], tuple(requester.get("groups") or ()), requester.get("uid") or "")
    row = _row_of(requester, cluster)
    if row is not None and counts(Identity(row.username, tuple(row.groups), row.uid), row.authenticator):
        identity = Identity(row.username, tuple(row.groups), row.uid)
        is_young = row.authenticator == MAPPED or now - row.groups_seen_at <= groups_limit()
        is_young = is_young and may_vouch(row.authenticator, row.issuer, cluster.name)
        return Asker(identity, row.user.is_active and is_young)
    proved_at = parse_datetime(requester.get("groups_at") or "")
    is_young = proved_at is not None and now - proved_at <= groups_limit()
    return Asker(written, requester.get("user_id") is None and is_young)


def no_longer_current(requesters: Iterable[Record], cluster: models.Cluster) -> list[str]:
    """The names of those who asked and are known by what is too old."""
    now = timezone.now()
    askers = [asker_of(one, cluster, now=now) for one in requesters]
    return sorted({one.identity.username for one in askers if not one.is_current})


def _row_of(requester: Record, cluster: models.Cluster) -> models.KubernetesIdentity | None:
    here = models.KubernetesIdentity.objects.filter(cluster=cluster).select_related("user")
    if requester.get("subject"):
        return here.filter(issuer=requester.get("issuer") or "", subject=requester["subject"]).first()
    name = {"username": requester["username"], "uid": requester.get("uid") or ""}
    theirs = here.filter(user_id=requester.get("user_id") or 0, **name).first()
    # A uid is given to nobody else: also where the person has been linked to another account since.
    return theirs or (here.filter(**name).first() if name["uid"] else None)


def _subject(issuer: str, subject: str) -> frozenset[Subject]:
    return frozenset({(issuer, subject)} if subject else ())
