"""The page of changes in a real browser: by keyboard, without scripts, on a telephone, on paper."""

from __future__ import annotations

import re
from typing import Any

import playwright.sync_api as pw
import pytest
from pytest_django.live_server_helper import LiveServer

from approvals.models import Request, ViewedObject
from tests.browser.complaints import OPEN_ALL, complaints, listen, wider_than
from tests.browser.conftest import SignIn
from tests.support.approvals.changes import action, finding, planned
from tests.support.approvals.fixtures import World
from tests.support.provisioner.contents import an_object, config_map

OLD = {f"k{number:03}": "x" for number in range(60)}
HOSTILE = {"<b>\u202ekey</b>": "\x1b[2J" + "y" * 3_000, "text": "one\ntwo\n" + "w" * 300}


def changed(env: World) -> Request:
    """Two objects of which one has two changes and a finding, and a hostile one."""
    one = action(config_map("one", **{**OLD, "k010": "new", "k050": "new"}), config_map("one", **OLD))
    deployment = an_object("apps/v1", "Deployment", "web", "shop", spec={"replicas": 2})
    two = action(deployment, {**deployment, "spec": {"replicas": 1}})
    told = finding(one["ref"], ["data", "k050"], message="This stands at its line")
    return planned(env, one, two, action(config_map("hostile", **HOSTILE)), findings=[told])


def active(page: pw.Page) -> str:
    """The last anchor in the row that has the focus, and the address's own."""
    row: Any = page.evaluate("[...document.activeElement.querySelectorAll('td[id]')].pop()?.id ?? ''")
    assert page.evaluate("location.hash") == f"#{row}"
    return str(row)


