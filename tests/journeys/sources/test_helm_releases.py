"""A release that Helm installed is taken over by a chart of the same name, and stays what it is."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.plan.helm_releases import LABEL, NAME, NAMESPACE
from provisioner.values import ObjectRef
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.http import GitServer

SETTINGS = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {app.kubernetes.io/managed-by: '{{ .Release.Service }}'}}\n"
    "data: {size: '{{ .Values.size }}'}\n"
)


def live(site: DeployedSite, kind: str, name: str) -> Any:
    return site.api.get(ObjectRef("", "v1", kind, site.namespace, name))


def install(site: DeployedSite) -> None:
    """As `helm install shop` left it."""
    about = {"namespace": site.namespace}
    marks = {NAME: "shop", NAMESPACE: site.namespace}
    meta = {**about, "name": "settings", "labels": {LABEL: "Helm"}, "annotations": marks}
    site.api.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"size": "1", "old": "x"}},
        field_manager="helm",
    )
    labels = {"owner": "helm", "name": "shop", "status": "deployed", "version": "1"}
    record = {**about, "name": "sh.helm.release.v1.shop.v1", "labels": labels}
    site.api.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": record,
            "type": "helm.sh/release.v1",
            "stringData": {"release": "canary"},
        }
    )


@pytest.mark.proof
def test_a_release_is_taken_over_with_its_record(site: DeployedSite, git_server: GitServer) -> None:
    repository = git_server.repository(site.namespace)
    repository.commit(
        {
            "chart/Chart.yaml": b"apiVersion: v2\nname: shop\nversion: 1.0.0\n",
            "chart/values.yaml": b"size: 2\n",
            "chart/templates/settings.yaml": SETTINGS.encode(),
        }
    )
    install(site)
    marks = {NAME: "shop", NAMESPACE: site.namespace}
    meta = {"name": "cache", "namespace": site.namespace, "annotations": marks}
    site.api.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": [{"port": 80}]}})
    git = {"repository": repository.url, "ref": {"branch": "main"}, "directory": "chart"}
    source = {"kind": "git", "git": git}
    wished = site.prepare(site.namespace, source, format="helm")
    report = site.latest(wished).reports.latest("round")
    assert report.actions["adopt"] == 1
    assert report.findings.filter(rule="OWN-02").exists(), "nobody said that the release may be taken over"
    wished = site.prepare(site.namespace, source, format="helm", adoptHelmRelease="shoq")
    (absent,) = site.latest(wished).reports.latest("round").findings.filter(rule="HELM-03")
    assert "there is no such release, or it holds none of these objects" in absent.message
    assert "shop" not in absent.message, "other releases are for who may list Secrets"
    wished = site.prepare(site.namespace, source, format="helm", adoptHelmRelease="shop")
    report = site.latest(wished).reports.latest("round")
    assert {one["rule"] for one in report.body["findings"]} & {"DEL-01", "HELM-02", "HELM-03"} == {"HELM-02"}
    assert (report.actions["adopt"], report.actions["delete"]) == (1, 1)
    assert not report.findings.filter(rule="OWN-02").exists()
    (left,) = [one for one in report.body["findings"] if one["rule"] == "HELM-01"]
    assert f"Service {site.namespace}/cache" in left["message"] + str(left)
    assert "canary" not in str(report.body)
    request = site.approve(wished)
    assert request.state == "applied", request.problem
    settings = live(site, "ConfigMap", "settings")
    assert settings["data"] == {"size": "2", "old": "x"}
    assert NAME not in (settings["metadata"].get("annotations") or {})
    assert live(site, "Secret", "sh.helm.release.v1.shop.v1") is None
    assert [item.name for item in wished.inventory.all()] == ["settings"]
