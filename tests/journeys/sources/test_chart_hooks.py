"""A chart with hooks over two versions, back again, and gone: what ran, how often, and who sees it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.models import HookRun
from provisioner.values import ObjectRef
from tests.support.journeys.deployed_site import DeployedSite
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


def ask_for(site: DeployedSite, repository: Any, **more: Any) -> Any:
    git = {"repository": repository.url, "ref": {"branch": "main"}, "directory": "chart"}
    return site.submit_spec(site.namespace, {"kind": "git", "git": git}, format="helm", **more)


def live(site: DeployedSite, kind: str, name: str) -> Any:
    group = "batch" if kind == "Job" else ""
    return site.api.get(ObjectRef(group, "v1", kind, site.namespace, name))


def uid(site: DeployedSite, name: str) -> str:
    found = live(site, "Job", name)
    return str(found["metadata"]["uid"]) if found else ""


def image(site: DeployedSite, name: str) -> str:
    return str(live(site, "Job", name)["spec"]["template"]["spec"]["containers"][0]["image"])


def messages(site: DeployedSite, wished: Any, rule: str) -> list[str]:
    findings = site.latest(wished).reports.latest("round").findings.filter(rule=rule)
    return sorted(findings.values_list("message", flat=True))


@pytest.mark.proof
def test_hooks_run_once_a_request_and_are_no_objects_of_the_deployment(
    site: DeployedSite, git_server: GitServer
) -> None:
    namespace = site.namespace
    repository = git_server.repository(namespace)
    repository.commit(chart("1.0.0"))
    wished = ask_for(site, repository)
    site.work()
    runs = messages(site, wished, "HOOK-01")
    assert runs == [
        f"A hook runs Job {namespace}/first before other objects are written, as `default` with example.com/first:1.0.0",
        f"A hook runs Job {namespace}/migrate before other objects are written, as `default` with example.com/migrate:1.0.0",
    ]
    assert messages(site, wished, "HOOK-02") == [
        f"When the deployment is deleted, a hook runs Job {namespace}/farewell before the objects are deleted"
    ]
    (unused,) = messages(site, wished, "SRC-01")
    assert "templates/test.yaml" in unused
    with CaptureQueriesContext(connection) as queries:
        first = site.approve(wished)
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
    ran = {name: uid(site, name) for name in ("first", "migrate")}
    assert {run.name: (run.uid, run.has_succeeded) for run in HookRun.objects.filter(deployment=wished)} == {
        name: (one, True) for name, one in ran.items()
    }

    repository.commit(chart("2.0.0"))
    ask_for(site, repository, config={"values": {"any": "thing", "password": "canary"}})
    site.work()
    (values,) = messages(site, wished, "VAL-01")
    assert values == "3 values of the chart changed, 2 of them by the spec: `any`, `password`, `about`"
    findings = site.latest(wished).reports.latest("round").body["findings"]
    (sources,) = (one["sources"] for one in findings if one["rule"] == "VAL-01")
    assert [(one["kind"], one["name"]) for one in sources] == [("BundleDeployment", wished.name)]
    (again,) = messages(site, wished, "HOOK-01")
    assert (
        f"Job {namespace}/migrate again, and deletes what its last run left, before other objects are written" in again
    )
    second = site.approve(wished)
    assert second.state == "applied", second.problem
    assert (image(site, "migrate"), image(site, "first")) == ("example.com/migrate:2.0.0", "example.com/first:1.0.0")
    assert uid(site, "migrate") != ran["migrate"]
    ran["migrate"] = uid(site, "migrate")

    site.api.delete(ObjectRef("batch", "v1", "Job", namespace, "first"))
    site.look_after(wished)
    assert not live(site, "Job", "first"), "a hook is never put back"

    site.roll_back(wished, first.revision.number)
    site.work()
    assert any("going back runs none" in one for one in messages(site, wished, "HOOK-02"))
    assert site.approve(wished).state == "applied"
    assert live(site, "ConfigMap", "settings")["data"] == {"version": "1.0.0"}
    assert (uid(site, "migrate"), uid(site, "first")) == (ran["migrate"], "")

    site.delete(wished)
    site.work()
    assert messages(site, wished, "HOOK-01") == [
        f"A hook runs Job {namespace}/farewell before the objects are deleted, as `default` with example.com/farewell:1.0.0"
    ]
    (left,) = messages(site, wished, "HOOK-03")
    assert f"Job {namespace}/migrate" in left
    assert site.approve(wished).state == "applied"
    assert live(site, "ConfigMap", "settings") is None
    assert image(site, "farewell") == "example.com/farewell:1.0.0"
    assert uid(site, "migrate") == ran["migrate"], "what hooks made stays"


def test_a_hook_that_somebody_elses_object_stands_in_the_way_of(site: DeployedSite, git_server: GitServer) -> None:
    namespace = site.namespace
    repository = git_server.repository(namespace)
    hook = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, annotations: {helm.sh/hook: pre-install}}\n"
    files = {**chart("1.0.0"), "chart/templates/theirs.yaml": hook}
    repository.commit(files)
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": namespace}}
    site.api.create({**theirs, "data": {"by": "somebody"}})
    wished = ask_for(site, repository)
    site.work()
    assert messages(site, wished, "OWN-02")
    assert live(site, "ConfigMap", "theirs")["data"] == {"by": "somebody"}


def test_a_chart_of_hooks_only_runs_those_of_its_deletion_before_it_goes(
    site: DeployedSite, git_server: GitServer
) -> None:
    namespace = site.namespace
    repository = git_server.repository(namespace)
    files = chart("1.0.0")
    del files["chart/templates/settings.yaml"]
    repository.commit(files)
    wished = ask_for(site, repository)
    site.work()
    first = site.approve(wished)
    assert (first.state, first.content.has_deletion_hooks) == ("applied", True), first.problem
    assert not wished.inventory.exists()
    site.look_after(wished)
    site.delete(wished)
    site.work()
    wished.refresh_from_db()
    request = site.latest(wished)
    assert (request.purpose, request.state, wished.needs_deletion) == ("delete", "in_review", True)
    assert site.approve(wished).state == "applied"
    assert live(site, "Job", "farewell")
    wished.refresh_from_db()
    assert not wished.needs_deletion
