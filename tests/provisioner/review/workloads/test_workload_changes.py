"""What will run, on installs, upgrades and deletions: images, how many pods, access to nodes and accounts."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import as_text
from provisioner.review.output.workloads import image_changes, run_words
from provisioner.review.workloads.workload_changes import WorkloadChange, running_record, workload_changes
from provisioner.values import Action, ObjectRef, Plan, PlannedAction
from tests.support.provisioner import corpus
from tests.support.provisioner.contents import an_object, content_with

CONTAINER = {"name": "web", "image": "example.com/web:v1"}
ARGO_CD = {
    version: corpus.Bundle("argo-cd", version, tuple((corpus.CORPUS / "plain/argo-cd" / version).glob("*.yaml")))
    for version in ("v2.12.0", "v2.14.0")
}


def workload(
    kind: str = "apps/v1 Deployment", name: str = "web", *, pod: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    api_version, _, kind = kind.partition(" ")
    template = {"spec": {"containers": [CONTAINER], **(pod or {})}}
    if kind == "CronJob":
        spec = {**spec, "jobTemplate": {"spec": {"template": template}}}
    else:
        spec = {**spec, "template": template}
    return an_object(api_version, kind, name, "shop", spec=template["spec"] if kind == "Pod" else spec)


def autoscaler(**spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return an_object(
        "autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop", spec={"scaleTargetRef": target, **spec}
    )


def changes(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> list[WorkloadChange]:
    return workload_changes(look_offline(content_with(*new), content_with(*old) if old else None).plan)


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        pytest.param(workload(), "1 replica, account default", id="a deployment"),
        pytest.param(workload("apps/v1 StatefulSet", replicas=3), "3 replicas, account default", id="a stateful set"),
        pytest.param(workload("apps/v1 ReplicaSet", replicas=0), "0 replicas, account default", id="a replica set"),
        pytest.param(workload("apps/v1 DaemonSet"), "one per node, account default", id="a daemon set"),
        pytest.param(workload("batch/v1 Job"), "account default", id="a job"),
        pytest.param(workload("batch/v1 Job", parallelism=4), "4 at once, account default", id="a parallel job"),
        pytest.param(
            workload("batch/v1 CronJob", schedule="0 3 * * *"), "schedule 0 3 * * *, account default", id="a cron job"
        ),
        pytest.param(
            workload("batch/v1 CronJob", schedule="@daily", suspend=True),
            "schedule @daily, suspended, account default",
            id="a suspended cron job",
        ),
        pytest.param(workload("v1 Pod", pod={"serviceAccountName": "robot"}), "account robot", id="a pod"),
        pytest.param(workload(pod={"serviceAccount": "robot"}), "1 replica, account robot", id="the older field"),
        pytest.param(
            workload(
                pod={
                    "hostNetwork": True,
                    "hostPID": True,
                    "initContainers": [{"name": "a", "securityContext": {"privileged": True}}],
                    "containers": [{**CONTAINER, "ports": [{"hostPort": 443, "containerPort": 1}]}],
                    "volumes": [{"name": "l", "hostPath": {"path": "/var/log"}}],
                }
            ),
            "1 replica, hostNetwork, hostPID, privileged, hostPort 443, hostPath /var/log, account default",
            id="access to the node",
        ),
    ],
)
def test_a_new_workload_tells_its_image_how_many_pods_access_and_account(obj: dict[str, Any], words: str) -> None:
    (found,) = changes([obj], [])
    assert ", ".join(run_words(found)) == words
    assert "example.com/web:v1" in [one.after for one in found.containers]
    assert words in " ".join(as_text(look_offline(content_with(obj), None)).split())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param([workload(replicas=1)], [workload(replicas=3)], ["1 replica → 3 replicas"], id="replicas"),
        pytest.param(
            [workload(pod={"serviceAccountName": "a"})],
            [workload(pod={"serviceAccountName": "b"})],
            ["account a → b"],
            id="an account",
        ),
        pytest.param(
            [workload(pod={"hostPID": True, "hostIPC": True})],
            [workload(pod={"hostNetwork": True, "hostIPC": True})],
            ["newly hostNetwork", "no longer hostPID", "as before hostIPC"],
            id="access to the node",
        ),
        pytest.param(
            [workload(replicas=2)],
            [workload(), autoscaler(minReplicas=2, maxReplicas=5)],
            ["2 replicas → 2 to 5 replicas, as HorizontalPodAutoscaler web decides"],
            id="an autoscaler comes",
        ),
        pytest.param(
            [workload(replicas=2), autoscaler(maxReplicas=5)],
            [workload(replicas=7), autoscaler(maxReplicas=5)],
            None,
            id="an autoscaler decides, whatever the workload asks for",
        ),
        pytest.param([workload()], [], [], id="it goes"),
        pytest.param(
            [workload()],
            [{**workload(), "metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}}}],
            None,
            id="no pod changes",
        ),
    ],
)
def test_of_a_workload_that_stays_the_changes_are_told(
    old: list[dict[str, Any]], new: list[dict[str, Any]], words: list[str] | None
) -> None:
    assert [list(run_words(one)) for one in changes(new, old)] == ([] if words is None else [words])


def test_a_hook_that_runs_again_is_told_whatever_changes() -> None:
    job = workload("batch/v1 Job")
    plan = Plan((PlannedAction(ObjectRef.of(job), Action.RERUN, before=job, after=job),), "")
    (found,) = workload_changes(plan)
    assert (list(run_words(found)), running_record([found])["workloads"][0]["runsAgain"]) == (["runs again"], True)


def test_an_image_of_many_workloads_is_one_line_and_what_has_access_to_its_node_is_told_first() -> None:
    agent = workload("apps/v1 DaemonSet", "zz-agent", pod={"hostNetwork": True})
    objects = [*(workload(name=f"w{at:02}") for at in range(20)), agent]
    text = as_text(look_offline(content_with(*objects), None))
    section = text.partition("\n\n")[0].splitlines()
    assert section[:3] == [
        "WORKLOADS  21 new",
        "  example.com/web:v1, in 21 workloads",
        "  DaemonSet shop/zz-agent: one per node, hostNetwork, account default",
    ]
    assert section[-1] == "  and 13 more workloads: --all shows them"
    assert len(section) == 11
    whole = as_text(look_offline(content_with(*objects), None), with_all=True)
    assert all(whole.count(f"Deployment shop/w{at:02}: web") == 1 for at in range(20))


def test_what_goes_is_told_with_its_images_on_a_page_too() -> None:
    found = look_offline(content_with(an_object("v1", "ConfigMap", "c", "shop")), content_with(workload()))
    assert as_text(found).splitlines()[:3] == [
        "WORKLOADS  1 gone",
        "  example.com/web:v1, in Deployment shop/web",
        "  Deployment shop/web",
    ]
    assert "Workloads: 1 gone" in as_html(found, title="x")


@pytest.mark.thorough
@pytest.mark.skipif(not corpus.CORPUS.is_dir(), reason="the corpus is not there")
def test_argo_cd_tells_in_few_lines_what_will_run() -> None:
    before, after = (corpus.content_of(ARGO_CD[version]) for version in ("v2.12.0", "v2.14.0"))
    first, upgrade = look_offline(after, None), look_offline(after, before)
    section = as_text(first).partition("\n\n")[0].splitlines()
    assert "  quay.io/argoproj/argocd:v2.14.0-rc7, in 7 workloads" in section
    assert len(section) <= 15
    assert [(one.after, len(one.objects)) for one in image_changes(workload_changes(upgrade.plan))] == [
        ("quay.io/argoproj/argocd:v2.14.0-rc7", 7),
        ("ghcr.io/dexidp/dex:v2.41.1", 1),
    ]
    record = running_record(workload_changes(first.plan))
    assert {one["image"]["before"] for one in record["containers"]} == {""}
    assert len(record["workloads"]) == 7
