"""Who asked for a change: everybody who wrote the spec since what runs was asked for, and who asked once more (S05)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from django.contrib.auth.models import User
from django.db.models import Max, Q, QuerySet
from django.utils.dateparse import parse_datetime

from approvals import access, controllers
from approvals.lifecycle import State
from approvals.models import BundleDeployment, Request, SpecWrite
from provisioner.values import Identity


@dataclass(frozen=True, slots=True)
class SpecWriter:
    """Who wrote a spec, proved: by their session here, or by the admission policy's stamp.

    `groups_at` is when the groups were proved, None where nobody knows. `issuer` and `subject` are "" where the cluster
    or its operator vouched. Not `is_known`: the API server has proved the name, and it says nothing about who asked.
    """

    identity: Identity
    via: str
    user: User | None = None
    groups_at: datetime | None = None
    issuer: str = ""
    subject: str = ""
    is_known: bool = True

    @classmethod
    def of_proof(cls, proof: access.Proof, via: str, user: User) -> SpecWriter:
        return cls(proof.identity, via, user, proof.proved_at, proof.issuer, proof.subject)

    def columns(self) -> dict[str, Any]:
        """As a SpecWrite keeps them."""
        if not self.is_known:
            return {"via": self.via, "proved_as": self.identity.username}
        return {
            "user": self.user,
            "username": self.identity.username,
            "uid": self.identity.uid,
            "groups": list(self.identity.groups),
            "groups_at": self.groups_at,
            "issuer": self.issuer,
            "subject": self.subject,
            "via": self.via,
        }


class AskedRequest(Protocol):
    """A request, or what a list read of one."""

    @property
    def requesters(self) -> list[dict[str, Any]]: ...


def has_requested(request: AskedRequest, person: access.Person) -> bool:
    """Whether this person is one of those who asked, whatever they are called now (S05)."""
    return any(person.is_same(access.person_recorded(requester)) for requester in request.requesters)


def person_record(writer: SpecWriter) -> dict[str, Any]:
    return access.requester_record(**writer.columns())


def _person_key(person: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(person.get(name) or "" for name in ("username", "uid", "user_id", "issuer", "subject"))


def joined(requesters: list[dict[str, Any]], *, but_last: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Everybody once, in the order of their first asking.

    Who differs in anything but groups stands there beside the other: the same name may be someone else's now.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for person in (*requesters, *but_last):
        found.setdefault(_person_key(person), dict(person))
    return list(found.values())


def with_asker(requesters: list[dict[str, Any]], asker: SpecWriter) -> list[dict[str, Any]]:
    person = person_record(asker)
    renewed = [person if _person_key(requester) == _person_key(person) else requester for requester in requesters]
    return joined(renewed, but_last=[person])


def with_earlier(requesters: list[dict[str, Any]], earlier: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Those who asked earlier before the others, but for who asks now again."""
    present = set(map(_person_key, requesters))
    return [*(dict(person) for person in earlier if _person_key(person) not in present), *requesters]


def asker_of(waiting: Mapping[str, Any]) -> SpecWriter | None:
    """Return who asked for the request that waits."""
    person = waiting.get("asker")
    if not person:
        return None
    identity = Identity(person["username"], tuple(person["groups"]), person["uid"])
    user = User.objects.filter(pk=person["user_id"]).first()
    proved_at = parse_datetime(person.get("groups_at") or "")
    return SpecWriter(identity, person["via"], user, proved_at, person.get("issuer") or "", person.get("subject") or "")


def writers_of(deployment: BundleDeployment) -> tuple[list[dict[str, Any]], bool]:
    """All who wrote the spec since what runs was asked for (S05), and whether every one of them is known.

    Whoever is unknown and wrote before a request whose requesters are known is answered for by them (`answers_for`).
    """
    writers, _ = _writers_since(deployment, _applied(deployment).aggregate(last=Max("generation"))["last"] or 0)
    return writers, _are_answered_for(deployment)


