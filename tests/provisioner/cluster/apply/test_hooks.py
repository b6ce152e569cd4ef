"""Hooks: once a request, in their order, around the objects that stay; what becomes of them when things go wrong."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from provisioner.cluster.apply.run import PhaseReached, Terms, apply
from provisioner.cluster.apply.waiting import Patience
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.inventory import MemoryHookRuns, uids
from provisioner.cluster.plan.known import Options
from provisioner.cluster.plan.planning import plan
from provisioner.values import (
    Action,
    CollisionProtection,
    Content,
    Hook,
    HookMoment,
    Manifest,
    ObjectOutcome,
    ObjectRef,
    OutcomeState,
    Plan,
)
from tests.support.kubernetes.live import wait_until
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import MANAGER, Scene, actions, content, failures, states

BEFORE, AFTER = HookMoment.BEFORE, HookMoment.AFTER


def hook(obj: dict[str, Any], *moments: HookMoment, weight: int = 0, is_cleared: bool = False) -> Manifest:
    return Manifest(obj, hook=Hook.at(moments or (BEFORE,), weight=weight, is_cleared=is_cleared))


class Chart:
    """A content with hooks on one cluster, and the record of their runs."""

    def __init__(self, scene: Scene, runs: MemoryHookRuns | None = None):
        self.scene, self.runs = scene, runs or MemoryHookRuns()

    def content(self, hooks: list[Manifest], objects: tuple[dict[str, Any], ...]) -> Content:
        return replace(content(objects), hooks=tuple(hooks)).with_hooks(frozenset(HookMoment))

    def plan(self, hooks: list[Manifest], *objects: dict[str, Any], **options: Any) -> Plan:
        runs = {identity: replace(one, is_current=False) for identity, one in self.runs.items().items()}
        return plan(
            self.scene.cluster,
            self.content(hooks, objects),
            inventory=uids(self.scene.inventory.items().values()),
            previous=None,
            field_manager=MANAGER,
            options=Options(hooks=runs, **options),
        )

    def apply(
        self, planned: Plan, hooks: list[Manifest], *objects: dict[str, Any], **terms: Any
    ) -> list[ObjectOutcome]:
        agreed = Terms(MANAGER, **{"timeout_seconds": scaled(120.0), "runs": self.runs, **terms})
        return list(apply(self.scene.cluster, self.content(hooks, objects), planned, self.scene.inventory, agreed))

    def deploy(self, hooks: list[Manifest], *objects: dict[str, Any], **terms: Any) -> list[ObjectOutcome]:
        """As a request of its own: the runs so far are those of earlier ones."""
        planned = self.plan(hooks, *objects)
        self.begin_request()
        return self.apply(planned, hooks, *objects, **terms)

    def begin_request(self) -> None:
        self.runs.end_request()


@pytest.fixture
def chart(scene: Scene) -> Chart:
    return Chart(scene)


def uid_of(cluster: ClusterClient, obj: dict[str, Any]) -> str:
    live = cluster.get(ObjectRef.of(obj))
    return str(live["metadata"]["uid"]) if live else ""


def named(outcomes: list[ObjectOutcome]) -> list[str]:
    return [one.ref.name for one in outcomes]


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


def pod(scene: Scene, name: str = "check") -> dict[str, Any]:
    """One that no node takes, so that it ends when a test says so."""
    container = {"name": "main", "image": "example.com/check:1"}
    spec = {"restartPolicy": "Never", "nodeSelector": {"example.com/none": "here"}, "containers": [container]}
    return scene.namespaced("v1", "Pod", name, spec=spec)


def end(scene: Scene, phase: str, name: str = "check") -> None:
    """As a kubelet would say it."""
    wait_until(lambda: scene.live(pod(scene, name)), "the pod is there")
    about = {key: pod(scene, name)[key] for key in ("apiVersion", "kind", "metadata")}
    told = {"status": {"phase": phase, "message": "it gave up"}}
    scene.cluster.apply({**about, **told}, field_manager="kubelet", subresource="status", force=True)


def meanwhile(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_one_that_fails_ends_the_apply_before_anything_else_is_written(chart: Chart) -> None:
    scene = chart.scene
    hooks = [hook(pod(scene)), hook(scene.job(), weight=1), hook(scene.config_map("late"), AFTER)]
    failing = meanwhile(lambda: end(scene, "Failed"))
    outcomes = chart.deploy(hooks, scene.config_map())
    failing.join(scaled(60))
    assert states(outcomes) == {
        "Pod/check": OutcomeState.FAILED,
        "Job/migrate": OutcomeState.SKIPPED,
        "ConfigMap/settings": OutcomeState.SKIPPED,
        "ConfigMap/late": OutcomeState.SKIPPED,
    }
    assert outcomes[0].message == f"Pod {scene.namespace}/check failed"
    assert "it gave up" in outcomes[0].server_words
    assert scene.live(pod(scene)), "it stays, so that its log can be read"
    assert scene.live(scene.config_map()) is None


def test_one_that_succeeds_lets_the_apply_go_on(chart: Chart) -> None:
    ending = meanwhile(lambda: end(chart.scene, "Succeeded"))
    outcomes = chart.deploy([hook(pod(chart.scene))], chart.scene.config_map())
    ending.join(scaled(60))
    assert set(states(outcomes).values()) == {OutcomeState.DONE}


def test_one_that_does_not_end_in_time(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patience, "left", 1.0)  # of each wait; the writes have all of the time
    outcomes = chart.deploy([hook(pod(chart.scene))], chart.scene.config_map())
    assert outcomes[0].message == f"Pod {chart.scene.namespace}/check has not ended in time"


def test_one_that_somebody_deletes_while_it_runs(chart: Chart) -> None:
    scene = chart.scene

    def delete() -> None:
        wait_until(lambda: scene.live(pod(scene)), "the pod is there")
        scene.cluster.delete(ObjectRef.of(pod(scene)))

    deleting = meanwhile(delete)
    outcomes = chart.deploy([hook(pod(scene))], scene.config_map())
    deleting.join(scaled(60))
    assert outcomes[0].state is OutcomeState.FAILED
    assert "was deleted before it was seen to end" in outcomes[0].message


def fleeting(scene: Scene, name: str = "migrate") -> dict[str, Any]:
    """On Kubernetes a controller deletes it as soon as it has ended."""
    job = scene.job(name)
    job["spec"]["ttlSecondsAfterFinished"] = 0
    return job


def until_controllers_have_looked(scene: Scene) -> None:
    """Until such a Job of somebody else has come and gone."""
    scene.cluster.create(fleeting(scene, "other"))
    wait_until(lambda: scene.live(scene.job("other")) is None, "the other Job is gone")


@pytest.mark.proof
def test_one_that_its_time_to_live_takes_has_succeeded(chart: Chart) -> None:
    scene = chart.scene
    outcomes = chart.deploy([hook(fleeting(scene))], scene.config_map())
    assert [(one.state, one.message) for one in outcomes] == [(OutcomeState.DONE, "")] * 2

    def is_as_approved() -> bool:
        live = scene.live(scene.job())
        return live is None or live["spec"].get("ttlSecondsAfterFinished") == 0

    wait_until(is_as_approved, "the Job has its time to live, or was taken by it")


@pytest.mark.proof
@pytest.mark.parametrize(("at", "is_after"), list(itertools.product((2, 3), (False, True))))
def test_one_that_its_time_to_live_takes_runs_once_wherever_the_worker_dies(
    real_scene: Scene, at: int, is_after: bool
) -> None:
    """It ends while no worker looks, and is there until one does."""
    scene, runs = real_scene, MortalRuns(at, is_after=is_after)
    chart, hooks = Chart(scene, runs), [hook(fleeting(scene))]
    planned = chart.plan(hooks, scene.config_map())
    with pytest.raises(Died):
        chart.apply(planned, hooks, scene.config_map())
    until_controllers_have_looked(scene)
    assert failures(chart.apply(planned, hooks, scene.config_map())) == []
    assert len(set(runs.made)) == 1
    wait_until(lambda: scene.live(scene.job()) is None, "its time to live has taken it")


def test_one_that_fails_stays_whatever_its_time_to_live_is(real_scene: Scene) -> None:
    scene, job = real_scene, fleeting(real_scene)
    job["spec"] |= {"activeDeadlineSeconds": 1}
    job["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/none": "here"}
    outcomes = Chart(scene).deploy([hook(job)], scene.config_map())
    assert states(outcomes)["Job/migrate"] is OutcomeState.FAILED
    until_controllers_have_looked(scene)
    assert scene.live(job), "people need its log"


def test_one_has_a_time_to_live_all_the_time_where_an_admission_policy_adds_it(real_scene: Scene) -> None:
    """As clusters have that clear what is finished: what the dry-run had is what the write has."""
    scene = real_scene
    here = {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}}
    jobs = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
    added = "Object{spec: Object.spec{ttlSecondsAfterFinished: 3600}}"
    about = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": scene.namespace}}
    spec = {
        "matchConstraints": {"namespaceSelector": here, "resourceRules": [jobs]},
        "matchConditions": [{"name": "missing", "expression": "!has(object.spec.ttlSecondsAfterFinished)"}],
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": added}}],
    }
    policy = {**about, "kind": "MutatingAdmissionPolicy", "spec": spec}
    binding = {**about, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": scene.namespace}}
    numbers = itertools.count()

    def is_in_force() -> bool:
        made: Any = scene.cluster.create(scene.job(f"probe-{next(numbers)}"))
        return "ttlSecondsAfterFinished" in made["spec"]

    for one in (policy, binding):
        scene.cluster.create(one)
    try:
        wait_until(is_in_force, "the policy adds what is missing")
        outcomes = Chart(scene).deploy([hook(fleeting(scene))], scene.config_map())
    finally:
        for one in (binding, policy):
            scene.cluster.delete(ObjectRef.of(one))
    assert failures(outcomes) == []


def test_a_time_to_live_that_cannot_be_written_is_no_failure_of_the_run(chart: Chart) -> None:
    scene = chart.scene

    class Deletes(MemoryHookRuns):
        def succeed(self, ref: ObjectRef, nonce: str) -> None:
            super().succeed(ref, nonce)
            scene.cluster.delete(ref)

    chart.runs = Deletes()
    outcomes = chart.deploy([hook(fleeting(scene))], scene.config_map())
    assert failures(outcomes) == []
    assert outcomes[0].message.startswith("it has run; its time to live could not be written: Job")


def test_what_is_somebody_elses_is_not_cleared(chart: Chart) -> None:
    scene, hooks = chart.scene, [hook(chart.scene.config_map("theirs", by="hook"))]
    scene.cluster.create(scene.config_map("theirs", by="somebody"))
    planned = chart.plan(hooks, scene.config_map())
    assert planned.actions[0].problem_code == "already-exists"
    adopting = chart.plan(hooks, scene.config_map(), collision_protection=CollisionProtection.IF_NO_CONTROLLER)
    assert (adopting.actions[0].action, adopting.actions[0].problem) == (Action.REPLACE, "")
    assert failures(chart.apply(adopting, hooks, scene.config_map())) == []
    live: Any = scene.live(hooks[0].body)
    assert live["data"] == {"by": "hook"}


def test_what_stayed_and_becomes_a_hook_is_made_anew_in_so_many_words(chart: Chart) -> None:
    scene = chart.scene
    chart.deploy([], scene.config_map("moved"), scene.config_map())
    planned = chart.plan([hook(scene.config_map("moved"))], scene.config_map())
    assert planned.actions[0].action is Action.REPLACE
    assert planned.actions[0].uid == uid_of(scene.cluster, scene.config_map("moved"))


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


class Died(Exception):
    """What ends a worker in the middle."""


class MortalRuns(MemoryHookRuns):
    """Dies at the `at`th thing to record, before it is or after."""

    def __init__(self, at: int, *, is_after: bool):
        super().__init__()
        self.at, self.is_after, self.calls = at, is_after, 0
        self.made: list[str] = []

    def begin(self, ref: ObjectRef, moment: HookMoment, nonce: str) -> None:
        self._do(lambda: MemoryHookRuns.begin(self, ref, moment, nonce))

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        self.made.append(uid)
        self._do(lambda: MemoryHookRuns.confirm(self, ref, nonce, uid))

    def succeed(self, ref: ObjectRef, nonce: str) -> None:
        self._do(lambda: MemoryHookRuns.succeed(self, ref, nonce))

    def _do(self, write: Callable[[], None]) -> None:
        self.calls += 1
        if self.calls != self.at:
            write()
            return
        if self.is_after:
            write()
        raise Died


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


def claim(scene: Scene) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return scene.namespaced("v1", "PersistentVolumeClaim", "data", spec=wanted)


def test_what_holds_data_is_not_cleared_without_a_word(chart: Chart) -> None:
    scene = chart.scene
    hooks = [hook(claim(scene))]
    assert failures(chart.deploy(hooks, scene.config_map())) == []
    planned = chart.plan(hooks, scene.config_map())
    assert planned.actions[0].action is Action.REPLACE
    assert planned.actions[0].uid == uid_of(scene.cluster, claim(scene))


def test_what_another_deployment_has_adopted_since_is_its_own(chart: Chart) -> None:
    scene = chart.scene
    hooks = [hook(scene.config_map("shared"))]
    chart.deploy(hooks, scene.config_map())
    others = {uid_of(scene.cluster, scene.config_map("shared")): "other"}
    planned = chart.plan(hooks, scene.config_map(), others=others)
    assert planned.actions[0].problem_code == "already-exists"


def test_what_becomes_a_hook_leaves_the_inventory(chart: Chart) -> None:
    scene = chart.scene
    chart.deploy([], scene.config_map("moved"), scene.config_map())
    hooks = [hook(scene.config_map("moved", by="hook"))]
    assert failures(chart.deploy(hooks, scene.config_map())) == []
    assert [item.ref.name for item in scene.inventory.items().values()] == ["settings"]
    live: Any = scene.live(hooks[0].body)
    assert live["data"] == {"by": "hook"}


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
