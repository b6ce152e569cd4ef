"""Before each phase it is asked (S25): once all before it is written, and before its own first write."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from provisioner.cluster.apply import object_writer, run, waits
from provisioner.cluster.apply.run import PhaseReached, Terms, apply
from provisioner.cluster.order import DEPENDS_ON
from provisioner.errors import PreconditionFailed, Unreachable
from provisioner.values import Action, ObjectOutcome, OutcomeState
from tests.support.provisioner.cluster_scene import MANAGER, Scene

# For a question that is asked too early, while a write is held back to see whether one is.
# In which it would be asked too early. Too short a time would only miss that.
EARLY_SECONDS = 0.3


class Asked:
    """Who is asked: refuses the phase `against`. `events` are what happens, in order.

    A phase that is asked for stands there with a question mark, an outcome with the kind of its object.
    """

    def __init__(self, against: str = ""):
        self.events: list[str] = []
        self._against = against

    def __call__(self, phase: str) -> None:
        self.events.append(f"{phase}?")
        if phase == self._against:
            raise PreconditionFailed(f"{phase} is paused")

    def hears(self, outcome: ObjectOutcome) -> None:
        self.events.append(outcome.ref.kind)


class PausedInTheLastWrite:
    """Somebody pauses it in the moment in which the last bytes of a write go out, and from then on it is refused."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._is_asked = threading.Event()
        self._is_paused = False

    def before_send(self) -> None:
        self._is_asked.clear()
        self._is_asked.wait(EARLY_SECONDS)
        self._is_paused = True

    def __call__(self, phase: str) -> None:
        self.asked.append(phase)
        self._is_asked.set()
        if self._is_paused:
            raise PreconditionFailed(f"{phase} is paused")


def test_a_phase_is_asked_for_after_the_outcomes_of_the_one_before(scene: Scene):
    events = events_of(scene, Asked(), scene.config_map(), scene.secret(), scene.service())
    assert events == ["configuration?", "ConfigMap", "Secret", "infrastructure?", "Service"]


def test_S25_a_pause_during_the_last_write_of_a_phase_stops_the_very_next_one(scene: Scene):
    pause = PausedInTheLastWrite()
    objects = (scene.config_map(), scene.service())
    planned = scene.plan(*objects)
    terms = Terms(MANAGER, before_phase=pause)
    cluster = scene.cluster.guarded(pause.before_send)
    with pytest.raises(PreconditionFailed, match="infrastructure is paused"):
        list(apply(cluster, scene.content(*objects), planned, scene.inventory, terms))
    assert pause.asked == ["configuration", "infrastructure"]
    assert scene.live(scene.config_map()) is not None
    assert scene.live(scene.service()) is None


def test_S25_the_same_of_a_deletion(scene: Scene):
    scene.deploy(scene.config_map(), scene.service())
    pause = PausedInTheLastWrite()
    planned = scene.plan(scene.config_map(a="2"))
    terms = Terms(MANAGER, before_phase=pause)
    cluster = scene.cluster.guarded(pause.before_send)
    with pytest.raises(PreconditionFailed, match="delete infrastructure is paused"):
        list(apply(cluster, scene.content(scene.config_map(a="2")), planned, scene.inventory, terms))
    assert scene.live(scene.config_map())["data"] == {"a": "2"}
    assert scene.live(scene.service()) is not None


def test_a_phase_without_changes_is_not_asked_for(scene: Scene):
    scene.deploy(scene.config_map(), scene.service(), scene.autoscaler())
    events = events_of(scene, Asked(), scene.config_map(a="2"), scene.service(), scene.autoscaler())
    assert events == ["configuration?", "ConfigMap", "Service", "HorizontalPodAutoscaler"]


def test_a_phase_in_several_chunks_is_one(scene: Scene):
    objects = [scene.config_map(f"settings-{number}") for number in range(70)]
    events = events_of(scene, Asked(), *objects, scene.service())
    assert events == ["configuration?", *["ConfigMap"] * 70, "infrastructure?", "Service"]


