"""Keys of every page: help, search, the decision, and the switch for keys of a single character (WCAG 2.1.4)."""

from __future__ import annotations

import playwright.sync_api as pw
import pytest

from tests.browser.complaints import OPEN_ALL, complaints, listen, wider_than
from tests.browser.conftest import SignIn
from tests.support.approvals.fixtures import World


def test_help_opens_search_is_reached_and_keys_can_be_switched_off(
    env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    page.goto(addresses["audit"])
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "actor"
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    pw.expect(dialog).to_be_visible()
    assert complaints(page) == []
    dialog.get_by_role("button", name="Single-key").click()
    page.keyboard.press("Escape")
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("?")
    pw.expect(page.get_by_role("dialog")).to_have_count(0)


def test_two_keys_lead_to_the_decision_of_a_request(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    page.goto(addresses["request"])
    page.keyboard.press("g")
    page.keyboard.press("d")
    assert page.evaluate("document.activeElement.closest('form').id") == "review-form"


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_home_and_active_filters_can_be_used_by_everybody(
    scheme: str, env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    heard = listen(page)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    for path in ("home", "?tab=all&severity=critical"):
        page.goto(addresses["inbox"] + path)
        page.evaluate(OPEN_ALL)
        assert complaints(page) + wider_than(page, 360, 1280) == []
    assert heard == []
