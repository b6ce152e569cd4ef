"""The whole way of a request by keyboard alone, and without scripts."""

from __future__ import annotations

import playwright.sync_api as pw
import pytest

from tests.browser.journeys.conftest import Offices
from tests.browser.journeys.office import Office
from tests.browser.tabs import press

MOST_TABS = 120


def tab_to(page: pw.Page, what: str) -> None:
    """Press Tab until this has the focus, as somebody does who has no mouse."""
    for _ in range(MOST_TABS):
        if page.evaluate("what => document.activeElement.matches(what)", what):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{what} is never reached by Tab")


def type_into(page: pw.Page, what: str, text: str) -> None:
    tab_to(page, what)
    page.keyboard.type(text)


def enter(page: pw.Page) -> None:
    with page.expect_navigation():
        page.keyboard.press("Enter")


def ask_by_keyboard(page: pw.Page, it: Office) -> None:
    for key in "gb":
        page.keyboard.press(key)
    page.wait_for_url("**/deployments")
    tab_to(page, "main a.button-primary")
    enter(page)
    type_into(page, "#id_name", it.name)
    type_into(page, "#id_install_namespace", it.site.namespace)
    type_into(page, "#id_service_account", "installer")
    type_into(page, "#id_image", it.image("1"))
    enter(page)
    pw.expect(page.get_by_role("heading", level=1)).to_contain_text(it.name)


@pytest.mark.thorough
def test_the_whole_way_by_keyboard_alone(office: Offices) -> None:
    it = office("keys")
    ask_by_keyboard(it.screen("rita", "/"), it)
    it.work()

    # From any page: three keys lead to the request, two more to its decision.
    alice = it.screen("alice", "/audit")
    for key in "gi":
        alice.keyboard.press(key)
    alice.wait_for_url(f"{it.address}/")
    alice.keyboard.press("j")
    enter(alice)
    for name in ("Findings", "Changes", "Activity", "Overview"):
        tab = alice.get_by_role("navigation", name="Request").get_by_role("link", name=name)
        tab.focus()
        enter(alice)
        pw.expect(alice.locator(".tabs [aria-current]")).to_have_text(name)
    for key in "gd":
        alice.keyboard.press(key)
    type_into(alice, "#reason", "I read every object")
    tab_to(alice, "button[value=Approve]")
    enter(alice)
    it.work()

    rita = it.screen("rita", "/?tab=mine")
    rita.keyboard.press("j")
    enter(rita)
    pw.expect(rita.locator("#progress")).to_contain_text("3 of 3 objects")
    for key in "gb":
        rita.keyboard.press(key)
    rita.wait_for_url("**/deployments")
    rita.keyboard.press("/")
    assert rita.evaluate("document.activeElement.name") == "search"
    rita.keyboard.type(it.name)
    enter(rita)
    rita.keyboard.press("j")
    enter(rita)
    tab_to(rita, "details.panel > summary")
    rita.keyboard.press("Enter")
    type_into(rita, "#typed", it.name)
    enter(rita)
    it.work()
    assert (it.request.purpose, it.request.state) == ("delete", "in_review")


@pytest.mark.thorough
def test_the_whole_way_without_scripts(office: Offices) -> None:
    it = office("bare")
    rita = it.screen("rita", "/deployments", java_script_enabled=False)
    rita.get_by_role("link", name="New deployment").click()
    rita.get_by_label("Name", exact=True).fill(it.name)
    rita.get_by_label("Install namespace", exact=True).fill(it.site.namespace)
    rita.get_by_label("ServiceAccount", exact=True).fill("installer")
    rita.get_by_label("Image", exact=True).fill(it.image("1"))
    press(rita, "Request this deployment")
    it.work()
    alice = it.screen("alice", "/", java_script_enabled=False)
    alice.get_by_role("link", name=it.name).click()
    alice.get_by_label("Reason").fill("use version 2")
    press(alice, "Request changes")
    rita = it.screen("rita", it.at_request)
    rita.get_by_role("link", name="Change it").click()
    rita.get_by_label("Image", exact=True).fill(it.image("2"))
    press(rita, "Request this change")
    it.work()
    it.approve_at_once("alice")
    it.work()
    rita = it.screen("rita", it.at_request)
    pw.expect(rita.locator("#progress")).to_contain_text("3 of 3 objects")
    rita.get_by_role("link", name=f"Deployment {it.name}").click()
    pw.expect(rita.locator("#runs + dl")).to_contain_text("3 ")

    # The next version is denied, comes again, runs, and makes room for the first one.
    rita.get_by_role("link", name="Change", exact=True).click()
    rita.get_by_label("Image", exact=True).fill(it.image("3"))
    press(rita, "Request this change")
    it.work()
    alice = it.screen("alice", it.at_request)
    alice.get_by_label("Reason").fill("not on a Friday")
    press(alice, "Deny")
    it.work()
    rita = it.screen("rita", it.at_request)
    pw.expect(rita.get_by_role("main")).to_contain_text("Not on a Friday.")
    press(rita, "Ask again")
    it.work()
    it.approve_at_once("alice")
    it.work()
    assert it.live()["data"] == {"version": "3"}
    press(it.screen("rita", it.at_deployment), "Request rollback to revision 1")
    it.work()
    it.approve_at_once("alice")
    it.work()
    assert it.live()["data"] == {"version": "2"}
    rita = it.screen("rita", it.at_deployment)
    rita.get_by_text("Delete", exact=True).click()
    rita.get_by_label(f"Type {it.name}").fill(it.name)
    press(rita, "Request deletion")
    it.work()
    it.approve_at_once("alice")
    it.work()
    assert it.live() is None
