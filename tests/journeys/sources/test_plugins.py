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
from tests.support.journeys.deployed_site import DeployedSite
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


def measured(site: DeployedSite, port: str) -> str | None:
    found = site.live("ConfigMap", f"tide-{port}")
    return str(found["data"]["metres"]) if found else None


def found_in(request: Request, rule: str) -> list[dict[str, Any]]:
    body = request.reports.get(round=request.round).body
    return [one for one in body["findings"] if one["rule"] == rule]


def wish_without(site: DeployedSite, folder: Path, url: str) -> BundleDeployment:
    """A deployment without plug-ins."""
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n"
    (folder / "beside.yaml").write_text(manifest)
    checksum = f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}"
    http = {"url": f"{url}/beside.yaml", "checksum": checksum}
    return site.submit_spec(f"{site.namespace}-plain", {"kind": "http", "http": http})


def test_a_deployment_uses_all_three_plugins_and_runs_what_was_reviewed(
    site: DeployedSite, tides: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "gauge"
    digest = write_table(folder, east=7.25, west=3)
    with served(folder) as url:
        source = {**gauge(url, auth={"secret": {"name": "not-there"}}), "destination": "north"}
        wished = site.prepare(site.namespace, source, format="tide-table", config={"labels": {"sea": "north"}})
        request = site.latest(wished)
        assert request.state == "in_review", request.problem
        pin = {"kind": "tide-gauge", "reference": f"{url}/tides.json", "digest": digest, "destination": "north"}
        assert request.pins == [pin]
        (flood,) = found_in(request, "TIDE-01")
        assert flood["message"] == "High water at east is 7.25 m, and its quay has 5.0 m"
        assert found_in(request, "CRASHED") == []
        write_table(folder, east=9)
        assert site.approve(wished).state == "applied"
    assert (measured(site, "east"), measured(site, "west")) == ("7.25", "3.0")
    live = site.live("ConfigMap", "tide-east")
    assert live["metadata"]["labels"]["sea"] == "north"
    site.look_after(wished)
    ref = ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", site.namespace)
    assert site.api.get(ref)["status"]["pins"] == [f"tide-gauge:{digest}"]


def test_what_a_gauge_says_later_is_another_request(sandbox_site: DeployedSite, tides: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gauge"
    write_table(folder, east=1)
    with served(folder) as url:
        wished = sandbox_site.applied(sandbox_site.namespace, gauge(url), format="tide-table")
        second = write_table(folder, east=2)
        sandbox_site.prepare(sandbox_site.namespace, gauge(url, edition=2), format="tide-table")
        assert (sandbox_site.latest(wished).pins[0]["digest"], measured(sandbox_site, "east")) == (second, "1.0")
        assert sandbox_site.approve(wished).state == "applied"
    assert measured(sandbox_site, "east") == "2.0"


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
    sandbox_site: DeployedSite,
    tides: Path,
    plugin_path: PluginPath,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "gauge"
    points = {FORMATS: {"storm-surge": "storm:render"}, SOURCES: {"storm-cloud": "storm:fetch"}}
    plugin_path.add("storm", points, STORM)
    write_table(folder, east=1)
    with served(folder) as url:
        broken = sandbox_site.submit_spec(f"{sandbox_site.namespace}-broken", source or gauge(url), **more)
        good = sandbox_site.submit_spec(f"{sandbox_site.namespace}-good", gauge(url), format="tide-table")
        plain = wish_without(sandbox_site, folder, url)
        sandbox_site.work()
    failed = sandbox_site.latest(broken)
    assert (failed.state, failed.problem_code) == ("failed", "plugin-failed")
    assert words in failed.problem
    assert [sandbox_site.latest(one).state for one in (good, plain)] == ["in_review", "in_review"]


def test_a_broken_check_makes_every_report_unknown_by_its_name_and_stops_none(
    sandbox_site: DeployedSite, tides: Path, plugin_path: PluginPath, tmp_path: Path, client: Client
) -> None:
    folder = tmp_path / "gauge"
    plugin_path.add("storm", {CHECKS: {"storm-watch": "storm:CHECK"}}, STORM)
    write_table(folder, east=7)
    with served(folder) as url:
        wished = sandbox_site.submit_spec(f"{sandbox_site.namespace}-tides", gauge(url), format="tide-table")
        plain = wish_without(sandbox_site, folder, url)
        sandbox_site.work()
    for one in (wished, plain):
        (crash,) = found_in(sandbox_site.latest(one), "CRASHED")
        assert crash["severity"] == "unknown"
        assert "the check storm-watch of the package storm 1 failed (GeneratorExit" in crash["message"]
    request = sandbox_site.latest(wished)
    assert len(found_in(request, "TIDE-01")) == 1
    enter(client, sandbox_site.people["alice"])
    page = client.get(f"/requests/{request.uid}/findings").content.decode()
    told = str(client.get(f"/api/v1/requests/{request.uid}/report").json())
    for shown in (page, told):
        assert "High water at east is 7.0 m" in shown
        assert "the check storm-watch of the package storm 1 failed" in shown
    assert sandbox_site.approve(plain).state == "applied"


def test_what_a_source_cannot_reach_yet_is_tried_again(sandbox_site: DeployedSite, tides: Path) -> None:
    wished = sandbox_site.prepare(sandbox_site.namespace, gauge("http://127.0.0.1:1"), format="tide-table")
    request = sandbox_site.latest(wished)
    assert (request.state, request.problem_code) == ("preparing", "unreachable")
    assert "the source tide-gauge of the package pratique-tides 1.0.0" in request.problem
