"""A deployment from its form to its deletion: changes requested, agreed on by two at once, live, drifted, rolled back."""

from __future__ import annotations

from typing import Any

import playwright.sync_api as pw
import pytest

from approvals.models import Request, Review, Revision
from approvals.web import home
from tests.browser.complaints import listen
from tests.browser.journeys.conftest import Offices
from tests.browser.journeys.office import Office
from tests.browser.tabs import press
from tests.support.journeys.running import Watched


@pytest.fixture(autouse=True)
def two_must_agree(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    monkeypatch.setattr(home, "SECONDS", 1)


def fill_form(page: pw.Page, office: Office) -> None:
    page.get_by_label("Name", exact=True).fill(office.name)
    page.get_by_label("Install namespace", exact=True).fill(office.site.namespace)
    page.get_by_label("ServiceAccount", exact=True).fill("installer")
    page.get_by_label("Image", exact=True).fill(office.image("1"))
    press(page, "Request this deployment")


def change_to(page: pw.Page, office: Office, version: str) -> None:
    page.get_by_label("Image", exact=True).fill(office.image(version))
    press(page, "Request this change")
    office.work()


def test_a_deployment_from_its_form_to_its_deletion(office: Offices) -> None:
    it = office("life")
    rita = it.screen("rita", "/deployments/new")
    heard = listen(rita)
    fill_form(rita, it)
    it.work()

    # Alice asks for changes, and rita is told.
    alice = it.screen("alice", it.at_request)
    alice.get_by_label("Reason").fill("use version 2")
    press(alice, "Request changes")
    rita = it.screen("rita", "/home")
    pw.expect(rita.get_by_role("main")).to_contain_text("use version 2")
    rita.get_by_role("region", name="My latest requests").get_by_role("link", name=it.name).click()
    pw.expect(rita.get_by_role("heading", name="This request needs changes, requested by alice")).to_be_visible()
    rita.get_by_role("link", name="Change it").click()
    change_to(rita, it, "2")
    assert list(Request.objects.order_by("number").values_list("state", flat=True)) == ["superseded", "in_review"]

    # Who asked for changes sees what differs; two agree in the same moment, and both count.
    alice = it.screen("alice", it.at_request)
    pw.expect(alice.get_by_role("heading", name="Since your review")).to_be_visible()
    rita = it.screen("rita", it.at_request)
    it.approve_at_once("alice", "carol")
    assert Review.objects.filter(request=it.request, decision="Approve").count() == 2
    pw.expect(rita.locator("#progress")).to_contain_text("2 of 2 approvals")

    # Rita's page shows by itself how it is applied, and ends.
    it.work()
    assert it.request.verdicts.count() == 1
    pw.expect(rita.locator("#progress")).to_contain_text("3 of 3 objects")
    pw.expect(rita.locator("#progress .label", has_text="applied").first).to_be_visible()
    pw.expect(rita.locator("#progress[hx-get]")).to_have_count(0)
    assert it.live()["data"] == {"version": "2"}

    # A next version, so that there is something to go back to.
    rita = it.screen("rita", it.at_deployment)
    rita.get_by_role("link", name="Change", exact=True).click()
    change_to(rita, it, "3")
    it.approve_at_once("alice", "carol")
    it.work()
    assert it.live()["data"] == {"version": "3"}

    goes_back_and_goes(it)
    assert heard == []


def goes_back_and_goes(it: Office) -> None:
    """Drift is told and undone; revision 1 comes back; the deployment is deleted."""
    running = Watched(it.site, it.deployment)
    running.edit(lambda live: live["data"].update(version="mallory"))
    running.look()
    drift = it.screen("rita", it.at_deployment).get_by_role("region", name="Drift")
    pw.expect(drift).to_contain_text(f"ConfigMap {it.site.namespace}/{it.name}")
    pw.expect(drift.get_by_role("row", name="data.version")).to_contain_text("kubectl-edit")
    pw.expect(drift).to_contain_text("corrected")
    assert it.live()["data"] == {"version": "3"}

    rita = it.screen("rita", it.at_deployment)
    press(rita, "Request rollback to revision 1")
    pw.expect(rita.get_by_role("status").first).to_contain_text("Rollback to revision 1 requested")
    it.work()
    it.approve_at_once("alice", "carol")
    it.work()
    pw.expect(rita.locator("#progress")).to_contain_text("3 of 3 objects")
    assert it.live()["data"] == {"version": "2"}
    assert list(Revision.objects.order_by("number").values_list("state", flat=True)) == [
        "replaced",
        "replaced",
        "active",
    ]

    rita = it.screen("rita", it.at_deployment)
    rita.get_by_text("Delete", exact=True).click()
    press(rita, "Request deletion")
    pw.expect(rita.get_by_role("alert")).to_contain_text(f"Type the name {it.name}")
    rita.get_by_label(f"Type {it.name}").fill(it.name)
    press(rita, "Request deletion")
    it.work()
    assert it.live() is not None
    it.approve_at_once("alice", "carol")
    it.work()
    assert it.live() is None
    page = it.screen("alice", it.at_deployment)
    pw.expect(page.get_by_role("main")).to_contain_text("It was deleted from the cluster")
    assert page.get_by_role("button", name="Request rollback").count() == 0
