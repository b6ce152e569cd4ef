"""The question before each phase (S25) is asked while the phase before it is being written, and then only a yes counts."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.ahead import Permits
from provisioner.cluster.apply import Terms, apply
from provisioner.errors import PreconditionFailed
from provisioner.values import Outcome, OutcomeState
from tests.provisioner.cluster.scene import MANAGER, Scene


class Asked:
    """Who is asked: refuses the phase `against`, the first `times` times. `events` are what happens, in order.

    A phase that is asked for stands there with a question mark, an outcome with the kind of its object.
    """

    def __init__(self, against: str = "", times: int = 1000):
        self.events: list[str] = []
        self._against, self._times = f"{against}?", times

    def __call__(self, phase: str) -> None:
        self.events.append(f"{phase}?")
        if self.events[-1] == self._against and self.events.count(self._against) <= self._times:
            raise PreconditionFailed(f"{phase} is paused")

    def hears(self, outcome: Outcome) -> None:
        self.events.append(outcome.ref.kind)


@pytest.fixture(autouse=True)
def _slow_machines_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("provisioner.cluster.ahead.FRESH_SECONDS", 60.0)


def test_a_yes_counts_once_and_for_its_phase_only():
    asked = Asked()
    permits = Permits(asked)
    permits.ask_ahead("roles")
    permits.begin("roles")
    assert asked.events == ["roles?"]
    permits.begin("roles")
    permits.ask_ahead("roles")
    permits.begin("bindings")
    permits.begin("roles")
    assert asked.events == ["roles?", "roles?", "roles?", "bindings?", "roles?"]


def test_a_yes_that_is_old_is_asked_for_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("provisioner.cluster.ahead.FRESH_SECONDS", 0.0)
    permits = Permits(asked := Asked())
    permits.ask_ahead("roles")
    permits.begin("roles")
    assert asked.events == ["roles?"] * 2


def test_a_no_is_asked_for_again_when_the_phase_begins():
    permits = Permits(Asked("roles"))
    permits.ask_ahead("roles")
    with pytest.raises(PreconditionFailed, match="roles is paused"):
        permits.begin("roles")
    permits = Permits(asked := Asked("roles", times=1))
    permits.ask_ahead("roles")
    permits.begin("roles")
    assert asked.events == ["roles?", "roles?"]


def test_what_nobody_foresaw_is_heard_when_the_phase_begins():
    def broken(_: str) -> None:
        raise ConnectionError("the database is away")

    permits = Permits(broken)
    permits.ask_ahead("roles")
    with pytest.raises(ConnectionError):
        permits.begin("roles")


def test_the_next_phase_is_asked_for_before_the_outcomes_of_this_one(scene: Scene):
    events = events_of(scene, Asked(), scene.config_map(), scene.secret(), scene.service())
    assert events == ["configuration?", "infrastructure?", "ConfigMap", "Secret", "Service"]


def test_what_is_paused_meanwhile_ends_with_the_phase_that_was_begun(scene: Scene):
    asked = Asked("infrastructure")
    with pytest.raises(PreconditionFailed, match="infrastructure is paused"):
        events_of(scene, asked, scene.config_map(), scene.service())
    assert asked.events == ["configuration?", "infrastructure?", "ConfigMap", "infrastructure?"]
    assert scene.live(scene.config_map()) is not None
    assert scene.live(scene.service()) is None


def test_a_phase_without_changes_is_neither_asked_for_nor_ahead(scene: Scene):
    scene.deploy(scene.config_map(), scene.service(), scene.autoscaler())
    events = events_of(scene, Asked(), scene.config_map(a="2"), scene.service(), scene.autoscaler())
    assert events == ["configuration?", "ConfigMap", "Service", "HorizontalPodAutoscaler"]


def test_of_a_phase_in_several_chunks_it_is_asked_while_the_last_one_is_written(scene: Scene):
    objects = [scene.config_map(f"settings-{number}") for number in range(70)]
    events = events_of(scene, Asked(), *objects, scene.service())
    assert (events.index("infrastructure?"), events.count("infrastructure?")) == (65, 1)
    assert (events.count("ConfigMap"), events[-1]) == (70, "Service")


def test_before_a_wait_nothing_is_asked_ahead(scene: Scene):
    """Whoever pauses it while a workload becomes ready is heard."""
    events = events_of(scene, Asked(), scene.deployment(), scene.autoscaler())
    assert events == ["deploy?", "Deployment", "scaling?", "HorizontalPodAutoscaler"]


def test_nor_where_a_phase_without_changes_is_waited_for_between(scene: Scene):
    scene.deploy(scene.config_map(), scene.deployment(), scene.autoscaler(), timeout_seconds=60.0)
    (other := scene.autoscaler())["spec"]["maxReplicas"] = 4
    events = events_of(scene, Asked(), scene.config_map(a="2"), scene.deployment(), other)
    assert events == ["configuration?", "ConfigMap", "Deployment", "scaling?", "HorizontalPodAutoscaler"]


def test_after_a_failure_a_yes_is_worth_nothing(scene: Scene):
    objects = (scene.config_map(), scene.service())
    planned = scene.plan(*objects)
    scene.cluster.create(scene.config_map(a="theirs"))
    asked = Asked()
    outcomes = scene.apply(planned, *objects, before_phase=asked)
    assert [one.state for one in outcomes] == [OutcomeState.FAILED, OutcomeState.SKIPPED]
    assert (asked.events, scene.live(scene.service())) == (["configuration?", "infrastructure?"], None)


def events_of(scene: Scene, asked: Asked, *objects: dict[str, Any]) -> list[str]:
    terms = Terms(MANAGER, timeout_seconds=60.0, before_phase=asked)
    outcomes = apply(scene.cluster, scene.content(*objects), scene.plan(*objects), scene.inventory, terms)
    for outcome in outcomes:
        asked.hears(outcome)
    return asked.events
