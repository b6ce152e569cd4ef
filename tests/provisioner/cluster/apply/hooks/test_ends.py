"""How a hook ends: it fails, succeeds, takes too long, is deleted, or its time to live takes it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from provisioner.cluster.apply.waits import Patience
from provisioner.cluster.inventory import MemoryHookRuns
from provisioner.values import ObjectRef, OutcomeState
from tests.provisioner.cluster.apply.hooks.charts import (
    AFTER,
    Chart,
    Died,
    MortalRuns,
    end,
    fleeting,
    hook,
    meanwhile,
    pod,
)
from tests.support.kubernetes.live import wait_until
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import Scene, failures, states


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
    monkeypatch.setattr(Patience, "left", 0.3)  # of each wait; the writes have all of the time
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
