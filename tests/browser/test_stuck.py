"""Requests that once stood still for ever: a reviewer sees in the browser and by kubectl what is missing, and goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import playwright.sync_api as pw
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from approvals.models import BundleDeployment, Policy, Request, Review
from approvals.steps.mirroring.mirror import mirror_name
from approvals.watch.expected_changes import ExpectedChanges
from tests.browser.conftest import SignIn
from tests.browser.tabs import open_anew, press
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import wait_until
from tests.support.servers.registry import Registry

pytestmark = pytest.mark.controlplane


@dataclass
class Desk:
    """One request of `word`, seen by a person in Chromium and by alice with kubectl."""

    site: DeployedSite
    registry: Registry
    address: str
    sign_in: SignIn
    word: str
    page: pw.Page | None = None

    @property
    def name(self) -> str:
        return f"{self.site.namespace}-{self.word}"

    def submit_spec(self, version: str = "1", **options: object) -> BundleDeployment:
        source = bundles.image(self.registry, self.name, bundles.app(self.name, version), version)
        return self.site.prepare(self.name, source, **options)

    @property
    def request(self) -> Request:
        return Request.objects.filter(deployment__name=self.name).latest("number")

    def enter(self, who: str) -> None:
        if self.page:
            self.page.context.clear_cookies()
        person = User.objects.get(username=who)
        self.page = self.sign_in(person)
        self.open()

    def open(self) -> str:
        assert self.page
        self.page = open_anew(self.page, f"{self.address}/requests/{self.request.uid}")
        return " ".join(self.page.inner_text("main").split())

    def press(self, decision: str) -> None:
        assert self.page
        press(self.page, decision)

    def shown_by_kubectl(self, type_: str, kind: str = "bdr") -> tuple[str, str, str]:
        """Status, reason and message of a condition of the request or (`bd`) of the deployment, as alice sees it."""
        self.site.look_after(self.request.deployment)
        name = mirror_name(self.request) if kind == "bdr" else self.name
        found = json.loads(self.site.ctl("get", kind, name, "-o", "json", user="alice"))
        (one,) = (each for each in found["status"]["conditions"] if each["type"] == type_)
        return one["status"], one["reason"], one["message"]


Desks = Callable[[str], Desk]


@pytest.fixture
def desk(live_server: LiveServer, real_site: DeployedSite, registry: Registry, sign_in: SignIn) -> Desks:
    return lambda word: Desk(real_site, registry, live_server.url, sign_in, word)


@pytest.fixture
def expected_changes(real_site: DeployedSite) -> Iterator[ExpectedChanges]:
    """What the watch does each second, moved on by the test."""
    made = ExpectedChanges(real_site.cluster)
    yield made
    made.end()


@pytest.mark.thorough
def test_a_reviewer_whose_right_comes_later_is_counted_then(desk: Desks) -> None:
    later = desk("later")
    deployment = later.submit_spec()
    Request.objects.update(is_requester_known=False, requesters=[])
    later.site.let_approve("carol", deployment.name)
    later.enter("carol")
    later.press("Approve")
    later.site.work()
    assert "impersonate the installing ServiceAccount" in later.open()
    status, reason, message = later.shown_by_kubectl("Applied")
    assert (status, reason) == ("False", "HeldBack")
    assert "impersonate" in message

    later.site.let_use_installer("carol")
    later.site.work()
    assert "3 of 3 objects" in later.open()
    assert later.shown_by_kubectl("Applied")[0] == "True"


@pytest.mark.thorough
def test_a_reviewer_thinks_again_until_the_verdict(desk: Desks) -> None:
    """A guard holds it, so there is no verdict: the person who approved takes that back in the same form."""
    again = desk("again")
    again.site.save_policy("guard", "false", message="frozen until Monday")
    again.submit_spec()
    again.enter("alice")
    again.press("Approve")
    again.site.work()
    assert "frozen until Monday" in again.open()
    assert again.page
    again.page.get_by_text("Change your decision", exact=True).click()
    again.page.get_by_label("Reason").fill("the second look found something")
    again.press("Deny")
    again.site.work()
    text = again.open()
    assert "replaced by a later review" in text
    assert again.request.state == "denied"
    assert again.shown_by_kubectl("Denied")[0] == "True"
    assert list(Review.objects.order_by("pk").values_list("decision", flat=True)) == ["Approve", "Deny"]


@pytest.mark.thorough
def test_a_grant_whose_right_comes_later_approves_then(desk: Desks) -> None:
    granted = desk("granted")
    policy = granted.site.save_policy("grant", "true")
    own = f"pratique:policy:{policy.pk}"
    deployment = granted.submit_spec()
    granted.enter("alice")
    assert f"does not allow {own} to approve" in granted.open()
    granted.site.let_approve(own, deployment.name)
    granted.site.work()
    assert "3 of 3 objects" in granted.open()
    assert granted.shown_by_kubectl("Approved")[0] == "True"
    assert Policy.objects.get().version == 1


@pytest.mark.thorough
def test_a_service_account_that_is_made_later_is_seen_and_the_request_goes_on(
    desk: Desks, expected_changes: ExpectedChanges
) -> None:
    early = desk("early")
    namespace = early.site.namespace
    early.site.ctl("delete", "serviceaccount", "installer", "-n", namespace)
    early.submit_spec()
    early.enter("alice")
    text = early.open()
    assert "continues automatically when it is created" in text
    assert "missing-account" in text
    assert early.page
    assert early.page.get_by_role("button", name="Approve").count() == 0
    assert early.shown_by_kubectl("UpToDate", "bd")[:2] == ("False", "MissingAccount")

    Request.objects.update(look_again_at=timezone.now() + timedelta(hours=1))
    early.site.ctl("create", "serviceaccount", "installer", "-n", namespace)

    def is_due() -> bool:
        expected_changes.look(time.monotonic())
        due = early.request.look_again_at
        return due is None or due <= timezone.now() + timedelta(seconds=1)

    wait_until(is_due, "the watch has the request looked at")
    early.site.work()
    early.open()
    early.press("Approve")
    early.site.work()
    assert "3 of 3 objects" in early.open()


@pytest.mark.thorough
def test_a_collision_is_said_up_front_and_goes_on_once_it_is_gone(desk: Desks) -> None:
    met = desk("met")
    namespace = met.site.namespace
    met.site.ctl("create", "configmap", met.name, "-n", namespace, "--from-literal=kept=yes")
    met.submit_spec()
    met.enter("alice")
    text = met.open()
    assert "exists already and does not belong to this deployment" in text
    assert "IfNoController" in text
    assert "This request cannot be approved while it collides with objects of someone else." in text
    assert met.page
    assert met.page.get_by_role("button", name="Approve").count() == 0
    assert met.shown_by_kubectl("Applied")[:2] == ("False", "Collides")

    met.site.ctl("delete", "configmap", met.name, "-n", namespace)
    met.site.work()
    met.open()
    met.press("Approve")
    met.site.work()
    assert "3 of 3 objects" in met.open()
    assert met.shown_by_kubectl("Applied")[0] == "True"


@pytest.mark.thorough
def test_an_approval_that_a_new_round_voids_says_which_objects_differ(desk: Desks) -> None:
    voided = desk("voided")
    namespace = voided.site.namespace
    deployment = voided.submit_spec("1")
    assert voided.site.approve(deployment).state == "applied"
    voided.submit_spec("2")
    voided.enter("alice")
    voided.press("Approve")
    voided.site.ctl("delete", "configmap", voided.name, "-n", namespace)
    voided.site.work()
    text = voided.open()
    assert "The approval of round 1 no longer counts" in text
    assert voided.page
    voided.page.get_by_text("object with a different plan").click()
    differing = f"ConfigMap {namespace}/{voided.name}: reviewed as update, now create"
    assert differing in " ".join(voided.page.inner_text("main").split())
    assert voided.shown_by_kubectl("Approved")[:2] == ("False", "PlanChanged")
    voided.press("Approve")
    voided.site.work()
    assert "3 of 3 objects" in voided.open()


@pytest.mark.thorough
def test_a_pause_by_kubectl_holds_what_was_approved_until_it_is_taken_back(desk: Desks) -> None:
    still = desk("still")
    deployment = still.submit_spec()
    still.enter("alice")

    def patch(what: str) -> None:
        still.site.ctl("patch", "bd", deployment.name, "--type=merge", "-p", what)
        still.site.look_after(deployment)

    patch('{"spec": {"paused": true}}')
    still.press("Approve")
    still.site.work()
    text = still.open()
    assert "paused" in text
    place = still.site.ref("Deployment", still.name)
    assert still.site.api.get(place) is None
    assert still.shown_by_kubectl("Applied")[0] == "False"
    patch('{"spec": {"paused": false}}')
    Request.objects.update(look_again_at=None)
    still.site.work()
    assert "3 of 3 objects" in still.open()
    assert still.site.api.get(place) is not None
