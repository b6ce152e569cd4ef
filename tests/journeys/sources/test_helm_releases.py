"""A release that Helm installed is taken over by a chart of the same name, and stays what it is."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.plan.helm_releases import LABEL, NAME, NAMESPACE
from provisioner.values import ObjectRef
from tests.support.journeys.station import Station
from tests.support.servers.http import GitServer

SETTINGS = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {app.kubernetes.io/managed-by: '{{ .Release.Service }}'}}\n"
    "data: {size: '{{ .Values.size }}'}\n"
)


def live(station: Station, kind: str, name: str) -> Any:
    return station.api.get(ObjectRef("", "v1", kind, station.namespace, name))


def install(station: Station) -> None:
    """As `helm install shop` left it."""
    about = {"namespace": station.namespace}
    marks = {NAME: "shop", NAMESPACE: station.namespace}
    meta = {**about, "name": "settings", "labels": {LABEL: "Helm"}, "annotations": marks}
    station.api.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"size": "1", "old": "x"}},
        field_manager="helm",
    )
    labels = {"owner": "helm", "name": "shop", "status": "deployed", "version": "1"}
    record = {**about, "name": "sh.helm.release.v1.shop.v1", "labels": labels}
    station.api.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": record,
            "type": "helm.sh/release.v1",
            "stringData": {"release": "canary"},
        }
    )


@pytest.mark.proof
def test_a_release_is_taken_over_with_its_record(station: Station, git_server: GitServer) -> None:
    repository = git_server.repository(station.namespace)
    repository.commit(
        {
            "chart/Chart.yaml": b"apiVersion: v2\nname: shop\nversion: 1.0.0\n",
            "chart/values.yaml": b"size: 2\n",
            "chart/templates/settings.yaml": SETTINGS.encode(),
        }
    )
    install(station)
    git = {"repository": repository.url, "ref": {"branch": "main"}, "directory": "chart"}
    source = {"kind": "git", "git": git}
    wished = station.prepare(station.namespace, source, format="helm")
    report = station.latest(wished).reports.latest("round")
    assert report.actions["adopt"] == 1
    assert report.findings.filter(rule="OWN-02").exists(), "nobody said that the release may be taken over"
    wished = station.prepare(station.namespace, source, format="helm", adoptHelmRelease="shop")
    report = station.latest(wished).reports.latest("round")
    assert (report.actions["adopt"], report.actions["delete"]) == (1, 1)
    assert not report.findings.filter(rule="OWN-02").exists()
    assert "canary" not in str(report.body)
    request = station.approve(wished)
    assert request.state == "applied", request.problem
    settings = live(station, "ConfigMap", "settings")
    assert settings["data"] == {"size": "2", "old": "x"}
    assert NAME not in (settings["metadata"].get("annotations") or {})
    assert live(station, "Secret", "sh.helm.release.v1.shop.v1") is None
    assert [item.name for item in wished.inventory.all()] == ["settings"]
