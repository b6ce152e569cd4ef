"""Pages that load themselves again: how a test goes on from one without racing it."""

from __future__ import annotations

import playwright.sync_api as pw


def open_anew(page: pw.Page, address: str) -> pw.Page:
    """A new tab of the same person at this address.

    The old one is closed: a page whose request has moved loads itself again, which would abort a `goto` or `reload`.
    """
    context = page.context
    page.close()
    new = context.new_page()
    new.goto(address)
    return new


def press(page: pw.Page, button: str) -> None:
    """Press a button that sends a form, and wait until what answers is loaded, even at the same address."""
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).click()
