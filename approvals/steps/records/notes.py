"""What an apply did to each object, written down in small batches together with the claim.

A batch that a dying worker did not write is no loss: whoever carries on goes through every object again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import F, Max

from approvals import working
from approvals.clock import database_now
from approvals.errors import LostClaim
from approvals.ledger.process_claims import claim_seconds
from approvals.models import Outcome, Request
from approvals.models.request import OBJECT_LENGTH
from provisioner.phases import phase_of
from provisioner.review.base.record import ref_record
from provisioner.sentences import number, some
from provisioner.values import Action, ObjectOutcome, OutcomeState
from provisioner.values import ObjectOutcome as Done

NOT_ADOPTED = "it belongs to someone else and was not adopted; the reason is shown only to people who may get it"
# No statement has more rows; mostly it is time that says when.
BATCH = 1000
# As often as the page asks.
SECONDS = 2.0
COUNTED_SECONDS = 1.0
# How many times a claim is renewed before it would lapse.
PULSES = 4
_LATER = ["action", "state", "message", "warnings", "server_words", "about", "at"]


class Notes:
    """The outcomes of one step of a request; `write` is called for the last ones, and before a wait.

    `hold` renews the claim under which the step is done, and says False where that has passed to another worker.
    """

    def __init__(self, request: Request, hold: Callable[[], bool], step: str = Outcome.Step.APPLY):
        self._request = request
        self._hold = hold
        self._step = step
        self._waiting: dict[str, tuple[Done, datetime]] = {}
        self._written_at = self._checked_at = self._busy_at = self._counted_at = time.monotonic()

    def keep(self, outcomes: Iterable[Done]) -> list[Done]:
        """Do what `outcomes` does, keeping each, also where it ends by raising; what failed or was not tried.

        Raises LostClaim, and nothing more is done, where the claim has passed to another worker.
        """
        failed: list[Done] = []
        try:
            for each in outcomes:
                outcome = told(each)
                self.take(outcome)
                if outcome.state in (OutcomeState.FAILED, OutcomeState.SKIPPED):
                    failed.append(outcome)
        finally:
            self.write()
        return failed

    def take(self, outcome: Done) -> None:
        """Keep one more, and write when enough have come or the last writing is long ago."""
        self.go_on()
        self._waiting[str(outcome.ref)[:OBJECT_LENGTH]] = (outcome, database_now())
        if len(self._waiting) >= BATCH or self._age() >= min(SECONDS, _pulse_seconds()):
            self.write()

    def go_on(self) -> None:
        """Something is done again: what was left while nothing was is taken back before it."""
        working.go_on()
        self._busy_at = time.monotonic()

    @contextmanager
    def off_the_clock(self) -> Iterator[None]:
        """What is asked, and waited for, before anything is done again is no time at work."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._counted_at += time.monotonic() - began

    def pulse(self, check: Callable[[], None]) -> None:
        """For every few seconds of a wait: hold on to the claim where that was long ago; as rarely as it lapses, check.

        A check asks the cluster for everybody who approved: more often would cost more than the wait.
        """
        if self._age() >= _pulse_seconds():
            self.write()
        working.rest(time.monotonic() - self._busy_at)
        if time.monotonic() - self._checked_at >= claim_seconds():
            check()
            self._checked_at = time.monotonic()

    def _age(self) -> float:
        return time.monotonic() - self._written_at

    @transaction.atomic(durable=True)
    def write(self) -> None:
        """Write down what is waiting and hold on to the claim, or raise LostClaim and do neither."""
        if not self._hold():
            raise LostClaim
        self._count_time()
        if self._waiting:
            self._note_progress()
            first = self._first_place()
            Outcome.objects.bulk_create(
                [self._row(name, first + number) for number, name in enumerate(self._waiting)],
                update_conflicts=True,
                unique_fields=["request", "step", "object"],
                update_fields=_LATER,
            )
        self._waiting.clear()
        self._written_at = time.monotonic()

    def _count_time(self) -> None:
        """In the row, so that whoever goes on has what is left of the deadline; less than a second is no matter."""
        spent = time.monotonic() - self._counted_at
        if spent >= COUNTED_SECONDS and self._step in (Outcome.Step.APPLY, Outcome.Step.RESTORE):
            self._counted_at += spent
            Request.objects.filter(pk=self._request.pk).update(worked_seconds=F("worked_seconds") + spent)

    def _note_progress(self) -> None:
        """Where a worker died of this step: an object that nobody had come to before is further than that."""
        if not self._request.worker_deaths:
            return
        known = self._request.outcomes.filter(step=self._step, object__in=list(self._waiting)).count()
        if known < len(self._waiting):
            Request.objects.filter(pk=self._request.pk).update(worker_deaths=0)
            self._request.worker_deaths = 0

    def _first_place(self) -> int:
        """After all that is written; what is written again keeps the place that it has."""
        last = self._request.outcomes.aggregate(last=Max("position"))["last"]
        return 0 if last is None else last + 1

    def _row(self, name: str, position: int) -> Outcome:
        outcome, at = self._waiting[name]
        return Outcome(
            request=self._request,
            step=self._step,
            object=name,
            position=position,
            phase=_phase(outcome),
            action=outcome.action,
            state=outcome.state,
            message=outcome.message,
            warnings=list(outcome.warnings),
            server_words=outcome.server_words,
            about=ref_record(outcome.about or outcome.ref),
            at=at,
        )


def told(outcome: Done) -> Done:
    """As everybody may know it: why someone else's object was not adopted tells what it holds, so that it is said only
    to people who may get it (S09)."""
    if outcome.action is not Action.ADOPT or outcome.state is not OutcomeState.FAILED:
        return outcome
    said = "; ".join(filter(None, [outcome.message, outcome.server_words]))
    return replace(outcome, message=NOT_ADOPTED, server_words=said, about=outcome.ref)


def _phase(outcome: Done) -> str:
    """ "" of what is deleted: that comes after all phases, in the reverse order."""
    return "" if outcome.action is Action.DELETE else phase_of(outcome.ref)


def _pulse_seconds() -> float:
    return claim_seconds() / PULSES


TOLD = 5
NAMED = 3


def words_of(failed: Sequence[ObjectOutcome]) -> str:
    """The reasons for which objects failed, then how many were not tried and why; at most TOLD of each."""
    wrong = [one for one in failed if one.state is OutcomeState.FAILED]
    left = [one for one in failed if one.state is OutcomeState.SKIPPED]
    told = [f"{some(names, NAMED, noun='objects')}: {words}" for words, names in list(_by_reason(wrong).items())[:TOLD]]
    told += [
        f"{number(len(names), 'object')} {words or 'not tried'}"
        for words, names in list(_by_reason(left).items())[:TOLD]
    ]
    return "; ".join(told)


def _by_reason(outcomes: Sequence[ObjectOutcome]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in outcomes:
        found.setdefault(one.message, []).append(str(one.ref))
    return found
