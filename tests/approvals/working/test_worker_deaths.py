"""A worker that died is counted on the row; what killed one is worked on alone, and then given up in words."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models import QuerySet
from django.utils import timezone

from approvals import jobs, lifecycle, tasks
from approvals.ledger import claims
from approvals.ledger.held import HELD
from approvals.ledger.moves import locked, move
from approvals.lifecycle import WORKABLE, Event, State
from approvals.models import AuditEntry, BundleDeployment, ChatDelivery, Cluster, Request, Revision, TaskClaim
from approvals.steps import advance
from approvals.steps.records.notes import Notes
from approvals.steps.running.correct import Correct
from approvals.watch import loop, skipping
from approvals.working import Heartbeat, apart, child, claim_loop, work
from approvals.working.apart import End
from provisioner.errors import Unreachable
from provisioner.values import Action, ObjectRef, Outcome, OutcomeState
from tests.approvals import world
from tests.approvals.conftest import World

LONG_AGO = timedelta(days=1)
KILLED = End(death="was killed by signal 9 (SIGKILL), as Linux does where memory runs out")
DONE = End(is_done=True)


@pytest.fixture
def request_(here: World) -> Request:
    world.wish(here.cluster, world.seen("strimzi", world.spec()), here.rita)
    return Request.objects.get()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    HELD.is_stopping = False
    HELD.let_go(lambda _: None)


class Alone:
    """Stands where a process would be started: what it came to is the test's to say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.ends: list[End | Callable[[work.Work, str], End | None]] = []
        self.looked: list[tuple[str, int]] = []
        self.suspects: list[bool] = []
        monkeypatch.setattr(claim_loop, "run_apart", self.run)

    def run(self, one: work.Work, worker: str, step: work.Step, *, is_suspect: bool) -> End | None:
        self.looked.append((one.task, one.key))
        self.suspects.append(is_suspect)
        end = self.ends.pop(0)
        return end if isinstance(end, End) else end(one, worker)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Alone:
    return Alone(monkeypatch)


def die(request: Request, worker: str = "dead") -> None:
    assert claims.claim(request.pk, worker)
    lapse()


def lapse() -> None:
    for model in (Request, BundleDeployment, TaskClaim):
        model.objects.exclude(claimed_until=None).update(claimed_until=timezone.now() - LONG_AGO)


def deaths(request: Request) -> int:
    return claims.deaths_of(Request.objects.filter(pk=request.pk))


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
    move(locked(request_.pk), Event.WITHDRAW, actor=advance.MACHINE)
    assert deaths(request_) == 0


@pytest.mark.parametrize("state", sorted(WORKABLE))
def test_S26_the_table_lets_every_state_that_is_worked_on_fail(state: State) -> None:
    ways = [after for (before, _), after in lifecycle.TRANSITIONS.items() if before == state]
    assert State.FAILED in ways


