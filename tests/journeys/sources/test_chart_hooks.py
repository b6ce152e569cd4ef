"""A chart with hooks over two versions, back again, and gone: what ran, how often, and who sees it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.models import HookRun
from provisioner.values import ObjectRef
from tests.support.journeys.station import Station
from tests.support.servers.http import GitServer

SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '{{ .Chart.Version }}'}\n"
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: %(name)s
  annotations: {helm.sh/hook: "%(when)s", helm.sh/hook-weight: "%(weight)s"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: "example.com/%(name)s:{{ .Chart.Version }}"
        resources: {limits: {cpu: 1000m, memory: 1024Mi}}
"""


def job(name: str, when: str, weight: int = 0) -> bytes:
    return (JOB % {"name": name, "when": when, "weight": weight}).encode()


def chart(version: str) -> dict[str, bytes]:
    return {
        "chart/Chart.yaml": f"apiVersion: v2\nname: shop\nversion: {version}\n".encode(),
        "chart/values.yaml": f"about: '{version}'\n".encode(),
        "chart/templates/settings.yaml": SETTINGS.encode(),
        "chart/templates/migrate.yaml": job("migrate", "pre-install,pre-upgrade", 5),
        "chart/templates/first.yaml": job("first", "pre-install"),
        "chart/templates/farewell.yaml": job("farewell", "pre-delete"),
        "chart/templates/test.yaml": job("try", "test"),
    }


def ask_for(station: Station, repository: Any, **more: Any) -> Any:
    git = {"repository": repository.url, "ref": {"branch": "main"}, "directory": "chart"}
    return station.wish(station.namespace, {"kind": "git", "git": git}, format="helm", **more)


def live(station: Station, kind: str, name: str) -> Any:
    group = "batch" if kind == "Job" else ""
    return station.api.get(ObjectRef(group, "v1", kind, station.namespace, name))


def uid(station: Station, name: str) -> str:
    found = live(station, "Job", name)
    return str(found["metadata"]["uid"]) if found else ""


def image(station: Station, name: str) -> str:
    return str(live(station, "Job", name)["spec"]["template"]["spec"]["containers"][0]["image"])


def messages(station: Station, wished: Any, rule: str) -> list[str]:
    findings = station.latest(wished).reports.latest("round").findings.filter(rule=rule)
    return sorted(findings.values_list("message", flat=True))


