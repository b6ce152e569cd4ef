"""A person of an OpenID Connect issuer, with nothing put on: Chromium, a real issuer, a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import playwright.sync_api as pw
import pytest
from pytest_django.live_server_helper import LiveServer

from approvals.models import Review
from tests.browser.conftest import an_issuer
from tests.browser.tabs import open_anew, press
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.issuer import RunningIssuer
from tests.support.servers.registry import Registry

pytestmark = pytest.mark.controlplane

# The group `platform` may approve on the journey's cluster; the group `developers` may not.
PEOPLE: dict[str, dict[str, Any]] = {"olga": {"sub": "o-1", "groups": ["platform"]}}


@pytest.fixture
def issuer(live_server: LiveServer, real_site: DeployedSite, tmp_path: Path, settings: Any) -> Iterator[RunningIssuer]:
    with an_issuer(live_server.url, tmp_path / "issuer", settings, "journey", PEOPLE) as running:
        yield running


def test_signs_in_approves_loses_the_group_and_signs_out_everywhere(
    page: pw.Page, live_server: LiveServer, real_site: DeployedSite, registry: Registry, issuer: RunningIssuer
) -> None:
    deployment = real_site.prepare("olgas", bundles.image(registry, "olgas", bundles.app("olgas", "1")))
    first = f"{live_server.url}/requests/{real_site.latest(deployment).uid}"

    page.goto(first)
    page.get_by_role("button", name="Sign in with Example").click()
    page.get_by_role("button", name="olga").click()
    page.wait_for_url(first)
    assert "Signed in as oidc:o-1 on journey (platform) · Example, verified just now" in page.inner_text("header")
    press(page, "Approve")
    given = Review.objects.get()
    assert (given.username, given.channel) == ("oidc:o-1", "browser")
    real_site.work()
    page = open_anew(page, first)
    assert "3 of 3 objects" in page.inner_text("#progress")

    real_site.prepare("olgas", bundles.image(registry, "olgas", bundles.app("olgas", "2")))
    second = f"{live_server.url}/requests/{real_site.latest(deployment).uid}"
    page = open_anew(page, second)
    # Where the page's own parts have the issuer asked just now, what it said before counts for the moment (S25).
    pw.expect(page.locator(".htmx-request")).to_have_count(0)
    issuer.set_people({"olga": {"sub": "o-1", "groups": ["developers"]}})
    press(page, "Approve")
    assert "oidc:o-1" in page.inner_text("main")
    assert Review.objects.count() == 1

    elsewhere = page.context.new_page()
    elsewhere.goto(issuer.url)
    press(elsewhere, "Sign out everywhere")
    page = open_anew(page, second)
    assert page.title().startswith("Sign in")
    assert page.get_by_role("button", name="Sign in with Example").is_visible()
