"""A tag that nobody touched in the spec comes to stand for a lower version of a chart or of an operator bundle."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from approvals.models import BundleDeployment
from tests.support.journeys.contents.catalogs import harbour
from tests.support.journeys.floating import found, look
from tests.support.journeys.station import Station
from tests.support.servers.registry import Registry

Files = Mapping[str, bytes | str]


def chart(version: str) -> Files:
    return {
        "Chart.yaml": f"apiVersion: v2\nname: harbour\nversion: {version}\n",
        "templates/a.yaml": (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: harbour}\ndata: {version: {{ .Chart.Version | quote }}}\n"
        ),
    }


def moved(station: Station, deployment: BundleDeployment) -> list[str]:
    """What is found of a request that nobody asked for."""
    look(deployment)
    station.work()
    request = station.latest(deployment)
    assert (request.state, request.is_unattended) == ("in_review", True), request.problem
    return [f"{one['severity']}: {one['message']}" for one in found(request, "SRC-03")]


@pytest.mark.proof
@pytest.mark.parametrize(("format_name", "files"), [("helm", chart), ("registry-v1", harbour)], ids=["chart", "bundle"])
def test_a_tag_that_comes_to_stand_for_a_lower_version_is_found(
    any_station: Station, registry: Registry, format_name: str, files: Callable[[str], Files]
) -> None:
    station, name = any_station, f"{any_station.namespace}-lower"
    ref = f"{registry.host}/{name}:stable"
    registry.push(ref, files("1.1.0"))
    deployment = station.wish(name, {"kind": "image", "image": {"ref": ref}, "interval": "5m"}, format=format_name)
    station.work()
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
    registry.push(ref, files("1.2.0"))
    assert moved(station, deployment) == []
    assert station.approve(deployment).state == "applied"
    registry.push(ref, files("1.0.0"))
    assert moved(station, deployment) == [
        "dangerous: the bundle claims version 1.0.0, lower than 1.2.0 of revision 2",
    ]
