"""How pages look by what a reader chose or their system asks for: density, width, dark, more contrast, forced colours."""

from __future__ import annotations

from typing import Any

import playwright.sync_api as pw
import pytest

from tests.browser.complaints import OPEN_ALL, complaints
from tests.browser.conftest import SignIn
from tests.browser.tabs import press
from tests.support.approvals.fixtures import World

WIDE = {"width": 2560, "height": 1440}
WIDTHS = (390, 1280, 1920, 2560)
LOOKS: dict[str, dict[str, Any]] = {
    "more contrast": {"contrast": "more"},
    "more contrast, dark": {"contrast": "more", "color_scheme": "dark"},
    "forced colours": {"forced_colors": "active"},
    "forced colours, dark": {"forced_colors": "active", "color_scheme": "dark"},
}
# Each colour of tokens.css as it is painted.
PAINTED = """() => {
  const names = [...document.styleSheets[0].cssRules[0].style].filter((name) => name.startsWith("--"));
  const probe = document.body.appendChild(document.createElement("i"));
  const painted = {};
  for (const name of names) {
    probe.style.color = "";
    probe.style.color = `var(${name})`;
    const is = getComputedStyle(document.documentElement).getPropertyValue(name);
    if (/^(#|light-dark)/.test(is.trim())) painted[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return painted;
}"""
# Of each filter the controls of one line that stand lower or are higher than the line's first.
UNEVEN = """() => [...document.querySelectorAll(".filters")].flatMap((form) => {
  const shown = [...form.querySelectorAll(":scope > :is(input, select, .button), :scope > label > input")];
  const boxes = shown.map((one) => one.getBoundingClientRect()).filter((box) => box.height > 20);
  return boxes.filter((box) => {
    const first = boxes.find((other) => Math.abs(other.top - box.top) < 16);
    return Math.abs(first.top - box.top) > 0.5 || Math.abs(first.height - box.height) > 0.5;
  }).map((box) => `${location.pathname}: ${box.top} ${box.height}`);
})"""


def row_height(page: pw.Page) -> float:
    box = page.locator("tbody tr").first.bounding_box()
    assert box is not None
    return box["height"]


def page_width(page: pw.Page) -> float:
    box = page.locator("main").bounding_box()
    assert box is not None
    return box["width"]


