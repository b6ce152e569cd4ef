"""One look at a reference that may move, and what follows for those who follow it.

What it sees is written down first, together with the question to each deployment (pivots.answer_moves); so whoever
goes on after a worker's death asks the same, and gets one request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import OuterRef, Subquery

from approvals import gate, instruments, wake
from approvals.access.port import connect
from approvals.catalogs import followed_packages
from approvals.clock import database_now
from approvals.gate import Refusal, reader
from approvals.gate.rights import last_writer_of
from approvals.ledger import claims, pivots, references
from approvals.models import BundleDeployment, FloatingReference, ReferenceFollower, Request, SpecWrite, TaskClaim
from approvals.selectors import followed_sources
from approvals.selectors.followed_sources import OfferedUpgrade
from approvals.steps.prepare import reader_as_requester
from approvals.steps.sources import found_as, limits, polling_egress, read_for, read_values, source_of
from approvals.working import Recurring, WorkStep, in_turn
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Forbidden, PratiqueError, TryLater, Unreachable, WorkerDied
from provisioner.source import Polled, RemoteSource, poll
from provisioner.values import ObjectRef

logger = logging.getLogger(__name__)

# So many looks at once over all workers: slow hosts leave their threads to what people wait for.
POLLS_AT_ONCE = 4
OF_ONE_AUTHOR = 3
AFTER_CRASH = timedelta(minutes=10)


class Poll(Recurring):
    """Look whether a reference has moved."""

    task = references.POLL

    def __init__(self, reference_id: int):
        super().__init__(self.task, reference_id, claims.rows_of_task(self.task, reference_id))

    def look(self, worker: str) -> bool:
        reference = FloatingReference.objects.filter(pk=self.key).first()
        if reference is None or reference.look_at is None or reference.look_at > database_now():
            return False
        if not references.interval(reference):
            references.postpone(reference, None)  # the operator has turned looks off meanwhile
            return False
        if self.key not in in_line(database_now()):
            return False
        with claims.place(self.task, 0, POLLS_AT_ONCE) as is_free:
            if not is_free:
                return False
            if wait := references.take_turn(reference.host):
                references.postpone(reference, database_now() + timedelta(seconds=max(wait, 1.0)))
                instruments.source_polls.labels(reference.kind, "postponed").inc()
            else:
                try:
                    self._look(reference, worker)
                except Exception:  # whatever it is, it is raised again below; those that wait get their turn first
                    references.postpone(reference, database_now() + AFTER_CRASH)
                    raise
        for pk in in_line(database_now()):
            wake.poll(pk)
        return False

    def step(self) -> WorkStep:
        return WorkStep("checking whether a source has changed")

    def call(self) -> None:
        wake.poll(self.key)

    def say(self, error: WorkerDied) -> None:
        logger.error("a source is not checked", extra={"reference_id": self.key, "error": str(error)})

    def _look(self, reference: FloatingReference, worker: str) -> None:
        began, clock = database_now(), time.perf_counter()
        followers = list(references.following(reference).order_by("deployment_id", "position"))
        told: dict[int, RemoteSource | Polled] = {}
        refused: dict[int, PratiqueError] = {}
        try:
            _ask_readers(followers, told, refused)
            found = _seen(reference, told, refused)
        except PratiqueError as exc:
            wait = exc.retry_after_seconds if isinstance(exc, Unreachable) else 0.0
            with transaction.atomic(durable=True):
                claims.check_still_held(self.rows, worker)
                references.note_problem(reference, code=exc.code, words=str(exc), began=began, wait=wait)
                references.note_refused(reference, _refusal_words(refused), began)
            outcome = "unavailable" if isinstance(exc, TryLater) else "refused"
            instruments.source_polls.labels(reference.kind, outcome).inc()
            logger.warning("a source could not be checked", extra={"reference_id": reference.pk, "code": exc.code})
            _show(
                follower
                for follower in followers
                if not reference.problem or (follower.pk in refused and not follower.problem)
            )
            return
        finally:
            instruments.source_poll_seconds.labels(reference.kind).observe(time.perf_counter() - clock)
        saw = references.Seen(found.digest, found.etag, began, tuple(told), _refusal_words(refused))
        with transaction.atomic(durable=True):
            claims.check_still_held(self.rows, worker)
            asked = references.note_seen(reference, saw)
        outcome = "moved" if reference.seen and found.digest != reference.seen else "unchanged"
        instruments.source_polls.labels(reference.kind, outcome).inc()
        # Who may read it now and might not before, or the other way.
        _show(
            follower
            for follower in followers
            if reference.problem or (follower.pk in refused) != bool(follower.problem)
        )
        for deployment_id in asked:
            pivots.answer_moves(deployment_id)


def in_line(now: datetime) -> list[int]:
    """The references that are looked at next: those who wrote what follows them take turns (S40), and of one author the
    longest overdue comes first. What is being looked at is due until then, so that it is one of them. What has killed
    its worker waits behind all others, and keeps nobody waiting while it rests."""
    tasks = TaskClaim.objects.filter(task=references.POLL)
    suspects = set(tasks.filter(worker_deaths__gt=0).values_list("key", flat=True))
    resting = set(tasks.filter(rests_until__gte=now).values_list("key", flat=True))
    writes = SpecWrite.objects.filter(deployment=OuterRef("deployment")).order_by("-generation")
    due = ReferenceFollower.objects.filter(references.ACTIVE, reference__look_at__lte=now)
    known = due.annotate(author=Subquery(writes.values("username")[:1])).order_by("reference__look_at", "reference_id")
    rows = list(known.values_list("reference_id", "deployment__cluster_id", "author"))
    waiting: dict[tuple[int, str], tuple[tuple[str], int]] = {}
    for number, row in enumerate(rows):
        author, place = f"{row[1]} {row[2]}", number + (len(rows) if row[0] in suspects else 0)
        if row[0] not in resting:
            waiting.setdefault((row[0], author), ((author,), place))
    keys = dict.fromkeys(pk for pk, _ in in_turn(waiting, (), (OF_ONE_AUTHOR,)))
    return list(keys)[:POLLS_AT_ONCE]


def _show(followers: Iterable[ReferenceFollower]) -> None:
    """The cluster says of each deployment since when its source cannot be reached, or that it can again."""
    for deployment_id in sorted({follower.deployment_id for follower in followers}):
        wake.deployment(deployment_id)


def _ask_readers(
    followers: Iterable[ReferenceFollower], told: dict[int, RemoteSource | Polled], refused: dict[int, PratiqueError]
) -> None:
    """Fill in, by key of those who follow it: the source as they may read it, and why others may not (S08, S09).

    Who may not read a private source is not told either that it moved. A cluster that does not answer ends the look:
    all who follow a private source are on one.
    """
    for follower in followers:
        try:
            told[follower.pk] = _source(follower)
        except Unreachable:
            raise
        except PratiqueError as exc:
            refused[follower.pk] = exc


def _refusal_words(refused: Mapping[int, PratiqueError]) -> dict[int, str]:
    return {pk: str(exc) for pk, exc in refused.items()}


def _seen(
    reference: FloatingReference, told: Mapping[int, RemoteSource | Polled], refused: Mapping[int, PratiqueError]
) -> Polled:
    """What the reference is now, by one look for all; raises what goes wrong.

    Where nobody may read it, why is said to each by itself: it names people and rights of one deployment.
    """
    if any(isinstance(exc, TryLater) for exc in refused.values()) and not told:
        raise TryLater("nobody who follows it can be asked for yet")
    if not told:
        raise Forbidden("nobody who follows it may read it now")
    known = Polled(reference.seen, reference.etag)
    source = next(iter(told.values()))
    if isinstance(source, Polled):
        return source
    return poll(source, egress=polling_egress(), max_bytes=limits().max_bytes, known=known)


def _source(follower: ReferenceFollower) -> RemoteSource | Polled:
    """The source as the spec names it, with its Secret where those who asked may get that now (S08); what an object is
    now that a chart gets values of.

    Nobody asks for a look, so that groups count for as long as for what else is read unattended.
    """
    deployment = follower.deployment
    sources = deployment.bundle_spec.sources
    is_source = follower.position < len(sources)
    source = sources[follower.position] if is_source else None
    if source is not None and source.secret is None:
        found = source_of(source, lambda _: {})
    else:
        request = _find_current_request(deployment)
        if request is None:
            raise TryLater("the request for this spec is not made yet")
        api = _ask_reader(request, read_for(request))
        if source is None:
            wanted = deployment.bundle_spec.values_from()[follower.position - len(sources)]
            find = found_as(last_writer_of(request).identity, deployment.cluster, api)
            return Polled(read_values(wanted, deployment.cluster, find).version)
        found = source_of(source, reader_as_requester(request, api))
    assert isinstance(found, RemoteSource)  # no other one floats
    return found


class LookForUpgrades(Recurring):
    """Look what the catalogs that a deployment's sources name offer to it."""

    task = "upgrade"

    def __init__(self, deployment_id: int):
        super().__init__(self.task, deployment_id, claims.rows_of_task(self.task, deployment_id))

    def look(self, worker: str) -> bool:
        deployment = BundleDeployment.objects.select_related("cluster").filter(pk=self.key, gone_at=None).first()
        if deployment is None or not deployment.followed_packages.exists():
            return False
        before = _shown_upgrades(deployment.pk)
        _look(deployment)
        if _shown_upgrades(deployment.pk) != before:
            wake.deployment(deployment.pk)
        return False

    def step(self) -> WorkStep:
        return WorkStep("checking what catalogs offer", is_foreign=True)

    def call(self) -> None:
        wake.upgrade(self.key)

    def say(self, error: WorkerDied) -> None:
        logger.error("nobody looks for upgrades", extra={"deployment_id": self.key, "error": str(error)})


