"""From what was seen in a cluster to requests: a change of content or options is a pivot, a pivot makes one request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from approvals import access, audit, wake
from approvals.audit import MACHINE, Actor
from approvals.ledger import labels, quotas
from approvals.ledger.digests import options_digest
from approvals.ledger.locks import for_change
from approvals.ledger.moves import locked, move
from approvals.lifecycle import AT_WORK, OPEN, SETTLED, SUPERSEDABLE, Event, State
from approvals.models import BundleDeployment, Cluster, Request, Revision, SpecWrite
from approvals.selectors import revisions
from provisioner import probes
from provisioner.errors import BadHealthCheck
from provisioner.values import Identity

# `kubectl annotate bd NAME core.rukpak.io/ask-again=$(date +%s) --overwrite`: the same once more, from the source on.
ASK_AGAIN = "core.rukpak.io/ask-again"
# `kubectl annotate bd NAME core.rukpak.io/rollback-to=3 --overwrite`: back to the content of revision 3. What follows a
# slash means nothing, so that the same can be asked for twice: 3/1, 3/2.
ROLLBACK_TO = "core.rukpak.io/rollback-to"
ANNOTATION_LENGTH = 100
# Why it is paused, for people; written beside spec.paused by whoever pauses it.
PAUSE_REASON = "core.rukpak.io/pause-reason"
PAUSE_REASON_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class Writer:
    """Who wrote a spec, proved: by their session here, or by the admission policy's stamp.

    `groups_at` is when the groups were proved, None where nobody knows. `issuer` and `subject` are "" where the cluster
    or its operator vouched.
    """

    identity: Identity
    via: str
    user: User | None = None
    groups_at: datetime | None = None
    issuer: str = ""
    subject: str = ""

    @classmethod
    def of_proof(cls, proof: access.Proof, via: str, user: User) -> Writer:
        return cls(proof.identity, via, user, proof.proved_at, proof.issuer, proof.subject)

    def columns(self) -> dict[str, Any]:
        """As a SpecWrite keeps them."""
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


@dataclass(frozen=True, slots=True)
class Asking:
    """What a request is to be made for.

    `is_by_nobody`: no write calls for it, and nobody can tell who asked for it. `again`: although there was one of the
    same wish. `stands_for`: nobody asks now, and those who asked for that one ask still (`_standing`).
    """

    purpose: str
    asker: Writer | None
    is_by_nobody: bool = False
    stands_for: Request | None = None
    to_revision: Revision | None = None
    again: bool = False

    def record(self) -> dict[str, Any]:
        """As it waits for room; `_asker_of` reads it again."""
        return {
            "purpose": self.purpose,
            "again": self.again,
            "revision": self.to_revision.number if self.to_revision else 0,
            "asker": _person(self.asker) if self.asker else None,
        }


@transaction.atomic
def see(
    *, cluster: Cluster, obj: Mapping[str, Any], writer: Writer | None, asker: Writer | None = None
) -> BundleDeployment:
    """Copy a BundleDeployment as it stands in the cluster, and make a request where that is a pivot.

    An older open request is superseded in this same transaction. Seeing the same object again changes nothing; what
    is older than the row is ignored. `writer` is who made this generation of the spec, None where nobody can tell;
    `asker` is who asked for it once more or for its deletion, which may leave the spec somebody else's (S05).
    """
    meta = obj["metadata"]
    spec = dict(obj.get("spec") or {})
    _forget_namesakes(cluster, meta)
    known = BundleDeployment.objects.select_related("cluster").filter(cluster=cluster, uid=meta["uid"])
    deployment = for_change(known).first()
    generation = int(meta.get("generation") or 1)
    if deployment is None:
        deployment = BundleDeployment(cluster=cluster, uid=meta["uid"], name=meta["name"], generation=0)
    elif generation < deployment.generation:
        return deployment
    _hold_open(deployment)
    is_asked_again = bool(_newly_asked(deployment, meta, ASK_AGAIN, "asked_again"))
    rollback_to = _newly_asked(deployment, meta, ROLLBACK_TO, "asked_rollback").partition("/")[0]
    _note_writes(deployment, generation, writer, spec, meta)
    if meta.get("deletionTimestamp"):
        _ensure_deletion_request(deployment, asker)
    elif rollback_to:
        _ensure_rollback_request(deployment, rollback_to, asker)
    else:
        ensure_request(deployment, again=is_asked_again, asker=asker)
    labels.follow(deployment)
    if asker:
        is_theirs = not is_asked_again and not rollback_to and not deployment.deletion_requested_at
        _join(deployment, asker, is_theirs=is_theirs)
    return deployment


def ensure_request(deployment: BundleDeployment, *, again: bool = False, asker: Writer | None = None) -> Request | None:
    """Make the request that a locked deployment's spec calls for, if there is none yet; also after an apply ended.

    `again`: also where there was one and it is settled, because somebody, `asker` if known, asks for it once more.
    """
    latest = deployment.requests.order_by("-number").first()
    is_same = latest and latest.options_digest == deployment.options_digest and latest.purpose != Request.Purpose.DELETE
    if is_same and latest and not (again and latest.state in SETTLED):
        return None
    if deployment.deletion_requested_at or not _make_room(deployment):
        return None
    asker = asker or _waiting_asker(deployment, Request.Purpose.DEPLOY)
    is_by_nobody = bool(is_same) and asker is None
    return _ask(deployment, Asking(Request.Purpose.DEPLOY, asker, is_by_nobody, again=again))


@transaction.atomic
def ask_once_more(*, of: Request) -> Request | None:
    """A request for what runs since `of`, though nobody asks for it now; None where one is open, or something else is
    wished for.

    Nobody wrote another wish since: who wrote it then asks for it still, with the groups of that time, and may not
    approve it (S05, S07). None also where it waits for room (ledger.quotas).
    """
    deployment = for_change(BundleDeployment.objects.filter(pk=of.deployment_id)).get()
    return _ask_once_more(deployment, of)


def _ask_once_more(deployment: BundleDeployment, of: Request) -> Request | None:
    is_wished = deployment.options_digest == of.options_digest and not deployment.deletion_requested_at
    if not is_wished or deployment.gone_at or deployment.requests.filter(state__in=OPEN).exists():
        return None
    requesters, is_known = _standing(deployment, of)
    if not _has_room(deployment, quotas.charged(requesters, is_known=is_known), {"once_more": of.pk}):
        return None
    return _new_request(deployment, Asking(of.purpose, None, to_revision=of.to_revision, stands_for=of))


def follow_up(deployment: BundleDeployment) -> None:
    """Make the request that could not be made while another one was being applied. Needs the deployment's lock."""
    if deployment.deletion_requested_at:
        _ensure_deletion_request(deployment, None)
    else:
        ensure_request(deployment)


