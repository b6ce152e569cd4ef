"""Hooks run once a request, in their order, around the objects that stay."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.apply.run import PhaseReached
from provisioner.cluster.apply.waits import Patience
from provisioner.cluster.inventory import MemoryHookRuns
from provisioner.health_checks import health_checks
from provisioner.values import Action, HookMoment, ObjectRef
from tests.provisioner.cluster.apply.hooks.charts import AFTER, BEFORE, Chart, hook, named, uid_of
from tests.support.kubernetes.live import wait_until
from tests.support.provisioner.cluster_scene import actions, failures


@pytest.mark.proof
def test_they_run_one_after_the_other_around_what_stays_and_are_in_no_inventory(chart: Chart) -> None:
    scene, phases = chart.scene, list[PhaseReached]()
    hooks = [
        hook(scene.job("migrate"), weight=5),
        hook(scene.job("announce"), AFTER),
        hook(scene.config_map("b-first"), weight=-5),
        hook(scene.config_map("a-second"), weight=0),
    ]
    outcomes = chart.deploy(hooks, scene.config_map("settings"), at_phase=phases.append)
    assert failures(outcomes) == []
    assert named(outcomes) == ["b-first", "a-second", "migrate", "settings", "announce"]
    assert [(one.number, one.count, one.name) for one in phases] == [
        (1, 3, "hooks before"),
        (2, 3, "configuration"),
        (3, 3, "hooks after"),
    ]
    assert [item.ref.name for item in scene.inventory.items().values()] == ["settings"]
    for name in ("migrate", "announce"):
        live: Any = scene.live(scene.job(name))
        assert {one["type"] for one in live["status"]["conditions"]} >= {"Complete"}


def test_what_its_last_run_left_is_cleared_without_a_word(chart: Chart) -> None:
    scene, hooks = chart.scene, [hook(chart.scene.job())]
    chart.deploy(hooks, scene.config_map())
    first = uid_of(scene.cluster, scene.job())
    planned = chart.plan(hooks, scene.config_map())
    assert actions(planned) == {"Job/migrate": Action.RERUN, "ConfigMap/settings": Action.NONE}
    assert planned.actions[0].uid == "", "what is cleared may go by itself meanwhile, which changes nothing"
    changed = [hook(scene.job(image="example.com/migrate:2"))]
    assert failures(chart.deploy(changed, scene.config_map())) == []
    live: Any = scene.live(scene.job())
    assert live["metadata"]["uid"] != first
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/migrate:2"


def test_S39_what_a_hook_made_and_is_to_be_kept_is_neither_cleared_nor_made_anew(chart: Chart) -> None:
    scene = chart.scene
    kept = scene.secret("password", word="one")
    kept["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    hooks = [hook(kept, is_cleared=True)]
    assert failures(chart.deploy(hooks, scene.config_map())) == []
    first = uid_of(scene.cluster, kept)
    assert first
    changed = [hook({**kept, "stringData": {"word": "two"}}, is_cleared=True)]
    assert actions(chart.plan(changed, scene.config_map()))["Secret/password"] is Action.NONE
    assert failures(chart.deploy(changed, scene.config_map())) == []
    assert uid_of(scene.cluster, kept) == first


def test_what_is_cleared_once_it_succeeded_is_gone_and_its_next_run_is_planned_alike(chart: Chart) -> None:
    scene = chart.scene
    hooks = [hook(scene.config_map("rights"), is_cleared=True), hook(scene.job(), weight=1, is_cleared=True)]
    assert failures(chart.deploy(hooks, scene.config_map())) == []
    wait_until(lambda: scene.live(scene.job()) is None, "the job is gone")
    assert scene.live(scene.config_map("rights")) is None
    planned = chart.plan(hooks, scene.config_map())
    assert actions(planned)["Job/migrate"] is Action.RERUN
    scene.cluster.create(scene.job())
    assert chart.plan(hooks, scene.config_map()).digest != planned.digest, "somebody else's job is not cleared"


def test_a_hook_may_run_before_and_after(chart: Chart) -> None:
    scene, seen = chart.scene, list[str]()
    hooks = [hook(scene.job(), BEFORE, AFTER)]

    class Noted(MemoryHookRuns):
        def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
            seen.append(uid)
            super().confirm(ref, nonce, uid)

    chart.runs = Noted()
    outcomes = chart.deploy(hooks, scene.config_map())
    assert named(outcomes) == ["migrate", "settings", "migrate"]
    assert failures(outcomes) == []
    assert len(set(seen)) == 2
    assert uid_of(scene.cluster, scene.job()) == seen[-1]


@pytest.mark.proof
def test_a_test_runs_last_and_only_once_what_it_tests_is_ready(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = chart.scene
    settings = scene.config_map("settings", state="starting")
    hooks = [hook(scene.job("smoke"), HookMoment.TEST, weight=-9), hook(scene.job("announce"), AFTER)]
    is_up = {"apiVersion": "v1", "kind": "ConfigMap", "fieldValue": {"path": ".data.state", "value": "up"}}
    checks = health_checks({"healthChecks": [is_up]})
    with monkeypatch.context() as patch:
        patch.setattr(Patience, "left", 0.3)
        outcomes = chart.deploy(hooks[:1], settings, checks=checks)
    assert "phase hooks test: ConfigMap" in outcomes[-1].message
    assert scene.live(scene.job("smoke")) is None
    outcomes = chart.deploy(hooks, scene.config_map("settings", state="up"), checks=checks)
    assert named(outcomes) == ["settings", "announce", "smoke"]
    assert failures(outcomes) == []


def test_a_deletion_has_hooks_of_its_own_and_what_they_leave_stays(chart: Chart) -> None:
    scene = chart.scene
    chart.deploy([], scene.config_map())
    hooks = [
        hook(scene.job("backup"), HookMoment.BEFORE_DELETION),
        hook(scene.job("farewell"), HookMoment.AFTER_DELETION),
    ]
    planned = chart.plan(hooks, is_removal=True)
    outcomes = chart.apply(planned, hooks)
    assert failures(outcomes) == []
    assert named(outcomes) == ["backup", "settings", "farewell"]
    assert scene.live(scene.config_map()) is None
    assert scene.live(scene.job("backup"))
    assert scene.inventory.items() == {}


def test_hooks_stand_on_definitions_and_namespaces_that_are_made(chart: Chart) -> None:
    scene, phases = chart.scene, list[PhaseReached]()
    hooks = [hook(scene.widget())]
    objects = (scene.definition(), scene.config_map())
    outcomes = chart.deploy(hooks, *objects, at_phase=phases.append)
    assert failures(outcomes) == []
    assert [one.name for one in phases] == ["crds", "hooks before", "configuration"]


def test_hooks_come_before_what_is_changed_of_definitions(chart: Chart) -> None:
    scene, phases = chart.scene, list[PhaseReached]()
    chart.deploy([], scene.definition(), scene.config_map())
    wider = scene.definition(fields=("size", "weight"))
    outcomes = chart.deploy([hook(scene.job())], wider, scene.config_map(), at_phase=phases.append)
    assert failures(outcomes) == []
    assert [one.name for one in phases] == ["hooks before", "crds"]
