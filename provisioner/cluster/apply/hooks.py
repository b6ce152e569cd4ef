"""Run the hooks of one moment, one after the other: each once a request, whoever carries on in between.

A run is recorded before its object is written and after it has succeeded, and what it left stands until then. So a
worker that takes up an apply knows which runs are over, waits for the one that has begun, and begins no other twice.

A Job is written with the longest time to live, and gets its own once it is recorded that it has succeeded. Else the
cluster could delete it before anybody has seen how it ended, and whoever carries on would run it again. A Job that
failed never gets its own, so that people can read its logs. The field is there all the time, because clusters have
admission policies that add it where it is missing, or refuse a Job without it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from provisioner.cluster.annotations import is_left_by, keep_words
from provisioner.cluster.apply.object_writer import Job, ObjectWriter
from provisioner.cluster.apply.waits import Patience
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.health.watch import has_end, until_completed, until_gone
from provisioner.cluster.inventory import HookRuns, Inventory
from provisioner.cluster.plan.prune import in_served_version
from provisioner.errors import PratiqueError, PreconditionFailed, TryLater, UnknownKind, Withheld
from provisioner.json_values import mapping, uid_of
from provisioner.values import (
    Action,
    GroupKind,
    HookMoment,
    HookRun,
    JsonObject,
    Manifest,
    ObjectIdentity,
    ObjectOutcome,
    ObjectRef,
    OutcomeState,
    PlannedAction,
    Why,
)

# The largest int32, which the field is: 68 years.
LONGEST_SECONDS = 2**31 - 1
_JOB, _FIELD = GroupKind("batch", "Job"), "ttlSecondsAfterFinished"


def has_time_to_live(manifest: Manifest) -> bool:
    """Whether the cluster would delete it by itself, some time after it has ended."""
    return manifest.ref.group_kind == _JOB and mapping(manifest.body.get("spec")).get(_FIELD) is not None


def hold_back_time_to_live(manifest: Manifest, planned: PlannedAction) -> tuple[Manifest, PlannedAction]:
    """The manifest and its plan as they are until it has succeeded."""
    if not has_time_to_live(manifest):
        return manifest, planned
    after = _kept(planned.after) if planned.after is not None else None
    return replace(manifest, body=_kept(manifest.body)), replace(planned, after=after)


def _kept(body: JsonObject) -> JsonObject:
    return {**body, "spec": {**mapping(body.get("spec")), _FIELD: LONGEST_SECONDS}}


_ORDER = tuple(HookMoment)


@dataclass(frozen=True, slots=True)
class HookRunner:
    """Writes as the identity of `cluster`, and looks as that of `observer`; `ask` asks whether to go on (S25)."""

    cluster: ClusterClient
    observer: ClusterClient
    actions: Mapping[ObjectIdentity, PlannedAction]
    runs: HookRuns
    inventory: Inventory
    writer: ObjectWriter
    patience: Patience
    ask: Callable[[], None]
    before_wait: Callable[[Sequence[ObjectRef]], None]

    def run(self, moment: HookMoment, hooks: Sequence[Manifest]) -> Iterator[ObjectOutcome]:
        """One outcome for each hook, in their order, until one fails; then what the others left is cleared as they say.

        Raises what ends the apply.
        """
        for number, manifest in enumerate(hooks):
            if number:
                self.ask()
            outcome = self._outcome(moment, manifest)
            yield outcome
            if outcome.state is OutcomeState.FAILED:
                return
        for manifest in hooks:
            if manifest.hook and manifest.hook.is_cleared:
                self._clear(moment, manifest)

    def _outcome(self, moment: HookMoment, manifest: Manifest) -> ObjectOutcome:
        ref, planned = manifest.ref, self.actions[manifest.ref.identity]
        last = self.runs.items().get(ref.identity)
        is_begun = last is not None and last.is_current and _ORDER.index(last.moment) >= _ORDER.index(moment)
        if is_begun and last and (last.has_succeeded or last.moment is not moment):
            if last.moment is moment:  # a worker may have died before that
                self._give_time_to_live(manifest, planned, last)
            return ObjectOutcome(ref, planned.action, OutcomeState.UNCHANGED, "it has run for this request", last.uid)
        if planned.action is Action.NONE:  # it is kept as an earlier run left it
            return ObjectOutcome(ref, planned.action, OutcomeState.UNCHANGED, "; ".join(planned.notes), planned.uid)
        if is_begun and planned.action is Action.REPLACE:
            self.inventory.forget(ref, planned.uid)  # which a worker may have died before
        try:
            run = last if is_begun and last else self._begin(moment, manifest, planned, last)
            return self._end(manifest, planned, run)
        except (Withheld, TryLater):
            raise
        except PratiqueError as exc:
            if exc is self.patience.ended_by:
                raise
            return ObjectOutcome(ref, planned.action, OutcomeState.FAILED, str(exc), server_words=exc.server_words)

    def _begin(self, moment: HookMoment, manifest: Manifest, planned: PlannedAction, last: HookRun | None) -> HookRun:
        """Make room where something of ours, or what was planned to go, has the name, and record the run."""
        ref = manifest.ref
        if planned.action is Action.REPLACE and not (last and last.is_current):
            self.writer.delete(planned.ref, planned)
            self._wait_until_gone(planned.ref, planned.uid)
            self.inventory.forget(planned.ref, planned.uid)  # where it was an object that stays
        if last is not None:
            self._delete_left(last)
        run = HookRun(ref, moment, secrets.token_hex(16))
        self.runs.begin(ref, moment, run.nonce)
        return run

    def _end(self, manifest: Manifest, planned: PlannedAction, run: HookRun) -> ObjectOutcome:
        """Write its object where that has not been done, wait until it has ended, and record that it succeeded."""
        ref = manifest.ref
        made = ObjectOutcome(ref, planned.action, OutcomeState.DONE, "", run.uid)
        if not run.uid:
            anew = replace(planned, action=Action.RERUN if planned.action is Action.RERUN else Action.CREATE, uid="")
            made = replace(
                self.writer.write(Job(*hold_back_time_to_live(manifest, anew), run.nonce)), action=planned.action
            )
            if made.uid:
                self.runs.confirm(ref, run.nonce, made.uid)
            if made.state is OutcomeState.FAILED:
                return made
        patience, why = self.patience, Why()
        if has_end(ref):
            self.before_wait([ref])
            why = until_completed(
                self.observer, ref, made.uid, timeout_seconds=patience.left, while_waiting=patience.pulse
            )
        if why:
            return replace(made, state=OutcomeState.FAILED, message=why.words, server_words=why.server_words)
        self.runs.succeed(ref, run.nonce)
        refusal = self._give_time_to_live(manifest, planned, replace(run, uid=made.uid))
        return replace(made, message=refusal.words, server_words=refusal.server_words) if refusal else made

    def _give_time_to_live(self, manifest: Manifest, planned: PlannedAction, run: HookRun) -> Why:
        """Write what was held back of what has succeeded; why not, where that was refused, is no failure of the run."""
        if not has_time_to_live(manifest):
            return Why()
        made = self.writer.write(Job(manifest, planned, run.nonce, run.uid, is_resumed=True))
        if made.state is not OutcomeState.FAILED:
            return Why()
        words = f"it has run; its time to live could not be written: {made.message}"
        return Why(words, made.server_words, manifest.ref)

    def _delete_left(self, run: HookRun) -> None:
        """What a run left, where it is still there; of a write that nobody heard of by its nonce."""
        ref = in_served_version(self.cluster, run.ref)
        try:
            live = self.writer.patiently(lambda: self.cluster.get(ref))
        except UnknownKind:  # with the kind its objects went
            return
        if live is None or not is_left_by(run, live):
            return
        if not has_end(ref):
            self.writer.check_not_kept(ref, live)
        uid = uid_of(live)
        try:
            self.writer.patiently(lambda: self.cluster.delete(ref, uid=uid))
        except PreconditionFailed:  # somebody has made another one of its name: the write will meet it
            return
        self._wait_until_gone(ref, uid)

    def _wait_until_gone(self, ref: ObjectRef, uid: str) -> None:
        patience = self.patience
        left = until_gone(self.cluster, {ref: uid}, timeout_seconds=patience.left, while_waiting=patience.pulse)
        if why := left.get(ref):
            words = f"{ref} was deleted to be run again: {why.words}"
            raise PreconditionFailed(words, status=409, server_words=why.server_words)

    def _clear(self, moment: HookMoment, manifest: Manifest) -> None:
        """That it cannot be cleared is no failure of what has been done: the next run tries again. What says that it is
        to be kept stays (S39).

        Where a worker carries on, the run may be the one of a later moment, which is not over.
        """
        run = self.runs.items().get(manifest.ref.identity)
        if run is None or not run.uid or not (run.is_current and run.has_succeeded and run.moment is moment):
            return
        if keep_words(manifest.body):
            return
        try:
            live = self.cluster.get(run.ref)
            if live is not None and not keep_words(live):
                self.cluster.delete(run.ref, uid=run.uid)
        except Withheld:
            raise
        except PratiqueError:
            return
