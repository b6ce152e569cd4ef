"""A chart that looks up a password: read with the requester's rights, kept as it was told, and applied as it is."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from approvals.models import BundleDeployment, LookupAnswers, Request
from provisioner.values import Identity
from tests.support.journeys.deployed_site import DeployedSite, group, role
from tests.support.servers.http import GitServer

PASSWORD = "kept since the first day"
CHART = {
    "Chart.yaml": b"apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "templates/copy.yaml": (
        b"apiVersion: v1\nkind: Secret\nmetadata: {name: copy}\nstringData:\n"
        b'  url: \'db://shop:{{ (lookup "v1" "Secret" .Release.Namespace "db").data.password | b64dec }}@db\'\n'
    ),
}


def ask_for(site: DeployedSite, repository: Any) -> BundleDeployment:
    git = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
    return site.submit_spec(site.namespace, git, format="helm", config={"lookup": [{"kind": "Secret", "name": "db"}]})


def secret(site: DeployedSite, password: str) -> None:
    data = {"password": base64.b64encode(password.encode()).decode()}
    metadata = {"name": "db", "namespace": site.namespace}
    site.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}, field_manager="test")


@pytest.mark.proof
def test_S08_a_chart_looks_up_a_secret_that_its_requester_may_get(site: DeployedSite, git_server: GitServer) -> None:
    repository = git_server.repository(site.namespace)
    repository.commit(CHART)
    secret(site, PASSWORD)
    wished = ask_for(site, repository)
    site.work()
    waiting = Request.objects.get(deployment=wished)
    assert waiting.content_id is None
    assert waiting.problem.startswith("Kubernetes does not allow rita to get secrets db"), waiting.problem
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["db"], "verbs": ["get"]}
    for each in role("get-db", site.namespace, rule, group("requesters")):
        site.api.apply(each, field_manager="test")
    site.until_may(Identity("rita", ("requesters",)), "get", "secrets", name="db")
    site.work()
    done = site.approve(wished)
    assert done.state == "applied", done.problem
    live = site.live("Secret", "copy")
    assert base64.b64decode(live["data"]["url"]).decode() == f"db://shop:{PASSWORD}@db"
    told = [one.message for one in done.reports.get().findings.filter(rule="LKP-01")]
    assert len(told) == 1
    assert told[0].startswith("The chart was told of Secret")
    assert told[0].endswith("/db, and values of it go into Secret copy of the content"), told
    assert not done.reports.get().findings.filter(rule="SEC-01").exists(), "the bundle does not hold the value"
    answers = LookupAnswers.objects.get(request=done).body
    assert [set(one["data"]) for one in answers] == [{"password"}]
    assert PASSWORD not in str(answers)
    assert base64.b64encode(PASSWORD.encode()).decode() not in str(answers)