def _look(deployment: BundleDeployment) -> None:
    request = _find_current_request(deployment)
    if request is None:
        followed_packages.put_off_answer(deployment.pk, followed_packages.ASK_AGAIN_SECONDS)
        return
    try:
        _ask_reader(request, request.bundle_spec.catalogs())
    except Unreachable:
        followed_packages.put_off_answer(deployment.pk, followed_packages.ASK_AGAIN_SECONDS)
    except PratiqueError as exc:
        words = str(exc).rstrip()
        if isinstance(exc, Refusal) and exc.remedy:
            words += f"\n\n{exc.remedy}" if "\n" in words else f". {exc.remedy}"
        followed_packages.put_off_answer(deployment.pk, followed_packages.REFUSED_SECONDS, words)
    else:
        pivots.answer_upgrades(deployment.pk)


def _shown_upgrades(deployment_id: int) -> list[tuple[OfferedUpgrade, bool]]:
    """What people see of it, but not when it was looked at: only whether it ever was."""
    deployment = BundleDeployment.objects.get(pk=deployment_id)
    found = followed_sources.offered(deployment=deployment)
    return [(replace(upgrade, looked_at=None), upgrade.looked_at is None) for upgrade in found]


def _find_current_request(deployment: BundleDeployment) -> Request | None:
    """The latest request for what the spec wishes now; None before it is made."""
    rows = Request.objects.select_related("deployment__cluster").filter(deployment=deployment)
    request = rows.filter(purpose=Request.Purpose.DEPLOY).order_by("-number").first()
    return request if request and request.options_digest == deployment.options_digest else None


def _ask_reader(request: Request, what: list[ObjectRef]) -> Api:
    """The request's cluster; raises unless those who asked may get `what` now: who may not is told nothing of it (S09).

    Nobody asks for a look: it is asked as of a request that is made by itself.
    """
    request.is_unattended, request.content = True, None  # as of one that is to be made now; never saved
    api = connect(request.deployment.cluster)
    gate.require(request, reader.preparing(request, api, what))
    return api