def test_S26_the_first_death_is_followed_by_a_look_alone(
    request_: Request, processes: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    here: list[int] = []
    monkeypatch.setitem(advance.STEPS, "preparing", lambda request, _: here.append(request.pk))
    die(request_)
    processes.ends = [DONE]
    advance.advance(request_.pk)
    assert (processes.looked, here) == ([("advance", request_.pk)], [])
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

    here: list[str] = []
    monkeypatch.setattr(claim_loop, "has_begun", lambda: True)
    monkeypatch.setitem(advance.STEPS, "in_review", lambda request, _: here.append(request.state))
    processes.ends = [prepared]
    advance.advance(request_.pk)
    assert (len(processes.looked), here) == (1, ["in_review"])


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


def revision(request: Request, number: int, state: str) -> Revision:
    request.refresh_from_db()
    assert request.content
    return Revision.objects.create(
        deployment=request.deployment,
        number=number,
        request=request,
        content=request.content,
        state=state,
        started_at=timezone.now(),
    )


def test_S26_what_was_asked_for_again_starts_from_nothing(here: World, request_: Request, processes: Alone) -> None:
    die(request_)
    processes.ends = [KILLED]
    advance.advance(request_.pk)
    obj = world.seen(
        "strimzi",
        world.spec(),
        uid=request_.deployment.uid,
        annotations={"core.rukpak.io/ask-again": "1"},
    )
    world.wish(here.cluster, obj, here.rita)
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
    monkeypatch.setitem(advance.STEPS, "in_review", waits)
    die(request_)
    processes.ends = [in_a_process, in_a_process]
    advance.advance(request_.pk)
    assert deaths(request_) == 1
    monkeypatch.setitem(advance.STEPS, "in_review", lambda *_: None)
    advance.advance(request_.pk)
    assert deaths(request_) == 0
    assert len(processes.looked) == 2


def test_S26_an_apply_that_came_further_than_ever_sets_the_count_back(request_: Request) -> None:
    def noting(worker: str) -> Notes:
        request_.refresh_from_db()
        return Notes(request_, partial(claims.renew, request_.pk, worker))

    def done(number: int) -> Outcome:
        return Outcome(ObjectRef("", "v1", "ConfigMap", "harbour", f"c{number}"), Action.CREATE, OutcomeState.DONE)

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
        raise apart.CouldNotStart("no process could be started for it: out of pids")

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

    monkeypatch.setitem(advance.STEPS, "preparing", hungry)
    advance.advance(request_.pk)
    assert (deaths(request_), processes.looked) == (1, [])
    processes.ends = [DONE]
    advance.advance(request_.pk)
    assert processes.looked == [("advance", request_.pk)]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, ""),
        (child.RAISED, ""),
        (child.STOPPED, ""),
        (child.OUT_OF_MEMORY, "needed more than 1024 MiB of memory (PRATIQUE_ALONE_MEMORY_MIB)"),
        (-signal.SIGALRM, "hung, so that its claim lapsed after 10 s (PRATIQUE_CLAIM_SECONDS)"),
        (child.STOOD_STILL, "made no progress for 15 minutes (PRATIQUE_STEP_MINUTES)"),
        (-signal.SIGSEGV, "was killed by signal 11 (Segmentation fault)"),
        (2, "ended with exit code 2"),
    ],
)
def test_S26_how_a_process_ended_is_said_in_words(code: int, words: str) -> None:
    assert apart._words(code) == words


def test_S26_the_heartbeat_holds_on_to_a_step_that_takes_long_and_not_to_one_that_stands_still(
    request_: Request, settings: Any
) -> None:
    claims.claim(request_.pk, "slow")
    still: list[str] = []
    heart, now = Heartbeat(on_still=still.extend), time.monotonic()
    Request.objects.update(claimed_until=timezone.now())
    heart.beat(now + 30)
    assert claims.is_held(Request.objects.all(), "slow")
    Request.objects.update(claimed_until=timezone.now() - LONG_AGO)
    heart.beat(now + settings.PRATIQUE["STEP_MINUTES"] * 60 + 1)
    assert still == ["slow"]
    assert not claims.is_held(Request.objects.all(), "slow")


def test_S26_who_is_told_to_stop_gives_its_claims_back_and_takes_no_more(request_: Request) -> None:
    claims.claim(request_.pk, "stopping")
    heart, now = Heartbeat(on_still=lambda _: None), time.monotonic()
    HELD.is_stopping = True
    heart.beat(now)
    assert claims.is_held(Request.objects.all(), "stopping"), "a step that ends at once ends as ever"
    assert not claims.claim(request_.pk, "the same process")
    heart.beat(now + 5)
    HELD.is_stopping = False
    assert not claims.renew(request_.pk, "stopping")
    assert claims.claim(request_.pk, "another worker")
    assert deaths(request_) == 0


