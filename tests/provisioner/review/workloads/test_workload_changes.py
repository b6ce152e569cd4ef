"""What will run, on installs, upgrades and deletions: images, how many pods, access to nodes and accounts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provisioner.cli import main
from provisioner.masking import masked
from provisioner.pipeline import look_offline
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import as_text
from provisioner.review.output.workloads import image_changes, run_words
from provisioner.review.workloads.workload_changes import (
    ContainerChange,
    WorkloadChange,
    container_changes,
    image_words,
    running_record,
    to_record,
    workload_changes,
)
from provisioner.values import Action, ObjectRef, Plan, PlannedAction, Report
from tests.support.provisioner import corpus
from tests.support.provisioner.cases import FOLDER, report_of
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
    assert [list(run_words(change)) for change in changes(new, old)] == ([] if words is None else [words])


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
    assert [(change.after, len(change.objects)) for change in image_changes(workload_changes(upgrade.plan))] == [
        ("quay.io/argoproj/argocd:v2.14.0-rc7", 7),
        ("ghcr.io/dexidp/dex:v2.41.1", 1),
    ]
    record = running_record(workload_changes(first.plan))
    assert {one["image"]["before"] for one in record["containers"]} == {""}
    assert len(record["workloads"]) == 7


CASE = FOLDER / "containers-change-image-and-settings"
SECRETS = ("hunter2", "hunter3", "s3cr3t")


def pod(*containers: dict[str, Any], where: str = "containers") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {where: list(containers)},
    }


def container(name: str = "web", image: str = "example.com/web:v1", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": image, **more}


def report(old: dict[str, Any], new: dict[str, Any]) -> Report:
    return look_offline(content_with(new), content_with(old))


def changed(old: dict[str, Any], new: dict[str, Any]) -> list[ContainerChange]:
    return container_changes(report(old, new).plan)


def lines(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    (found,) = changed(pod(container(**old)), pod(container(**new)))
    return [f"{one.mark.sign} {one.what} {one.text}" for one in found.lines]


@pytest.mark.parametrize(
    ("where", "role"), [("containers", ""), ("initContainers", "init"), ("ephemeralContainers", "ephemeral")]
)
def test_each_kind_of_container_shows_its_image_before_and_after(where: str, role: str) -> None:
    old, new = (pod(container(image=f"example.com/web:{tag}"), where=where) for tag in ("v1", "v2"))
    (found,) = changed(old, new)
    assert (found.role, found.before, found.after) == (role, "example.com/web:v1", "example.com/web:v2")


def test_containers_come_and_go_with_all_that_they_are_told() -> None:
    gone, come = changed(pod(container("old")), pod(container("new", args=["--x"])))[::-1]
    assert (gone.mark.name, gone.before, gone.after) == ("GONE", "example.com/web:v1", "")
    assert (come.mark.name, come.after, [line.text for line in come.lines]) == ("NEW", "example.com/web:v1", ["--x"])


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("a.io/x:v1", "a.io/x:v2", "a.io/x: v1 → v2"),
        ("a.io:5000/x:v1", "a.io:5000/x:v2", "a.io:5000/x: v1 → v2"),
        ("a.io/x:v1@sha256:ab", "a.io/x:v1@sha256:cd", "a.io/x: v1@sha256:ab → v1@sha256:cd"),
        ("a.io/x:v1", "b.io/x:v1", "a.io/x:v1 → b.io/x:v1"),
        ("a.io/x", "a.io/x:v1", "a.io/x → a.io/x:v1"),
        ("", "a.io/x:v1", "a.io/x:v1"),
    ],
)
def test_an_image_is_told_by_what_differs(before: str, after: str, words: str) -> None:
    assert image_words(before, after) == words


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        pytest.param({"args": ["a", "b"]}, {"args": ["a", "c"]}, ["– arg b", "+ arg c"], id="an argument"),
        pytest.param({"command": ["a"]}, {}, ["– command a"], id="a command"),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "B"}, {"name": "A", "value": "2"}]},
            ["– env A=1", "+ env A=2", "+ env B="],
            id="variables",
        ),
        pytest.param(
            {"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            {"env": [{"name": "K", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]},
            ["– env K from Secret s, key k", "+ env K from ConfigMap c, key k"],
            id="where a value comes from",
        ),
        pytest.param(
            {}, {"envFrom": [{"secretRef": {"name": "s"}, "prefix": "X_"}]}, ["+ env X_* from Secret s"], id="envFrom"
        ),
        pytest.param({"args": ["x\ny"]}, {"args": ["x\nz"]}, ["– arg y", "+ arg z"], id="a script by its lines"),
        pytest.param(
            {"env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            {},
            ["– env N from metadata.name"],
            id="a field",
        ),
    ],
)
def test_values_are_said_as_they_come_and_go(old: dict[str, Any], new: dict[str, Any], found: list[str]) -> None:
    assert lines(old, new) == found


@pytest.mark.parametrize(
    "text",
    [
        "--password=hunter2",
        "--db-password hunter2",
        "postgres://ada:hunter2@db/x",
        "curl -H 'Authorization: Bearer hunter2hunter2' https://x",
        '{"token": "hunter2"}',
        "export API_KEY='hunter2'; run",
        "PGPASSWORD=hunter2 psql",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nhunter2",
    ],
)
def test_what_is_written_like_a_credential_is_hidden(text: str) -> None:
    shown = [line.text for line in changed(pod(container()), pod(container(args=[text])))[0].lines]
    assert "hunter2" not in str(shown)
    assert "hidden" in str(shown)


def test_the_value_after_a_flag_is_hidden() -> None:
    assert lines({}, {"args": ["--token", "hunter2", "--level", "info"]})[1:] == [
        "+ arg hidden",
        "+ arg --level",
        "+ arg info",
    ]


@pytest.mark.parametrize("name", ["DB_PASSWORD", "apiToken", "AWS_SECRET_ACCESS_KEY", "client-secret", "PGPASSWORD"])
def test_a_variable_named_like_a_credential_is_hidden(name: str) -> None:
    assert lines({}, {"env": [{"name": name, "value": "hunter2"}]}) == [f"+ env {name}=hidden"]


@pytest.mark.parametrize(
    "text", ["--token-file=/run/token", "--password=$(PASSWORD)", "--secret-name=web", "--tokens=5", "--level=info"]
)
def test_what_only_names_a_credential_is_shown(text: str) -> None:
    assert masked(text) == text


def test_a_long_text_is_masked_in_time() -> None:
    assert "hunter2" not in masked("_" * 200_000 + " password=hunter2 " + "://" * 100_000)


def test_the_report_has_them_as_text_html_and_json_and_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    found = report_of(CASE)
    assert main(["review", str(CASE / "new"), "--old", str(CASE / "old"), "-o", "json"]) in (0, 1)
    told = json.loads(capsys.readouterr().out)["containers"]
    assert told == to_record(container_changes(found.plan))
    assert [(one["container"], one["role"]) for one in told] == [("migrate", "init"), ("web", "container")]
    for text in (
        as_text(found, with_all=True),
        as_html(found, title="x").split("What happens to each object")[0],
        json.dumps(told),
    ):
        assert not [secret for secret in SECRETS if secret in text]
        assert "registry.example.com/shop/web" in text
        assert "--level=debug" in text
        assert "MODE=fast" in text


def test_what_runs_then_stands_above_all_findings() -> None:
    found = report_of(CASE)
    text, page = as_text(found), as_html(found, title="x")
    assert text.index("WORKLOADS") < text.index(found.headline[0].split()[0])
    assert page.index("Workloads: 1 changed") < page.index("All findings")


def test_of_many_images_and_settings_the_first_are_told_and_the_others_are_counted() -> None:
    def pods(tag: str) -> list[dict[str, Any]]:
        return [
            container(f"c{at:02}", f"example.com/i{at:02}:{tag}@sha256:{tag * 32}", args=[f"--{tag}"])
            for at in range(20)
        ]

    found = report(pod(*pods("v1")), pod(*pods("v2")))
    text, whole = as_text(found), as_text(found, with_all=True)
    assert "and 12 more images: --all shows them" in text
    assert "and 16 more containers with other settings: --all shows them" in text
    section = text.partition("\n\n")[0]
    assert ("i07" in section, "i08" in section) == (True, False)
    assert all(f"i{at:02}" in whole for at in range(20))
    assert whole.count("--v2") == 20


def test_a_digest_is_told_whole_where_all_is_told() -> None:
    old, new = ("a" * 64, "b" * 64)
    found = report(*(pod(container(image=f"example.com/web:v@sha256:{one}")) for one in (old, new)))
    assert (new in as_text(found), new in as_text(found, with_all=True)) == (False, True)
    assert f"@sha256:{new[:12]}…" in as_text(found)


def test_who_may_not_see_an_object_is_shown_nothing_of_its_containers() -> None:
    found = report_of(CASE)
    (ref,) = {change.ref for change in container_changes(found.plan)}
    page = as_html(found, title="x", hidden=[ref])
    assert "Workloads: 1 changed" in as_html(found, title="x")
    assert "Workloads:" not in page
