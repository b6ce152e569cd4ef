"""A first look at a request in a real browser: what a reviewer has to know stands on the first screen."""

from __future__ import annotations

from typing import Any

import playwright.sync_api as pw
import pytest

from tests.browser.complaints import complaints
from tests.browser.conftest import SignIn
from tests.support.approvals.fixtures import World

TABS = ("Overview", "Findings", "Changes", "Activity")


def test_a_first_time_reviewer_finds_every_answer_without_scrolling(
    here: World, afternoon: dict[str, Any], site: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(here.ada)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(site["request"])
    bar = page.get_by_role("group", name="Where this request stands")
    answers = {
        "what is asked": page.get_by_role("heading", level=1),
        "by whom": page.get_by_text("requested by").first,
        "the worst that happens": bar.locator(".request-sentence"),
        "how bad that is": bar.locator(".severity"),
        "who must still agree": bar.get_by_text("1 more approval needed"),
        "how do I say yes": bar.get_by_role("link", name="Approve"),
        "how do I say no": bar.get_by_role("link", name="Deny"),
    }
    for question, answer in answers.items():
        pw.expect(answer, question).to_be_in_viewport(ratio=0.9)
    bar.get_by_role("link", name="Deny").click()
    pw.expect(page.get_by_role("heading", name="Decision")).to_be_in_viewport()


@pytest.mark.parametrize("scripts", [True, False])
def test_every_tab_has_an_address_and_is_reached_by_the_keyboard(
    scripts: bool, here: World, site: dict[str, str], browser: pw.Browser, sign_in: SignIn
) -> None:
    state = sign_in(here.ada).context.storage_state()
    context = browser.new_context(java_script_enabled=scripts, storage_state=state)
    page = context.new_page()
    page.goto(site["request"])
    for name, address in zip(TABS, ("request", "findings", "changes", "activity"), strict=True):
        tab = page.get_by_role("navigation", name="Request").get_by_role("link", name=name)
        tab.focus()
        page.keyboard.press("Enter")
        page.wait_for_url(site[address])
        pw.expect(page.locator(".tabs [aria-current]")).to_have_text(name)
    context.close()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "width", [pytest.param(390, marks=pytest.mark.thorough), 1280, pytest.param(1920, marks=pytest.mark.thorough)]
)
def test_every_tab_can_be_used_by_everybody_at_every_width(
    width: int, scheme: str, here: World, site: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(here.ada)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    page.set_viewport_size({"width": width, "height": 800})
    for name in ("request", "findings", "changes", "activity"):
        page.goto(site[name])
        assert complaints(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width
