"""Make a cluster what an approved plan says, phase by phase, so that it can be killed anywhere and carried on.

The inventory is written before an object is touched and after it is known to be ours; between the two a nonce on the
object itself tells whose it is. So carrying on after a crash is the same call again, with the same plan.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from provisioner.cluster.annotations import RevisionOwner, nonce_of
from provisioner.cluster.apply.deletion import Deleter, chunks
from provisioner.cluster.apply.hooks import HookRunner
from provisioner.cluster.apply.object_writer import Job, ObjectWriter
from provisioner.cluster.apply.waits import IDLE, Patience, WaitOptions, Waits, changes, in_phase
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.health.watch import until_gone
from provisioner.cluster.inventory import HookRuns, Inventory, MemoryHookRuns
from provisioner.cluster.order import EARLY, LATE, ApplyStep, Phase, deletion_phases, hooks_at, phases
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.cluster.plan.prune import bodies_of, in_served_version
from provisioner.errors import PlanChanged, PratiqueError, PreconditionFailed, UnknownKind, Withheld
from provisioner.health_checks import HealthCheck
from provisioner.json_values import uid_of
from provisioner.retention import is_remade
from provisioner.values import (
    Action,
    Content,
    HelmRelease,
    HookMoment,
    InventoryItem,
    Manifest,
    ObjectIdentity,
    ObjectOutcome,
    ObjectRef,
    OutcomeState,
    Plan,
    PlannedAction,
    Why,
)

TIMEOUT_SECONDS = 600.0
# The API server's own work is what takes the time, and it does more at once than it has processors: it waits for disks.
PARALLEL = 24
T = TypeVar("T")


# A write that has begun, with its nonce, or an outcome without one.
_UnderWay = ObjectOutcome | tuple[str, Future[ObjectOutcome]]


def _nothing(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class PhaseReached:
    """A phase that changes something, the `number`th of `count`, by its name."""

    number: int
    count: int
    name: str


@dataclass(frozen=True, slots=True)
class Terms:
    """How to apply. `observer` is who watches objects settle, by default the identity that writes.

    `before_phase` is called with the name of each phase that changes anything, once all before it is written and before
    its own first write, and again after each wait within it; by raising it keeps what follows from being written, and
    the apply ends there (S25). The deletions are the phases "delete ...". `at_phase` is told of each before it is asked
    for. `before_wait` is called with the objects that
    are watched until they have settled, which may take minutes. `checks` are the deployment's own: what they select is
    waited for too. `while_waiting` is called every few seconds while nothing else is heard of the apply (objects settle
    or go, a write is tried again); what it raises ends the apply there. `owner` is named on each object that is
    written. `runs` is the record of hooks, by default one that ends with the call; `helm_release` is what adopted
    objects are taken over from.
    """

    field_manager: str
    timeout_seconds: float = TIMEOUT_SECONDS
    parallel: int = PARALLEL
    observer: ClusterClient | None = None
    before_phase: Callable[[str], None] = _nothing
    at_phase: Callable[[PhaseReached], None] = _nothing
    before_wait: Callable[[Sequence[ObjectRef]], None] = _nothing
    while_waiting: Callable[[], None] = _nothing
    checks: Sequence[HealthCheck] = ()
    owner: RevisionOwner | None = None
    runs: HookRuns | None = None
    helm_release: HelmRelease | None = None


def apply(
    cluster: ClusterClient, content: Content, plan: Plan, inventory: Inventory, terms: Terms
) -> Iterator[ObjectOutcome]:
    """One ObjectOutcome per planned action, as they happen; after a failure the later phases are SKIPPED.

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