def test_after_a_wait_within_a_phase_it_is_asked_once_more(scene: Scene):
    first, second = scene.deployment("first"), scene.deployment("second")
    needed = f"apps/namespaces/{scene.namespace}/Deployment/first"
    second["metadata"]["annotations"] = {DEPENDS_ON: needed}
    events = events_of(scene, Asked(), first, second)
    assert events == ["deploy?", "Deployment", "deploy?", "Deployment"]


def test_S25_after_one_object_made_room_it_is_asked_before_the_next_one_goes(scene: Scene):
    """To wait until the first is gone may take minutes: somebody may have put data where the second is deleted."""
    asked: list[str] = []
    jobs = [scene.job("first"), scene.job("second")]
    scene.deploy(*jobs)
    changed = [scene.job(name, image="example.com/migrate:2") for name in ("first", "second")]
    planned = scene.plan(*changed)
    assert {one.action for one in planned.actions} == {Action.REPLACE}

    def paused_meanwhile(phase: str) -> None:
        asked.append(phase)
        if len(asked) == 2:
            raise PreconditionFailed("it is paused")

    with pytest.raises(PreconditionFailed, match="it is paused"):
        scene.apply(planned, *changed, before_phase=paused_meanwhile)
    assert len(set(asked)) == 1, "the same phase, once more"
    images = [scene.live(job)["spec"]["template"]["spec"]["containers"][0]["image"] for job in jobs if scene.live(job)]
    assert images == ["example.com/migrate:1"], "the second stands as it was"


def test_every_phase_that_changes_something_is_counted_also_those_that_delete(scene: Scene):
    scene.deploy(scene.config_map(), scene.secret(), scene.service())
    reached: list[PhaseReached] = []
    objects = (scene.config_map(a="2"), scene.deployment(replicas=0))
    scene.apply(scene.plan(*objects), *objects, at_phase=reached.append)
    found = [(one.number, one.count, one.name) for one in reached]
    assert found == [
        (1, 4, "configuration"),
        (2, 4, "deploy"),
        (3, 4, "delete infrastructure"),
        (4, 4, "delete configuration"),
    ]


def test_what_is_asked_before_a_phase_is_no_time_at_work(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    """As a long list of what would go: the deadline is that of the writes, which are tried again until then."""
    objects = (scene.config_map(), scene.service())
    asked: list[str] = []
    away: list[str] = []

    def ask(phase: str) -> None:
        asked.append(phase)  # for an hour

    def away_for_a_moment() -> None:
        if len(asked) == 2 and not away:
            away.append(asked[-1])
            raise Unreachable("no answer")

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600 * len(asked), sleep=time.sleep)
    for room in (run, waits, object_writer):
        monkeypatch.setattr(room, "time", clock)
    terms = Terms(MANAGER, timeout_seconds=1800.0, before_phase=ask)

    cluster = scene.cluster.guarded(away_for_a_moment)
    outcomes = list(apply(cluster, scene.content(*objects), scene.plan(*objects), scene.inventory, terms))
    assert [one.state for one in outcomes] == [OutcomeState.DONE] * 2
    assert away


def test_after_a_failure_nothing_is_asked(scene: Scene):
    objects = (scene.config_map(), scene.service())
    planned = scene.plan(*objects)
    scene.cluster.create(scene.config_map(a="theirs"))
    asked = Asked("infrastructure")
    outcomes = scene.apply(planned, *objects, before_phase=asked)
    assert [one.state for one in outcomes] == [OutcomeState.FAILED, OutcomeState.SKIPPED]
    assert (asked.events, scene.live(scene.service())) == (["configuration?"], None)


def events_of(scene: Scene, asked: Asked, *objects: dict[str, Any]) -> list[str]:
    terms = Terms(MANAGER, before_phase=asked)
    outcomes = apply(scene.cluster, scene.content(*objects), scene.plan(*objects), scene.inventory, terms)
    for outcome in outcomes:
        asked.hears(outcome)
    return asked.events
