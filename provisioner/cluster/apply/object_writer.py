"""One write of one object: what is sent, what may be tried again, and what its answer must be.

Nothing here knows the inventory or the order of things; run.py does. Safe for threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from provisioner.api_groups import RBAC_GROUP
from provisioner.cluster import field_owners
from provisioner.cluster.annotations import RevisionOwner, Tracking, has_named_owner, keep_words, made_for, nonce_of
from provisioner.cluster.client.answers import Applied
from provisioner.cluster.client.api import MUST_NOT_EXIST, ClusterClient
from provisioner.cluster.compare import (
    ALTERED,
    altered,
    altered_words,
    changes,
    cleaned,
    lost,
    masked,
    owner_words,
    version_of,
)
from provisioner.cluster.drift import without_theirs
from provisioner.cluster.plan.adoption import holder_of
from provisioner.cluster.plan.helm_releases import handover_patch, is_held_by, managers_losing_fields, without_marks
from provisioner.cluster.plan.inputs import NO_DRY_RUN, body_of
from provisioner.cluster.plan.trials import POD, creation_refusal, refusal_words
from provisioner.errors import (
    AlreadyExists,
    ClusterError,
    FieldConflict,
    Forbidden,
    InvalidObject,
    LosesData,
    Overtaken,
    PratiqueError,
    PreconditionFailed,
    UnknownKind,
    Unreachable,
    Withheld,
)
from provisioner.json_values import uid_of
from provisioner.retention import SECRET, is_remade, takes_more
from provisioner.schema.fields import is_same
from provisioner.values import (
    Action,
    HelmRelease,
    JsonObject,
    Manifest,
    ObjectOutcome,
    ObjectRef,
    OutcomeState,
    PlannedAction,
)

FIRST_PAUSE_SECONDS = 0.2
MAX_PAUSE_SECONDS = 5.0
# How long an API server may take to see a role, a namespace or a kind that it has just stored.
CATCH_UP_SECONDS = 10.0
_REBASES = 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """One object to write. `uid` is that of the live object if it is ours, or to be adopted as planned and approved.

    It is "" for one that must not exist yet. `found` is tracking that somebody else wrote over ours, and that stays.
    `is_handed_over`: a Helm release has let go of the object since the plan was made.
    """

    manifest: Manifest
    planned: PlannedAction
    nonce: str
    uid: str = ""
    is_resumed: bool = False
    found: Tracking | None = None
    is_handed_over: bool = False

    @property
    def is_adoption(self) -> bool:
        """Whether the object is still someone else's, as far as the inventory knows."""
        return self.planned.action is Action.ADOPT and not self.is_resumed


@dataclass(frozen=True, slots=True)
class _View:
    """The state to write onto, and what must come of it; `expected` is None where nobody could tell."""

    version: str
    expected: JsonObject | None
    live: JsonObject | None = None

    @property
    def changes_nothing(self) -> bool:
        return (
            self.live is not None and self.expected is not None and is_same(cleaned(self.expected), cleaned(self.live))
        )


