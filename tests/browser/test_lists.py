"""Lists in a real browser: they follow what happens while they are open, and do not move under somebody's hand."""

from __future__ import annotations

import playwright.sync_api as pw
import pytest
from pytest_django.live_server_helper import LiveServer

from approvals.models import Request, Review
from approvals.web import home, inbox
from tests.browser.complaints import complaints, listen, wider_than
from tests.browser.conftest import SignIn
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.patience import wait_for


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "SECONDS", 1)
    monkeypatch.setattr(home, "SECONDS", 1)


def asked(env: World, name: str) -> Request:
    return world.in_review(scene.asked(env.cluster, name, env.rita), worst="notable")


def test_an_open_list_follows_what_happens(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    first = asked(env, "buoy")
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/?tab=open&sort=oldest")
    page.keyboard.press("j")
    focused = page.get_by_role("link", name="buoy")
    pw.expect(focused).to_be_focused()
    pw.expect(page.locator("#tabs a[aria-current]")).to_have_text("Open 1")
    asked(env, "tugboat")
    pw.expect(page.get_by_role("link", name="tugboat")).to_be_visible()
    pw.expect(page.locator("#tabs a[aria-current]")).to_have_text("Open 2")
    pw.expect(focused).to_be_focused()
    with page.expect_response("**/list?*") as same:
        pass
    assert same.value.status == 304
    Request.objects.filter(pk=first.pk).update(state="approved")
    pw.expect(page.locator("tr", has_text="buoy").get_by_text("waiting to be applied")).to_be_visible()
    assert heard == []


def test_rows_stay_where_they_are_while_some_are_ticked(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    asked(env, "buoy")
    page = sign_in(env.ada)
    page.goto(f"{live_server.url}/?tab=open")
    box = page.get_by_role("checkbox", name="Select buoy")
    box.check()
    asked(env, "tugboat")
    page.evaluate("document.addEventListener('htmx:beforeRequest', () => (window.tries = (window.tries || 0) + 1))")
    wait_for(lambda: page.evaluate("window.tries || 0"), "the list would ask", is_so=lambda tries: tries >= 2)
    pw.expect(box).to_be_checked()
    assert page.get_by_role("link", name="tugboat").count() == 0
    box.uncheck()
    pw.expect(page.get_by_role("link", name="tugboat")).to_be_visible()


@pytest.mark.thorough
def test_fifty_requests_are_decided_at_once_and_lead_back_to_the_same_filters(
    env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    # No requester may have so many at once.
    people = [world.user(f"rita-{number}", env.cluster, "requesters") for number in range(10)]
    names = [f"buoy-{number:02}" for number in range(51)]
    asked_for = [scene.asked(env.cluster, name, people[at % 10]) for at, name in enumerate(names)]
    made = [world.in_review(one, worst="notable") for one in asked_for]
    world.in_review(scene.asked(env.cluster, "buoy-reef", env.rita), worst="critical")
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/?tab=open&search=buoy&sort=worst")
    pw.expect(page.get_by_role("row")).to_have_count(51)
    pw.expect(page.get_by_role("button", name="Deny selected")).to_be_hidden()
    everything = page.get_by_role("checkbox", name="Select every request that you may decide")
    everything.check()
    pw.expect(page.locator("input[name=picked]:checked")).to_have_count(50)
    page.get_by_role("checkbox", name="Select buoy-reef").uncheck()
    pw.expect(everything).not_to_be_checked()
    everything.check()
    page.get_by_label("Reason for the selected requests").fill("read each of them")
    page.get_by_role("button", name="Approve selected").click()
    pw.expect(page.get_by_role("heading", level=1)).to_have_text("Approve 49 requests?")
    pw.expect(page.get_by_label("Reason")).to_have_value("read each of them")
    refused = page.get_by_role("row").filter(has_text="buoy-reef")
    pw.expect(refused).to_contain_text("Review it on its own page")
    assert complaints(page) == []
    page.get_by_role("button", name="Approve 49 requests").click()
    told = page.get_by_role("status").filter(has_text="recorded")
    pw.expect(told).to_contain_text("49 of 50 recorded")
    pw.expect(page.get_by_text("approval recorded")).to_have_count(49)
    page.get_by_role("link", name="Back to the requests").click()
    page.wait_for_url("**/?tab=open&search=buoy&sort=worst")
    assert Review.objects.filter(request__in=made, reason="read each of them").count() == 49
    assert heard == []


def test_home_follows_what_happens_and_is_marked_as_read(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    page.goto(f"{live_server.url}/home")
    pw.expect(page.get_by_text("Nothing is waiting for your decision")).to_be_visible()
    asked(env, "buoy")
    pw.expect(page.get_by_role("link", name="buoy")).to_be_visible()


def test_requests_are_selected_and_decided_on_by_keys(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    for name in ("buoy", "tugboat", "ferry"):
        asked(env, name)
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/?tab=open&sort=deployment")
    for key in ("j", "x", "j", "j", "x"):
        page.keyboard.press(key)
    pw.expect(page.get_by_role("checkbox", name="Select buoy")).to_be_checked()
    pw.expect(page.get_by_role("checkbox", name="Select ferry")).not_to_be_checked()
    page.keyboard.press("d")
    reason = page.get_by_label("Reason for the selected requests")
    pw.expect(reason).to_be_focused()
    page.keyboard.type("a reason, and no key of it does anything")
    page.keyboard.press("Enter")
    pw.expect(page.get_by_role("heading", level=1)).to_have_text("Requests")
    assert complaints(page) == []
    page.get_by_role("link", name="buoy").focus()
    page.keyboard.press("d")
    pw.expect(page.get_by_role("heading", level=1)).to_have_text("Deny 2 requests?")
    assert Review.objects.count() == 0, "not before it is confirmed"
    page.goto(f"{live_server.url}/?tab=open&sort=deployment")
    page.keyboard.press("a")
    pw.expect(page.get_by_role("heading", level=1)).to_have_text("Requests")
    page.keyboard.press("j")
    page.keyboard.press("a")
    pw.expect(page.get_by_role("heading", level=1)).to_have_text("Approve 1 request?")
    assert heard == []


def test_a_list_that_nobody_sees_asks_for_nothing_and_is_renewed_when_somebody_comes_back(
    env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    asked(env, "buoy")
    page = sign_in(env.ada)
    page.goto(f"{live_server.url}/?tab=open")
    see = "(is) => { Object.defineProperty(document, 'hidden', {value: !is, configurable: true}); }"
    page.evaluate(f"({see})(false)")
    page.evaluate("document.addEventListener('htmx:beforeRequest', () => (window.tries = (window.tries || 0) + 1))")
    asked(env, "tugboat")
    wait_for(lambda: page.evaluate("window.tries || 0"), "the list would ask", is_so=lambda tries: tries >= 2)
    assert page.get_by_role("link", name="tugboat").count() == 0
    with page.expect_response("**/list?*") as asked_again:
        page.evaluate(f"({see})(true); document.dispatchEvent(new Event('visibilitychange'))")
    assert asked_again.value.status == 200
    pw.expect(page.get_by_role("link", name="tugboat")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_the_audit_of_one_request_can_be_used_by_everybody(
    scheme: str, env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    made = asked(env, "buoy")
    page = sign_in(env.ada)
    heard = listen(page)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    page.goto(f"{live_server.url}/audit?request={made.uid}")
    page.keyboard.press("j")
    pw.expect(page.get_by_role("link", name="buoy").first).to_be_focused()
    assert complaints(page) + wider_than(page, 390, 1280) == []
    assert heard == []
