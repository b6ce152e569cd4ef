"""A first request over what kubectl runs: whoever may get the objects sees what adopting them would do."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.errors import Collides
from approvals.models import InventoryItem
from provisioner.render import BUILT_IN, Rendering, render_content
from provisioner.values import ObjectRef, Tree
from tests.support.journeys.channels import channels, leaks
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.http import GitServer

CANARY = "zqcanaryzq"
NAMES = {"ConfigMap": "settings", "Service": "web", "Deployment": "web"}
MARK = "labels: {app.kubernetes.io/managed-by: '{{ .Release.Service }}'}"
SETTINGS = f"""\
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, {MARK}}}
data: {{size: '{{{{ .Values.size }}}}'%s}}
"""
WEB = f"""\
apiVersion: v1
kind: Service
metadata: {{name: web, {MARK}}}
spec: {{selector: {{app: web}}, ports: [{{name: http, port: 80}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, {MARK}}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: main, image: 'registry.example.com/web:1'}}]}}
"""


def chart(more: str = "") -> dict[str, bytes]:
    return {
        "Chart.yaml": b"apiVersion: v2\nname: shop\nversion: 1.0.0\n",
        "values.yaml": b"size: 2\n",
        "templates/settings.yaml": (SETTINGS % more).encode(),
        "templates/web.yaml": WEB.encode(),
    }


def apply_as_kubectl_does(site: DeployedSite, folder: Path) -> None:
    """`helm template | kubectl apply`, and a value that only the cluster has."""
    rendering = Rendering("helm", site.namespace, "installer", BUILT_IN.get)
    rendered = render_content(Tree(chart()), rendering, pins=())
    objects: list[Any] = [one.body for one in rendered.manifests]
    next(one for one in objects if one["kind"] == "ConfigMap")["data"]["theirs"] = CANARY
    file = folder / "rendered.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    site.ctl("apply", "--namespace", site.namespace, "-f", str(file))


def live(site: DeployedSite, kind: str) -> Any:
    group = "apps" if kind == "Deployment" else ""
    return site.api.get(ObjectRef(group, "v1", kind, site.namespace, NAMES[kind]))


@pytest.mark.proof
def test_S09_a_first_request_over_a_chart_that_kubectl_applied_is_seen_by_who_may_and_adopted(
    real_site: DeployedSite, git_server: GitServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    apply_as_kubectl_does(real_site, tmp_path)
    before = {kind: live(real_site, kind) for kind in NAMES}
    repository = git_server.repository(real_site.namespace)
    repository.commit({f"chart/{name}": text for name, text in chart(", fresh: '3'").items()})
    source = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}, "directory": "chart"}}
    deployment = real_site.prepare(real_site.namespace, source, format="helm")
    real_site.look_after(deployment)
    request = real_site.latest(deployment)
    assert (request.state, request.problem_code) == ("in_review", "collides")

    texts = {"a value": CANARY, "who wrote it": "kubectl-client-side-apply"}
    assert leaks(channels(real_site, request, "carol", caplog), texts) == []
    seen = channels(real_site, request, "alice", caplog)
    rest, page = ("".join(text for name, text in seen.items() if name.startswith(door)) for door in ("REST", "page /"))
    owned = "3 objects belong to nobody by their marks (written by kubectl-client-side-apply)"
    for told in (rest, page):
        assert owned in told
        assert "spec.collisionProtection: IfNoController" in told
        assert CANARY in told
        assert "fresh" in told
    with pytest.raises(Collides, match="IfNoController"):
        real_site.approve(deployment)

    real_site.prepare(real_site.namespace, source, format="helm", collisionProtection="IfNoController")
    request = real_site.approve(deployment)
    assert request.state == "applied", request.problem
    after = {kind: live(real_site, kind) for kind in NAMES}
    assert after["ConfigMap"]["data"] == {"size": "2", "theirs": CANARY, "fresh": "3"}
    assert after["Deployment"]["spec"] == before["Deployment"]["spec"]
    held = dict(InventoryItem.objects.filter(deployment=deployment).values_list("kind", "uid"))
    assert held == {kind: one["metadata"]["uid"] for kind, one in before.items()}
