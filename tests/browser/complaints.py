"""What axe finds on a page, and what its own scripts complain of."""

from __future__ import annotations

import playwright.sync_api as pw
from axe_playwright_python.sync_playwright import Axe

# The content of the closed parts is looked at as well.
OPEN_ALL = "() => document.querySelectorAll('details').forEach((one) => { one.open = true })"
# The pages of a scene, by their names in `site`, on which nothing may be complained of.
CHECKED = [
    "inbox",
    "all-requests",
    "request",
    "reviewed-request",
    "deletion",
    "printed-report",
    "change",
    "change-split",
    "changes",
    "findings",
    "activity",
    "rights",
    "schemas",
    "deployments",
    "deployment",
    "deployment-form",
    "catalogs",
    "catalog-search",
    "catalog",
    "catalog-package",
    "deployment-install",
    "catalog-changes",
    "catalog-first",
    "catalog-lines",
    "catalog-comparing",
    "clusters",
    "policies",
    "policy",
    "policy-form",
    "audit",
    "me",
]


def complaints(page: pw.Page) -> list[str]:
    """What axe finds, each with the element that it finds it in."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]


def listen(page: pw.Page) -> list[str]:
    """What the page will complain of: script errors, what the content security policy stopped, requests without answer.

    Who leaves a page ends what it is asking at that moment (net::ERR_ABORTED), which is nobody's fault. The browser says
    why a request had no answer, and htmx only that it had none, so its words about that are passed over.
    """
    heard: list[str] = []

    def said(message: pw.ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(("htmx:afterRequest", "htmx:sendError")):
            heard.append(message.text)

    def failed(request: pw.Request) -> None:
        if request.resource_type in ("fetch", "xhr") and request.failure != "net::ERR_ABORTED":
            heard.append(f"{request.url}: {request.failure}")

    page.on("console", said)
    page.on("requestfailed", failed)
    page.on("pageerror", lambda error: heard.append(str(error)))
    return heard
