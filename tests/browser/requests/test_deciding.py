"""Two reviewers in two browsers: changes are requested, the next request says what differs, and denials are told."""

from __future__ import annotations

import os
from pathlib import Path

import playwright.sync_api as pw
from pytest_django.live_server_helper import LiveServer

from approvals.models import Request, Review
from approvals.steps import evaluate
from tests.browser.complaints import complaints, listen
from tests.browser.conftest import Enter
from tests.browser.tabs import open_anew
from tests.support.approvals import world
from tests.support.approvals.fixtures import World


def look(request: Request) -> None:
    evaluate.run(Request.objects.get(pk=request.pk), "w")


def keep(page: pw.Page, name: str) -> None:
    """A picture for whoever wants to look: in the folder PRATIQUE_PICTURES, in light and dark."""
    folder = os.environ.get("PRATIQUE_PICTURES")
    for scheme in ("light", "dark") if folder else ():
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # a literal of the two
        page.screenshot(path=Path(folder or "") / f"{name}-{scheme}.png", full_page=True)


def test_changes_are_requested_and_the_next_request_is_approved_in_two_browsers_at_once(
    env: World, request_: Request, live_server: LiveServer, enter: Enter, transactional_db: None
) -> None:
    carol = world.user("carol", env.cluster, "platform")
    for verb in ("approve", "get"):
        env.kubernetes.allow("carol", verb)
    ada_page, carol_page = enter(env.ada), enter(carol)
    heard = listen(ada_page)
    address = f"{live_server.url}/requests/{request_.uid}"
    ada_page.goto(address)
    carol_page.goto(address)
    ada_page.get_by_role("button", name="Request changes").click()
    pw.expect(ada_page.get_by_role("alert")).to_contain_text("Give a reason")
    ada_page.get_by_label("Reason").fill("pin the image by digest")
    ada_page.get_by_role("button", name="Request changes").click()
    carol_page.get_by_role("button", name="Approve").click()
    pw.expect(carol_page.get_by_text("Your decision: Approve")).to_be_visible()
    look(request_)
    carol_page = open_anew(carol_page, address)
    pw.expect(carol_page.get_by_role("heading", name="This request needs changes, requested by ada")).to_be_visible()
    pw.expect(carol_page.get_by_text("Pin the image by digest.")).to_be_visible()
    keep(carol_page, "changes-requested")
    assert complaints(carol_page) == []

    world.submit_spec(
        env.cluster, world.seen("strimzi", world.spec("2.0.0"), uid=request_.deployment.uid, generation=2), env.rita
    )
    later = world.in_review(Request.objects.get(number=2))
    ada_page = open_anew(ada_page, address)
    later_heard = listen(ada_page)
    pw.expect(ada_page.get_by_text("Request 2 replaced it.")).to_be_visible()
    keep(ada_page, "superseded")
    ada_page.get_by_role("link", name="Open request 2").click()
    pw.expect(ada_page.get_by_role("heading", name="Since your review")).to_be_visible()
    keep(ada_page, "since-your-review")
    carol_page = open_anew(carol_page, f"{live_server.url}/requests/{later.uid}")
    ada_page.get_by_role("button", name="Approve").click()
    carol_page.get_by_role("button", name="Approve").click()
    for page in (ada_page, carol_page):
        pw.expect(page.get_by_text("Your decision: Approve")).to_be_visible()
    look(later)
    later.refresh_from_db()
    assert (later.state, Review.objects.filter(request=later, decision="Approve").count()) == ("approved", 2)
    assert later.verdicts.count() == 1
    assert [one for one in (*heard, *later_heard) if "422" not in one] == []


def test_who_asked_is_told_that_it_was_denied_and_what_to_do(
    env: World, request_: Request, live_server: LiveServer, enter: Enter, transactional_db: None
) -> None:
    for verb in ("get", "update"):
        env.kubernetes.allow("rita", verb)
    page = enter(env.ada)
    page.goto(f"{live_server.url}/requests/{request_.uid}")
    page.get_by_label("Reason").fill("not on a Friday")
    page.get_by_role("button", name="Deny").click()
    pw.expect(page.get_by_text("Your decision: Deny")).to_be_visible()
    look(request_)
    page = enter(env.rita)
    page.goto(f"{live_server.url}/requests/{request_.uid}")
    pw.expect(page.get_by_role("heading", name="This request was denied by ada")).to_be_visible()
    pw.expect(page.get_by_text("Not on a Friday.")).to_be_visible()
    pw.expect(page.get_by_role("link", name="Change it")).to_be_visible()
    pw.expect(page.get_by_role("button", name="Ask again")).to_be_visible()
    keep(page, "denied")
    assert complaints(page) == []
