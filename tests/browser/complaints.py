"""What axe finds on a page, and what its own scripts complain of."""

from __future__ import annotations

import playwright.sync_api as pw
from axe_playwright_python.sync_playwright import Axe

# The content of the closed parts is looked at as well.
OPEN_ALL = "() => document.querySelectorAll('details').forEach((one) => { one.open = true })"


def complaints(page: pw.Page) -> list[str]:
    """What axe finds, each with the element that it finds it in."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]


def listen(page: pw.Page) -> list[str]:
    """What the page will complain of: script errors, and what the content security policy stopped."""
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    return heard
