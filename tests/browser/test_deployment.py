"""A deployment's page follows its request by itself, and a form loses nothing: not to an error, not to signing in again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import playwright.sync_api as pw
import pytest
from django.contrib.auth.models import User
from pytest_django.live_server_helper import LiveServer

from approvals.models import BundleDeployment, Outcome, Request
from approvals.steps import evaluate
from tests.browser.complaints import OPEN_ALL, complaints, listen, wider_than
from tests.browser.conftest import PASSWORD
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.revisions import keep_password
from tests.support.approvals.world import acting

WIDTHS = (390, 1280, 1920, 2560)
# Schemes and contrasts that a browser asks for.
LOOKS = (("light", "no-preference"), ("dark", "no-preference"), ("light", "more"), ("dark", "more"))


def at_every_width(page: pw.Page, name: str) -> list[str]:
    """What is wrong with the page as it is: by axe, and where it is wider than the screen."""
    found = []
    for scheme, contrast in LOOKS:
        page.emulate_media(color_scheme=scheme, contrast=contrast)  # type: ignore[arg-type]  # literals of these two
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            # Colours that are still on their way to the other scheme are nobody's.
            page.evaluate("document.getAnimations().forEach(one => one.finish())")
            found += [f"{name} {scheme} {contrast} {width}: {one}" for one in complaints(page)]
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{name} {width}: wider than the screen")
    return found


def password(page: pw.Page, person: User) -> None:
    person.set_password(PASSWORD)
    person.save()
    page.get_by_label("Username").fill(person.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in with the password").click()


@pytest.mark.thorough
def test_what_runs_follows_the_request_until_it_is_applied(
    env: World, afternoon: dict[str, Any], addresses: dict[str, str], sign_in: Any, transactional_db: None
) -> None:
    serious = afternoon["serious"]
    Request.objects.filter(pk=serious.pk).update(state="applying", phase="workloads")
    BundleDeployment.objects.filter(pk=serious.deployment_id).update(health="Current")
    page = sign_in(env.ada)
    heard = listen(page)
    place = f"{addresses['deployments']}/prod/{serious.deployment.name}"
    page.goto(place)
    pw.expect(page.locator("#progress")).to_contain_text("0 of 6 objects")
    Outcome.objects.create(
        request=serious,
        position=0,
        object="Deployment.apps shop/app",
        action="update",
        state="done",
        at=serious.created_at,
    )
    pw.expect(page.locator("#progress")).to_contain_text("1 of 6 objects")
    Request.objects.filter(pk=serious.pk).update(state="applied")
    pw.expect(page.locator("#requests-of-it li").first).to_contain_text("applied")
    pw.expect(page.get_by_text("has changed since you opened the page")).to_be_visible()
    pw.expect(page.locator("#progress[hx-get]")).to_have_count(0)
    pw.expect(page.locator("#requests-of-it")).to_have_count(1)
    assert heard == []


@pytest.mark.thorough
def test_a_denial_and_a_wrong_form_can_be_used_by_everybody(
    env: World, request_: Request, live_server: LiveServer, sign_in: Any, transactional_db: None
) -> None:
    world.review(request_, acting(env.ada), "Deny", reason="not on a Friday")
    evaluate.run(Request.objects.get(pk=request_.pk), "w")
    for verb in ("get", "update"):
        env.kubernetes.allow("rita", verb)
    page = sign_in(env.rita)
    page.goto(f"{live_server.url}/deployments/prod/strimzi")
    page.evaluate(OPEN_ALL)
    found = at_every_width(page, "denied")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator("#progress").get_by_role("link", name="Change it").click()
    for name in ("ServiceAccount", "Install namespace"):
        page.get_by_label(name, exact=True).fill("")
    page.get_by_label("Archive URL").fill("https://example.com/typed.tar.gz")
    page.get_by_role("button", name="Request this change").click()
    pw.expect(page.get_by_role("alert")).to_contain_text(
        "Correct these fields: Install namespace, ServiceAccount, Checksum."
    )
    pw.expect(page.get_by_label("Install namespace", exact=True)).to_be_focused()
    pw.expect(page.get_by_label("Archive URL")).to_have_value("https://example.com/typed.tar.gz")
    page.get_by_role("alert").get_by_role("link", name="ServiceAccount").click()
    pw.expect(page.get_by_label("ServiceAccount", exact=True)).to_be_focused()
    found += at_every_width(page, "wrong form")
    assert found == []


@pytest.mark.thorough
def test_new_values_are_asked_for_after_the_box_is_ticked(
    env: World, twice: BundleDeployment, live_server: LiveServer, sign_in: Any, transactional_db: None
) -> None:
    keep_password(twice, "Xk2abcdef")
    for verb in ("get", "update"):
        env.kubernetes.allow("rita", verb)
    page = sign_in(env.rita)
    page.goto(f"{live_server.url}/deployments/prod/strimzi")
    page.get_by_text("Replace values").click()
    assert at_every_width(page, "replace values") == []
    page.get_by_label("Values to replace").select_option("db/password")
    page.get_by_role("button", name="Request new values").press("Enter")
    tick = page.get_by_label("I know what uses these values")
    pw.expect(tick).to_be_focused()
    assert not Request.objects.filter(purpose="rotate").exists()
    tick.press("Space")
    page.get_by_role("button", name="Request new values").press("Enter")
    pw.expect(page.get_by_text("Rotation requested")).to_be_visible()
    assert Request.objects.get(purpose="rotate").rotation == ["db/password"]


def test_names_to_pick_from_follow_the_namespace_and_any_other_name_can_be_typed(
    env: World, live_server: LiveServer, sign_in: Any, transactional_db: None
) -> None:
    for verb in ("create", "list"):
        env.kubernetes.allow("ada", verb)
    env.kubernetes.names = {("Namespace", ""): ["harbour", "shop"], ("ServiceAccount", "shop"): ["robot"]}
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/deployments")
    page.get_by_role("link", name="New deployment").click()
    pw.expect(page.locator("#namespaces option")).to_have_count(2)
    pw.expect(page.locator("#accounts option")).to_have_count(0)
    page.get_by_label("Install namespace", exact=True).fill("shop")
    page.get_by_label("ServiceAccount", exact=True).fill("own-name")
    pw.expect(page.locator("#accounts option")).to_have_attribute("value", "robot")
    pw.expect(page.get_by_label("ServiceAccount", exact=True)).to_have_value("own-name")
    env.kubernetes.allowed.discard(("ada", "list", "*"))
    page.get_by_label("Install namespace", exact=True).fill("harbour")
    page.get_by_label("Name", exact=True).focus()
    pw.expect(page.get_by_text("could not be listed with your permissions, so type the name")).to_be_visible()
    assert complaints(page) == []
    assert heard == []


@pytest.mark.parametrize("is_another", [False, True], ids=["the same person", "somebody else"])
def test_what_was_typed_is_back_after_signing_in_again_for_the_same_person_alone(
    is_another: bool, env: World, live_server: LiveServer, sign_in: Any, transactional_db: None
) -> None:
    carol = world.user("carol", env.cluster, "platform")
    env.kubernetes.allow("carol", "get")
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/deployments/new")
    page.get_by_label("Name", exact=True).fill("barge")
    page.get_by_label("Image", exact=True).fill("registry.example.com/barge:1")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Request this deployment").click()
    page.wait_for_url("**/sign-in?next=/deployments/new")
    password(page, carol if is_another else env.ada)
    page.wait_for_url(f"{live_server.url}/deployments/new")
    pw.expect(page.get_by_label("Name", exact=True)).to_have_value("" if is_another else "barge")
    pw.expect(page.get_by_label("Image", exact=True)).to_have_value(
        "" if is_another else "registry.example.com/barge:1"
    )
    pw.expect(page.locator("[data-draft-restored]")).to_be_visible(visible=not is_another)
    page.reload()
    pw.expect(page.get_by_label("Name", exact=True)).to_have_value("")
    assert heard == []


@pytest.mark.parametrize("state", ["down", "flaps"])
def test_since_when_a_source_is_down_and_when_a_flapping_one_is_requested_can_be_read_by_everybody(
    state: str, env: World, live_server: LiveServer, sign_in: Any, transactional_db: None
) -> None:
    hour = timedelta(hours=1)
    reference, follower, words = {
        "down": (
            {
                "looked_at": 4 * hour,
                "problem_since": 3 * hour,
                "problem": "https://example.com/app.git: has no refs/heads/main",
            },
            {},
            "Cannot be checked; this failed first 3 h ago",
        ),
        "flaps": (
            {"looked_at": hour / 60},
            {"moved_at": hour / 12, "rests_until": -hour / 2},
            "The next one is created in",
        ),
    }[state]
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), by=env.rita)
    world.following(deployment, reference, follower)
    env.kubernetes.allow("ada", "get")
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/deployments/prod/strimzi")
    pw.expect(page.locator("dd", has_text="every 10m")).to_contain_text(words)
    assert complaints(page) + wider_than(page, 390, 1280) == []
    assert heard == []