def recover(cluster: ClusterClient, inventory: Inventory) -> dict[ObjectIdentity, InventoryItem]:
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
        cluster: ClusterClient,
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
        self._runs = terms.runs or MemoryHookRuns()
        self._pool = pool
        self._patience = Patience(terms.timeout_seconds, terms.while_waiting)
        self._writer = ObjectWriter(
            cluster, terms.field_manager, lambda: self._patience.end, terms.owner, terms.helm_release
        )
        asked = WaitOptions(terms.observer or cluster, terms.checks, terms.before_wait)
        self._waits = Waits(cluster, actions, asked, self._patience)
        self._deleter = Deleter(cluster, inventory, self._writer, self._patience, pool)
        self._stopped = Why()
        self._reached = PhaseReached(0, 0, "")
        self._has_waited = False

    def run(self, content: Content) -> Iterator[ObjectOutcome]:
        wished = phases(content.manifests)
        early = self._hooks(content, EARLY)
        late = self._hooks(content, LATE)
        known = {manifest.ref.identity for manifest in content.manifests}
        leaving = [action for identity, action in self._actions.items() if identity not in known]
        released = [action for action in leaving if action.action in (Action.NONE, Action.ORPHAN)]
        deleted = [action for action in leaving if action.action is Action.DELETE]
        going = deletion_phases((action.ref for action in deleted), bodies_of(deleted))
        changing = sum(changes(phase, self._actions) for phase in wished)
        self._reached = PhaseReached(0, changing + bool(released) + len(going) + len(early) + len(late), "")
        made = [phase for phase in wished if early and _is_made_before_hooks(phase, self._actions)]
        wished = [*made, *(phase for phase in wished if phase not in made)]
        for index, phase in enumerate(wished):
            if index == len(made):
                yield from self._run_each(early)
            yield from self._phase(phase)
            if not self._stopped:
                self._stopped = self._waits.of_phase(phase, wished[index + 1 :], is_stood_on=phase in made)
        if len(made) == len(wished):
            yield from self._run_each(early)
        # What was ours and stays: from now on it is nobody's, or it is whose who made it again.
        if released and not self._stopped:
            self._begin("release")
        yield from self._until_one_fails(released, "release", self._deleter.release)
        for each in going:
            planned = [self._actions[ref.identity] for ref in each.refs]
            if not self._stopped:
                self._begin(f"delete {each.name}")
            yield from self._until_one_fails(planned, f"delete {each.name}", self._deleter.delete)
        tests = late.pop(HookMoment.TEST, None)
        yield from self._run_each(late)
        if tests:
            if not self._stopped:
                stood_on = [ref for phase in wished for ref in self._waits.stood_on(phase)]
                self._stopped = in_phase(f"hooks {HookMoment.TEST}", self._waits.of(stood_on))
            yield from self._run_each({HookMoment.TEST: tests})
        if not self._stopped:
            self._deleter.forget_vain(self._items, known)

    def stop(self) -> None:
        """What has not begun is not to begin, and nothing is tried again: somebody said no, or knows better (S25)."""
        self._is_over = True
        self._patience.give_up()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _check_going_on(self) -> None:
        if self._is_over:
            raise Withheld("the apply has ended")

    # Hooks

    def _hooks(self, content: Content, moments: Sequence[HookMoment]) -> dict[HookMoment, list[Manifest]]:
        """The hooks of each moment that has some."""
        found = {moment: hooks_at(moment, content.manifests) for moment in moments}
        return {moment: hooks for moment, hooks in found.items() if hooks}

    def _run_each(self, hooks: Mapping[HookMoment, list[Manifest]]) -> Iterator[ObjectOutcome]:
        for moment, running in hooks.items():
            name, done = f"hooks {moment}", 0
            if not self._stopped:
                self._begin(name)
                asked = self._terms
                for outcome in HookRunner(
                    self._cluster,
                    asked.observer or self._cluster,
                    self._actions,
                    self._runs,
                    self._inventory,
                    self._writer,
                    self._patience,
                    partial(self._ask_before, name),
                    asked.before_wait,
                ).run(moment, running):
                    done += 1
                    if outcome.state is OutcomeState.FAILED:
                        self._stopped = Why(f"phase {name}: {outcome.ref} failed")
                    yield outcome
            yield from (_skipped(self._actions[manifest.ref.identity], self._stopped) for manifest in running[done:])

    # Writing

    def _begin(self, phase: str) -> None:
        self._reached = replace(self._reached, number=self._reached.number + 1, name=phase)
        self._terms.at_phase(self._reached)
        self._ask_before(phase)

    def _ask_before(self, phase: str) -> None:
        """What is asked before a phase is no time at work."""
        began = time.monotonic()
        self._has_waited = False
        self._patience.ask(partial(self._terms.before_phase, phase))
        self._patience.end += time.monotonic() - began

    def _phase(self, phase: Phase) -> Iterator[ObjectOutcome]:
        planned = [self._actions[manifest.ref.identity] for manifest in phase.manifests]
        if self._stopped:
            yield from (_skipped(action, self._stopped) for action in planned)
            return
        for action in planned:
            if action.action in IDLE:  # what the server warns of an object that stays as it is, it would warn of again
                words = "; ".join(action.notes) if action.action is Action.SKIP else ""
                known = (action.uid, action.resource_version)
                yield ObjectOutcome(action.ref, action.action, OutcomeState.UNCHANGED, words, *known, action.warnings)
        if not changes(phase, self._actions):
            return
        self._begin(phase.name)
        for step in phase.steps:
            yield from self._step(phase.name, step)

    def _step(self, phase: str, step: ApplyStep) -> Iterator[ObjectOutcome]:
        planned = [(manifest, self._actions[manifest.ref.identity]) for manifest in step.manifests]
        todo = [pair for pair in planned if pair[1].action not in IDLE]
        if todo and not self._stopped:
            # Wait for what the step needs, and ask once more then: the wait may have taken minutes.
            needed = [self._actions[identity] for identity in sorted(step.needs)]
            refs = [action.ref for action in needed if action.action not in IDLE]
            why = in_phase(phase, self._waits.of(refs))
            if refs and not why:
                self._ask_before(phase)
            self._stopped = why
        if self._stopped:
            yield from (_skipped(action, self._stopped) for _, action in todo)
            return
        failed: list[ObjectOutcome] = []
        for outcome in self._write_objects(todo):
            if outcome.state is OutcomeState.FAILED:
                failed.append(outcome)
            yield outcome
        if failed:
            self._stopped = Why(f"phase {phase}: {failed[0].ref} failed")

    def _write_objects(self, todo: list[tuple[Manifest, PlannedAction]]) -> Iterator[ObjectOutcome]:
        """Write ahead, write, write down; two chunks are on their way at any time."""
        under_way: deque[list[_UnderWay]] = deque()
        for chunk in chunks(todo):
            # What cannot even be prepared is an outcome of its own.
            jobs = [self._job(manifest, action) for manifest, action in chunk]
            self._inventory.intend_many([(job.manifest.ref, job.nonce) for job in jobs if isinstance(job, Job)])
            under_way.append(
                [
                    (job.nonce, self._pool.submit(self._writer.write, job)) if isinstance(job, Job) else job
                    for job in jobs
                ]
            )
            if len(under_way) > 1:
                yield from self._ended(under_way.popleft())
        for rest in under_way:
            yield from self._ended(rest)

    def _ended(self, chunk: list[_UnderWay]) -> list[ObjectOutcome]:
        begun = [job for job in chunk if not isinstance(job, ObjectOutcome)]
        written = self._patience.results([future for _, future in begun])
        made = zip((nonce for nonce, _ in begun), written, strict=True)
        self._inventory.confirm_many([(outcome.ref, nonce, outcome.uid) for nonce, outcome in made if outcome.uid])
        rest = iter(written)
        return [job if isinstance(job, ObjectOutcome) else next(rest) for job in chunk]

    def _job(self, manifest: Manifest, planned: PlannedAction) -> Job | ObjectOutcome:
        item = self._items.get(manifest.ref.identity)
        try:
            ours = item.uid if item else ""
            if is_remade(planned):
                planned = replace(planned, is_proved=False)  # what was proved is that the old one cannot become it
            elif planned.action is Action.UPDATE:
                if ours != planned.uid or item is None:
                    raise PreconditionFailed(
                        f"{manifest.ref} is not ours: the inventory does not hold its uid", status=409
                    )
                return Job(manifest, planned, item.nonce, ours)
            if planned.action is Action.ADOPT:  # once the inventory holds the uid, it is an update of ours
                if item and ours == planned.uid:
                    return Job(manifest, planned, item.nonce, ours, is_resumed=True)
                nonce = item.nonce if item and not ours else secrets.token_hex(16)
                return Job(manifest, planned, nonce, planned.uid)
            live = None
            if item and ours:
                reading = self._pool.submit(self._writer.patiently, partial(self._cluster.get, item.ref))
                live = self._patience.result(reading)
            if item and live is not None and uid_of(live) == ours:
                if planned.action is Action.CREATE or ours != planned.uid:
                    return Job(manifest, planned, item.nonce, ours, is_resumed=True)
                self._patience.result(self._pool.submit(self._writer.check_creatable, manifest))
                self._make_room(item, planned)
            # A pending nonce is used again: a write of it may still be on its way from a worker that was thought dead.
            nonce = item.nonce if item and not ours else secrets.token_hex(16)
            return Job(manifest, planned, nonce)
        except PratiqueError as exc:
            if exc is self._patience.ended_by or isinstance(exc, Withheld):
                raise
            uid, said = item.uid if item else "", exc.server_words
            return ObjectOutcome(manifest.ref, planned.action, OutcomeState.FAILED, str(exc), uid, server_words=said)

    def _make_room(self, item: InventoryItem, planned: PlannedAction) -> None:
        """Delete what is to be replaced, while the inventory still holds it, and wait until it is gone.

        Of several in one phase each but the first is asked for once more: the wait for the one before may have taken
        minutes.
        """
        if self._has_waited:
            self._ask_before(self._reached.name)
        self._has_waited = True
        deleting = self._pool.submit(self._writer.delete, item.ref, planned)
        self._patience.result(deleting)
        patience = self._patience
        left = until_gone(
            self._cluster, {item.ref: item.uid}, timeout_seconds=patience.left, while_waiting=patience.pulse
        )
        if left:
            why = left[item.ref]
            words = f"{item.ref} was deleted to be replaced: {why.words}"
            raise PreconditionFailed(words, status=409, server_words=why.server_words)

    # Deleting

    def _until_one_fails(
        self, planned: list[PlannedAction], phase: str, work: Callable[[list[PlannedAction]], Iterator[ObjectOutcome]]
    ) -> Iterator[ObjectOutcome]:
        """The outcomes of all, of which the first that failed stops what comes after them."""
        if self._stopped:
            yield from (_skipped(action, self._stopped) for action in planned)
            return
        for outcome in work(planned):
            if outcome.state is OutcomeState.FAILED:
                self._stopped = self._stopped or Why(f"phase {phase}: {outcome.ref} failed")
            yield outcome