@pytest.mark.proof
def test_hooks_run_once_a_request_and_are_no_objects_of_the_deployment(station: Station, git_server: GitServer) -> None:
    namespace = station.namespace
    repository = git_server.repository(namespace)
    repository.commit(chart("1.0.0"))
    wished = ask_for(station, repository)
    station.work()
    runs = messages(station, wished, "HOOK-01")
    assert runs == [
        f"A hook runs Job {namespace}/first before other objects are written, as `default` with example.com/first:1.0.0",
        f"A hook runs Job {namespace}/migrate before other objects are written, as `default` with example.com/migrate:1.0.0",
    ]
    assert messages(station, wished, "HOOK-02") == [
        f"When the deployment is deleted, a hook runs Job {namespace}/farewell before the objects are deleted"
    ]
    (unused,) = messages(station, wished, "SRC-01")
    assert "templates/test.yaml" in unused
    with CaptureQueriesContext(connection) as queries:
        first = station.approve(wished)
    assert first.state == "applied", first.problem
    for name in ("first", "migrate"):
        assert any(f"waiting until this hook has ended: Job.batch {namespace}/{name}" in one["sql"] for one in queries)
    assert not any("before the next phase" in one["sql"] for one in queries)
    outcomes = list(first.outcomes.order_by("position").values_list("object", "state"))
    assert outcomes == [
        (f"Job.batch {namespace}/first", "done"),
        (f"Job.batch {namespace}/migrate", "done"),
        (f"ConfigMap {namespace}/settings", "done"),
    ]
    assert [item.name for item in wished.inventory.all()] == ["settings"]
    ran = {name: uid(station, name) for name in ("first", "migrate")}
    assert {run.name: (run.uid, run.has_succeeded) for run in HookRun.objects.filter(deployment=wished)} == {
        name: (one, True) for name, one in ran.items()
    }

    repository.commit(chart("2.0.0"))
    ask_for(station, repository, config={"values": {"any": "thing", "password": "canary"}})
    station.work()
    (values,) = messages(station, wished, "VAL-01")
    assert values == "3 values of the chart changed, 2 of them by the spec: `any`, `password`, `about`"
    findings = station.latest(wished).reports.latest("round").body["findings"]
    (sources,) = (one["sources"] for one in findings if one["rule"] == "VAL-01")
    assert [(one["kind"], one["name"]) for one in sources] == [("BundleDeployment", wished.name)]
    (again,) = messages(station, wished, "HOOK-01")
    assert (
        f"Job {namespace}/migrate again, and deletes what its last run left, before other objects are written" in again
    )
    second = station.approve(wished)
    assert second.state == "applied", second.problem
    assert (image(station, "migrate"), image(station, "first")) == (
        "example.com/migrate:2.0.0",
        "example.com/first:1.0.0",
    )
    assert uid(station, "migrate") != ran["migrate"]
    ran["migrate"] = uid(station, "migrate")

    station.api.delete(ObjectRef("batch", "v1", "Job", namespace, "first"))
    station.look_after(wished)
    assert not live(station, "Job", "first"), "a hook is never put back"

    station.roll_back(wished, first.revision.number)
    station.work()
    assert any("going back runs none" in one for one in messages(station, wished, "HOOK-02"))
    assert station.approve(wished).state == "applied"
    assert live(station, "ConfigMap", "settings")["data"] == {"version": "1.0.0"}
    assert (uid(station, "migrate"), uid(station, "first")) == (ran["migrate"], "")

    station.delete(wished)
    station.work()
    assert messages(station, wished, "HOOK-01") == [
        f"A hook runs Job {namespace}/farewell before the objects are deleted, as `default` with example.com/farewell:1.0.0"
    ]
    (left,) = messages(station, wished, "HOOK-03")
    assert f"Job {namespace}/migrate" in left
    assert station.approve(wished).state == "applied"
    assert live(station, "ConfigMap", "settings") is None
    assert image(station, "farewell") == "example.com/farewell:1.0.0"
    assert uid(station, "migrate") == ran["migrate"], "what hooks made stays"


def test_a_hook_that_somebody_elses_object_stands_in_the_way_of(station: Station, git_server: GitServer) -> None:
    namespace = station.namespace
    repository = git_server.repository(namespace)
    hook = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, annotations: {helm.sh/hook: pre-install}}\n"
    files = {**chart("1.0.0"), "chart/templates/theirs.yaml": hook}
    repository.commit(files)
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": namespace}}
    station.api.create({**theirs, "data": {"by": "somebody"}})
    wished = ask_for(station, repository)
    station.work()
    assert messages(station, wished, "OWN-02")
    assert live(station, "ConfigMap", "theirs")["data"] == {"by": "somebody"}


def test_a_chart_of_hooks_only_runs_those_of_its_deletion_before_it_goes(
    station: Station, git_server: GitServer
) -> None:
    namespace = station.namespace
    repository = git_server.repository(namespace)
    files = chart("1.0.0")
    del files["chart/templates/settings.yaml"]
    repository.commit(files)
    wished = ask_for(station, repository)
    station.work()
    first = station.approve(wished)
    assert (first.state, first.content.has_deletion_hooks) == ("applied", True), first.problem
    assert not wished.inventory.exists()
    station.look_after(wished)
    station.delete(wished)
    station.work()
    wished.refresh_from_db()
    request = station.latest(wished)
    assert (request.purpose, request.state, wished.needs_deletion) == ("delete", "in_review", True)
    assert station.approve(wished).state == "applied"
    assert live(station, "Job", "farewell")
    wished.refresh_from_db()
    assert not wished.needs_deletion
