"""A chart from a git repository, with values from a ConfigMap and manifests beside it, over its whole life."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.values import Identity
from tests.support.journeys.deployed_site import DeployedSite, group, role
from tests.support.servers.http import GitServer

TEMPLATE = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-seen'}\ndata:\n"
    "  text: '{{ .Values.text }} {{ .Values.more }}'\n"
    "  upgrade: '{{ .Release.IsUpgrade }}'\n"
    "  version: '{{ .Capabilities.KubeVersion.Version }}'\n"
    "  served: '{{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" }}'\n"
    "  old: '{{ .Capabilities.APIVersions.Has \"extensions/v1beta1\" }}'\n"
)


def chart(name: str) -> dict[str, bytes]:
    return {
        "chart/Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.0.0\nkubeVersion: '>=1.30.0'\n".encode(),
        "chart/values.yaml": b"text: own\nmore: own\n",
        "chart/templates/seen.yaml": TEMPLATE.encode(),
    }


def ask_for(site: DeployedSite, repository: Any, text: str, **config: Any) -> Any:
    """The chart, its values in a ConfigMap, and a manifest of the same repository beside it."""
    name = site.namespace
    git = {"repository": repository.url, "ref": {"branch": "main"}}
    return site.submit_spec(
        name,
        {"kind": "git", "git": {**git, "directory": "chart"}, "destination": "chart"},
        {"kind": "git", "git": {**git, "directory": "beside"}, "destination": "beside"},
        {"kind": "configMap", "configMap": {"name": "chart-values"}, "destination": "values"},
        format="helm",
        config={"valuesFiles": ["values/values.yaml"], "values": {"text": text}, **config},
    )


def store_values(site: DeployedSite, more: str) -> None:
    """Values in a ConfigMap, which requesters may get."""
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "chart-values", "namespace": site.namespace},
        "data": {"values.yaml": f"more: {more}\n"},
    }
    site.api.apply(obj, field_manager="test")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["chart-values"], "verbs": ["get"]}
    for each in role("get-chart-values", site.namespace, rule, group("requesters")):
        site.api.apply(each, field_manager="test")
    site.until_may(Identity("rita", ("requesters",)), "get", "configmaps", name="chart-values")


def seen(site: DeployedSite, name: str) -> dict[str, str] | None:
    found = site.live("ConfigMap", name)
    return dict(found["data"]) if found else None


@pytest.mark.proof
def test_a_chart_is_installed_upgraded_put_back_and_deleted(site: DeployedSite, git_server: GitServer) -> None:
    name = site.namespace
    repository = git_server.repository(name)
    beside = {
        "beside/a.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\ndata: {text: '{{ as is }}'}\n"
    }
    repository.commit({**chart("shop"), **beside})
    store_values(site, "stored")
    wished = ask_for(site, repository, "one")
    site.work()
    first = site.approve(wished)
    assert first.state == "applied", first.problem
    version = site.api.version()
    told = {"version": version, "served": "true", "old": "false"}
    assert seen(site, "shop-seen") == {"text": "one stored", "upgrade": "false", **told}
    assert seen(site, "beside") == {"text": "{{ as is }}"}
    ask_for(site, repository, "two")
    site.work()
    assert site.approve(wished).state == "applied"
    assert seen(site, "shop-seen") == {"text": "two stored", "upgrade": "true", **told}
    site.roll_back(wished, first.revision.number)
    site.work()
    assert site.approve(wished).state == "applied"
    assert seen(site, "shop-seen") == {"text": "one stored", "upgrade": "false", **told}
    site.look_after(wished)
    site.delete(wished)
    site.work()
    assert site.approve(wished).state == "applied"
    assert (seen(site, "shop-seen"), seen(site, "beside")) == (None, None)


@pytest.mark.usefixtures("helm3")
def test_another_helm_makes_a_request_that_says_so(site: DeployedSite, git_server: GitServer) -> None:
    repository = git_server.repository(site.namespace)
    repository.commit(
        {**chart("shop"), "beside/a.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n"}
    )
    store_values(site, "stored")
    wished = ask_for(site, repository, "one")
    site.work()
    first = site.approve(wished)
    assert (first.state, first.engine) == ("applied", "v4.2.3"), first.problem
    ask_for(site, repository, "one", helmVersion=3)
    site.work()
    second = site.latest(wished)
    assert (second.state, second.engine) == ("in_review", "v3.22.0"), second.problem
    (finding,) = second.reports.latest("round").findings.filter(rule="HELM-04")
    assert finding.message == "The chart was rendered by Helm v3.22.0; what runs was rendered by Helm v4.2.3"
    assert site.approve(wished).state == "applied"
    assert (seen(site, "shop-seen") or {})["text"] == "one stored"