def test_S26_a_claim_that_the_database_did_not_take_back_is_given_back_later(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_away(*_: object, **__: object) -> int:
        raise OperationalError("the database is away")

    claims.claim(request_.pk, "one")
    with monkeypatch.context() as away:
        away.setattr(QuerySet, "update", is_away)
        with pytest.raises(OperationalError):
            claims.release(request_.pk, "one")
    assert claims.is_held(Request.objects.all(), "one")
    Heartbeat(on_still=lambda _: None).beat(time.monotonic())
    assert claims.claim(request_.pk, "two")
    assert deaths(request_) == 0


def test_S26_what_kills_those_who_look_for_drift_rests_and_says_so(request_: Request, processes: Alone) -> None:
    deployment = request_.deployment
    assert claims.claim_deployment(deployment.pk, "dead")
    lapse()
    processes.ends = [KILLED, End()]
    tasks.correct_deployment(deployment.pk)
    deployment.refresh_from_db()
    assert "the worker died 2 times while comparing the cluster" in deployment.drift_problem
    assert "It will be retried in an hour" in deployment.drift_problem
    tasks.correct_deployment(deployment.pk)
    assert len(processes.looked) == 1, "it rests"
    BundleDeployment.objects.update(rests_until=timezone.now() - LONG_AGO)
    tasks.correct_deployment(deployment.pk)
    assert len(processes.looked) == 2, "and then it is tried alone"
    claims.pardon(deployment.pk)
    deployment.refresh_from_db()
    assert (deployment.worker_deaths, deployment.rests_until) == (0, None)


def test_S26_what_kills_those_who_look_after_a_deployment_rests_and_its_health_is_unknown(
    request_: Request, processes: Alone
) -> None:
    world.in_review(request_)
    deployment = request_.deployment
    BundleDeployment.objects.update(active_revision=revision(request_, 1, "active"))
    assert claims.take(claims.rows_of_task("look_after", deployment.pk), "dead")
    lapse()
    processes.ends = [KILLED]
    tasks.look_after_deployment(deployment.pk)
    tasks.look_after_deployment(deployment.pk)
    deployment.refresh_from_db()
    assert processes.looked == [("look_after", deployment.pk)]
    assert deployment.health == "Unknown"
    assert "the worker died 2 times while looking after it" in deployment.health_message


def test_S26_a_delivery_that_kills_is_answered_in_words_and_not_acted_on_again(here: World, processes: Alone) -> None:
    row = ChatDelivery.objects.create(tool="slack", key="k", wish={}, received_at=timezone.now())
    assert claims.take(claims.rows_of_task("act_on_delivery", row.pk), "dead")
    lapse()
    processes.ends = [KILLED]
    tasks.act_on_delivery(row.pk)
    row.refresh_from_db()
    assert row.done_at
    assert "the worker died 2 times while acting on a decision from a chat" in row.words
    assert not TaskClaim.objects.filter(claimed_by="dead").exists()


def test_S26_every_kind_of_work_is_found_again_by_its_name(request_: Request) -> None:
    for name, job in jobs.JOBS.items():
        assert job(request_.pk).task == name


def test_S26_whoever_starts_an_apply_counts_the_lapsed_claim_of_a_corrector(request_: Request) -> None:
    deployment = request_.deployment
    claims.claim_deployment(deployment.pk, "dead")
    lapse()
    claims.hold_off_drift(deployment.pk)
    assert claims.deaths_of(Correct(deployment.pk).rows) == 1


def test_S26_an_object_that_kills_two_watchers_is_left_aside_and_the_others_are_seen(here: World) -> None:
    class Killed(BaseException):
        """kill -9."""

    def watcher(name: str) -> None:
        assert claims.hold_watch(here.cluster.pk, name)
        cluster = Cluster.objects.get()
        skipping.skip_what_killed(cluster)
        for obj in objects:
            if obj["metadata"]["name"] == "hostile" and not skipping.is_skipped(cluster, obj):
                with contextlib.suppress(Killed), skipping.noted(cluster, obj):
                    raise Killed
                Cluster.objects.update(watched_until=timezone.now() - LONG_AGO)
                return
            loop._see(cluster, obj)
        skipping.note_all_seen(cluster)

    objects = [world.seen("hostile", world.spec()), world.seen("strimzi", world.spec())]
    watcher("one")
    watcher("two")
    assert not BundleDeployment.objects.exists()
    watcher("three")
    assert [one.name for one in BundleDeployment.objects.all()] == ["strimzi"]
    cluster = Cluster.objects.get()
    assert (cluster.watch_deaths, cluster.watch_at) == (0, "")
    assert cluster.problem.startswith("BundleDeployment hostile is left aside: two watchers died")
    changed = {**objects[0], "metadata": {**objects[0]["metadata"], "generation": 2}}
    loop._see(cluster, changed)
    assert BundleDeployment.objects.filter(name="hostile").exists(), "its spec has changed"


def test_S26_a_watcher_that_is_told_to_stop_counts_as_no_death(here: World) -> None:
    assert claims.hold_watch(here.cluster.pk, "one")
    claims.let_go_of_watches("one")
    assert claims.hold_watch(here.cluster.pk, "two")
    assert Cluster.objects.get().watch_deaths == 0
