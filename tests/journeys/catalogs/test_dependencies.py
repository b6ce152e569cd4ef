"""A bundle needs another package: its request says which would come first, and they are made when somebody asks."""

from __future__ import annotations

import pytest

from approvals import services
from approvals.models import BundleDeployment
from tests.support.approvals.world import acting
from tests.support.journeys.catalogs import named, offer
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.operator_bundles import GRAFANA, image
from tests.support.servers.registry import Registry

NEEDS = b"""\
dependencies:
- {type: olm.package, value: {packageName: harbour, version: '>=1.0.0 <2.0.0'}}
- {type: olm.gvk, value: {group: apps, version: v1, kind: Deployment}}
- {type: olm.gvk, value: {group: nowhere.example.com, version: v1, kind: Nothing}}
- type: olm.constraint
  value: {not: {constraints: [{package: {packageName: depot, versionRange: '>=0.0.1'}}]}}
"""


@pytest.mark.corpus
def test_what_a_bundle_needs_is_planned_made_and_then_there(sandbox_site: DeployedSite, registry: Registry) -> None:
    site = sandbox_site
    row = offer(registry, named(site, registry, f"{site.namespace}-hub"), "1.0.0", "1.1.0", "2.0.0")
    source = image(registry, GRAFANA / "v4.9.0", dependencies=NEEDS)
    config = {"watchNamespace": site.namespace}
    wished = site.prepare(f"{site.namespace}-grafana", source, format="registry+v1", config=config)
    request, rita = site.latest(wished), acting(site.people["rita"])
    assert request.state == "in_review", request.problem
    found = services.find_dependencies(by=rita, request=request)
    assert found is not None
    states = {need.need: str(need.state) for need in found.plan.needs}
    assert states == {
        "package harbour >=1.0.0 <2.0.0": "planned",
        "Deployment in apps/v1": "met",
        "Nothing in nowhere.example.com/v1": "unmet",
        "none of (package depot >=0.0.1)": "met",
    }
    (planned,) = found.deployments
    assert (planned.package.version, planned.package.catalog) == ("1.1.0", row.name)

    (made,) = services.make_dependencies(by=rita, request=request, digest=found.digest, via="browser")
    try:
        first = site.latest(made)
        assert (first.requesters[-1]["username"], first.is_requester_known) == ("rita", True)
        assert not first.reviews.exists()
        again = services.find_dependencies(by=rita, request=request)
        assert again is not None
        assert [str(need.state) for need in again.plan.needs][:1] == ["asked"]
        assert again.deployments == ()
    finally:
        site.delete(BundleDeployment.objects.get(pk=made.pk))
