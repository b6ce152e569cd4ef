"""What would change, in a real browser: asked for by the form, followed by itself, and without scripts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import playwright.sync_api as pw
import pytest

from approvals.models import BundleComparison
from tests.browser.complaints import listen
from tests.browser.conftest import SignIn
from tests.support import comparisons
from tests.support.approvals.fixtures import World


def photographed(page: pw.Page, name: str) -> None:
    """The page in PRATIQUE_PICTURES, for whoever looks at it."""
    if folder := os.environ.get("PRATIQUE_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def test_what_was_asked_for_comes_into_the_page_by_itself(
    env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(addresses["catalog-changes"].partition("?")[0])
    page.get_by_label("From").fill("1.0.0")
    page.get_by_label("To", exact=True).fill("1.2.0")
    page.get_by_role("button", name="Compare").click()
    pw.expect(page.get_by_role("heading", name="Comparing")).to_be_visible()
    photographed(page, "comparing")
    row = BundleComparison.objects.get(wish__after__endswith="2" * 64, wish__before__endswith="0" * 64)
    comparisons.finish(row)
    pw.expect(page.get_by_role("heading", name="1.0.0 → 1.2.0")).to_be_visible()
    pw.expect(page.locator("#comparison[hx-get]")).to_have_count(0)
    photographed(page, "compared")
    assert heard == []


def test_account_and_rights_are_proposed_without_scripts(
    env: World, addresses: dict[str, str], browser: pw.Browser, sign_in: SignIn
) -> None:
    signed_in = sign_in(env.ada)
    context = browser.new_context(java_script_enabled=False, storage_state=signed_in.context.storage_state())
    page = context.new_page()
    page.goto(addresses["deployment-install"].replace("1.1.0", "1.2.0"))
    page.get_by_role("button", name="Propose account and rights").click()
    comparisons.finish(BundleComparison.objects.get(state="waiting", wish__before=""), is_first=True)
    page.get_by_role("button", name="Look again").click()
    pw.expect(page.get_by_text("ServiceAccount, roles and bindings to apply")).to_be_visible()
    pw.expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    pw.expect(page.get_by_label("Install namespace")).to_have_value("harbour")
    photographed(page, "installing")
    page.get_by_role("link", name="Show what would be created").click()
    pw.expect(page.get_by_role("heading", name="Account and least rights to install it")).to_be_visible()
    photographed(page, "first")
    context.close()


def test_the_lines_of_an_object_come_when_it_is_opened(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(addresses["catalog-changes"])
    opened = page.locator("details.change-later", has_text="Deployment.apps")
    opened.locator("summary").press("Enter")
    lines = opened.get_by_role("group", name="Lines of Deployment.apps")
    pw.expect(lines).to_contain_text("image:")
    pw.expect(lines.locator(".line")).not_to_have_count(0)
    photographed(page, "lines")
    assert heard == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    photographed(page, "lines-narrow")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_the_page_of_lines_can_be_read_on_a_telephone_without_scripts(
    scheme: Literal["light", "dark"], env: World, addresses: dict[str, str], browser: pw.Browser, sign_in: SignIn
) -> None:
    state = sign_in(env.ada).context.storage_state()
    context = browser.new_context(java_script_enabled=False, storage_state=state, color_scheme=scheme)
    page = context.new_page()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(addresses["catalog-lines"])
        lines = page.get_by_role("group", name="Lines of Deployment.apps")
        pw.expect(lines.locator(".line-plus")).to_contain_text("image:")
        assert lines.evaluate("one => one.scrollWidth <= one.clientWidth"), "nobody sees that it can be scrolled"
        photographed(page, f"lines-alone-{scheme}-{width}")
    context.close()


def test_the_pages_fit_a_telephone(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    page.set_viewport_size({"width": 390, "height": 800})
    for name in ("catalog-changes", "catalog-first", "deployment-install"):
        page.goto(addresses[name])
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        photographed(page, f"{name}-narrow")
