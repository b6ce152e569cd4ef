"""Icons that are SVGs in a real browser: drawn, and never more than drawn, whoever opens them how."""

from __future__ import annotations

import base64

import playwright.sync_api as pw
from pytest_django.live_server_helper import LiveServer

from tests.browser.conftest import SignIn
from tests.support.approvals.fixtures import World
from tests.support.pictures import svg
from tests.support.stored_catalogs import HARBOUR, catalog, stored

PACKAGE = "/catalogs/prod/port/packages/harbour"
RAN = "document.documentElement.getAttribute('data-ran')"
RUNS = "document.documentElement.setAttribute('data-ran', 'yes'); fetch('/ran')"
HOSTILE = svg(
    f"<script>{RUNS}</script><script href='/static/js/changes.js'/><rect width='40' height='40' fill='teal'/>"
    "<image href='/static/icon.svg'/><style>@import '/static/css/tokens.css';</style>"
    "<foreignObject width='40' height='40'><form xmlns='http://www.w3.org/1999/xhtml' action='/sign-out' method='post'>"
    f"<button id='send'>send</button><img src='/static/icon.svg' onerror=\"{RUNS}\"/></form></foreignObject>",
    onload=RUNS,
)


def test_a_script_in_an_svg_runs_neither_in_a_page_nor_opened_by_itself(
    env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    icon_of_package = {"mediatype": "image/svg+xml", "base64data": base64.b64encode(HOSTILE).decode()}
    stored(catalog(of=env.cluster), {**HARBOUR[0], "icon": icon_of_package}, *HARBOUR[1:])
    page = sign_in(env.ada)
    loaded: list[str] = []
    page.goto(f"{live_server.url}{PACKAGE}")
    page.context.on("response", lambda one: loaded.append(one.url.removeprefix(live_server.url)))
    page.reload()
    icon = page.locator("main img.package-icon")
    icon.evaluate("one => one.decode()")
    assert icon.evaluate("one => one.naturalWidth") == 40
    assert f"{PACKAGE}/icon" in loaded
    assert not {"/ran", "/static/js/changes.js"} & set(loaded)

    alone = page.context.new_page()
    loaded.clear()
    answer = alone.goto(f"{live_server.url}{PACKAGE}/icon", wait_until="load")
    assert answer is not None
    assert answer.headers["content-type"] == "image/svg+xml"
    assert alone.evaluate(RAN) is None
    assert set(loaded) <= {f"{PACKAGE}/icon", "/favicon.ico"}
    assert alone.evaluate("self.origin") == "null", "it is nobody here, and sends no form"


def test_the_same_picture_runs_its_script_where_nothing_stops_it(live_server: LiveServer, page: pw.Page) -> None:
    """So that the test above would see it."""
    page.route("**/picture.svg", lambda route: route.fulfill(body=HOSTILE, content_type="image/svg+xml"))
    page.goto(f"{live_server.url}/picture.svg")
    assert page.evaluate(RAN) == "yes"
