"""What an apply did is written in batches with the claim, lost by nothing but a kill, and told as the request says it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.ledger import claims
from approvals.models import Outcome, Request
from approvals.steps.records import notes
from approvals.steps.records.notes import Notes, words_of
from provisioner.errors import TryLater
from provisioner.values import Action, ObjectRef, OutcomeState
from provisioner.values import ObjectOutcome as Done
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

WORKER = "at-work"


def noting(request: Request, step: str = Outcome.Step.APPLY) -> Notes:
    return Notes(request, partial(claims.renew, request.pk, WORKER), step)


@pytest.fixture
def request_at_work(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = Request.objects.get()
    assert claims.claim(request.pk, WORKER)
    return request


def done(number: int, state: OutcomeState = OutcomeState.DONE, message: str = "") -> Done:
    return Done(ObjectRef("", "v1", "ConfigMap", "harbour", f"c{number}"), Action.CREATE, state, message)


def written(request: Request) -> list[tuple[str, str, str]]:
    return [(one.object.rpartition("/")[2], one.state, one.message) for one in request.outcomes.all()]


def test_every_outcome_is_written_in_the_order_in_which_it_came(request_at_work: Request) -> None:
    many = notes.BATCH * 2 + 3
    assert noting(request_at_work).keep(done(number) for number in range(many)) == []
    assert written(request_at_work) == [(f"c{number}", "done", "") for number in range(many)]
    assert [one.position for one in request_at_work.outcomes.all()] == list(range(many))


def test_what_failed_and_what_was_not_tried_is_handed_back(request_at_work: Request) -> None:
    bad, left = done(1, OutcomeState.FAILED, "no"), done(2, OutcomeState.SKIPPED, "not tried")
    assert noting(request_at_work).keep([done(0), bad, left]) == [bad, left]


def test_the_last_try_counts_and_an_object_keeps_its_place(request_at_work: Request) -> None:
    noting(request_at_work).keep([done(0, OutcomeState.FAILED, "refused"), done(1)])
    noting(request_at_work).keep([done(0), done(2), done(1)])
    assert written(request_at_work) == [("c0", "done", ""), ("c1", "done", ""), ("c2", "done", "")]


def test_putting_back_is_told_apart_from_applying(request_at_work: Request) -> None:
    noting(request_at_work).keep([done(0)])
    noting(request_at_work, Outcome.Step.RESTORE).keep([done(0)])
    assert [(one.step, one.position) for one in request_at_work.outcomes.all()] == [("apply", 0), ("restore", 1)]


def test_each_outcome_names_the_phase_of_its_kind_and_none_of_what_is_deleted(request_at_work: Request) -> None:
    role = ObjectRef("rbac.authorization.k8s.io", "v1", "ClusterRole", "", "robot")
    gone = Done(role, Action.DELETE, OutcomeState.DONE)
    noting(request_at_work).keep([done(0), Done(role, Action.UPDATE, OutcomeState.DONE)])
    assert [one.phase for one in request_at_work.outcomes.all()] == ["configuration", "roles"]
    noting(request_at_work, Outcome.Step.RESTORE).keep([gone])
    assert request_at_work.outcomes.get(step="restore").phase == ""


def test_what_came_before_an_error_is_written(request_at_work: Request) -> None:
    def broken() -> Iterator[Done]:
        yield done(0)
        raise TryLater("the API server did not answer")

    with pytest.raises(TryLater, match="did not answer"):
        noting(request_at_work).keep(broken())
    assert written(request_at_work) == [("c0", "done", "")]


def test_before_a_wait_everything_so_far_can_be_seen(request_at_work: Request) -> None:
    kept = noting(request_at_work)

    def waiting() -> Iterator[Done]:
        yield done(0)
        assert written(request_at_work) == []
        kept.write()
        assert written(request_at_work) == [("c0", "done", "")]
        yield done(1)

    kept.keep(waiting())
    assert len(written(request_at_work)) == 2


def test_after_a_second_nothing_waits_any_longer(request_at_work: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "SECONDS", 0.0)

    def slow() -> Iterator[Done]:
        yield done(0)
        assert written(request_at_work) == [("c0", "done", "")]

    noting(request_at_work).keep(slow())


def test_who_lost_the_claim_stops_and_writes_nothing(request_at_work: Request) -> None:
    asked = []

    def slow() -> Iterator[Done]:
        for number in range(notes.BATCH * 3):
            asked.append(number)
            yield done(number)

    Request.objects.update(claimed_by="next")
    with pytest.raises(claims.LostClaim):
        noting(request_at_work).keep(slow())
    assert len(asked) == notes.BATCH
    assert written(request_at_work) == []


@pytest.mark.parametrize("step", [Outcome.Step.APPLY, Outcome.Step.OPTIONAL])
def test_the_time_at_work_is_counted_in_the_row_whoever_works(request_at_work: Request, step: str) -> None:
    for _ in range(2):
        kept = noting(request_at_work, step)
        kept._counted_at -= 100.0
        kept.write()
        kept.write()
    request_at_work.refresh_from_db()
    assert round(request_at_work.worked_seconds) == (200 if step == Outcome.Step.APPLY else 0)


def test_what_is_asked_before_a_phase_is_no_time_at_work(
    request_at_work: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a look of a minute before each phase would use up the deadline of what merely waits."""
    now = 1000.0
    monkeypatch.setattr(notes, "time", SimpleNamespace(monotonic=lambda: now))
    kept = noting(request_at_work)
    now += 100.0

    def look() -> None:
        nonlocal now
        now += 60.0
        raise TryLater("too many to see")

    with pytest.raises(TryLater):
        kept.begin_phase(look)
    kept.write()
    request_at_work.refresh_from_db()
    assert request_at_work.worked_seconds == 100.0


def test_hundreds_cost_a_handful_of_queries(request_at_work: Request) -> None:
    with CaptureQueriesContext(connection) as counted:
        noting(request_at_work).keep(done(number) for number in range(255))
    assert len(counted) <= 8


FAILED = OutcomeState.FAILED


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        pytest.param(
            [
                done(0, FAILED, "the quota is used up"),
                *(done(number, OutcomeState.SKIPPED, "not tried: phase config: it failed") for number in range(1, 13)),
            ],
            "ConfigMap harbour/c0: the quota is used up; 12 objects not tried: phase config: it failed",
            id="what was not tried is counted by its reason",
        ),
        pytest.param(
            [done(number, FAILED, "refused") for number in range(5)],
            "ConfigMap harbour/c0, ConfigMap harbour/c1, ConfigMap harbour/c2 and 2 more objects: refused",
            id="what failed for one reason is told together",
        ),
        pytest.param(
            [done(number, FAILED, f"reason {number}") for number in range(7)],
            "; ".join(f"ConfigMap harbour/c{number}: reason {number}" for number in range(5)),
            id="only the first reasons are told",
        ),
    ],
)
def test_what_failed_is_told_in_few_words(outcomes: list[Done], words: str) -> None:
    assert words_of(outcomes) == words
