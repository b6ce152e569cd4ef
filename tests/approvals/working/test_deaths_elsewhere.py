"""Deaths at other work than requests: drift, deployments, deliveries, and what is watched (S26)."""

from __future__ import annotations

import contextlib
import inspect
import pickle
from collections.abc import Callable, Iterator

from django.utils import timezone

from approvals import jobs, tasks
from approvals.ledger import claims
from approvals.models import BundleDeployment, ChatDelivery, Cluster, Request, TaskClaim
from approvals.steps.running.correct import Correct
from approvals.watch import loop, turns
from approvals.working import Work
from approvals.working.subprocesses import End
from tests.approvals.working.deaths import KILLED, LONG_AGO, Alone, lapse, revision
from tests.support.approvals import world
from tests.support.approvals.fixtures import World


def test_S26_what_kills_those_who_look_for_drift_rests_and_says_so(request_: Request, processes: Alone) -> None:
    deployment = request_.deployment
    assert claims.take(BundleDeployment.objects.filter(pk=deployment.pk), "dead")
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


def test_S26_a_delivery_that_kills_is_answered_in_words_and_not_acted_on_again(env: World, processes: Alone) -> None:
    row = ChatDelivery.objects.create(tool="slack", key="k", wish={}, received_at=timezone.now())
    assert claims.take(claims.rows_of_task("act_on_delivery", row.pk), "dead")
    lapse()
    processes.ends = [KILLED]
    tasks.act_on_delivery(row.pk)
    row.refresh_from_db()
    assert row.done_at
    assert "the worker died 2 times while acting on a decision from a chat" in row.words
    assert not TaskClaim.objects.filter(claimed_by="dead").exists()


def kinds_of_work(kind: type[Work]) -> Iterator[Callable[[int], Work]]:
    for subclass in kind.__subclasses__():
        if subclass.__module__.startswith("approvals.") and not inspect.isabstract(subclass):
            yield subclass  # type: ignore[misc]  # each takes its key
        yield from kinds_of_work(subclass)


def test_S26_every_kind_of_work_is_made_anew_in_a_subprocess(request_: Request) -> None:
    works = [kind(request_.pk) for kind in kinds_of_work(Work) if kind is not jobs.Tell]
    assert len(works) > 7
    for work in [*works, jobs.Tell(request_.pk, "ready")]:
        again = pickle.loads(pickle.dumps(work.remake))()  # our own bytes
        assert (type(again), again.task, again.key) == (type(work), work.task, work.key)


def test_S26_whoever_starts_an_apply_counts_the_lapsed_claim_of_a_corrector(request_: Request) -> None:
    deployment = request_.deployment
    claims.take(BundleDeployment.objects.filter(pk=deployment.pk), "dead")
    lapse()
    claims.hold_off_drift(deployment.pk)
    assert claims.deaths_of(Correct(deployment.pk).rows) == 1


def test_S26_an_object_that_kills_two_watchers_is_left_aside_and_the_others_are_seen(env: World) -> None:
    class Killed(BaseException):
        """kill -9."""

    def watcher(name: str) -> None:
        assert claims.hold_watch(env.cluster.pk, name)
        cluster = Cluster.objects.get()
        turns.skip_what_killed(cluster)
        for obj in objects:
            if obj["metadata"]["name"] == "hostile" and not turns.is_skipped(cluster, obj):
                with contextlib.suppress(Killed), turns.noted(cluster, obj):
                    raise Killed
                Cluster.objects.update(watched_until=timezone.now() - LONG_AGO)
                return
            loop._see(cluster, obj)
        turns.note_all_seen(cluster)

    objects = [world.seen("hostile", world.spec()), world.seen("strimzi", world.spec())]
    watcher("one")
    watcher("two")
    assert not BundleDeployment.objects.exists()
    watcher("three")
    assert [one.name for one in BundleDeployment.objects.all()] == ["strimzi"]
    cluster = Cluster.objects.get()
    assert (cluster.watch_deaths, cluster.watch_at) == (0, "")
    assert cluster.problem.startswith("BundleDeployment hostile is skipped: two watchers died")
    changed = {**objects[0], "metadata": {**objects[0]["metadata"], "generation": 2}}
    loop._see(cluster, changed)
    assert BundleDeployment.objects.filter(name="hostile").exists(), "its spec has changed"


def test_S26_a_watcher_that_is_told_to_stop_counts_as_no_death(env: World) -> None:
    assert claims.hold_watch(env.cluster.pk, "one")
    claims.let_go_of_watches("one")
    assert claims.hold_watch(env.cluster.pk, "two")
    assert Cluster.objects.get().watch_deaths == 0