@transaction.atomic
def take_up(deployment_id: int) -> None:
    """Make the request that waits for room, if there is some by now (ledger.quotas)."""
    rows = BundleDeployment.objects.select_related("cluster").filter(pk=deployment_id)
    deployment = for_change(rows).get()
    wish, deployment.waiting = deployment.waiting, None
    is_at_work = any(one.state in AT_WORK for one in _hold_open(deployment))
    if wish is None or is_at_work:
        return
    if deployment.gone_at is None:
        _ask_as_wished(deployment, wish)
    if deployment.waiting is None:
        quotas.stop_waiting(deployment)


def _ask_as_wished(deployment: BundleDeployment, wish: Mapping[str, Any]) -> None:
    asker = _asker_of(wish)
    if "once_more" in wish:
        _ask_once_more(deployment, Request.objects.get(pk=wish["once_more"]))
    elif wish["purpose"] == Request.Purpose.DELETE:
        _ensure_deletion_request(deployment, asker)
    elif wish["purpose"] == Request.Purpose.ROLLBACK:
        _ensure_rollback_request(deployment, str(wish["revision"]), asker)
    else:
        ensure_request(deployment, again=wish["again"], asker=asker)


def has_asked(request: Request, person: access.Person) -> bool:
    """Whether this person is one of those who asked, whatever they are called by now (S05)."""
    return any(person.is_same(access.person_recorded(one)) for one in request.requesters)


def _newly_asked(deployment: BundleDeployment, meta: Mapping[str, Any], annotation: str, kept: str) -> str:
    """The annotation's value if it is another one than was last seen, which the row keeps in `kept`; else ""."""
    asked = str((meta.get("annotations") or {}).get(annotation, ""))[:ANNOTATION_LENGTH]
    if not asked or asked == getattr(deployment, kept):
        return ""
    setattr(deployment, kept, asked)
    return asked


@transaction.atomic
def forget(*, cluster: Cluster, uid: str) -> None:
    """The BundleDeployment is gone from the cluster: nothing is asked for any more."""
    deployment = for_change(BundleDeployment.objects.filter(cluster=cluster, uid=uid)).first()
    if deployment and deployment.gone_at is None:
        _mark_gone(deployment)