def test_changes_are_walked_by_keys_from_object_to_object(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    request, page = changed(env), sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/requests/{request.uid}/changes/0")
    places = []
    for key in "nnp":
        page.keyboard.press(key)
        places.append(active(page))
    assert places == ["o0-L17", "o0-L57", "o0-L17"]
    page.reload()
    pw.expect(page.locator("#o0-L17")).to_be_in_viewport()
    page.keyboard.press("n")
    assert active(page) == "o0-L57"
    page.keyboard.press("n")
    page.wait_for_url("**/changes/2")
    page.get_by_role("searchbox").first.focus()
    page.keyboard.press("n")
    pw.expect(page.get_by_role("searchbox").first).to_have_value("n")
    page.get_by_role("button", name="Keys n and p: on").click()
    page.locator("body").click(position={"x": 2, "y": 2})
    page.keyboard.press("n")
    assert page.evaluate("location.hash") == ""
    page.reload()
    pw.expect(page.get_by_role("button", name="Keys n and p: off")).to_be_visible()
    assert heard == []


def test_a_gap_opens_in_place_and_a_line_keeps_its_address(
    env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    request, page = changed(env), sign_in(env.ada)
    heard = listen(page)
    page.goto(f"{live_server.url}/requests/{request.uid}/changes/0")
    pw.expect(page.get_by_text("k030")).to_have_count(0)
    page.get_by_role("link", name="First 20").first.click()
    pw.expect(page.get_by_text("k030")).to_be_visible()
    line = page.locator("#o0-R37 a")
    line.click()
    page.wait_for_url("**?at=R37#o0-R37")
    page.reload()
    pw.expect(page.locator("#o0-R37")).to_be_in_viewport()
    pw.expect(page.get_by_text("This stands at its line")).to_be_visible()
    assert heard == []


def test_folded_lines_open_by_keyboard_and_it_is_told_how_many_there_are(
    env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    request, page = changed(env), sign_in(env.ada)
    page.goto(f"{live_server.url}/requests/{request.uid}/changes/0")
    told = page.get_by_role("status").filter(has_text="loaded")
    page.get_by_role("link", name="First 20").first.focus()
    page.keyboard.press("Enter")
    pw.expect(told).to_have_text("20 lines loaded, more are folded")
    pw.expect(page.locator("tr:focus")).to_contain_text("k014")
    page.route("**/lines?*", lambda route: route.abort())
    page.get_by_role("link", name=re.compile("^Show [0-9]+ unchanged")).first.focus()
    page.keyboard.press("Enter")
    pw.expect(page.get_by_role("alert")).to_have_text("The lines could not be loaded. Try again, or reload the page.")
    page.unroute("**/lines?*")
    page.keyboard.press("Enter")
    pw.expect(told).to_have_text(re.compile("^[0-9]+ lines loaded$"))
    pw.expect(page.get_by_role("alert")).to_have_count(0)


def test_side_by_side_only_one_side_is_copied(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    request, page = changed(env), sign_in(env.ada)
    page.goto(f"{live_server.url}/requests/{request.uid}/changes/1?view=split")
    page.locator("td[data-side=new] .line-text").first.click()
    page.locator(".diff-table tbody").evaluate("one => getSelection().selectAllChildren(one)")
    copied = page.evaluate("getSelection().toString()")
    assert ("replicas: 2" in copied, "replicas: 1" in copied) == (True, False)
    assert "+" not in copied


def test_everything_works_without_scripts(
    env: World, live_server: LiveServer, browser: pw.Browser, sign_in: SignIn
) -> None:
    request = changed(env)
    context = browser.new_context(java_script_enabled=False, storage_state=sign_in(env.ada).context.storage_state())
    page = context.new_page()
    page.goto(f"{live_server.url}/requests/{request.uid}")
    page.get_by_role("navigation", name="Request").get_by_role("link", name="Changes").click()
    pw.expect(page.get_by_role("heading", level=2, name="Plan 2 objects to change, 1 to create")).to_be_visible()
    page.get_by_role("link", name="shop/one").first.click()
    page.get_by_role("link", name="First 20").first.click()
    pw.expect(page.get_by_text("k030")).to_be_visible()
    page.get_by_role("link", name="Next change").first.click()
    pw.expect(page.locator("#o0-L17")).to_be_in_viewport()
    page.get_by_role("link", name="Split").click()
    pw.expect(page.locator("td[data-side=old]").first).to_be_visible()
    page.get_by_role("button", name="Viewed").click()
    pw.expect(page.get_by_role("button", name="Viewed")).to_have_attribute("aria-pressed", "true")
    assert ViewedObject.objects.get().user == env.ada
    page.get_by_role("checkbox", name="Not viewed").check()
    page.get_by_role("button", name="Filter").click()
    pw.expect(page.get_by_role("region", name="Objects by phase").get_by_role("link")).to_have_count(2)
    page.get_by_role("link", name="more characters").click()
    pw.expect(page.get_by_text("y" * 2_500)).to_be_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.thorough)])
def test_nobody_is_kept_out_and_nothing_is_wider_than_the_screen(
    scheme: str, env: World, live_server: LiveServer, sign_in: SignIn
) -> None:
    request, page = changed(env), sign_in(env.ada)
    heard = listen(page)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # one of the two words that it takes
    wrong: dict[str, list[str]] = {}
    for path in ("", "/0", "/0?view=split", "/2"):
        page.goto(f"{live_server.url}/requests/{request.uid}/changes{path}")
        page.evaluate(OPEN_ALL)
        if found := complaints(page) + wider_than(page, 1280, 390):
            wrong[path] = found
    page.emulate_media(contrast="more")
    assert complaints(page) == []
    assert wrong == {}
    assert heard == []


def test_on_paper_only_what_changes_is_left(env: World, live_server: LiveServer, sign_in: SignIn) -> None:
    request, page = changed(env), sign_in(env.ada)
    page.goto(f"{live_server.url}/requests/{request.uid}/changes")
    page.emulate_media(media="print")
    pw.expect(page.get_by_role("complementary")).to_be_hidden()
    pw.expect(page.get_by_role("button", name="Viewed").first).to_be_hidden()
    pw.expect(page.locator("tr[data-change]").first).to_be_visible()
    pw.expect(page.get_by_text("This stands at its line")).to_be_visible()
