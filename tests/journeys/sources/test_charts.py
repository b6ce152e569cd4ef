"""A chart from a git repository, with values from a ConfigMap and manifests beside it, over its whole life."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.values import Identity
from tests.support.journeys.station import Station, group, role
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


def ask_for(station: Station, repository: Any, text: str, **config: Any) -> Any:
    """The chart, its values in a ConfigMap, and a manifest of the same repository beside it."""
    name = station.namespace
    git = {"repository": repository.url, "ref": {"branch": "main"}}
    return station.wish(
        name,
        {"kind": "git", "git": {**git, "directory": "chart"}, "destination": "chart"},
        {"kind": "git", "git": {**git, "directory": "beside"}, "destination": "beside"},
        {"kind": "configMap", "configMap": {"name": "chart-values"}, "destination": "values"},
        format="helm",
        config={"valuesFiles": ["values/values.yaml"], "values": {"text": text}, **config},
    )


def store_values(station: Station, more: str) -> None:
    """Values in a ConfigMap, which requesters may get."""
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "chart-values", "namespace": station.namespace},
        "data": {"values.yaml": f"more: {more}\n"},
    }
    station.api.apply(obj, field_manager="test")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["chart-values"], "verbs": ["get"]}
    for each in role("get-chart-values", station.namespace, rule, group("requesters")):
        station.api.apply(each, field_manager="test")
    station.until_may(Identity("rita", ("requesters",)), "get", "configmaps", name="chart-values")


def seen(station: Station, name: str) -> dict[str, str] | None:
    found = station.live("ConfigMap", name)
    return dict(found["data"]) if found else None


@pytest.mark.proof
def test_a_chart_is_installed_upgraded_put_back_and_deleted(station: Station, git_server: GitServer) -> None:
    name = station.namespace
    repository = git_server.repository(name)
    beside = {
        "beside/a.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\ndata: {text: '{{ as is }}'}\n"
    }
    repository.commit({**chart("shop"), **beside})
    store_values(station, "stored")
    wished = ask_for(station, repository, "one")
    station.work()
    first = station.approve(wished)
    assert first.state == "applied", first.problem
    version = station.api.version()
    told = {"version": version, "served": "true", "old": "false"}
    assert seen(station, "shop-seen") == {"text": "one stored", "upgrade": "false", **told}
    assert seen(station, "beside") == {"text": "{{ as is }}"}
    ask_for(station, repository, "two")
    station.work()
    assert station.approve(wished).state == "applied"
    assert seen(station, "shop-seen") == {"text": "two stored", "upgrade": "true", **told}
    station.roll_back(wished, first.revision.number)
    station.work()
    assert station.approve(wished).state == "applied"
    assert seen(station, "shop-seen") == {"text": "one stored", "upgrade": "false", **told}
    station.look_after(wished)
    station.delete(wished)
    station.work()
    assert station.approve(wished).state == "applied"
    assert (seen(station, "shop-seen"), seen(station, "beside")) == (None, None)
