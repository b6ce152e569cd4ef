"""A source, a format and a check of another package, from a wish to what runs; and broken ones beside them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from approvals.models import BundleDeployment, Request
from provisioner.plugins import PluginGroup
from provisioner.values import ObjectRef
from tests.support.approvals.world import enter
from tests.support.journeys.station import Station
from tests.support.plugins import PluginPath
from tests.support.servers.downloads import served

STORM = """
from provisioner.review.base.facts import Check

def render(tree, rendering):
    raise SystemExit("out of here")

def fetch(source, *, egress, max_bytes):
    return "nonsense"

def look(facts):
    raise GeneratorExit

CHECK = Check("storm", changes=look)
"""
FORMATS, SOURCES, CHECKS = PluginGroup.FORMATS, PluginGroup.SOURCES, PluginGroup.CHECKS


def write_table(folder: Path, **metres: float) -> str:
    """What the gauge says from now on; returns its digest."""
    folder.mkdir(exist_ok=True)
    text = json.dumps({"ports": [{"name": name, "metres": height} for name, height in metres.items()]})
    (folder / "tides.json").write_text(text)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def gauge(url: str, **more: Any) -> dict[str, Any]:
    return {"kind": "tide-gauge", "parameters": {"url": f"{url}/tides.json", **more}}


def measured(station: Station, port: str) -> str | None:
    found = station.live("ConfigMap", f"tide-{port}")
    return str(found["data"]["metres"]) if found else None


def found_in(request: Request, rule: str) -> list[dict[str, Any]]:
    body = request.reports.get(round=request.round).body
    return [one for one in body["findings"] if one["rule"] == rule]


def wish_without(station: Station, folder: Path, url: str) -> BundleDeployment:
    """A deployment without plug-ins."""
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n"
    (folder / "beside.yaml").write_text(manifest)
    checksum = f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}"
    http = {"url": f"{url}/beside.yaml", "checksum": checksum}
    return station.wish(f"{station.namespace}-plain", {"kind": "http", "http": http})


def test_a_deployment_uses_all_three_plugins_and_runs_what_was_reviewed(
    station: Station, tides: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "gauge"
    digest = write_table(folder, east=7.25, west=3)
    with served(folder) as url:
        source = {**gauge(url, auth={"secret": {"name": "not-there"}}), "destination": "north"}
        wished = station.prepare(station.namespace, source, format="tide-table", config={"labels": {"sea": "north"}})
        request = station.latest(wished)
        assert request.state == "in_review", request.problem
        pin = {"kind": "tide-gauge", "reference": f"{url}/tides.json", "digest": digest, "destination": "north"}
        assert request.pins == [pin]
        (flood,) = found_in(request, "TIDE-01")
        assert flood["message"] == "High water at east is 7.25 m, and its quay has 5.0 m"
        assert found_in(request, "CRASHED") == []
        write_table(folder, east=9)
        assert station.approve(wished).state == "applied"
    assert (measured(station, "east"), measured(station, "west")) == ("7.25", "3.0")
    live = station.live("ConfigMap", "tide-east")
    assert live["metadata"]["labels"]["sea"] == "north"
    station.look_after(wished)
    ref = ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", station.namespace)
    assert station.api.get(ref)["status"]["pins"] == [f"tide-gauge:{digest}"]


def test_what_a_gauge_says_later_is_another_request(sandbox_station: Station, tides: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gauge"
    write_table(folder, east=1)
    with served(folder) as url:
        wished = sandbox_station.applied(sandbox_station.namespace, gauge(url), format="tide-table")
        second = write_table(folder, east=2)
        sandbox_station.prepare(sandbox_station.namespace, gauge(url, edition=2), format="tide-table")
        assert (sandbox_station.latest(wished).pins[0]["digest"], measured(sandbox_station, "east")) == (second, "1.0")
        assert sandbox_station.approve(wished).state == "applied"
    assert measured(sandbox_station, "east") == "2.0"


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        pytest.param(None, {"format": "storm-surge"}, "the format storm-surge of the package storm 1", id="format"),
        pytest.param({"kind": "storm-cloud"}, {}, "the source storm-cloud of the package storm 1", id="source"),
    ],
)
def test_a_broken_one_fails_the_request_that_asked_for_it_in_its_name_and_nothing_else(
    source: dict[str, Any] | None,
    more: dict[str, Any],
    words: str,
    sandbox_station: Station,
    tides: Path,
    plugin_path: PluginPath,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "gauge"
    points = {FORMATS: {"storm-surge": "storm:render"}, SOURCES: {"storm-cloud": "storm:fetch"}}
    plugin_path.add("storm", points, STORM)
    write_table(folder, east=1)
    with served(folder) as url:
        broken = sandbox_station.wish(f"{sandbox_station.namespace}-broken", source or gauge(url), **more)
        good = sandbox_station.wish(f"{sandbox_station.namespace}-good", gauge(url), format="tide-table")
        plain = wish_without(sandbox_station, folder, url)
        sandbox_station.work()
    failed = sandbox_station.latest(broken)
    assert (failed.state, failed.problem_code) == ("failed", "plugin-failed")
    assert words in failed.problem
    assert [sandbox_station.latest(one).state for one in (good, plain)] == ["in_review", "in_review"]


def test_a_broken_check_makes_every_report_unknown_by_its_name_and_stops_none(
    sandbox_station: Station, tides: Path, plugin_path: PluginPath, tmp_path: Path, client: Client
) -> None:
    folder = tmp_path / "gauge"
    plugin_path.add("storm", {CHECKS: {"storm-watch": "storm:CHECK"}}, STORM)
    write_table(folder, east=7)
    with served(folder) as url:
        wished = sandbox_station.wish(f"{sandbox_station.namespace}-tides", gauge(url), format="tide-table")
        plain = wish_without(sandbox_station, folder, url)
        sandbox_station.work()
    for one in (wished, plain):
        (crash,) = found_in(sandbox_station.latest(one), "CRASHED")
        assert crash["severity"] == "unknown"
        assert "the check storm-watch of the package storm 1 failed (GeneratorExit" in crash["message"]
    request = sandbox_station.latest(wished)
    assert len(found_in(request, "TIDE-01")) == 1
    enter(client, sandbox_station.people["alice"])
    page = client.get(f"/requests/{request.uid}/findings").content.decode()
    told = str(client.get(f"/api/v1/requests/{request.uid}/report").json())
    for shown in (page, told):
        assert "High water at east is 7.0 m" in shown
        assert "the check storm-watch of the package storm 1 failed" in shown
    assert sandbox_station.approve(plain).state == "applied"


def test_what_a_source_cannot_reach_yet_is_tried_again(sandbox_station: Station, tides: Path) -> None:
    wished = sandbox_station.prepare(sandbox_station.namespace, gauge("http://127.0.0.1:1"), format="tide-table")
    request = sandbox_station.latest(wished)
    assert (request.state, request.problem_code) == ("preparing", "unreachable")
    assert "the source tide-gauge of the package pratique-tides 1.0.0" in request.problem
