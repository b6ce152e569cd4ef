"""A worker that died is counted on the row; what killed one is worked on alone, and then given up in words."""

from __future__ import annotations

import signal
from functools import partial

import pytest
from django.utils import timezone

from approvals import lifecycle
from approvals.audit import MACHINE
from approvals.ledger import claims
from approvals.ledger.moves import locked, move
from approvals.lifecycle import WORKABLE, Event, State
from approvals.models import AuditEntry, BundleDeployment, Request, Revision
from approvals.steps import advance
from approvals.steps.records.notes import Notes
from approvals.working import claim_loop, subprocess_main, subprocesses, work
from approvals.working.subprocesses import End
from provisioner.errors import Unreachable
from provisioner.values import Action, ObjectOutcome, ObjectRef, OutcomeState
from tests.approvals.working.deaths import KILLED, LONG_AGO, Alone, deaths, lapse, revision
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

DONE = End(is_done=True)


def die(request: Request, worker: str = "dead") -> None:
    assert claims.claim(request.pk, worker)
    lapse()


def test_S26_a_claim_that_lapsed_counts_as_its_workers_death_for_whoever_takes_it_over(request_: Request) -> None:
    die(request_)
    assert deaths(request_) == 0, "nobody has noticed yet"
    assert claims.claim(request_.pk, "next")
    assert deaths(request_) == 1
    claims.release(request_.pk, "next")
    assert claims.claim(request_.pk, "third")
    assert deaths(request_) == 1, "who released it is alive"


def test_S26_a_move_sets_the_count_back(request_: Request) -> None:
    die(request_)
    claims.claim(request_.pk, "next")
    move(locked(request_.pk), Event.WITHDRAW, actor=MACHINE)
    assert deaths(request_) == 0


@pytest.mark.parametrize("state", sorted(WORKABLE))
def test_S26_the_table_lets_every_state_that_is_worked_on_fail(state: State) -> None:
    ways = [after for (before, _), after in lifecycle.TRANSITIONS.items() if before == state]
    assert State.FAILED in ways


