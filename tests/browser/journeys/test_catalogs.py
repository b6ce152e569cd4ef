"""From the list of catalogs to the form that installs a version, with an operator of the corpus, in Chromium."""

from __future__ import annotations

import json

import playwright.sync_api as pw
import pytest
from django.utils import timezone

from approvals.catalogs.schedule import observe_catalog
from approvals.models import Catalog
from approvals.steps.catalogs.refresh import RefreshCatalog
from approvals.working import do
from provisioner.api_groups import OWN_GROUP
from tests.browser.complaints import complaints, listen
from tests.browser.journeys.conftest import Offices
from tests.browser.journeys.office import Office
from tests.support.journeys.contents.catalogs import KIALI, documents, source

VERSIONS = ("1.32.0", "1.33.0", "1.34.0")


def offer(it: Office, name: str) -> None:
    """A Catalog of the cluster that offers the operator, and is read."""
    origin = {"kind": "image", "image": {"ref": f"{it.registry.host}/{name}:latest"}}
    text = "\n".join(json.dumps(one) for one in documents(it.registry, KIALI, VERSIONS))
    it.registry.push(f"{it.registry.host}/{name}:latest", {"catalog.json": text.encode()})
    about = {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "Catalog", "metadata": {"name": name}}
    obj = it.site.api.apply({**about, "spec": {"source": origin}}, field_manager="somebody").object
    row = observe_catalog(cluster=it.site.cluster, obj=obj, writer=None)
    assert row is not None
    Catalog.objects.filter(pk=row.pk).update(look_at=timezone.now())
    do(RefreshCatalog(row.pk))


@pytest.mark.thorough
@pytest.mark.corpus
def test_somebody_finds_a_package_sees_what_runs_and_comes_to_the_form_of_a_version(office: Offices) -> None:
    it = office("kiali")
    hub = f"{it.site.namespace}-hub"
    rita = it.screen("rita", "/catalogs")
    pw.expect(rita.get_by_text("No catalogs.")).to_be_visible()
    offer(it, hub)
    it.site.applied(it.name, source(hub, KIALI, version="<1.33.0"), format="registry-v1")

    # By keyboard to the list, by search to the package.
    rita = it.screen("rita", "/")
    heard = listen(rita)
    for key in "gl":
        rita.keyboard.press(key)
    rita.wait_for_url("**/catalogs")
    rita.keyboard.press("j")
    rita.keyboard.press("Enter")
    pw.expect(rita.get_by_role("heading", level=1)).to_contain_text(hub)
    rita.keyboard.press("/")
    rita.keyboard.type("kiali")
    rita.keyboard.press("Enter")
    rita.get_by_role("cell").get_by_role("link", name=KIALI, exact=True).first.click()

    # What runs, and what may follow it, in the picture and in words.
    deployed = rita.get_by_role("region", name="Deployed on").first
    pw.expect(deployed.get_by_role("row").filter(has_text=it.name)).to_contain_text("1.32.0")
    pw.expect(rita.get_by_role("img", name="Upgrades in channel stable")).to_be_visible()
    pw.expect(rita.locator("svg .edge-running")).to_have_count(2)
    table = rita.get_by_role("table", name="Versions of channel stable")
    pw.expect(table.get_by_role("row").filter(has_text="kiali-operator.v1.33.0").first).to_contain_text("1.33.0")
    pw.expect(table.get_by_role("row").filter(has_text=it.name)).to_contain_text("1.32.0")
    assert complaints(rita) == []

    table.get_by_role("link", name="Install 1.33.0").click()
    rita.wait_for_url("**/deployments/new?*")
    wanted = f"cluster=journey&catalog={hub}&package={KIALI}&channel=stable&version=1.33.0"
    assert rita.url.endswith(f"/deployments/new?{wanted}")
    pw.expect(rita.get_by_role("heading", level=1)).to_have_text("New deployment")
    assert heard == []
