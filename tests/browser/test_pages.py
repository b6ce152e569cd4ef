"""The pages in a real browser: read, decide, by keyboard, in light and dark, on a telephone, by everybody."""

from __future__ import annotations

from typing import Any

import playwright.sync_api as pw
import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from approvals.models import KubernetesIdentity, Outcome, Request, Review
from tests.browser.complaints import CHECKED, OPEN_ALL, complaints, listen
from tests.browser.conftest import SignIn
from tests.browser.tabs import press
from tests.support.approvals import world
from tests.support.approvals.fixtures import World


def test_somebody_signs_in_and_approves_by_clicking(
    env: World, afternoon: dict[str, Any], addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(addresses["inbox"])
    page.get_by_role("link", name="harbour").click()
    page.get_by_label("Reason").fill("announced last week")
    page.get_by_role("button", name="Approve").click()
    pw.expect(page.get_by_role("alert")).to_contain_text("type the name harbour")
    pw.expect(page.get_by_label("Reason")).to_have_value("announced last week")
    page.get_by_label("To approve, type").fill("harbour")
    page.get_by_role("button", name="Approve").click()
    pw.expect(page.get_by_text("Your decision: Approve")).to_be_visible()
    review = Review.objects.get(request=afternoon["serious"])
    assert (review.user, review.channel, review.reason) == (env.ada, "browser", "announced last week")
    assert [one for one in heard if "422" not in one] == []


def test_deletions_are_ticked_and_denied_or_approved(
    env: World, afternoon: dict[str, Any], addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    page.goto(addresses["deletion"])
    boxes = page.get_by_role("group", name="To approve, acknowledge these").get_by_role("checkbox")
    # One for each kind of loss: the definition with its objects, the data of a claim, what else is deleted.
    assert boxes.count() == 3
    for number in range(3):
        boxes.nth(number).check()
    page.get_by_label("Reason").fill("moved away")
    page.get_by_label("To approve, type").fill("buoy")
    page.get_by_role("button", name="Approve").click()
    pw.expect(page.get_by_text("Your decision: Approve")).to_be_visible()


def test_a_page_that_was_open_too_long_says_what_moved(
    env: World, afternoon: dict[str, Any], addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    page.goto(addresses["request"])
    Request.objects.filter(pk=afternoon["serious"].pk).update(subject_digest=f"sha256:{'e' * 64}")
    page.get_by_role("button", name="Deny").click()
    pw.expect(page.get_by_role("heading", level=1)).to_have_text("This has changed since you opened it")
    page.get_by_role("link", name="Back to the page").click()
    pw.expect(page.get_by_text("sha256:eeeeeeeeeeee")).to_be_visible()


def test_the_lines_of_an_object_are_fetched_where_it_is_opened(
    env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(addresses["request"])
    row = page.locator("details", has=page.locator("summary", has_text="Deployment.apps shop/app")).last
    row.locator("summary").click()
    pw.expect(row.locator("[data-change]").first).to_be_visible()
    assert heard == []


def test_progress_moves_by_itself_and_ends(
    env: World, afternoon: dict[str, Any], addresses: dict[str, str], sign_in: SignIn
) -> None:
    serious = afternoon["serious"]
    Request.objects.filter(pk=serious.pk).update(state="applying")
    page = sign_in(env.ada)
    page.goto(addresses["request"])
    pw.expect(page.get_by_text("0 of 6 objects")).to_be_visible()
    with transaction.atomic():
        Outcome.objects.create(
            request=serious,
            position=0,
            object="Deployment.apps shop/app",
            action="update",
            state="done",
            at=serious.created_at,
        )
    pw.expect(page.get_by_text("1 of 6 objects")).to_be_visible()
    Request.objects.filter(pk=serious.pk).update(claimed_by="dead", claimed_until=serious.created_at)
    pw.expect(page.get_by_text("The worker that was applying it has stopped.")).to_be_visible()
    Request.objects.filter(pk=serious.pk).update(state="applied")
    pw.expect(page.locator("#progress .label", has_text="applied")).to_be_visible()
    pw.expect(page.locator("#progress[hx-get]")).to_have_count(0)


def test_lists_are_walked_by_keys(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    page.goto(addresses["inbox"])
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    pw.expect(page.get_by_role("heading", level=1)).to_contain_text("harbour")


def test_forms_work_without_scripts(
    env: World, addresses: dict[str, str], browser: pw.Browser, sign_in: SignIn
) -> None:
    signed_in = sign_in(env.ada)
    context = browser.new_context(java_script_enabled=False, storage_state=signed_in.context.storage_state())
    page = context.new_page()
    page.goto(addresses["request"])
    page.locator("summary", has_text="Deployment.apps shop/app").click()
    page.locator("details[open] .object-lines").get_by_role("link", name="Show what changes").click()
    pw.expect(page.locator("[data-change]").first).to_be_visible()
    page.goto(addresses["request"])
    page.get_by_role("button", name="Deny", exact=True).click()
    pw.expect(page.get_by_role("alert")).to_contain_text("You gave no reason for the denial.")
    page.get_by_role("button", name="Deny without a reason").click()
    pw.expect(page.get_by_text("Your decision: Deny")).to_be_visible()
    context.close()


def test_light_and_dark_are_chosen_and_kept(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    page.goto(addresses["inbox"])
    page.emulate_media(color_scheme="dark")
    press(page, "Light")
    pw.expect(page.get_by_role("button", name="Dark")).to_be_visible()
    page.goto(addresses["audit"])
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(242, 242, 242)"
    press(page, "Dark")
    pw.expect(page.get_by_role("button", name="Light")).to_be_visible()
    assert page.url == addresses["audit"]
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(21, 21, 21)"


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_every_page_can_be_used_by_everybody(
    scheme: str, env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    for verb in ("update", "delete"):
        env.kubernetes.allow("ada", verb)
    page = sign_in(env.ada)
    heard = listen(page)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    found, widths = {}, {}
    for name in CHECKED:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(addresses[name])
        page.evaluate(OPEN_ALL)
        found[name] = complaints(page)
        page.set_viewport_size({"width": 360, "height": 800})
        widths[name] = page.evaluate("document.documentElement.scrollWidth")
    assert {name: what for name, what in found.items() if what} == {}
    assert {name: width for name, width in widths.items() if width > 360} == {}, "wider than a telephone"
    assert heard == []


def also_known(person: User, *clusters: str) -> None:
    """Have the operator map the person on further clusters, under a long name."""
    for name in clusters:
        KubernetesIdentity.objects.create(
            user=person,
            cluster=world.cluster(name),
            authenticator=KubernetesIdentity.Authenticator.MAPPED,
            username=f"corp-directory:{person.username}.lovelace@research.example.com",
            groups=["platform", "research"],
            groups_seen_at=timezone.now(),
        )


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("width", [360, pytest.param(1280, marks=pytest.mark.thorough)])
def test_every_page_says_as_whom_one_acts_in_a_line_that_moves_nothing(
    width: int, scheme: str, env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    """With four identities: the line has two, and its list all, by keyboard, without moving the page below it."""
    also_known(env.ada, "east-production-eu-central-1", "north", "west")
    page = sign_in(env.ada)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    page.set_viewport_size({"width": width, "height": 800})
    heading = page.get_by_role("heading", level=1)
    for name in ("inbox", "audit", "policies", "clusters", "me"):
        page.goto(addresses[name])
        group = page.get_by_role("group", name="Your identities")
        pw.expect(group).to_be_in_viewport()
        pw.expect(group.locator("summary")).to_contain_text("and 2 more")
        assert group.locator("summary time").first.get_attribute("title")
        before = heading.bounding_box()
        group.locator("summary").focus()
        page.keyboard.press("Enter")
        pw.expect(group.get_by_role("listitem")).to_have_count(4)
        pw.expect(group.get_by_role("listitem").last).to_be_visible()
        assert heading.bounding_box() == before
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.locator(".acting-list").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert complaints(page) == []
    page.keyboard.press("Tab")
    with page.expect_navigation(url="**/me"):
        page.keyboard.press("Enter")


@pytest.mark.thorough
def test_the_line_stays_in_sight_while_one_reads_on(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(addresses["findings"])
    line = page.get_by_role("group", name="Your identities")
    pw.expect(line).to_contain_text(
        "Signed in as ada on prod (platform) · password, verified just now · expires in 12 h"
    )
    # Not by the wheel: to wait for where it ends, Playwright evaluates text in the page, which our policy forbids.
    assert page.evaluate("window.scrollTo({top: 700, behavior: 'instant'}), window.scrollY") > 500
    pw.expect(line).to_be_in_viewport()
    # The bar that leads to the decision follows the reader below the line.
    masthead, bar = (page.locator(what).bounding_box() for what in (".masthead", ".request-bar"))
    assert masthead is not None
    assert bar is not None
    assert bar["y"] >= masthead["y"] + masthead["height"]


def test_no_main_page_is_cut_off_in_the_navigation_of_a_telephone(
    env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(addresses["clusters"])
    last = page.get_by_role("navigation", name="Main").get_by_role("link").last.bounding_box()
    assert last is not None
    assert last["x"] + last["width"] <= 360


@pytest.mark.thorough
def test_short_names_are_not_broken(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    """In tables, where a column is as narrow as what it holds can be made."""
    broken = """() => [...document.querySelectorAll("td.mono")].filter((cell) => {
      const text = document.createRange();
      text.selectNodeContents(cell);
      const lines = new Set([...text.getClientRects()].map((box) => Math.round(box.bottom / 8)));
      return !/[\\s-]/.test(cell.innerText.trim()) && cell.innerText.trim().length < 24 && lines.size > 1;
    }).map((cell) => cell.innerText)"""
    page = sign_in(env.ada)
    found = {}
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for name in ("all-requests", "deployments", "deployment", "audit", "me", "policies"):
            page.goto(addresses[name])
            found[name, width] = page.evaluate(broken)
    assert {at: what for at, what in found.items() if what} == {}


def test_the_form_asks_for_the_chosen_kind_of_source_alone(
    env: World, addresses: dict[str, str], browser: pw.Browser, sign_in: SignIn
) -> None:
    signed_in = sign_in(env.ada)
    context = browser.new_context(java_script_enabled=False, storage_state=signed_in.context.storage_state())
    page = context.new_page()
    page.goto(addresses["deployment-form"])
    pw.expect(page.get_by_label("Image")).to_be_visible()
    pw.expect(page.get_by_label("Repository")).to_be_hidden()
    page.get_by_label("Source", exact=True).select_option("configMap")
    pw.expect(page.locator("fieldset.source:visible")).to_have_count(1)
    pw.expect(page.get_by_label("ConfigMap")).to_be_visible()
    page.locator("summary", has_text="Applying, drift and health").click()
    for words in ("If applying fails", "Health checks", "Constraints", "Progress deadline"):
        pw.expect(page.get_by_label(words)).to_be_visible()
    context.close()


def test_a_refused_decision_is_seen_on_a_telephone(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    """The form stands far down there: its first wrong field has the focus, and each says what is wrong with it."""
    page = sign_in(env.ada)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(addresses["request"])
    page.get_by_role("button", name="Approve").click()
    pw.expect(page.get_by_role("textbox", name="Reason")).to_be_focused()
    for words in ("enter why you approve it anyway", "type the name harbour"):
        pw.expect(page.get_by_role("alert").filter(has_text=words)).to_be_in_viewport()
    page.locator(".alert", has_text="Nothing was decided").get_by_role("link", name="Decision").click()
    pw.expect(page.get_by_role("heading", name="Decision")).to_be_in_viewport()


@pytest.mark.thorough
def test_paper_holds_nothing_to_press(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    for verb in ("override", "create"):
        env.kubernetes.allow("ada", verb)
    page = sign_in(env.ada)
    for name, offered in (
        ("findings", "Accept this finding"),
        ("request", "Changes line by line"),
        ("rights", "Schemas"),
        ("inbox", "More filters"),
        ("reviewed-request", "Change your decision"),
        ("catalog-package", "Install"),
    ):
        page.emulate_media(media="screen")
        page.goto(addresses[name])
        page.evaluate(OPEN_ALL)
        pw.expect(page.get_by_text(offered).first, name).to_be_visible()
        page.emulate_media(media="print")
        pw.expect(page.get_by_text(offered).first, name).to_be_hidden()
        for what in ("button", "input", "textarea", "select", "nav", "a:text-matches('^(Show|Changes line)')"):
            pw.expect(page.locator(f"{what}:visible"), name).to_have_count(0)


@pytest.mark.thorough
def test_paper_is_white_and_nothing_is_cut_off_at_its_edge(
    env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    page.goto(addresses["inbox"])
    press(page, "Dark")
    page.set_viewport_size({"width": 500, "height": 700})
    for name in ("request", "findings", "rights", "printed-report", "catalogs", "catalog", "catalog-package"):
        page.emulate_media(media="screen")
        page.goto(addresses[name])
        page.evaluate(OPEN_ALL)
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") <= 500, name
        ink = page.evaluate("getComputedStyle(document.body).color.match(/[0-9]+/g).map(Number)")
        assert max(ink) < 100, f"{ink} on white paper: {name}"
