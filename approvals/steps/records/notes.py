"""What an apply did to each object, written down in small batches together with the claim.

A batch that a dying worker did not write is no loss: whoever carries on goes through every object again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import F, Max

from approvals import working
from approvals.clock import database_now
from approvals.errors import LostClaim
from approvals.ledger import made_values
from approvals.ledger.process_claims import claim_seconds
from approvals.models import Outcome, Request
from approvals.models.request import OBJECT_LENGTH
from provisioner.phases import phase_of
from provisioner.review.base.record import ref_record
from provisioner.sentences import number, some
from provisioner.values import Action, OutcomeState
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
            for done in outcomes:
                outcome = self._without_values(told(done))
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

    def _without_values(self, outcome: Done) -> Done:
        """It may quote what a chart made up, which nobody is shown (S44)."""
        words = [outcome.message, outcome.server_words, *outcome.warnings]
        if not any(words):
            return outcome
        message, server_words, *warnings = made_values.without_values(self._request.deployment_id, words)
        return replace(outcome, message=message, server_words=server_words, warnings=tuple(warnings))

    def go_on(self) -> None:
        """Something is done again: what was left while nothing was is taken back before it."""
        working.go_on()
        self._busy_at = time.monotonic()

    def begin_phase(self, check: Callable[[], None]) -> None:
        """Have `check` ask what is asked before anything is done again; that, and what it waits for, is no time at
        work.
        """
        began = time.monotonic()
        try:
            self.go_on()
            check()
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
        row = Request.objects.filter(pk=self._request.pk)
        # Time is kept in the row, so that another worker has what is left of the deadline.
        spent = time.monotonic() - self._counted_at
        if spent >= COUNTED_SECONDS and self._step in (Outcome.Step.APPLY, Outcome.Step.RESTORE):
            self._counted_at += spent
            row.update(worked_seconds=F("worked_seconds") + spent)
        if self._waiting and self._request.worker_deaths:
            # A worker died of this step: an object that nobody had come to before is further than that.
            known = self._request.outcomes.filter(step=self._step, object__in=list(self._waiting)).count()
            if known < len(self._waiting):
                row.update(worker_deaths=0)
                self._request.worker_deaths = 0
        if self._waiting:
            self._write_outcomes()
        self._waiting.clear()
        self._written_at = time.monotonic()

    def _write_outcomes(self) -> None:
        """Write what is waiting after all that is written; what is written again keeps the place that it has."""
        last = self._request.outcomes.aggregate(last=Max("position"))["last"]
        rows = [
            Outcome(
                request=self._request,
                step=self._step,
                object=name,
                position=position,
                # What is deleted has no phase: that comes after all phases, in the reverse order.
                phase="" if outcome.action is Action.DELETE else phase_of(outcome.ref),
                action=outcome.action,
                state=outcome.state,
                message=outcome.message,
                warnings=list(outcome.warnings),
                server_words=outcome.server_words,
                about=ref_record(outcome.about or outcome.ref),
                at=at,
            )
            for position, (name, (outcome, at)) in enumerate(self._waiting.items(), 0 if last is None else last + 1)
        ]
        Outcome.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["request", "step", "object"], update_fields=_LATER
        )


def told(outcome: Done) -> Done:
    """As everybody may know it: why someone else's object was not adopted tells what it holds, so that it is said only
    to people who may get it (S09)."""
    if outcome.action is not Action.ADOPT or outcome.state is not OutcomeState.FAILED:
        return outcome
    said = "; ".join(filter(None, [outcome.message, outcome.server_words]))
    return replace(outcome, message=NOT_ADOPTED, server_words=said, about=outcome.ref)


def _pulse_seconds() -> float:
    return claim_seconds() / PULSES


TOLD = 5
NAMED = 3


def words_of(failed: Sequence[Done]) -> str:
    """The reasons for which objects failed, then how many were not tried and why; at most TOLD of each."""
    wrong: dict[str, list[str]] = {}
    left: dict[str, list[str]] = {}
    for outcome in failed:
        by_reason = wrong if outcome.state is OutcomeState.FAILED else left
        by_reason.setdefault(outcome.message, []).append(str(outcome.ref))
    parts = [f"{some(names, NAMED, noun='objects')}: {words}" for words, names in list(wrong.items())[:TOLD]]
    for words, names in list(left.items())[:TOLD]:
        parts.append(f"{number(len(names), 'object')} {words or 'not tried'}")
    return "; ".join(parts)
