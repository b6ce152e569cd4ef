"""The form of a policy: names of facts are completed by keyboard, and a draft is tried from it."""

from __future__ import annotations

import os

import playwright.sync_api as pw

from tests.browser.complaints import complaints, listen, wider_than
from tests.browser.conftest import SignIn
from tests.support.approvals.fixtures import World


def test_a_fact_is_completed_by_keyboard_and_the_draft_tried(
    env: World, addresses: dict[str, str], sign_in: SignIn
) -> None:
    page = sign_in(env.ada)
    heard = listen(page)
    page.goto(addresses["inbox"] + "policies/new")
    page.get_by_label("Start from a template").select_option("hold-unknown")
    page.get_by_role("button", name="Fill in the form").click()
    expression = page.get_by_role("textbox", name="Expression")
    pw.expect(expression).to_have_value('severities["unknown"] == 0')
    expression.press("End")
    expression.press_sequentially(" && worst_")
    proposals = page.get_by_role("listbox", name="Facts")
    pw.expect(proposals.get_by_role("option")).to_have_count(2)
    expression.press("ArrowDown")
    pw.expect(proposals.get_by_role("option", selected=True)).to_contain_text("worst_new")
    assert complaints(page) == []
    expression.press("Enter")
    pw.expect(proposals).to_be_hidden()
    expression.press_sequentially(' == "safe"')
    pw.expect(expression).to_have_value('severities["unknown"] == 0 && worst_new == "safe"')
    page.get_by_role("button", name="Try on past requests").click()
    pw.expect(page.get_by_text("It would have held")).to_be_visible()
    assert complaints(page) + wider_than(page, 360, 1280) == []
    assert heard == []
    if folder := os.environ.get("SHOTS"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/form-{scheme}.png", full_page=True)
