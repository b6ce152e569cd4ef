"""Make a cluster what an approved plan says, phase by phase, so that it can be killed anywhere and carried on.

The inventory is written before an object is touched and after it is known to be ours; between the two a nonce on the
object itself tells whose it is. So carrying on after a crash is the same call again, with the same plan.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TypeVar

from provisioner.cluster.apply.waiting import IDLE, Asked, Patience, Waits, changes, in_phase
from provisioner.cluster.apply.writing import Job, Writer
from provisioner.cluster.client.api import Cluster
from provisioner.cluster.compare import uid_of
from provisioner.cluster.health.watch import until_gone
from provisioner.cluster.inventory import Inventory
from provisioner.cluster.order import (
    DeletionPhase,
    Phase,
    Step,
    deletion_phases,
    is_system_namespace,
    phases,
)
from provisioner.cluster.plan.dry_run import plan_digest
from provisioner.cluster.plan.pruning import bodies_of, in_served_version
from provisioner.cluster.tracking import Owner, nonce_of
from provisioner.errors import (
    Overtaken,
    PlanChanged,
    PratiqueError,
    PreconditionFailed,
    UnknownKind,
    Unreachable,
    Withheld,
)
from provisioner.health_checks import HealthCheck
from provisioner.values import (
    Action,
    Content,
    InventoryItem,
    Manifest,
    ObjectIdentity,
    ObjectRef,
    Outcome,
    OutcomeState,
    Plan,
    PlannedAction,
    Why,
)

TIMEOUT_SECONDS = 600.0
# The API server's own work is what takes the time, and it does more at once than it has processors: it waits for disks.
PARALLEL = 24
# Recorded ahead at once; the next chunk is written while the outcomes of one are recorded.
_CHUNK = 64
T = TypeVar("T")


# A write that has begun, with its nonce, or an outcome without one.
_UnderWay = Outcome | tuple[str, Future[Outcome]]


def _nothing(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Terms:
    """How to apply. `observer` is who watches objects settle, by default the identity that writes.

    `before_phase` is called with the name of each phase that changes anything, once all before it is written and before
    its own first write, and again after each wait within it; by raising it keeps what follows from being written, and
    the apply ends there (S25). The deletions are the phases "delete ...". `before_wait` is called with the objects that
    are watched until they have settled, which may take minutes. `checks` are the deployment's own: what they select is
    waited for too. `while_waiting` is called every few seconds while nothing else is heard of the apply (objects settle
    or go, a write is tried again); what it raises ends the apply there. `owner` is named on each object that is
    written.
    """

    field_manager: str
    timeout_seconds: float = TIMEOUT_SECONDS
    parallel: int = PARALLEL
    observer: Cluster | None = None
    before_phase: Callable[[str], None] = _nothing
    before_wait: Callable[[Sequence[ObjectRef]], None] = _nothing
    while_waiting: Callable[[], None] = _nothing
    checks: Sequence[HealthCheck] = ()
    owner: Owner | None = None


def apply(cluster: Cluster, content: Content, plan: Plan, inventory: Inventory, terms: Terms) -> Iterator[Outcome]:
    """One Outcome per planned action, as they happen; after a failure the later phases are SKIPPED.

    Raises, before anything is touched, PlanChanged where the plan is not one of this content, and PreconditionFailed
    where it holds a problem or an adoption that names no object. Calling it again with the same plan carries on where
    it stopped.
    """
    actions = _checked(content, plan)
    with ThreadPoolExecutor(max_workers=terms.parallel) as pool:
        work = _Apply(cluster, actions, inventory, terms, pool)
        try:
            yield from work.run(content)
        except BaseException:
            work.stop()
            raise


def recover(cluster: Cluster, inventory: Inventory) -> dict[ObjectIdentity, InventoryItem]:
    """Settle what a crash left open: an object that carries the nonce written ahead for it is ours from now on.

    All items of the inventory, as they are then.
    """
    items = inventory.items()
    for identity, item in sorted(items.items()):
        if item.uid:
            continue
        try:
            live = cluster.get(in_served_version(cluster, item.ref))
        except UnknownKind:
            continue
        if live is not None and nonce_of(live) == item.nonce:
            items[identity] = replace(item, uid=uid_of(live))
            inventory.confirm(item.ref, item.nonce, uid_of(live))
    return items


class _Apply:
    """One run. The inventory is only met in the caller's thread; the pool's threads only write to the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        actions: Mapping[ObjectIdentity, PlannedAction],
        inventory: Inventory,
        terms: Terms,
        pool: ThreadPoolExecutor,
    ):
        self._is_over = False
        cluster = cluster.guarded(self._check_going_on)
        self._cluster = cluster
        self._actions = actions
        self._inventory = inventory
        self._items = recover(cluster, inventory)
        self._terms = terms
        self._pool = pool
        self._patience = Patience(terms.timeout_seconds, terms.while_waiting)
        self._writer = Writer(cluster, terms.field_manager, lambda: self._patience.end, terms.owner)
        asked = Asked(terms.observer or cluster, terms.checks, terms.before_wait)
        self._waits = Waits(cluster, actions, asked, self._patience)
        self._stopped = Why()

    def run(self, content: Content) -> Iterator[Outcome]:
        wished = phases(content.manifests)
        for index, phase in enumerate(wished):
            yield from self._phase(phase)
            if not self._stopped:
                self._stopped = self._waits.of_phase(phase, wished[index + 1 :])
        known = {one.ref.identity for one in content.manifests}
        leaving = [one for identity, one in self._actions.items() if identity not in known]
        yield from self._let_go([one for one in leaving if one.action is Action.NONE])
        deleted = [one for one in leaving if one.action is Action.DELETE]
        for going in deletion_phases((one.ref for one in deleted), bodies_of(deleted)):
            yield from self._delete_phase(going)
        if not self._stopped:
            self._forget_vain(known)

    def stop(self) -> None:
        """What has not begun is not to begin, and nothing is tried again: somebody said no, or knows better (S25)."""
        self._is_over = True
        self._patience.give_up()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _check_going_on(self) -> None:
        if self._is_over:
            raise Withheld("the apply has ended")

    # Writing

    def _phase(self, phase: Phase) -> Iterator[Outcome]:
        planned = [self._actions[one.ref.identity] for one in phase.manifests]
        if self._stopped:
            yield from (_skipped(action, self._stopped) for action in planned)
            return
        yield from (_untouched(action) for action in planned if action.action in IDLE)
        if not changes(phase, self._actions):
            return
        self._terms.before_phase(phase.name)
        for step in phase.steps:
            yield from self._step(phase.name, step)

    def _step(self, phase: str, step: Step) -> Iterator[Outcome]:
        planned = [(one, self._actions[one.ref.identity]) for one in step.manifests]
        todo = [one for one in planned if one[1].action not in IDLE]
        if todo and not self._stopped:
            self._stopped = self._wait_for(phase, step)
        if self._stopped:
            yield from (_skipped(action, self._stopped) for _, action in todo)
            return
        failed: list[Outcome] = []
        for outcome in self._write(todo):
            if outcome.state is OutcomeState.FAILED:
                failed.append(outcome)
            yield outcome
        if failed:
            self._stopped = Why(f"phase {phase}: {failed[0].ref} failed")

    def _wait_for(self, phase: str, step: Step) -> Why:
        """Wait for what a step of this phase needs, and ask once more: the wait may have taken minutes."""
        needed = [self._actions[identity] for identity in sorted(step.needs)]
        refs = [one.ref for one in needed if one.action not in IDLE]
        why = in_phase(phase, self._waits.of(refs))
        if refs and not why:
            self._terms.before_phase(phase)
        return why

    def _write(self, todo: list[tuple[Manifest, PlannedAction]]) -> Iterator[Outcome]:
        """Write ahead, write, write down; two chunks are on their way at any time."""
        under_way: deque[list[_UnderWay]] = deque()
        for chunk in _chunks(todo):
            under_way.append(self._begun(chunk))
            if len(under_way) > 1:
                yield from self._ended(under_way.popleft())
        for rest in under_way:
            yield from self._ended(rest)

    def _begun(self, chunk: list[tuple[Manifest, PlannedAction]]) -> list[_UnderWay]:
        """What cannot even be prepared is an outcome of its own."""
        jobs = [self._job(manifest, action) for manifest, action in chunk]
        self._inventory.intend_many([(job.manifest.ref, job.nonce) for job in jobs if isinstance(job, Job)])
        return [
            (job.nonce, self._pool.submit(self._writer.write, job)) if isinstance(job, Job) else job for job in jobs
        ]

    def _ended(self, chunk: list[_UnderWay]) -> list[Outcome]:
        begun = [one for one in chunk if not isinstance(one, Outcome)]
        written = self._patience.results([future for _, future in begun])
        made = zip((nonce for nonce, _ in begun), written, strict=True)
        self._inventory.confirm_many([(one.ref, nonce, one.uid) for nonce, one in made if one.uid])
        rest = iter(written)
        return [one if isinstance(one, Outcome) else next(rest) for one in chunk]

    def _job(self, manifest: Manifest, planned: PlannedAction) -> Job | Outcome:
        item = self._items.get(manifest.ref.identity)
        try:
            return self._prepared(manifest, planned, item)
        except PratiqueError as exc:
            if exc is self._patience.ended_by or isinstance(exc, Withheld):
                raise
            uid, said = item.uid if item else "", exc.server_words
            return Outcome(manifest.ref, planned.action, OutcomeState.FAILED, str(exc), uid, server_words=said)

    def _prepared(self, manifest: Manifest, planned: PlannedAction, item: InventoryItem | None) -> Job:
        """What to write, from what is planned and what an earlier try has done of it already."""
        ours = item.uid if item else ""
        if planned.action is Action.UPDATE:
            if ours != planned.uid or item is None:
                raise PreconditionFailed(f"{manifest.ref} is not ours: the inventory does not hold its uid", status=409)
            return Job(manifest, planned, item.nonce, ours)
        if planned.action is Action.ADOPT:
            return _adoption(manifest, planned, item)
        if item and ours and self._is_there(item):
            if planned.action is Action.CREATE or ours != planned.uid:
                return Job(manifest, planned, item.nonce, ours, is_resumed=True)
            self._patience.result(self._pool.submit(self._writer.check_creatable, manifest))
            self._make_room(item, planned)
        # A pending nonce is used again: a write of it may still be on its way from a worker that was thought dead.
        nonce = item.nonce if item and not ours else secrets.token_hex(16)
        return Job(manifest, planned, nonce)

    def _is_there(self, item: InventoryItem) -> bool:
        live = self._patiently(lambda: self._cluster.get(item.ref))
        return live is not None and uid_of(live) == item.uid

    def _make_room(self, item: InventoryItem, planned: PlannedAction) -> None:
        """Delete what is to be replaced, while the inventory still holds it, and wait until it is gone."""
        deleting = self._pool.submit(self._writer.delete, item.ref, item.uid, planned.resource_version)
        self._patience.result(deleting)
        left = self._until_gone({item.ref: item.uid})
        if left:
            why = left[item.ref]
            words = f"{item.ref} was deleted to be replaced: {why.words}"
            raise PreconditionFailed(words, status=409, server_words=why.server_words)

    def _until_gone(self, uids: Mapping[ObjectRef, str]) -> dict[ObjectRef, Why]:
        patience = self._patience
        return until_gone(self._cluster, uids, timeout_seconds=patience.left, while_waiting=patience.pulse)

    def _patiently(self, call: Callable[[], T]) -> T:
        return self._patience.result(self._pool.submit(self._writer.patiently, call))

    # Deleting

    def _delete_phase(self, going: DeletionPhase) -> Iterator[Outcome]:
        planned = [self._actions[ref.identity] for ref in going.refs]
        if self._stopped:
            yield from (_skipped(one, self._stopped) for one in planned)
            return
        self._terms.before_phase(f"delete {going.name}")
        asked = self._patience.results([self._pool.submit(self._delete, each) for each in planned])
        left = self._until_gone({one.ref: one.uid for one in asked if one.state is OutcomeState.DONE})
        for outcome in asked:
            still = left.get(outcome.ref, Why())
            words, said = outcome.message or still.words, outcome.server_words or still.server_words
            is_failed = outcome.state is OutcomeState.FAILED or outcome.ref in left
            if not is_failed:
                self._inventory.forget(outcome.ref, outcome.uid)
            else:
                self._stopped = self._stopped or Why(f"phase delete {going.name}: {outcome.ref} failed")
            state = OutcomeState.FAILED if is_failed else outcome.state
            yield Outcome(outcome.ref, Action.DELETE, state, words, outcome.uid, server_words=said)

    def _delete(self, planned: PlannedAction) -> Outcome:
        ref, uid = planned.ref, planned.uid
        if is_system_namespace(ref):
            return Outcome(ref, Action.DELETE, OutcomeState.FAILED, f"{ref} belongs to Kubernetes itself", uid)
        try:
            self._writer.delete(in_served_version(self._cluster, ref), uid, planned.resource_version)
        except Overtaken as exc:
            return Outcome(ref, Action.DELETE, OutcomeState.FAILED, str(exc), uid, server_words=exc.server_words)
        except PreconditionFailed:
            return Outcome(ref, Action.DELETE, OutcomeState.UNCHANGED, f"{ref} was made again by somebody else", uid)
        except UnknownKind:
            return Outcome(ref, Action.DELETE, OutcomeState.DONE, "gone with its kind", uid)
        except Withheld:
            raise
        except PratiqueError as exc:
            return Outcome(ref, Action.DELETE, OutcomeState.FAILED, str(exc), uid, server_words=exc.server_words)
        return Outcome(ref, Action.DELETE, OutcomeState.DONE, "", uid)

    def _let_go(self, gone: list[PlannedAction]) -> Iterator[Outcome]:
        """What was ours and stays: from now on it is nobody's, or it is whose who made it again."""
        if self._stopped:
            yield from (_skipped(planned, self._stopped) for planned in gone)
            return
        if gone:
            self._terms.before_phase("release")
        for chunk in _chunks(gone):
            for planned, released in [(one, self._pool.submit(self._release, one)) for one in chunk]:
                outcome = self._patience.result(released)
                if outcome.state is OutcomeState.FAILED:
                    self._stopped = self._stopped or Why(f"phase release: {outcome.ref} failed")
                else:
                    self._inventory.forget(planned.ref, planned.uid)
                yield outcome

    def _release(self, planned: PlannedAction) -> Outcome:
        """Tracking that may not be taken away stays: it is no reason to go on holding what nobody wants held."""
        words, state, said = list(planned.notes), OutcomeState.UNCHANGED, ""
        try:
            self._writer.release(in_served_version(self._cluster, planned.ref), planned.uid)
        except UnknownKind:
            words.append("gone with its kind")
        except (Unreachable, Overtaken) as exc:
            words, state, said = [str(exc)], OutcomeState.FAILED, exc.server_words
        except Withheld:
            raise
        except PratiqueError as exc:
            words.append(f"it still names its owner: {exc}")
            said = exc.server_words
        return Outcome(planned.ref, Action.NONE, state, "; ".join(words), planned.uid, server_words=said)

    def _forget_vain(self, wished: set[ObjectIdentity]) -> None:
        """End the record of writes that were refused and that nobody wishes for any more: no plan knows the object.

        Where it cannot be seen whether it is ours, the record stays.
        """
        for identity, item in sorted(self._items.items()):
            if item.uid or identity in wished:
                continue
            try:
                live = self._patiently(partial(self._cluster.get, in_served_version(self._cluster, item.ref)))
            except UnknownKind:
                live = None
            except PratiqueError as exc:
                if exc is self._patience.ended_by:
                    raise
                continue
            if live is None or nonce_of(live) != item.nonce:
                self._inventory.forget(item.ref, "")
            else:
                self._inventory.let_go(item.ref, item.nonce)