@dataclass(frozen=True, slots=True)
class ObjectWriter:
    """Writes as the identity of `cluster` until `end()` (time.monotonic); `owner` is named on what is written.

    What `helm_release` holds is taken from it before it is adopted.
    """

    cluster: ClusterClient
    field_manager: str
    end: Callable[[], float]
    owner: RevisionOwner | None = None
    helm_release: HelmRelease | None = None

    def write(self, job: Job) -> ObjectOutcome:
        """Do what the job plans. Of deliberate errors raises only Withheld: a failure is an outcome.

        An outcome with a uid says that the object exists and is ours, whether it succeeded or not.
        """
        ref, action = job.manifest.ref, job.planned.action
        try:
            return self._update_tracked(job) if job.uid else self._create(job)
        except Withheld:
            raise
        except PratiqueError as exc:
            uid = "" if job.is_adoption else job.uid
            return ObjectOutcome(ref, action, OutcomeState.FAILED, str(exc), uid, server_words=exc.server_words)

    def delete(self, ref: ObjectRef, planned: PlannedAction) -> None:
        """Delete the object that was planned to be; `ref` is in the version to ask for.

        Raises PreconditionFailed where another one has its name, Overtaken, and LosesData. In the state of the plan
        nobody has written it since: then it is not read before.
        """
        uid, version = planned.uid, planned.resource_version
        for _ in range(_REBASES):
            if not version:
                live = self.patiently(partial(self.cluster.get, ref))
                if live is None:
                    return
                if uid_of(live) != uid:
                    break
                self._check_not_overtaken(ref, live)
                self.check_not_kept(ref, live, planned.before)
                _check_takes_no_more(replace(planned, before=live), planned)
                version = version_of(live)
            try:
                self.patiently(partial(self.cluster.delete, ref, uid=uid, resource_version=version))
            except PreconditionFailed:
                version = ""
                continue
            return
        else:
            raise LosesData(f"{ref} changes faster than it can be looked at: whether its data is to stay is not known")
        self.patiently(partial(self.cluster.delete, ref, uid=uid))

    def check_not_kept(self, ref: ObjectRef, live: JsonObject, before: JsonObject | None = None) -> None:
        """Raise LosesData where the object, about to be deleted, says by now that it is to be kept (S39).

        What it said `before`, the plan has judged: Argo CD's `Delete=false` keeps nothing that a version drops.
        """
        words = keep_words(live)
        if words and words != keep_words(before):
            raise LosesData(f"{ref} is to be kept since the plan was made", status=409, server_words=f"it says {words}")

    def release(self, ref: ObjectRef, uid: str) -> None:
        """Take our tracking from an object that stays and is not ours from now on, so that anybody may adopt it.

        One that somebody made again since is left as it is. Raises Overtaken.
        """
        for _ in range(_REBASES):
            live = self.patiently(lambda: self.cluster.get(ref))
            tracking = Tracking.on(live or {})
            if live is None or uid_of(live) != uid or not tracking:
                return
            self._check_not_overtaken(ref, live)
            meta = {"name": ref.name, "namespace": ref.namespace, "resourceVersion": version_of(live)}
            part = {"apiVersion": live["apiVersion"], "kind": ref.kind, "metadata": {**meta, **tracking.taken_away()}}
            try:
                self.patiently(partial(self.cluster.merge, part, field_manager=self.field_manager))
            except PreconditionFailed:
                continue
            return
        raise PreconditionFailed(f"{ref} changes faster than it can be written", status=409)

    def check_creatable(self, manifest: Manifest) -> None:
        """Raise PreconditionFailed where what is about to be deleted to be made anew could not be made now."""

        def tried() -> None:
            if found := creation_refusal(self.cluster, manifest, field_manager=self.field_manager):
                raise found

        try:
            self.patiently(tried, catching_up=(Forbidden,) if _waits_for_others(manifest.ref) else ())
        except ClusterError as exc:
            words = refusal_words(manifest.ref, exc)
            raise PreconditionFailed(words, status=exc.status, server_words=exc.server_words) from exc

    def patiently(self, call: Callable[[], T], *, catching_up: tuple[type[PratiqueError], ...] = ()) -> T:
        """`call`, again after failures that pass by themselves: until the deadline, or briefly for `catching_up`."""
        pause, began = FIRST_PAUSE_SECONDS, time.monotonic()
        while True:
            try:
                return call()
            except Unreachable as exc:
                wait = max(pause, exc.retry_after_seconds)
                if time.monotonic() + wait > self.end():
                    raise
            except catching_up:
                wait = pause
                if time.monotonic() + wait > min(self.end(), began + CATCH_UP_SECONDS):
                    raise
            time.sleep(wait)
            pause = min(pause * 2, MAX_PAUSE_SECONDS)

    def _apply(
        self, job: Job, uid: str, resource_version: str, *, dry_run: bool = False, force: bool = False
    ) -> Applied:
        """Forced are dry-runs only."""
        tracking = job.found or Tracking.of(job.nonce, self.owner)
        body = body_of(job.manifest, tracking=tracking, uid=uid, resource_version=resource_version)
        # What was deleted to make room is counted in its quota for a moment longer.
        is_late = _waits_for_others(job.manifest.ref) or job.planned.action is Action.REPLACE or is_remade(job.planned)
        catching_up = (Forbidden, UnknownKind) if is_late else (UnknownKind,)
        try:
            return self.patiently(
                lambda: self.cluster.apply(
                    body, field_manager=self.field_manager, dry_run=dry_run, force=force and dry_run
                ),
                catching_up=catching_up,
            )
        except InvalidObject as exc:
            if not uid or not field_owners.is_of_old_version(exc):
                raise
        ref = job.manifest.ref
        self.patiently(lambda: field_owners.rewrite(self.cluster, ref, uid=uid, field_manager=self.field_manager))
        raise PreconditionFailed(f"{ref}: {field_owners.WORDS}", status=409)

    def _create(self, job: Job) -> ObjectOutcome:
        for _ in range(_REBASES):
            try:
                expected = job.planned.after if job.planned.is_proved else self._dry_run(job, "", MUST_NOT_EXIST)
                applied = self._apply(job, "", MUST_NOT_EXIST)
            except AlreadyExists as exc:
                live = self.patiently(lambda: self.cluster.get(job.manifest.ref))
                if live is None:  # another conflict, such as that of a quota: nothing stands in the way
                    time.sleep(FIRST_PAUSE_SECONDS)
                    continue
                # A create-only apply met an object: it is ours if an earlier try of ours wrote its nonce, else
                # somebody's.
                if nonce_of(live) == job.nonce:
                    return self._update(job, uid_of(live))
                owner = "; ".join(filter(None, [made_for(live), owner_words(live)]))
                words = f"{exc}; it does not belong to this deployment"
                return ObjectOutcome(
                    job.manifest.ref, job.planned.action, OutcomeState.FAILED, words, server_words=owner
                )
            return self._outcome(job, applied, expected)
        raise PreconditionFailed(f"{job.manifest.ref} meets conflicts faster than it can be written", status=409)

    def _update_tracked(self, job: Job) -> ObjectOutcome:
        """Update what the uid proves to be ours; tracking that somebody wrote over ours proves nothing, and stays.

        So does what another controller is there to write.
        """
        job = self._taken_over(job) if job.is_adoption and self.helm_release else job
        try:
            return self._update(job, job.uid)
        except FieldConflict:
            live = self.patiently(lambda: self.cluster.get(job.manifest.ref)) or {}
            found = None if job.is_adoption else Tracking.on(live)
            again = replace(job, found=found or None, manifest=self._without_theirs(job, live))
            if again == job:
                raise
            return self._update(again, job.uid)

    def _taken_over(self, job: Job) -> Job:
        """Have the Helm release let go of the object, as planned; where it has, or never held it, nothing is done.

        Raises PreconditionFailed where that would now change more than was planned.
        """
        for _ in range(_REBASES):
            live = self._live(job, job.uid)
            if not is_held_by(live, self.helm_release):
                return replace(job, is_handed_over=True)
            sent = replace(job, manifest=self._without_theirs(job, live))
            try:  # what a forced apply would make of it, which nobody does
                forced = self._apply(sent, job.uid, version_of(live), dry_run=True, force=True).object
            except PreconditionFailed:
                continue
            _check_still_planned(job, _View(version_of(live), without_marks(forced, self.field_manager), live))
            if others := managers_losing_fields(live, forced, self.field_manager):
                words = f"{job.manifest.ref}: fields of it belong to other managers than Helm"
                raise FieldConflict(words, status=409, server_words=", ".join(others))
            part = handover_patch(live, forced, self.field_manager)
            try:
                self.patiently(partial(self.cluster.merge, part, field_manager=self.field_manager))
            except PreconditionFailed:
                continue
            return replace(job, is_handed_over=True)
        raise PreconditionFailed(f"{job.manifest.ref} changes faster than it can be written", status=409)

    def _without_theirs(self, job: Job, live: JsonObject) -> Manifest:
        return self.patiently(lambda: without_theirs(self.cluster, job.manifest, live, manager=self.field_manager))

    def _update(self, job: Job, uid: str) -> ObjectOutcome:
        """Apply onto the state that the plan was made on; if it has moved, only what was planned may still change."""
        planned = job.planned
        is_as_planned = planned.is_proved and planned.uid == uid and not (job.is_resumed or job.is_handed_over)
        view = _View(planned.resource_version, planned.after) if is_as_planned else None
        for _ in range(_REBASES):
            if view is None:
                view = self._fresh_view(job, uid)
                if view is None:
                    continue
                if view.changes_nothing and not (job.is_adoption and nonce_of(view.live or {}) != job.nonce):
                    # Of a Secret nobody is told (S38).
                    is_told = planned.action is Action.UPDATE and job.manifest.ref.group_kind != SECRET
                    state = OutcomeState.UNCHANGED if is_told else OutcomeState.DONE
                    live = view.live or {}
                    return ObjectOutcome(job.manifest.ref, planned.action, state, "", uid_of(live), version_of(live))
                _check_still_planned(job, view)
            try:
                applied = self._apply(job, uid, view.version)
            except PreconditionFailed:
                view = None
                continue
            return self._outcome(job, applied, view.expected)
        raise PreconditionFailed(f"{job.manifest.ref} changes faster than it can be written", status=409)

    def _fresh_view(self, job: Job, uid: str) -> _View | None:
        """The live object and what apply would make of it; None if it changed between the two."""
        live = self._live(job, uid)
        if (
            job.is_adoption
            and nonce_of(live) != job.nonce
            and (holder := holder_of(live, is_let_go=job.is_handed_over))
        ):
            words = f"{job.manifest.ref} is held by something else since the plan was made"
            raise PreconditionFailed(words, status=409, server_words=f"held by {holder}")
        try:
            return _View(version_of(live), self._dry_run(job, uid, version_of(live)), live)
        except PreconditionFailed:
            return None

    def _live(self, job: Job, uid: str) -> dict[str, Any]:
        live = self.patiently(lambda: self.cluster.get(job.manifest.ref), catching_up=(UnknownKind,))
        if live is None or uid_of(live) != uid:
            found = "was made again by somebody else" if live else "is gone"
            raise PreconditionFailed(f"{job.manifest.ref} {found} since the plan was made", status=409)
        self._check_not_overtaken(job.manifest.ref, live)
        return live

    def _check_not_overtaken(self, ref: ObjectRef, live: JsonObject) -> None:
        """What our own manager wrote is no conflict: a worker that stood still would write over its successor."""
        newer = self.owner.newer_on(live) if self.owner else 0
        if newer and has_named_owner(live, self.field_manager):
            words = f"was written for revision {newer} since this apply began: what is older leaves it"
            raise Overtaken(f"{ref} {words}", status=409)

    def _dry_run(self, job: Job, uid: str, version: str) -> JsonObject | None:
        """What the server would make of it now; None where a webhook with side effects forbids to ask."""
        try:
            return self._apply(job, uid, version, dry_run=True).object
        except InvalidObject as exc:
            if NO_DRY_RUN in exc.server_words:
                return None
            raise

    def _outcome(self, job: Job, applied: Applied, expected: JsonObject | None) -> ObjectOutcome:
        """The outcome of a write that the server took, held against what was planned (S10)."""
        wished = job.manifest.body
        wrong = altered(expected, applied.object, wished) if expected is not None else []
        if not job.planned.is_proved:
            wrong = [*wrong, *lost(wished, applied.object)]
        return ObjectOutcome(
            job.manifest.ref,
            job.planned.action,
            OutcomeState.FAILED if wrong else OutcomeState.DONE,
            ALTERED if wrong else "",
            uid_of(applied.object),
            version_of(applied.object),
            applied.warnings,
            altered_words(wrong),
        )