def test_density_and_width_are_chosen_and_kept(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    page.set_viewport_size(WIDE)  # type: ignore[arg-type] # literals of these two
    page.goto(addresses["audit"])
    high, wide = row_height(page), page_width(page)
    press(page, "Compact")
    press(page, "Fixed width")
    assert page.url == addresses["audit"]
    assert row_height(page) < high - 5
    assert page_width(page) < wide / 1.5
    page.goto(addresses["all-requests"])
    for name in ("Compact", "Fixed width"):
        pw.expect(page.get_by_role("button", name=name, exact=True)).to_have_attribute("aria-pressed", "true")
    assert page_width(page) < wide / 1.5
    assert complaints(page) == []
    page.goto(addresses["audit"])
    press(page, "Comfortable")
    press(page, "Full width")
    assert (row_height(page), page_width(page)) == (high, wide)


def test_dark_is_the_same_by_the_system_and_by_choice(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    page.goto(addresses["audit"])
    light = page.evaluate(PAINTED)
    assert len(light) > 30
    page.emulate_media(color_scheme="dark")
    by_system = page.evaluate(PAINTED)
    assert [name for name, colour in by_system.items() if colour == light[name]] == []
    page.emulate_media(color_scheme="light")
    press(page, "Dark")
    assert page.evaluate(PAINTED) == by_system
    page.emulate_media(media="print")
    assert page.evaluate(PAINTED) == light


def test_who_asks_for_more_contrast_is_shown_the_strongest_colours(
    env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    """Axe asks for less than they do: it finds nothing where these colours are as usual."""
    page = sign_in(env.ada)
    page.goto(addresses["audit"])
    strongest = {"--line": "--line-strong", "--text-quiet": "--text"}
    strongest |= dict.fromkeys(("--code-key", "--code-text", "--code-value", "--code-mark"), "--text")
    for look in ("more contrast", "more contrast, dark"):
        page.emulate_media(**LOOKS[look])
        painted = page.evaluate(PAINTED)
        assert {name: painted[name] for name in strongest} == {name: painted[of] for name, of in strongest.items()}, (
            look
        )


@pytest.mark.parametrize("width", [1280, pytest.param(1920, marks=pytest.mark.thorough)])
def test_what_a_filter_asks_for_stands_in_one_line(
    width: int, env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    page.set_viewport_size({"width": width, "height": 800})
    uneven = []
    for name in ("inbox", "deployments", "deployment", "findings", "changes", "audit"):
        page.goto(addresses[name])
        page.evaluate(OPEN_ALL)
        uneven += page.evaluate(UNEVEN)
    assert uneven == []


@pytest.mark.thorough
@pytest.mark.parametrize("look", LOOKS)
def test_every_page_can_be_used_by_everybody_who_needs_contrast(
    look: str, env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    page.emulate_media(**LOOKS[look])
    found: dict[str, list[str]] = {}
    for name, address in addresses.items():
        page.goto(address)
        page.evaluate(OPEN_ALL)
        # Where the system's colours are forced, axe still reads ours, which nobody sees.
        found[name] = [one for one in complaints(page) if "forced" not in look or "color-contrast" not in one]
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found[name].append(f"wider than {width}")
    assert {name: what for name, what in found.items() if what} == {}


# What is read in another size than those of the scale; monospaced type is drawn a little smaller beside other type.
OFF_SCALE = """() => {
  const scale = [12, 14, 16, 20, 28], mono = 0.93, found = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const one = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !one.checkVisibility() || one.closest("option, svg, script")) continue;
    const style = getComputedStyle(one), size = parseFloat(style.fontSize);
    const sizes = style.fontFamily.includes("Mono") ? [...scale, ...scale.map((is) => is * mono)] : scale;
    if (!sizes.some((is) => Math.abs(is - size) < 0.1)) found.add(`${size} ${one.tagName} ${one.className}`);
  }
  return [...found];
}"""


@pytest.mark.thorough
def test_type_has_five_sizes(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    found = {}
    for name in addresses.keys() - {"printed-report"}:
        page.goto(addresses[name])
        page.evaluate(OPEN_ALL)
        found[name] = page.evaluate(OFF_SCALE)
    assert {name: what for name, what in found.items() if what} == {}


def test_who_opens_lines_is_told_that_they_are_loading(env: World, addresses: dict[str, str], sign_in: SignIn) -> None:
    page = sign_in(env.ada)
    page.goto(addresses["request"])
    page.route("**/changes/*", lambda _: None)
    row = page.locator("details.object > summary").first
    row.click()
    pw.expect(row).to_contain_class("htmx-request")
    assert "Loading" in row.evaluate("one => getComputedStyle(one, '::after').content")
    page.unroute_all(behavior="ignoreErrors")


@pytest.mark.thorough
def test_what_is_empty_has_a_picture_and_says_what_comes_there(
    env: World, afternoon: dict[str, Any], addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    request = addresses["request"].replace(str(afternoon["serious"].uid), str(afternoon["quiet"].uid))
    empty = [f"{request}/{tab}" for tab in ("rights", "schemas", "findings?search=nothing", "changes?search=nothing")]
    lists = [f"{addresses[name]}?search=nothing&actor=nobody" for name in ("inbox", "deployments", "audit")]
    for address in (*empty, *lists):
        page.goto(address)
        (shown,) = page.locator(".empty").all()
        pw.expect(shown.locator("svg.picture"), address).to_be_visible()
        pw.expect(shown.locator("p").first, address).to_be_visible()
        assert complaints(page) == [], address