def _checked(content: Content, plan: Plan) -> dict[ObjectIdentity, PlannedAction]:
    """The actions by object. Raises where they are not whole, not of this content, or not to be done as they are."""
    actions = {one.ref.identity: one for one in plan.actions}
    wished = {one.ref.identity for one in content.manifests}
    if plan_digest(plan.actions) != plan.digest or len(actions) != len(plan.actions):
        raise PlanChanged("the plan does not have the digest that it names")
    if wished - actions.keys():
        raise PlanChanged(f"the plan says nothing of {len(wished - actions.keys())} objects of the content")
    leaves = {identity for identity, one in actions.items() if one.action is Action.DELETE}
    extra = {identity for identity, one in actions.items() if one.action is not Action.NONE} - leaves - wished
    if extra or leaves & wished:
        raise PlanChanged("the plan is not one of this content")
    for one in plan.actions:
        is_bound = one.action is not Action.ADOPT or (one.uid and one.resource_version)
        if one.problem or not is_bound:
            words = one.problem or "an adoption has to name the object that it adopts"
            raise PreconditionFailed(f"the plan cannot be applied: {one.ref}: {words}", server_words=one.server_words)
    return actions


def _adoption(manifest: Manifest, planned: PlannedAction, item: InventoryItem | None) -> Job:
    """The job of a planned adoption; once the inventory holds the uid, it is an update of ours."""
    if item and item.uid == planned.uid:
        return Job(manifest, planned, item.nonce, item.uid, is_resumed=True)
    nonce = item.nonce if item and not item.uid else secrets.token_hex(16)
    return Job(manifest, planned, nonce, planned.uid)


def _untouched(planned: PlannedAction) -> Outcome:
    """What the server warns of an object that stays as it is, it would warn of again."""
    is_left_out = planned.action is Action.SKIP
    words = "; ".join(planned.notes) if is_left_out else ""
    known = (planned.uid, planned.resource_version)
    return Outcome(planned.ref, planned.action, OutcomeState.UNCHANGED, words, *known, planned.warnings)


def _skipped(planned: PlannedAction, why: Why) -> Outcome:
    skipped = Outcome(planned.ref, planned.action, OutcomeState.SKIPPED, f"not tried: {why.words}", planned.uid)
    return replace(skipped, server_words=why.server_words, about=why.ref)


def _chunks(todo: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(todo)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk
