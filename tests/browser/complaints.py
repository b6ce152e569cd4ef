"""What axe finds on a page, and what its own scripts complain of."""

from __future__ import annotations

import playwright.sync_api as pw
from axe_playwright_python.base import AXE_SCRIPT

# The content of the closed parts is looked at as well.
OPEN_ALL = "() => document.querySelectorAll('details').forEach((one) => { one.open = true })"
# The pages of a scene, by their names in `addresses`, on which nothing may be complained of.
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
    "set",
    "set-form",
    "audit",
    "me",
]


PASSED_OVER = ("htmx:afterRequest", "htmx:sendError", "htmx:sendAbort")
# Only what is wrong comes back: what is right are megabytes.
VIOLATIONS = """() => axe.run(document, {resultTypes: ["violations"]}).then((found) =>
  found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 200)}`)))"""


def complaints(page: pw.Page) -> list[str]:
    """What axe finds, each with the element that it finds it in."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: list[str] = page.evaluate(VIOLATIONS)
    return found


def wider_than(page: pw.Page, *widths: int) -> list[str]:
    """At which of these widths of the screen one would have to scroll sideways."""
    found = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(f"wider than {width}")
    return found


def listen(page: pw.Page) -> list[str]:
    """What the page will complain of: script errors, what the content security policy stopped, requests without answer.

    Who leaves a page ends what it is asking at that moment (net::ERR_ABORTED), which is nobody's fault. The browser says
    why a request had no answer, and htmx only that it had none, so its words about that are passed over.
    """
    heard: list[str] = []

    def said(message: pw.ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(PASSED_OVER):
            heard.append(message.text)

    def failed(request: pw.Request) -> None:
        if request.resource_type in ("fetch", "xhr") and request.failure != "net::ERR_ABORTED":
            heard.append(f"{request.url}: {request.failure}")

    page.on("console", said)
    page.on("requestfailed", failed)
    page.on("pageerror", lambda error: heard.append(str(error)))
    return heard
