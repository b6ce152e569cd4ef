"""A first look at a request in a real browser: what a reviewer has to know stands on the first screen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import playwright.sync_api as pw
import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from approvals.models import Outcome, Request
from tests.browser.complaints import complaints, listen
from tests.browser.conftest import SignIn
from tests.support.approvals.changes import action, finding, planned
from tests.support.approvals.fixtures import World
from tests.support.provisioner.contents import an_object
from tests.support.provisioner.roles import bound, cluster_role, group, rule

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
TABS = ("Overview", "Findings", "Changes", "Activity")


def test_a_first_time_reviewer_finds_every_answer_without_scrolling(
    env: World, afternoon: dict[str, Any], addresses: dict[str, str], sign_in: SignIn
) -> None:
    env.kubernetes.allow("ada", "list")
    env.kubernetes.roles = [
        cluster_role("approver", rule("approve", "bundledeployments", group="core.rukpak.io")),
        bound("approver", group("platform")),
    ]
    page = sign_in(env.ada)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(addresses["request"])
    bar = page.get_by_role("group", name="Where this request stands")
    answers = {
        "what is asked": page.get_by_role("heading", level=1),
        "by whom": page.get_by_text("requested by").first,
        "the worst that happens": bar.locator(".request-sentence"),
        "how bad that is": bar.locator(".severity"),
        "who must still agree": bar.get_by_text("1 more approval needed"),
        "of which group": bar.get_by_text("anyone in platform"),
        "how do I say yes": bar.get_by_role("link", name="Approve"),
        "how do I say no": bar.get_by_role("link", name="Deny"),
    }
    for question, answer in answers.items():
        pw.expect(answer, question).to_be_in_viewport(ratio=0.9)
    bar.get_by_role("link", name="Deny").click()
    pw.expect(page.get_by_role("heading", name="Decision")).to_be_in_viewport()
    page.goto(addresses["deletion"])
    pw.expect(page.get_by_role("button", name="Approve", exact=True)).to_be_in_viewport(ratio=1)


def test_a_reviewer_sees_what_stops_a_request_and_keeps_it_in_sight(
    env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    request, page = refused(env), sign_in(env.ada)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{live_server.url}/requests/{request.uid}")
    stopping = page.get_by_role("region", name="As it stands this cannot be applied: 30 CRDs would be refused.")
    for words in ("Version that is still stored is removed", "Do this first:", "c0.example.com", "and 25 more"):
        pw.expect(stopping.get_by_text(words)).to_be_in_viewport(ratio=0.9)
    bar = page.get_by_role("group", name="Where this request stands")
    for verb in ("Approve…", "Request changes…", "Deny…"):
        pw.expect(bar.get_by_role("link", name=verb)).to_be_in_viewport(ratio=1)
    page.get_by_role("navigation", name="Request").get_by_role("link", name="Changes").click()
    page.mouse.wheel(0, 3_000)
    pw.expect(bar.get_by_text("30 CRDs would be refused")).to_be_in_viewport(ratio=1)
    below = bar.evaluate("one => one.getBoundingClientRect().bottom")
    tree = page.get_by_role("complementary", name="Objects of the plan")
    assert tree.evaluate("one => one.getBoundingClientRect().top") >= below - 1
    assert complaints(page) == []
    bar.get_by_role("link", name="Why").click()
    pw.expect(stopping).to_be_in_viewport()


def refused(env: World) -> Request:
    """30 CRDs that the API server refuses, for a reason that a rule knows."""
    actions, findings = [], []
    for number in range(30):
        name = f"c{number}.example.com"
        words = f"apply CustomResourceDefinition.apiextensions.k8s.io {name}: the API server refuses it"
        versions = [{"name": "v1"}, {"name": "v2", "storage": True}]
        made = [an_object(*CRD, name, spec={"versions": versions[at:]}) for at in (1, 0)]
        actions.append(action(*made, problem=words, problemCode="invalid-object", isProved=False))
        why = {"rule": "CRD-10", "section": "crds", "severity": "breaking", "verdicts": {"api": "breaking"}}
        findings.append(finding(actions[-1]["ref"], ["spec"], fingerprint=f"f{number}", message="removed", **why))
    return planned(env, *actions, findings=findings)


@pytest.mark.thorough
def test_the_activity_of_an_apply_moves_by_itself_and_ends(
    env: World, afternoon: dict[str, Any], addresses: dict[str, str], sign_in: SignIn
) -> None:
    serious = afternoon["serious"]
    Request.objects.filter(pk=serious.pk).update(state="applying", phase="1 of 2: crds")
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(addresses["activity"])
    crd = {"object": "CustomResourceDefinition.apiextensions.k8s.io orders.shop.example.com", "action": "update"}
    now = timezone.now()
    Outcome.objects.create(request=serious, position=0, phase="crds", state="done", at=now, **crd)
    pw.expect(page.get_by_text("Applied phase crds: 1 object in under 1 s")).to_be_visible()
    Outcome.objects.create(
        request=serious,
        position=1,
        phase="deploy",
        object="Deployment.apps shop/app",
        action="update",
        state="failed",
        at=now + timedelta(seconds=7),
    )
    pw.expect(page.get_by_text("Applied phase deploy: 0 objects in 7 s; 1 failed")).to_be_visible()
    assert complaints(page) == []
    Request.objects.filter(pk=serious.pk).update(state="failed", settled_at=now)
    pw.expect(page.locator(".request-bar .label")).to_have_text("failed")
    pw.expect(page.locator("#log[hx-get]")).to_have_count(0)
    assert heard == []


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_every_tab_has_an_address_and_is_reached_by_the_keyboard(
    scripts: bool, env: World, addresses: dict[str, str], browser: pw.Browser, sign_in: SignIn
) -> None:
    state = sign_in(env.ada).context.storage_state()
    context = browser.new_context(java_script_enabled=scripts, storage_state=state)
    page = context.new_page()
    page.goto(addresses["request"])
    for name, address in zip(TABS, ("request", "findings", "changes", "activity"), strict=True):
        tab = page.get_by_role("navigation", name="Request").get_by_role("link", name=name)
        tab.focus()
        page.keyboard.press("Enter")
        page.wait_for_url(addresses[address])
        pw.expect(page.locator(".tabs [aria-current]")).to_have_text(name)
    context.close()


# One of them is among test_every_page_can_be_used_by_everybody.
@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_every_tab_can_be_used_by_everybody_at_every_width(
    width: int, scheme: str, env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    page.set_viewport_size({"width": width, "height": 800})
    for name in ("request", "findings", "changes", "activity"):
        page.goto(addresses[name])
        assert complaints(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width