def _is_made_before_hooks(phase: Phase, actions: Mapping[ObjectIdentity, PlannedAction]) -> bool:
    """Whether the hooks that run before all come after it: namespaces and definitions that are only made.

    Hooks may stand on these, as on the crds/ of a chart. What a hook is to run before is that something is changed.
    """
    made = (Action.CREATE, *IDLE)
    is_made = all(actions[manifest.ref.identity].action in made for manifest in phase.manifests)
    return phase.name in ("namespaces", "crds") and is_made


def _checked(content: Content, plan: Plan) -> dict[ObjectIdentity, PlannedAction]:
    """The actions by object. Raises where they are not whole, not of this content, or not to be done as they are."""
    actions = {action.ref.identity: action for action in plan.actions}
    wished = {manifest.ref.identity for manifest in content.manifests}
    if plan_digest(plan.actions) != plan.digest or len(actions) != len(plan.actions):
        raise PlanChanged("the plan does not have the digest that it names")
    if wished - actions.keys():
        raise PlanChanged(f"the plan says nothing of {len(wished - actions.keys())} objects of the content")
    leaves = {identity for identity, action in actions.items() if action.action in (Action.DELETE, Action.ORPHAN)}
    extra = {identity for identity, action in actions.items() if action.action is not Action.NONE} - leaves - wished
    if extra or leaves & wished:
        raise PlanChanged("the plan is not one of this content")
    for one in plan.actions:
        is_bound = one.action is not Action.ADOPT or (one.uid and one.resource_version)
        if one.problem or not is_bound:
            words = one.problem or "an adoption must name the object that it adopts"
            raise PreconditionFailed(f"the plan cannot be applied: {one.ref}: {words}", server_words=one.server_words)
    return actions


def _skipped(planned: PlannedAction, why: Why) -> ObjectOutcome:
    skipped = ObjectOutcome(planned.ref, planned.action, OutcomeState.SKIPPED, f"not tried: {why.words}", planned.uid)
    return replace(skipped, server_words=why.server_words, about=why.ref)
