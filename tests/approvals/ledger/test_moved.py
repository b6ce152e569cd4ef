"""What a reference that moved calls for, and who is told of it."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals import tasks
from approvals.ledger import claims, pivots, references
from approvals.models import BundleDeployment, FloatingReference, ReferenceFollower, Request, SourceHost, TaskClaim
from approvals.steps.catalogs.refresh import RefreshCatalog
from approvals.steps.source_checks import LookForUpgrades
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.stored_catalogs import catalog


@pytest.fixture
def followed(env: World) -> BundleDeployment:
    """An applied request of two sources; the second has moved since."""
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), by=env.rita)
    request = world.in_review(Request.objects.get())
    pins = [{"kind": "git", "reference": name, "digest": f"sha256:{name}"} for name in "ab"]
    Request.objects.filter(pk=request.pk).update(state="applied", pins=pins)
    for position, seen in enumerate(["sha256:a", "sha256:moved"]):
        reference = FloatingReference.objects.create(key=str(position), kind="git", host="example.com", seen=seen)
        reference.followers.create(deployment=deployment, position=position, name=str(position))
    return deployment


def told(position: int) -> None:
    """A look has just been made for the source at this position."""
    FloatingReference.objects.filter(key=str(position)).update(looked_at=timezone.now())
    ReferenceFollower.objects.filter(position=position).update(answer_at=timezone.now())


def test_a_move_makes_a_request(followed: BundleDeployment) -> None:
    told(1)
    assert pivots.answer_moves(followed.pk) is not None


@pytest.mark.parametrize("problem", ["", "rita may not get Secret x/pull"], ids=["not looked at", "refused"])
def test_S09_a_look_at_another_source_tells_nothing_of_one_that_may_not_be_read(
    followed: BundleDeployment, problem: str
) -> None:
    told(0)
    ReferenceFollower.objects.filter(position=1).update(problem=problem)
    assert pivots.answer_moves(followed.pk) is None
    assert ReferenceFollower.objects.get(position=1).moved_at is None


def test_one_that_cannot_be_answered_keeps_no_other_waiting(
    followed: BundleDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(deployment_id: int) -> None:
        raise KeyError(deployment_id)

    told(1)
    monkeypatch.setattr(pivots, "answer_moves", fail)
    tasks._sweep_references(timezone.now())
    assert references.pending(timezone.now()) == []
    assert references.pending(timezone.now() + timedelta(minutes=5)) == [followed.pk]


def test_what_nobody_follows_any_more_goes_and_what_another_follows_stays(followed: BundleDeployment) -> None:
    other = world.submit_spec(followed.cluster, world.seen("kafka", world.spec()))
    FloatingReference.objects.get(key="1").followers.create(deployment=other, position=0, name="1")
    references.let_go(followed)
    assert list(FloatingReference.objects.values_list("key", flat=True)) == ["1"]
    assert FloatingReference.objects.get().look_at is not None


def test_what_a_server_asked_for_outlasts_a_pause(followed: BundleDeployment) -> None:
    reference = FloatingReference.objects.get(key="1")
    now = timezone.now()
    references.note_problem(reference, code="unreachable", words="answered 429", began=now, wait=3000.0)
    references.resume(followed)
    assert FloatingReference.objects.get(key="1").look_at == now + timedelta(seconds=3000)
    references.note_seen(reference, references.Seen("sha256:moved", "", now, (), {}))
    references.resume(followed)
    assert FloatingReference.objects.get(key="1").look_at == now + timedelta(seconds=600)


def test_a_reference_that_nobody_follows_any_more_takes_its_claim_and_its_host_along(
    followed: BundleDeployment,
) -> None:
    reference = FloatingReference.objects.get(key="1")
    references.take_turn("example.com")
    references.take_turn("other.example.com")
    claims.rows_of_task(references.POLL, reference.pk)
    claims.rows_of_task(references.POLL, reference.pk + 1000)
    assert claims.take(claims.rows_of_task(references.POLL, reference.pk + 2000), "at work")
    tasks.clear()
    assert SourceHost.objects.count() == 2
    SourceHost.objects.update(polls=[time.time() - 61.0])
    tasks.clear()
    assert [row.host for row in SourceHost.objects.all()] == ["example.com"]
    keys = TaskClaim.objects.filter(task=references.POLL).values_list("key", flat=True)
    assert sorted(keys) == [reference.pk, reference.pk + 2000]


@pytest.mark.parametrize("task", [LookForUpgrades.task, RefreshCatalog.task])
def test_the_claims_of_what_is_gone_are_forgotten(env: World, task: str) -> None:
    row = catalog(of=env.cluster)
    source = {"kind": "catalog", "catalog": {"name": "port", "package": "harbour"}}
    deployment = world.submit_spec(env.cluster, world.seen("harbour", world.spec(sources=[source])), by=env.rita)
    there = {LookForUpgrades.task: deployment.pk, RefreshCatalog.task: row.pk}[task]
    claims.rows_of_task(task, there)
    claims.rows_of_task(task, there + 1000)
    assert claims.take(claims.rows_of_task(task, there + 2000), "at work")
    tasks.clear()
    keys = TaskClaim.objects.filter(task=task).values_list("key", flat=True)
    assert sorted(keys) == [there, there + 2000]


def test_a_look_that_outlives_its_reference_ends_quietly(followed: BundleDeployment) -> None:
    reference = FloatingReference.objects.get(key="1")
    references.let_go(followed)
    now = timezone.now()
    assert references.note_seen(reference, references.Seen("sha256:b", "", now, (), {})) == []
    references.note_problem(reference, code="unreachable", words="away", began=now, wait=0.0)
    assert not FloatingReference.objects.exists()
