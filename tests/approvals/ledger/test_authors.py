"""A write through a door of ours has an author from the first word of its history."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from approvals import services
from approvals.errors import Changed, NotAllowed
from approvals.ledger import authors, pivots
from approvals.models import AuditEntry, BundleDeployment, OwnWrite, Request
from approvals.watch import loop
from provisioner.errors import Forbidden
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting


@dataclass
class Snapshot:
    objects: list[dict[str, Any]]
    resource_version: str = "1"


@dataclass
class Api:
    """What a watch lists."""

    objects: list[dict[str, Any]]

    def snapshot(self, resource: object) -> Snapshot:
        return Snapshot(self.objects)


def verbs() -> list[tuple[str, str]]:
    return list(AuditEntry.objects.order_by("number").values_list("verb", "actor"))


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], list[float]]:
    """`meanwhile(what)`: what another process does while the watch waits; returns the waits."""

    def during(what: Callable[[], object]) -> list[float]:
        waits: list[float] = []

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            what()

        # Of this module alone: other threads of the tests sleep, too.
        monkeypatch.setattr(authors, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
        return waits

    return during


def test_the_watch_waits_for_the_door_that_is_about_to_name_the_author(
    env: World, meanwhile: Callable[[Callable[[], object]], list[float]]
) -> None:
    obj = world.seen("strimzi", world.spec())
    door = authors.writing(cluster=env.cluster, name="strimzi")
    door.__enter__()

    def record() -> None:
        pivots.see(cluster=env.cluster, obj=obj, writer=world.writer(env.rita))
        door.__exit__(None, None, None)

    waits = meanwhile(record)
    loop.take_list(env.cluster, Api([obj]), None)  # type: ignore[arg-type]  # a fake that lists
    assert len(waits) == 1
    assert verbs() == [("deployment.seen", "rita"), ("request.made", "rita")]
    assert Request.objects.get().is_requester_known


@pytest.mark.parametrize("change", ["another name", "lapsed", "none"])
def test_S05_without_a_door_at_work_the_author_is_unknown_at_once(
    env: World, meanwhile: Callable[[Callable[[], object]], list[float]], change: str
) -> None:
    waits = meanwhile(lambda: pytest.fail("nobody is to be waited for"))
    age = authors.PATIENCE if change == "lapsed" else timedelta(0)
    if change != "none":
        name = "strimzi" if change == "lapsed" else "other"
        OwnWrite.objects.create(cluster=env.cluster, name=name, started_at=timezone.now() - age)
    loop.take_list(env.cluster, Api([world.seen("strimzi", world.spec())]), None)  # type: ignore[arg-type]  # a fake that lists
    assert not waits
    assert not Request.objects.get().is_requester_known


def test_S05_a_door_that_dies_before_it_names_anybody_leaves_the_author_unknown(
    env: World, meanwhile: Callable[[Callable[[], object]], list[float]]
) -> None:
    authors.writing(cluster=env.cluster, name="strimzi").__enter__()
    meanwhile(lambda: OwnWrite.objects.update(started_at=timezone.now() - authors.PATIENCE))
    loop.take_list(env.cluster, Api([world.seen("strimzi", world.spec())]), None)  # type: ignore[arg-type]  # a fake that lists
    assert not Request.objects.get().is_requester_known
    assert Request.objects.get().requesters == []


def test_S05_an_announcement_does_not_make_anybody_the_author_of_a_later_write(env: World) -> None:
    obj = world.seen("strimzi", world.spec())
    later = world.seen("strimzi", world.spec("2.0.0"), uid=obj["metadata"]["uid"], generation=2)
    with authors.writing(cluster=env.cluster, name="strimzi"):
        pivots.see(cluster=env.cluster, obj=obj, writer=world.writer(env.rita))
    loop.take_list(env.cluster, Api([later]), None)  # type: ignore[arg-type]  # a fake that lists
    assert not Request.objects.order_by("-number")[0].is_requester_known


@dataclass
class Noticing(world.FakeKubernetes):
    """Notes whether a write was announced when it arrived, and refuses it where asked to."""

    announced: Any = None
    refuses: bool = False

    def note(self, cluster: Any, name: str) -> None:
        self.announced = authors.is_being_written(cluster=cluster, name=name, now=timezone.now())
        if self.refuses:
            raise Forbidden("no")

    def create(self, cluster: Any, obj: dict[str, Any], *, as_person: Any, dry_run: bool = False) -> dict[str, Any]:
        self.note(cluster, obj["metadata"]["name"])
        return super().create(cluster, obj, as_person=as_person, dry_run=dry_run)

    def replace(self, cluster: Any, obj: dict[str, Any], *, as_person: Any) -> dict[str, Any]:
        self.note(cluster, obj["metadata"]["name"])
        return super().replace(cluster, obj, as_person=as_person)

    def delete(self, cluster: Any, ref: Any, *, uid: str, as_person: Any) -> None:
        self.note(cluster, ref.name)
        super().delete(cluster, ref, uid=uid, as_person=as_person)


ACTIONS = ["create", "change", "pause", "ask again", "delete"]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("refuses", [False, True], ids=["allowed", "refused"])
def test_every_door_announces_its_write_and_takes_that_back(env: World, action: str, refuses: bool) -> None:
    kubernetes = Noticing()
    kubernetes.allow("rita", "impersonate")
    common: dict[str, Any] = {"by": acting(env.rita), "via": "rest"}
    with services.deployments.access.using(kubernetes):
        if action != "create":
            made = _create(env, common)
            Request.objects.update(state="failed")
        kubernetes.refuses, kubernetes.announced = refuses, None
        act: dict[str, Callable[[], object]] = {
            "create": lambda: _create(env, common),
            "change": lambda: services.change_deployment(
                **common, deployment=made, spec=world.spec("2.0.0"), generation=1
            ),
            "pause": lambda: services.pause_deployment(**common, deployment=made, is_paused=True, reason=""),
            "ask again": lambda: services.ask_again(**common, deployment=made),
            "delete": lambda: services.delete_deployment(**common, deployment=made),
        }
        if refuses:
            with pytest.raises(NotAllowed):
                act[action]()
        else:
            act[action]()
    assert kubernetes.announced is True
    assert not OwnWrite.objects.exists()


def test_a_write_that_always_meets_another_one_gives_up_after_five_times(env: World) -> None:
    made = _create(env, {"by": acting(env.rita), "via": "rest"})
    env.kubernetes.conflicts = 5
    with pytest.raises(Changed):
        services.pause_deployment(by=acting(env.rita), deployment=made, is_paused=True, reason="", via="rest")
    env.kubernetes.conflicts = 4
    assert services.pause_deployment(
        by=acting(env.rita), deployment=made, is_paused=True, reason="", via="rest"
    ).is_paused


def _create(env: World, common: dict[str, Any]) -> BundleDeployment:
    return services.create_deployment(**common, cluster=env.cluster, name="strimzi", spec=world.spec(), labels={})