def _forget_namesakes(cluster: Cluster, meta: Mapping[str, Any]) -> None:
    """The same name made again is another deployment (design.md 9)."""
    others = BundleDeployment.objects.filter(cluster=cluster, name=meta["name"], gone_at__isnull=True)
    for other in for_change(others.exclude(uid=meta["uid"])):
        _mark_gone(other)


def _hold_open(deployment: BundleDeployment) -> list[Request]:
    """The open request, if any, locked before anything is written to the audit chain (ledger.locks)."""
    is_there = deployment.pk is not None
    return [locked(one.pk) for one in deployment.requests.filter(state__in=OPEN)] if is_there else []


def _mark_gone(deployment: BundleDeployment) -> None:
    open_requests = _hold_open(deployment)
    deployment.gone_at = timezone.now()
    deployment.save(update_fields=["gone_at"])
    quotas.stop_waiting(deployment)
    audit.record(verb="deployment.gone", actor=MACHINE, deployment=deployment)
    for request in open_requests:
        if request.state in SUPERSEDABLE:
            move(request, Event.WITHDRAW, actor=MACHINE, facts={"why": "the BundleDeployment is gone"})


def _note_writes(
    deployment: BundleDeployment,
    generation: int,
    writer: Writer | None,
    spec: dict[str, Any],
    meta: Mapping[str, Any],
) -> None:
    previous = deployment.generation
    is_new = deployment.pk is None
    deployment.generation = generation
    deployment.resource_version = str(meta.get("resourceVersion", ""))
    deployment.spec = spec
    deployment.labels = dict(meta.get("labels") or {})
    deployment.options_digest = options_digest(spec)
    _note_pause(deployment, spec, meta)
    if generation > previous:
        deployment.problem = _problem_of(spec)
    deployment.seen_at = timezone.now()
    if meta.get("deletionTimestamp") and deployment.deletion_requested_at is None:
        deployment.deletion_requested_at = timezone.now()
    deployment.save()
    if not is_new and generation > previous + 1:
        # Somebody wrote a generation that we never saw (S05).
        _note_write(deployment, previous + 1, None)
    noted = _note_write(deployment, generation, writer)
    if noted:
        audit.record(
            verb="deployment.seen",
            actor=Actor(writer.identity.username, writer.via) if writer else Actor("unknown", "cluster"),
            deployment=deployment,
            facts={"generation": generation, "optionsDigest": deployment.options_digest},
        )
        wake.deployment(deployment.pk)


