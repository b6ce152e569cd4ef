"""Hooks run once also where a worker dies in between, and whoever carries on waits for what has begun."""

from __future__ import annotations

import itertools

import pytest

from provisioner.cluster.inventory import MemoryHookRuns
from provisioner.values import Action
from tests.provisioner.cluster.apply.hooks.charts import (
    AFTER,
    BEFORE,
    Chart,
    Died,
    MortalRuns,
    end,
    hook,
    meanwhile,
    pod,
    uid_of,
)
from tests.support.kubernetes.live import wait_until
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import Scene, failures

STEPS = 9  # three runs, of three things to record each


@pytest.mark.parametrize(("at", "is_after"), list(itertools.product(range(1, STEPS + 1), (False, True))))
def test_each_runs_once_wherever_the_worker_dies(scene: Scene, at: int, is_after: bool) -> None:
    """The object of a run is made once, and found again by whoever carries on."""
    runs = MortalRuns(at, is_after=is_after)
    chart = Chart(scene, runs)
    hooks = [
        hook(scene.config_map("rights"), BEFORE, AFTER, is_cleared=True),
        hook(scene.job(), weight=1, is_cleared=True),
    ]
    planned = chart.plan(hooks, scene.config_map())
    with pytest.raises(Died):
        chart.apply(planned, hooks, scene.config_map())
    assert failures(chart.apply(planned, hooks, scene.config_map())) == []
    assert len(set(runs.made)) == 3
    assert all(one.has_succeeded for one in runs.items().values())
    assert failures(chart.apply(planned, hooks, scene.config_map())) == [], "and once more, as after a lost answer"
    assert len(set(runs.made)) == 3
    wait_until(lambda: scene.live(scene.job()) is None, "what is to be cleared is gone")


def test_a_run_that_nobody_heard_of_is_known_by_its_nonce(chart: Chart) -> None:
    """Its worker died after the write and before the answer, and its request ended: the next one clears what it left."""
    scene, hooks = chart.scene, [hook(chart.scene.job())]
    runs = MortalRuns(2, is_after=False)
    with pytest.raises(Died):
        Chart(scene, runs).deploy(hooks, scene.config_map())
    assert scene.live(scene.job())
    again = Chart(scene, MemoryHookRuns(runs.items().values()))
    planned = again.plan(hooks, scene.config_map())
    assert planned.actions[0].action is Action.RERUN
    assert failures(again.deploy(hooks, scene.config_map())) == []


def test_one_that_runs_while_a_worker_takes_over_is_not_cleared(chart: Chart) -> None:
    """It runs at both moments, and the worker died in the later one."""
    scene, runs = chart.scene, MortalRuns(5, is_after=True)
    chart.runs = runs
    hooks = [hook(pod(scene), BEFORE, AFTER, is_cleared=True)]
    planned = chart.plan(hooks, scene.config_map())
    first = meanwhile(lambda: end(scene, "Succeeded"))
    with pytest.raises(Died):
        chart.apply(planned, hooks, scene.config_map())
    first.join(scaled(60))
    running = uid_of(scene.cluster, pod(scene))
    assert runs.made[-1] == running
    second = meanwhile(lambda: end(scene, "Succeeded"))
    assert failures(chart.apply(planned, hooks, scene.config_map())) == []
    second.join(scaled(60))
    assert len(set(runs.made)) == 2, "the run was waited for, not begun again"