def answers_for(deployment: BundleDeployment, asker: SpecWriter) -> bool:
    """Whether whoever asks now, by a door of ours, answers for the whole spec.

    They do if they wrote it as it stands and ask for it once more. Then they are its requester (S05, S07, S08), also
    where somebody unknown wrote before them; an approver who may have been that one is doubted all the same (S43). They
    are told by name and account, or by name and uid as the cluster has proved both: a name alone is nobody (S01).
    """
    write = deployment.writes.filter(generation=deployment.generation).exclude(username="").first()
    if write is None or write.username != asker.identity.username:
        return False
    uid, other = write.uid, asker.identity.uid
    is_account = asker.user is not None and write.user_id == asker.user.pk
    return uid == other != "" or (is_account and (uid == other or "" in (uid, other)))


def _are_answered_for(deployment: BundleDeployment) -> bool:
    """Whether every write is of somebody known, or older than a request whose requesters are, or than what runs."""
    deploys = deployment.requests.filter(purpose=Request.Purpose.DEPLOY)
    answered = deploys.filter(Q(is_requester_known=True) | Q(state=State.APPLIED)).aggregate(last=Max("generation"))
    return not deployment.writes.filter(generation__gt=answered["last"] or 0, username="").exists()


def requesters_of_spec(deployment: BundleDeployment, of: Request) -> tuple[list[dict[str, Any]], bool]:
    """Who asks for the same as `of` where nobody does so now, and whether every one of them is known.

    The last who wrote the spec, since what ran before `of` was asked for, and those who asked for `of` otherwise.
    A rollback asks for what others wrote, and so does a rotation.
    """
    if of.to_revision_id or of.purpose == Request.Purpose.ROTATE:
        return of.requesters, of.is_requester_known
    before = _applied(deployment).filter(generation__lt=of.generation).aggregate(last=Max("generation"))["last"] or 0
    writers, is_known = _writers_since(deployment, before)
    requesters = joined(writers, but_last=of.requesters)
    is_known = is_known or _are_answered_for(deployment)
    return requesters, bool(requesters) and is_known and of.is_requester_known


def unknown_writes(request: Request) -> list[SpecWrite]:
    """Writes of the spec that a request is for of which nobody knows whose they are, oldest first.

    A rollback asks for what others wrote, and so does a rotation.
    """
    if request.to_revision_id or request.purpose == Request.Purpose.ROTATE:
        return []
    deployment = request.deployment
    before = _applied(deployment).filter(generation__lt=request.generation).aggregate(last=Max("generation"))["last"]
    there = deployment.writes.filter(generation__gt=before or 0, generation__lte=request.generation, username="")
    return list(there.order_by("generation"))


def why_unknown(request: Request) -> str:
    """Why nobody can tell who asked, in words that follow "the requester is unknown"; "" where it is known."""
    if request.is_requester_known:
        return ""
    unknown = unknown_writes(request)
    said = []
    for name in sorted({write.proved_as for write in unknown if write.proved_as}):
        if name.startswith(controllers.PREFIX):
            why = "wrote it, and PRATIQUE_GITOPS_FILE does not list that ServiceAccount for it"
        elif name.startswith("system:"):
            why = "wrote it, and that is nobody's own name"
        else:
            who = "anybody with the cluster's administrator credentials"
            why = f"wrote it as a member of system:masters, and that can be {who}"
        said.append(f"{name} {why}")
    unproved = ", ".join(str(write.generation) for write in unknown if not write.proved_as)
    if unproved:
        said.append(f"generation {unproved} was written while no admission policy was known to prove by whom")
    return " and ".join(said) or "Kubernetes does not say who deletes a BundleDeployment or annotates it"


def _applied(deployment: BundleDeployment) -> QuerySet[Request]:
    return deployment.requests.filter(state=State.APPLIED, purpose=Request.Purpose.DEPLOY)


def _writers_since(deployment: BundleDeployment, generation: int) -> tuple[list[dict[str, Any]], bool]:
    """Everybody once, with the groups of their latest writing."""
    writes = deployment.writes.filter(generation__gt=generation).select_related("user").order_by("generation")
    people: dict[tuple[Any, ...], dict[str, Any]] = {}
    for write in writes:
        if write.username:
            identity = Identity(write.username, tuple(write.groups), write.uid)
            writer = SpecWriter(identity, write.via, write.user, write.groups_at, write.issuer, write.subject)
            record = person_record(writer)
            people[_person_key(record)] = record
    return list(people.values()), all(write.username for write in writes)