def _note_pause(deployment: BundleDeployment, spec: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    is_paused = bool(spec.get("paused"))
    if is_paused and not deployment.is_paused:
        deployment.paused_generation = deployment.generation
    deployment.is_paused = is_paused
    reason = str((meta.get("annotations") or {}).get(PAUSE_REASON, "")) if is_paused else ""
    deployment.pause_reason = reason[:PAUSE_REASON_LENGTH]


@transaction.atomic(durable=True)
def note_problem(*, of: Request, words: str) -> None:
    """Keep why no request of this spec can be prepared, unless the spec is another one by now."""
    deployment = for_change(BundleDeployment.objects.filter(pk=of.deployment_id)).get()
    if deployment.options_digest == of.options_digest:
        _note_problem(deployment, words)


def _problem_of(spec: Mapping[str, Any]) -> str:
    """What cannot be read in the health part of a spec; no request of it can be prepared before that is mended.

    CEL is not compiled inside a transaction: what is wrong with it is found when the request is prepared.
    """
    try:
        probes.check_spec(spec)
    except BadHealthCheck as exc:
        return str(exc)
    return ""


def _note_write(deployment: BundleDeployment, generation: int, writer: Writer | None) -> bool:
    """True where this generation is new, or its writer was not known before."""
    facts: dict[str, Any] = writer.columns() if writer else {"via": "cluster"}
    write, is_new = SpecWrite.objects.get_or_create(
        deployment=deployment, generation=generation, defaults={**facts, "seen_at": timezone.now()}
    )
    if is_new or writer is None or write.username:
        return is_new
    for name, value in facts.items():
        setattr(write, name, value)
    write.save(update_fields=list(facts))
    _correct_requesters(deployment, writer)
    return True


def _correct_requesters(deployment: BundleDeployment, writer: Writer) -> None:
    """The watch saw a write before the door that made it could say by whom."""
    request = deployment.requests.order_by("-number").first()
    if request is None or request.is_requester_known:
        return
    if request.state == State.FAILED:
        # It may have failed for want of a name: then nobody's right to the named Secrets could be checked (S08).
        ensure_request(deployment, again=True, asker=writer)
    elif request.state in OPEN:
        writers, is_known = _writers(deployment)
        _note_requesters(request, _joined(writers, but_last=request.requesters), is_known, writer)


def _join(deployment: BundleDeployment, asker: Writer, *, is_theirs: bool) -> None:
    """Who asks is a requester as well, also where the watch saw it first; `is_theirs`: it saw this very asking."""
    request = deployment.requests.order_by("-number").first()
    if request is None:
        return
    is_known = request.is_requester_known or (is_theirs and _writers(deployment)[1])
    if request.state == State.FAILED and is_known and not request.is_requester_known:
        ensure_request(deployment, again=True, asker=asker)
    elif request.state in OPEN:
        requesters = _with(request.requesters, asker)
        if (requesters, is_known) != (request.requesters, request.is_requester_known):
            _note_requesters(request, requesters, is_known, asker)


def _note_requesters(request: Request, requesters: list[dict[str, Any]], is_known: bool, latest: Writer) -> None:
    request.requesters, request.is_requester_known = requesters, is_known
    request.save(update_fields=["requesters", "is_requester_known"])
    actor = Actor(latest.identity.username, latest.via)
    audit.record(verb="request.requester-known", actor=actor, request=request)


def _with(requesters: list[dict[str, Any]], asker: Writer) -> list[dict[str, Any]]:
    person = _person(asker)
    return _joined([one if _key(one) != _key(person) else person for one in requesters], but_last=[person])


def _joined(requesters: list[dict[str, Any]], *, but_last: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Everybody once, in the order of their first asking.

    Who differs in anything but groups stands there beside the other: the same name may be somebody else's by now.
    """
    found = {_key(one): dict(one) for one in requesters}
    for one in but_last:
        found.setdefault(_key(one), dict(one))
    return list(found.values())


def _key(person: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(person.get(name) or "" for name in ("username", "uid", "user_id", "issuer", "subject"))


def _person(writer: Writer) -> dict[str, Any]:
    return access.requester_record(**writer.columns())


def _asker_of(wish: Mapping[str, Any]) -> Writer | None:
    """Who asked for what waits."""
    person = wish.get("asker")
    if not person:
        return None
    identity = Identity(person["username"], tuple(person["groups"]), person["uid"])
    user = User.objects.filter(pk=person["user_id"]).first()
    proved_at = parse_datetime(person.get("groups_at") or "")
    return Writer(identity, person["via"], user, proved_at, person.get("issuer") or "", person.get("subject") or "")


def _waiting_asker(deployment: BundleDeployment, purpose: str) -> Writer | None:
    """Who asked for this first, where it waits for room and is only seen again now."""
    wish = deployment.waiting
    return _asker_of(wish) if wish and wish.get("purpose") == purpose else None


def _writers(deployment: BundleDeployment) -> tuple[list[dict[str, Any]], bool]:
    """All who wrote the spec since what runs was asked for (S05), and whether every one of them is known."""
    return _writers_since(deployment, _applied(deployment).aggregate(last=Max("generation"))["last"] or 0)


def _standing(deployment: BundleDeployment, of: Request) -> tuple[list[dict[str, Any]], bool]:
    """Who asks for the same as `of` where nobody does so now, and whether every one of them is known.

    The last who wrote the spec, since what ran before `of` was asked for, and those who asked for `of` otherwise.
    Who goes back to a revision wishes for what others wrote.
    """
    if of.to_revision_id:
        return of.requesters, of.is_requester_known
    before = _applied(deployment).filter(generation__lt=of.generation).aggregate(last=Max("generation"))["last"] or 0
    writers, is_known = _writers_since(deployment, before)
    requesters = _joined(writers, but_last=of.requesters)
    return requesters, bool(requesters) and is_known and of.is_requester_known


def _applied(deployment: BundleDeployment) -> QuerySet[Request]:
    return deployment.requests.filter(state=State.APPLIED, purpose=Request.Purpose.DEPLOY)


def _writers_since(deployment: BundleDeployment, generation: int) -> tuple[list[dict[str, Any]], bool]:
    """Everybody once, with the groups of their latest writing."""
    writes = deployment.writes.filter(generation__gt=generation).select_related("user").order_by("generation")
    people: dict[tuple[Any, ...], dict[str, Any]] = {}
    for write in writes:
        if write.username:
            record = _person(_writer_of(write))
            people[_key(record)] = record
    return list(people.values()), all(write.username for write in writes)


def _writer_of(write: SpecWrite) -> Writer:
    identity = Identity(write.username, tuple(write.groups), write.uid)
    return Writer(identity, write.via, write.user, write.groups_at, write.issuer, write.subject)


def _make_room(deployment: BundleDeployment) -> bool:
    """Supersede the open request, if any; False where one is being applied, which finishes first."""
    current = deployment.requests.filter(state__in=OPEN).first()
    if current is None:
        return True
    if current.state not in SUPERSEDABLE:
        return False
    move(locked(current.pk), Event.SUPERSEDE, actor=MACHINE, facts={"by generation": deployment.generation})
    return True


def _ensure_deletion_request(deployment: BundleDeployment, asker: Writer | None) -> None:
    latest = deployment.requests.order_by("-number").first()
    is_same = latest and latest.options_digest == deployment.options_digest and latest.purpose == Request.Purpose.DELETE
    if is_same and latest and (latest.state in OPEN or asker is None):
        # Denied or withdrawn: the object stays Terminating until somebody asks again, or asks for something else.
        return
    if deployment.inventory.exists() and _make_room(deployment):
        asker = asker or _waiting_asker(deployment, Request.Purpose.DELETE)
        _ask(deployment, Asking(Request.Purpose.DELETE, asker))


def _ensure_rollback_request(deployment: BundleDeployment, number: str, asker: Writer | None) -> None:
    """Ask for the content of an earlier revision; why that cannot be is kept as the deployment's problem."""
    why_not = revisions.why_not_restorable(deployment=deployment, number=number)
    revision = revisions.numbered(deployment=deployment, number=number)
    if why_not:
        _note_problem(deployment, why_not)
    elif not _make_room(deployment):
        _note_problem(deployment, f"a request is being applied: ask for revision {number} again when it is settled")
    else:
        _note_problem(deployment, _problem_of(deployment.spec))
        _ask(deployment, Asking(Request.Purpose.ROLLBACK, asker, is_by_nobody=asker is None, to_revision=revision))


def _note_problem(deployment: BundleDeployment, words: str) -> None:
    deployment.problem = words
    deployment.save(update_fields=["problem"])


def _ask(deployment: BundleDeployment, asking: Asking) -> Request | None:
    """Make a request, or have it wait where a quota is used up."""
    requesters, is_known = _requesters(deployment, asking)
    if not _has_room(deployment, quotas.charged(requesters, is_known=is_known), asking.record()):
        return None
    return _new_request(deployment, asking)


def _has_room(deployment: BundleDeployment, requester: str, wish: Mapping[str, Any]) -> bool:
    """Whether a quota leaves room for one more; else `wish` waits."""
    audit.hold_chain()
    why_not = quotas.why_not(deployment.cluster, requester, but=deployment)
    if why_not:
        quotas.wait(deployment, wish, why_not)
        return False
    quotas.stop_waiting(deployment)
    return True


def _requesters(deployment: BundleDeployment, asking: Asking) -> tuple[list[dict[str, Any]], bool]:
    """Whose request it will be, and whether all of them are known."""
    if asking.stands_for:
        return _standing(deployment, asking.stands_for)
    writers, is_known = ([], True) if asking.to_revision else _writers(deployment)
    requesters = _with(writers, asking.asker) if asking.asker else writers
    return requesters, bool(requesters) and is_known and not asking.is_by_nobody


def _new_request(deployment: BundleDeployment, asking: Asking) -> Request:
    """Going back to a revision is wished for by who asks, and done as that revision was: its account and options."""
    now = timezone.now()
    to_revision = asking.to_revision
    requesters, is_known = _requesters(deployment, asking)
    latest = deployment.requests.order_by("-number").first()
    number = latest.number + 1 if latest else 1
    active = deployment.revisions.filter(state=Revision.State.ACTIVE).first()
    request = Request.objects.create(
        deployment=deployment,
        number=number,
        purpose=asking.purpose,
        generation=deployment.generation,
        spec=to_revision.request.spec if to_revision else deployment.spec,
        labels=deployment.labels,
        earlier_labels=labels.earlier(latest),
        options_digest=deployment.options_digest,
        requesters=requesters,
        is_requester_known=is_known,
        is_unattended=asking.stands_for is not None,
        from_revision=active,
        to_revision=to_revision,
        state=State.PREPARING,
        created_at=now,
        changed_at=now,
        expires_at=now + timedelta(hours=settings.PRATIQUE["REQUEST_HOURS"]),
    )
    names = ", ".join(person["username"] for person in requesters) or "unknown"
    audit.record(
        verb="request.made",
        actor=MACHINE if asking.stands_for else Actor(names, requesters[-1]["via"] if requesters else "cluster"),
        request=request,
        facts={
            "number": number,
            "purpose": asking.purpose,
            "generation": deployment.generation,
            **({"standsFor": names} if asking.stands_for else {}),
        },
    )
    wake.request(request.pk)
    return request
