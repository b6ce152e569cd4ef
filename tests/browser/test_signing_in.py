"""The pages on the way in and out, in light and dark, on a screen and on a telephone, by everybody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import playwright.sync_api as pw
import pytest
from pytest_django.live_server_helper import LiveServer

from provisioner.values import Identity
from tests.browser.complaints import OPEN_ALL, complaints
from tests.browser.conftest import SignIn, an_issuer
from tests.browser.tabs import press
from tests.support.approvals.fixtures import World
from tests.support.servers.issuer import RunningIssuer

PEOPLE: dict[str, Any] = {"olga": {"sub": "o-1", "groups": ["platform"]}}
ROBOT = "system:serviceaccount:shop:robot"
EACH = pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1280),
        *(pytest.param(*one, marks=pytest.mark.thorough) for one in [("dark", 1280), ("light", 360), ("dark", 360)]),
    ],
)


@pytest.fixture
def issuer(live_server: LiveServer, env: World, tmp_path: Path, settings: Any) -> Iterator[RunningIssuer]:
    with an_issuer(live_server.url, tmp_path / "issuer", settings, env.cluster.name, PEOPLE) as running:
        yield running


def look(page: pw.Page, scheme: str, width: int) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    page.set_viewport_size({"width": width, "height": 800})


def check(page: pw.Page, title: str) -> None:
    """The page of this title is fit for everybody, and no wider than the screen."""
    pw.expect(page.get_by_role("heading", level=1)).to_have_text(title)
    page.evaluate(OPEN_ALL)
    assert complaints(page) == []
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.thorough
@EACH
def test_the_way_to_an_issuer_and_back_out_can_be_used_by_everybody(
    scheme: str, width: int, live_server: LiveServer, issuer: RunningIssuer, page: pw.Page
) -> None:
    look(page, scheme, width)
    # The page that leads away, before the browser has left.
    page.route(f"{issuer.url}/**", lambda route: route.abort("aborted"))
    page.goto(f"{live_server.url}/sign-in?next=/me")
    check(page, "Sign in")
    # It leaves by itself, which must have been tried and stopped before it can leave by the link.
    with page.expect_event("requestfailed", lambda request: request.url.startswith(issuer.url)):
        page.get_by_role("button", name="Sign in with Example").click()
    check(page, "Signing in at Example")
    page.unroute_all()
    page.get_by_role("link", name="continue to Example").click()
    page.get_by_role("button", name="olga").click()
    page.wait_for_url("**/me")
    check(page, "olga@example")
    line = page.get_by_role("group", name="Your identities")
    pw.expect(line).to_contain_text("Signed in as oidc:o-1 on prod (platform) · Example, verified just now")
    page.get_by_role("button", name="Sign out").click()
    check(page, "You are signed out")
    pw.expect(line).to_have_count(0)


@EACH
def test_what_a_token_may_do_and_what_is_refused_can_be_read_by_everybody(
    scheme: str, width: int, env: World, live_server: LiveServer, page: pw.Page
) -> None:
    env.kubernetes.tokens["robots"] = Identity(ROBOT, (), "u-1")
    look(page, scheme, width)
    page.goto(f"{live_server.url}/sign-in")
    page.get_by_role("textbox", name="Cluster").fill("prod")
    page.get_by_role("textbox", name="Token").fill("wrong")
    press(page, "Sign in with the token")
    check(page, "Sign in")
    page.get_by_role("textbox", name="Token").fill("robots")
    page.get_by_role("button", name="Sign in with the token").click()
    check(page, "What you can do on prod")
    page.get_by_role("button", name="Sign in with these permissions").click()
    page.wait_for_url(f"{live_server.url}/")
    check(page, "Requests")
    page.goto(f"{live_server.url}/deployments/prod/nothing")
    check(page, "You are not allowed to do this")
    page.goto(f"{live_server.url}/deployments/moon/nothing")
    check(page, "Page not found")


@EACH
def test_pages_with_nothing_on_them_say_what_will_appear(
    scheme: str, width: int, env: World, sign_in: SignIn, live_server: LiveServer
) -> None:
    page = sign_in(env.ada)
    look(page, scheme, width)
    words = {
        "/": ("Requests", "Requests in review that you are allowed to decide"),
        "/?tab=all": ("Requests", "A request appears when a BundleDeployment is created or changed"),
        "/deployments": ("Deployments", "BundleDeployment"),
        "/policies": ("Policies", "A guard can hold requests back; a grant can approve them."),
        "/audit?actor=nobody": ("Audit", "Every change on the clusters you can read is recorded here."),
    }
    for path, (title, expected) in words.items():
        page.goto(f"{live_server.url}{path}")
        check(page, title)
        pw.expect(page.locator(".empty")).to_contain_text(expected)
