"""Who asked and who approved are told what became of it: on the request's page, in the list, at home and at the deployment."""

from __future__ import annotations

import playwright.sync_api as pw
import pytest

from tests.browser.journeys.conftest import Offices
from tests.browser.journeys.office import Office
from tests.browser.tabs import press


def row_of(page: pw.Page, it: Office) -> pw.Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=it.name, exact=True)).first


@pytest.mark.thorough
def test_who_asked_is_told_of_a_denial_wherever_they_look(office: Offices) -> None:
    it = office("denied")
    it.submit_spec("1")
    alice = it.screen("alice", it.at_request)
    alice.get_by_label("Reason").fill("not on a Friday")
    press(alice, "Deny")
    it.work()

    rita = it.screen("rita", it.at_request)
    pw.expect(rita.get_by_role("heading", name="This request was denied by alice")).to_be_visible()
    pw.expect(rita.get_by_role("main")).to_contain_text("Not on a Friday.")
    row = row_of(it.screen("rita", "/?tab=mine"), it)
    for words in ("denied", "by alice", "Not on a Friday."):
        pw.expect(row).to_contain_text(words)
    rita = it.screen("rita", "/home")
    pw.expect(rita.get_by_role("region", name="What happened")).to_contain_text("not on a Friday")
    pw.expect(rita.get_by_role("region", name="My latest requests")).to_contain_text("denied")
    rita = it.screen("rita", it.at_deployment)
    pw.expect(rita.locator("#progress")).to_contain_text("Not on a Friday.")
    press(rita, "Ask again")
    assert it.request.number == 2


@pytest.mark.thorough
def test_who_approved_is_told_that_it_no_longer_counts_wherever_they_look(office: Offices) -> None:
    it = office("voided")
    it.submit_spec("1")
    it.approve_at_once("alice")
    it.work()
    it.submit_spec("2")
    it.approve_at_once("alice")
    it.site.api.delete(it.site.ref("ConfigMap", it.name))
    it.work()
    assert (it.request.state, it.request.round) == ("in_review", 2)

    alice = it.screen("alice", it.at_request)
    banner = alice.get_by_role("region", name="Your approval no longer counts")
    pw.expect(banner).to_contain_text("the plan changed")
    pw.expect(banner).to_contain_text(f"ConfigMap {it.site.namespace}/{it.name}: reviewed as update, now create")
    banner.get_by_role("link", name="Review this round").click()
    pw.expect(alice.get_by_role("heading", name="Decision")).to_be_in_viewport()
    row = row_of(it.screen("alice", "/?tab=needs-me"), it)
    pw.expect(row).to_contain_text("your approval no longer counts")
    alice = it.screen("alice", "/home")
    needed = alice.get_by_role("region", name="Needs a decision")
    pw.expect(needed.get_by_role("link", name=it.name)).to_be_visible()
    pw.expect(needed).to_contain_text("Your approval no longer counts")
    pw.expect(alice.get_by_role("region", name="What happened")).to_contain_text("earlier approvals no longer count")
    it.approve_at_once("alice")
    it.work()
    assert it.live()["data"] == {"version": "2"}