def test_S26_the_first_death_is_followed_by_a_look_alone(
    request_: Request, processes: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    env: list[int] = []
    monkeypatch.setattr(advance.STEPS["preparing"], "run", lambda request, _: env.append(request.pk))
    die(request_)
    processes.ends = [DONE]
    advance.advance(request_.pk)
    assert (processes.looked, env) == ([("advance", request_.pk)], [])
    request_.refresh_from_db()
    assert (request_.state, request_.worker_deaths, request_.claimed_by) == ("preparing", 1, "")


def test_S26_the_second_death_that_was_seen_fails_the_request_in_words(request_: Request, processes: Alone) -> None:
    die(request_)
    processes.ends = [KILLED]
    advance.advance(request_.pk)
    request_.refresh_from_db()
    assert (request_.state, request_.problem_code) == ("failed", "worker-died")
    assert request_.problem == (
        "the worker died 2 times while preparing its report. The last process worked on nothing else and was killed by signal 9 "
        "(SIGKILL), as Linux does where memory runs out. It will not be retried. Make the bundle smaller or "
        "simpler, or ask the operator to raise PRATIQUE_ALONE_MEMORY_MIB; then request it again"
    )
    entry = AuditEntry.objects.get(verb="request.could_not_prepare")
    assert entry.facts["code"] == "worker-died"


def test_S26_a_worker_reads_what_is_foreign_in_a_process_of_its_own_and_tries_once_more_what_died_there(
    request_: Request, processes: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_loop, "has_begun", lambda: True)
    processes.ends = [KILLED, KILLED]
    advance.advance(request_.pk)
    assert processes.suspects == [False, True]
    request_.refresh_from_db()
    assert (request_.state, request_.problem_code) == ("failed", "worker-died")


def test_S26_what_was_prepared_apart_is_evaluated_in_the_worker(
    request_: Request, processes: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepared(*_: object) -> End:
        world.in_review(request_)
        return DONE

    env: list[str] = []
    monkeypatch.setattr(claim_loop, "has_begun", lambda: True)
    monkeypatch.setattr(advance.STEPS["in_review"], "run", lambda request, _: env.append(request.state))
    processes.ends = [prepared]
    advance.advance(request_.pk)
    assert (len(processes.looked), env) == (1, ["in_review"])


def test_S26_a_death_that_nobody_saw_is_tried_once_more_and_the_third_fails_it(
    request_: Request, processes: Alone
) -> None:
    die(request_)
    die(request_, "a whole node, with who was alone on it")
    processes.ends = [lambda _, __: lapse()]
    advance.advance(request_.pk)
    request_.refresh_from_db()
    assert (request_.state, request_.worker_deaths) == ("preparing", 2)
    die(request_)
    advance.advance(request_.pk)
    request_.refresh_from_db()
    assert (request_.state, request_.problem_code) == ("failed", "worker-died")
    assert "the worker died 3 times" in request_.problem
    assert "The cause is unknown" in request_.problem


@pytest.mark.parametrize(
    ("state", "event"), [("in_review", "give_up"), ("approved", "give_up"), ("stale", "could_not_prepare")]
)
def test_S26_what_kills_while_nothing_is_written_fails_without_a_trace(
    request_: Request, processes: Alone, state: str, event: str
) -> None:
    world.in_review(request_)
    Request.objects.update(state=state)
    die(request_)
    processes.ends = [KILLED]
    advance.advance(request_.pk)
    request_.refresh_from_db()
    assert (request_.state, request_.problem_code) == ("failed", "worker-died")
    assert AuditEntry.objects.filter(verb=f"request.{event}").exists()
    assert not Revision.objects.exists()


@pytest.mark.parametrize("on_failure", ["", "RestorePrevious"])
def test_S26_what_kills_in_the_midst_of_an_apply_leaves_the_previous_revision_known(
    request_: Request, processes: Alone, on_failure: str
) -> None:
    world.in_review(request_)
    Request.objects.update(state="applied", settled_at=timezone.now())
    first = revision(request_, 1, "active")
    deployment = request_.deployment
    BundleDeployment.objects.update(active_revision=first)
    second = Request.objects.create(
        deployment=deployment,
        cluster_id=deployment.cluster_id,
        number=2,
        generation=2,
        spec={**request_.spec, "onFailure": on_failure},
        state="applying",
        subject_digest="s",
        content=request_.content or Request.objects.get(pk=request_.pk).content,
        from_revision=first,
        options_digest=deployment.options_digest,
        created_at=timezone.now(),
        changed_at=timezone.now(),
        expires_at=timezone.now() + LONG_AGO,
    )
    revision(second, 2, "applying")
    die(second)
    processes.ends = [KILLED, End()]
    advance.advance(second.pk)
    second.refresh_from_db()
    deployment.refresh_from_db()
    assert second.state == ("restoring" if on_failure else "failed")
    assert (second.worker_deaths, second.problem_code) == (0, "worker-died")
    assert second.revision.state == "failed"
    assert deployment.active_revision == first
    assert "while applying it" in second.problem


def test_S26_what_was_asked_for_again_starts_from_nothing(env: World, request_: Request, processes: Alone) -> None:
    die(request_)
    processes.ends = [KILLED]
    advance.advance(request_.pk)
    obj = world.seen(
        "strimzi", world.spec(), uid=request_.deployment.uid, annotations={"core.rukpak.io/ask-again": "1"}
    )
    world.submit_spec(env.cluster, obj, env.rita)
    again = Request.objects.get(number=2)
    assert (again.state, again.worker_deaths) == ("preparing", 0)


def test_S26_a_step_that_comes_through_sets_the_count_back_and_one_that_waits_does_not(
    request_: Request, processes: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_a_process(one: work.Work, worker: str) -> End:
        one.look(worker)
        one.come_through(worker)
        return DONE

    def waits(*_: object) -> None:
        raise Unreachable("the registry is away")

    world.in_review(request_)
    monkeypatch.setattr(advance.STEPS["in_review"], "run", waits)
    die(request_)
    processes.ends = [in_a_process, in_a_process]
    advance.advance(request_.pk)
    assert deaths(request_) == 1
    monkeypatch.setattr(advance.STEPS["in_review"], "run", lambda *_: None)
    advance.advance(request_.pk)
    assert deaths(request_) == 0
    assert len(processes.looked) == 2


def test_S26_an_apply_that_came_further_than_ever_sets_the_count_back(request_: Request) -> None:
    def noting(worker: str) -> Notes:
        request_.refresh_from_db()
        return Notes(request_, partial(claims.renew, request_.pk, worker))

    def done(number: int) -> ObjectOutcome:
        return ObjectOutcome(
            ObjectRef("", "v1", "ConfigMap", "harbour", f"c{number}"), Action.CREATE, OutcomeState.DONE
        )

    claims.claim(request_.pk, "one")
    noting("one").keep([done(1)])
    lapse()
    claims.claim(request_.pk, "two")
    noting("two").keep([done(1)])
    assert deaths(request_) == 1, "so far somebody has come before"
    noting("two").keep([done(1), done(2)])
    assert deaths(request_) == 0


def test_S26_a_process_that_cannot_be_started_is_no_death(request_: Request, processes: Alone) -> None:
    def fails(*_: object) -> End:
        raise subprocesses.CouldNotStart("no process could be started for it: out of pids")

    die(request_)
    processes.ends = [fails]
    advance.advance(request_.pk)
    request_.refresh_from_db()
    assert (request_.state, request_.worker_deaths, request_.problem_code) == ("preparing", 1, "could-not-start")
    assert request_.look_again_at


def test_S26_a_step_that_runs_out_of_memory_here_is_worked_on_alone(
    request_: Request, processes: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hungry(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(advance.STEPS["preparing"], "run", hungry)
    advance.advance(request_.pk)
    assert (deaths(request_), processes.looked) == (1, [])
    processes.ends = [DONE]
    advance.advance(request_.pk)
    assert processes.looked == [("advance", request_.pk)]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, ""),
        (subprocess_main.RAISED, ""),
        (subprocess_main.STOPPED, ""),
        (subprocess_main.OUT_OF_MEMORY, "needed more than 1024 MiB of memory (PRATIQUE_ALONE_MEMORY_MIB)"),
        (-signal.SIGALRM, "hung, so that its claim lapsed after 10 s (PRATIQUE_CLAIM_SECONDS)"),
        (subprocess_main.STOOD_STILL, "made no progress for 15 minutes (PRATIQUE_STEP_MINUTES)"),
        (-signal.SIGSEGV, "was killed by signal 11 (Segmentation fault)"),
        (2, "ended with exit code 2"),
    ],
)
def test_S26_how_a_process_ended_is_said_in_words(code: int, words: str) -> None:
    assert subprocesses.describe_exit(code) == words
