"""An office with a screen for each person, on one cluster: what they do, they do in Chromium."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import playwright.sync_api as pw

from approvals.models import BundleDeployment, Request
from tests.browser.conftest import Enter
from tests.browser.tabs import open_anew
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import Registry


@dataclass
class Office:
    """One deployment, `name`, that people of the station see on their screens; `content` are the files of a version."""

    site: DeployedSite
    registry: Registry
    address: str
    enter: Enter
    name: str
    content: Callable[[str, str], dict[str, bytes]] = bundles.app
    screens: dict[str, pw.Page] = field(default_factory=dict)

    def image(self, version: str) -> str:
        """Push this version of the bundle; its reference."""
        source: Any = bundles.image(self.registry, self.name, self.content(self.name, version), version)
        return str(source["image"]["ref"])

    def screen(self, who: str, path: str = "", **options: Any) -> pw.Page:
        """The person's own browser, at this path; at the first time they sign in, and `options` are of its context."""
        if who not in self.screens:
            self.screens[who] = self.enter(self.site.people[who], **options)
        if path:
            self.screens[who] = open_anew(self.screens[who], f"{self.address}{path}")
        return self.screens[who]

    @property
    def deployment(self) -> BundleDeployment:
        return BundleDeployment.objects.get(name=self.name)

    @property
    def request(self) -> Request:
        return Request.objects.filter(deployment__name=self.name).latest("number")

    @property
    def at_request(self) -> str:
        return f"/requests/{self.request.uid}"

    @property
    def at_deployment(self) -> str:
        return f"/deployments/journey/{self.name}"

    def live(self) -> Any:
        """The bundle's ConfigMap in the cluster; None where it is not there."""
        return self.site.live("ConfigMap", self.name)

    def submit_spec(self, version: str) -> None:
        """Rita asks for this version, somewhere else than in a browser."""
        self.site.submit_spec(self.name, {"kind": "image", "image": {"ref": self.image(version)}})
        self.work()

    def work(self) -> None:
        """What the workers and the watch do."""
        self.site.look_after(self.deployment)
        self.site.work()
        self.site.look_after(self.deployment)

    def approve_at_once(self, *people: str) -> None:
        """Everybody has the request open before the first of them presses Approve, and nobody waits for another."""
        pages = [self.screen(who, self.at_request) for who in people]
        for page in pages:
            for tick in page.locator("input[name=acknowledges]").all():
                tick.check()
            page.get_by_label("Reason").fill("I read every object")
            if page.locator("#typed").count():
                page.locator("#typed").fill(self.name)
        for page in pages:
            page.get_by_role("button", name="Approve", exact=True).click(no_wait_after=True)
        for page in pages:
            pw.expect(page.get_by_text("Your decision: Approve")).to_be_visible()
