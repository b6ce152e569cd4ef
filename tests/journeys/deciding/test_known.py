"""What was found and approved last time is not new in the next request."""

from __future__ import annotations

import pytest

from approvals.models import Request
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import Registry

REPEATED = {"SEC-04", "LIV-07", "AVL-05", "SCH-37"}


@pytest.mark.proof
def test_what_the_report_of_what_runs_has_as_well_is_not_new(site: DeployedSite, registry: Registry) -> None:
    name = f"{site.namespace}-known"
    kind = name.replace("-", "").capitalize()

    def ask(version: int) -> Request:
        env = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "gone", "key": "a"}}}
        pod = {"containers": [{"name": "main", "image": f"registry.example.com/web:{version}", "env": [env]}]}
        labels = {"app": "web"}
        definition = bundles.definition(
            "example.com", kind, schema={"type": "object", "description": f"As of {version}"}
        )
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels}, "template": template}
        web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
        files = bundles.manifests(definition, web)
        deployment = site.prepare(name, bundles.image(registry, f"{name}-{version}", files))
        return site.latest(deployment)

    first = site.approve(ask(1).deployment)
    second = site.approve(ask(2).deployment)
    assert (first.state, second.state) == ("applied", "applied")
    before, now = (one.reports.get().body["findings"] for one in (second, ask(3)))
    known = {one["fingerprint"] for one in before}
    assert {one["rule"] for one in before if one["isNew"]} >= {"AVL-05", "LIV-07", "SCH-37"}
    assert {one["rule"] for one in now if not one["isNew"]} >= REPEATED
    assert not [one["rule"] for one in now if one["isNew"] and one["fingerprint"] in known]