def _waits_for_others(ref: ObjectRef) -> bool:
    """Whether it may be refused for want of what was written a moment ago: a role, or the account or class of a pod."""
    return ref.group == RBAC_GROUP or ref.group_kind == POD


def _check_takes_no_more(now: PlannedAction, planned: PlannedAction) -> None:
    """Raise LosesData where `now` would take data along that the plan did not."""
    if words := takes_more(now, planned):
        raise LosesData(f"{words}; nobody was shown that, because it changed since the plan was made", status=409)


def _check_still_planned(job: Job, view: _View) -> None:
    """Raise PreconditionFailed where applying now would change something that the plan did not, and LosesData."""
    planned = job.planned
    if planned.action not in {Action.UPDATE, Action.ADOPT}:
        return
    _check_takes_no_more(replace(planned, before=view.live, after=view.expected or job.manifest.body), planned)
    if not planned.is_proved or view.expected is None:
        return
    allowed = changes(planned.before, planned.after)
    now = changes(*masked(view.live, view.expected))
    extra = sorted(".".join(path) for path, value in now.items() if path not in allowed or allowed[path] != value)
    if extra:
        words = f"{job.manifest.ref} was changed since the plan was made; applying now would change more than planned"
        raise PreconditionFailed(words, status=409, server_words=f"it would also change {', '.join(extra)}")
