"""One bundle's whole way with nothing put on: Chromium, a real registry, a real API server."""

from __future__ import annotations

import pytest
from pytest_django.live_server_helper import LiveServer

from approvals.models import Review
from tests.browser.conftest import SignIn
from tests.browser.tabs import open_anew, press
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import until_current
from tests.support.servers.registry import Registry

pytestmark = pytest.mark.controlplane


def test_who_may_not_is_told_why_and_who_may_approves_by_clicking(
    live_server: LiveServer, real_site: DeployedSite, registry: Registry, sign_in: SignIn
) -> None:
    deployment = real_site.prepare("clicked", bundles.image(registry, "clicked", bundles.app("clicked", "1")))
    request = real_site.latest(deployment)
    address = f"{live_server.url}/requests/{request.uid}"

    page = sign_in(real_site.people["carol"])
    page.goto(address)
    assert "does not allow carol to approve" in page.inner_text("main")
    assert page.get_by_role("button", name="Approve").count() == 0
    page.context.clear_cookies()

    page = sign_in(real_site.people["alice"])
    page.goto(address)
    page.get_by_label("Reason").fill("I read every object")
    press(page, "Approve")
    given = Review.objects.get()
    assert (given.username, given.channel, given.subject_digest) == ("alice", "browser", request.subject_digest)
    real_site.work()
    page = open_anew(page, address)
    assert "3 of 3 objects" in page.inner_text("#progress")
    assert real_site.live("Deployment", "clicked") is not None

    until_current(real_site.api, real_site.ref("Deployment", "clicked"))
    real_site.look_after(deployment)
    page = open_anew(page, f"{live_server.url}/deployments/journey/clicked")
    assert "healthy 3 of 3 objects are ready" in " ".join(page.inner_text("main").split())
    real_site.submit_spec("clicked", bundles.image(registry, "clicked", bundles.app("clicked", "2")))
    real_site.prepare("clicked", bundles.image(registry, "clicked", bundles.app("clicked", "3")))
    assert list(deployment.requests.order_by("number").values_list("state", flat=True)) == [
        "applied",
        "superseded",
        "in_review",
    ]
    page = open_anew(page, f"{live_server.url}/")
    assert "clicked" in page.inner_text("main")
